//! `bench hot-account`: every design for a hot account on one server, in one run.
//!
//! Each row has a database of its own with the product's tables, in which every design writes the same rows for an
//! operation: a request and an entry. Clients are in processes of their own, each with one operation at a time; what
//! ends in the window after the warm-up counts. Afterwards the books are read by SQL and held against what the clients
//! were told. A published design that breaks its books says so: that is a result.

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::Serialize;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, raw_sql};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use self::ask::{COLD_ACCOUNTS, HOT, cold};
use self::books::Books;
use self::client::Work;
use self::crew::Crew;
use self::private::Server;
use crate::config::bench::hot::{Direction, HotAccount, Mode};

mod aggregator;
mod ask;
mod books;
mod chart;
pub(crate) mod client;
mod crew;
mod direct;
mod private;
mod text;

/// Caches fill and connections find their pace.
const WARM_UP: Duration = Duration::from_secs(1);
/// The rows that others are held against are those of so many clients.
const COMPARED_AT: u32 = 64;

/// One measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) mode: &'static str,
    pub(crate) operation: &'static str,
    pub(crate) clients: u32,
    pub(crate) processes: u32,
    pub(crate) ops_per_s: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Operations that the design answered without doing them: too little money, or a credit that it lost.
    pub(crate) refused: u64,
    /// Times that a client ran an operation again, for whatever reason.
    pub(crate) retries: u64,
    /// Those because of a deadlock.
    pub(crate) deadlocks: u64,
    /// Of the private server; of another nobody knows.
    pub(crate) server_cpu_s: Option<f64>,
    /// Of all processes of clients.
    pub(crate) client_cpu_s: f64,
    /// `ops_per_s` over that of `single` with this operation at 64 clients.
    pub(crate) ratio_to_single_row: Option<f64>,
    pub(crate) invariants_ok: bool,
    /// What does not hold, in words.
    #[serde(skip)]
    pub(crate) broken: Vec<String>,
}

/// What stands over rows that are shown to people.
pub(crate) const HEADINGS: &str = "mode                       operation clients  procs     ops/s   p50 ms   p99 ms  refused  \
                                   retries deadlocks server s client s  of single  invariants";

/// Measures what was asked for; `each` hears every row as soon as it is there. A chart is drawn at the end.
///
/// # Errors
/// A server that can't be reached or started, or that fails; an interrupt; what `each` says.
pub(crate) fn run(args: &HotAccount, each: &mut dyn FnMut(Row) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        // Dropped on the way out, the measurement takes its processes and its server with it.
        let measured = tokio::select! {
            measured = measure(args, each) => measured,
            _ = term.recv() => Err(anyhow::anyhow!("interrupted")),
            _ = int.recv() => Err(anyhow::anyhow!("interrupted")),
        };
        // A private server takes it along.
        if let (Err(_), Some(url)) = (&measured, &args.store)
            && let Err(error) = drop_database(&mut connect(url).await?).await
        {
            eprintln!("wallet-backend: database {} stays: {error}", database());
        }
        measured
    })
}

async fn measure(args: &HotAccount, each: &mut dyn FnMut(Row) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let most = args.clients.iter().copied().max().unwrap_or(1);
    let server = match args.private {
        Some(_) => Some(Server::start(&args.dir, args.binlog, most).await?),
        None => None,
    };
    let url = match (&server, &args.store) {
        (Some(server), _) => server.url(),
        (None, Some(url)) => url.clone(),
        (None, None) => bail!("no server to measure on"),
    };
    let bench = Bench { args, url, server };
    let mut rows = Vec::new();
    for direction in &args.operation {
        let mut single = None;
        for (mode, clients) in plan(args, *direction) {
            let row = bench.row(mode, *direction, clients).await?;
            if mode == Mode::Single && clients == COMPARED_AT {
                single = Some(row.ops_per_s);
            }
            let row = row.over_single(single);
            rows.push(row.clone());
            each(row)?;
        }
    }
    if let Some(path) = &args.chart {
        let drawn = chart::draw(&rows);
        std::fs::write(path, drawn).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// What is measured for one operation, in which order: what others are held against comes first.
fn plan(args: &HotAccount, direction: Direction) -> Vec<(Mode, u32)> {
    let modes = args.modes.0.iter().filter(|mode| mode.differs_for(direction));
    let mut plan: Vec<(Mode, u32)> = modes
        .flat_map(|mode| args.clients.iter().map(|clients| (*mode, *clients)))
        .collect();
    plan.sort_by_key(|step| *step != (Mode::Single, COMPARED_AT));
    plan
}

struct Bench<'a> {
    args: &'a HotAccount,
    url: String,
    server: Option<Server>,
}

impl Bench<'_> {
    async fn row(&self, mode: Mode, direction: Direction, clients: u32) -> anyhow::Result<Row> {
        let what = || {
            let (mode, direction) = (mode.name(), direction.name());
            format!("{mode}, {direction}, {clients} clients")
        };
        let mut connection = connect(&self.url).await?;
        let row = self.row_with(&mut connection, mode, direction, clients);
        let row = row.await.with_context(what)?;
        drop_database(&mut connection).await?;
        Ok(row)
    }

    async fn row_with(
        &self,
        connection: &mut MySqlConnection,
        mode: Mode,
        direction: Direction,
        clients: u32,
    ) -> anyhow::Result<Row> {
        let args = self.args;
        prepare(connection, mode).await?;
        let before = Books::read(connection).await?;
        let mut crew = Crew::start(self.work(mode, direction, clients)).await?;
        crew.go().await?;
        sleep(WARM_UP).await;
        let cpu = self.server_cpu()?;
        sleep(args.seconds).await;
        let cpu = self
            .server_cpu()?
            .zip(cpu)
            .map(|(after, before)| after.saturating_sub(before).as_secs_f64());
        let came = crew.came().await?;
        if mode == Mode::Journal {
            aggregator::settle_all(&client::options(&self.url, &database())?).await?;
        }
        let after = Books::read(connection).await?;
        let [p50_ms, p99_ms] = came.quantiles([0.5, 0.99])?;
        let broken = after.wrong(&before, came.told);
        Ok(Row {
            mode: mode.name(),
            operation: direction.name(),
            clients,
            processes: args.processes,
            ops_per_s: came.ops as f64 / args.seconds.as_secs_f64(),
            p50_ms,
            p99_ms,
            refused: came.refused,
            retries: came.retries,
            deadlocks: came.deadlocks,
            server_cpu_s: cpu,
            client_cpu_s: came.cpu.as_secs_f64(),
            ratio_to_single_row: None,
            invariants_ok: broken.is_empty(),
            broken,
        })
    }

    /// The clients, spread as evenly as it goes.
    fn work(&self, mode: Mode, direction: Direction, clients: u32) -> Vec<Work> {
        let processes = self.args.processes;
        let first = |process: u32| {
            let before = u64::from(clients) * u64::from(process) / u64::from(processes);
            u32::try_from(before).unwrap_or(clients)
        };
        let share = |process: u32| first(process.saturating_add(1)).saturating_sub(first(process));
        (0..processes)
            .filter(|process| share(*process) > 0)
            .map(|process| Work {
                url: self.url.clone(),
                database: database(),
                mode,
                direction,
                first: first(process),
                clients: share(process),
                warm_up: WARM_UP,
                measured: self.args.seconds,
            })
            .collect()
    }

    fn server_cpu(&self) -> anyhow::Result<Option<Duration>> {
        self.server.as_ref().map(Server::cpu).transpose()
    }
}

/// Named after the process, so that two benches on one server do not meet.
fn database() -> String {
    format!("wallet_bench_{}", std::process::id())
}

async fn drop_database(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    let text = format!("DROP DATABASE IF EXISTS {}", database());
    raw_sql(AssertSqlSafe(text)).execute(connection).await?;
    Ok(())
}

async fn connect(url: &str) -> anyhow::Result<MySqlConnection> {
    let options: MySqlConnectOptions = url.parse()?;
    let connected = options.disable_statement_logging().connect().await;
    // Without the URL, which may have a password in it.
    connected.context("cannot connect to the server")
}

/// A database with the product's tables and the mode's accounts; the connection uses it.
async fn prepare(connection: &mut MySqlConnection, mode: Mode) -> anyhow::Result<()> {
    let database = database();
    let made = format!("DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database}; USE {database}");
    raw_sql(AssertSqlSafe(made)).execute(&mut *connection).await?;
    raw_sql(text::SCHEMA).execute(&mut *connection).await?;
    if mode == Mode::PublishedSumHaving {
        raw_sql(text::WITHOUT_CHECKS).execute(&mut *connection).await?;
    }
    let (names, slots) = match mode {
        Mode::ColdSingle => ((0..COLD_ACCOUNTS).map(cold).collect(), 1),
        Mode::Single => (vec![HOT.to_owned()], 1),
        Mode::SlotSkipLocked
        | Mode::SlotBlind
        | Mode::Upsert
        | Mode::Journal
        | Mode::Hashed
        | Mode::PublishedRandSkipLocked
        | Mode::PublishedSumHaving => (vec![HOT.to_owned()], text::SLOTS),
    };
    let accounts = text::accounts(&names, slots, mode == Mode::Hashed);
    raw_sql(AssertSqlSafe(accounts)).execute(&mut *connection).await?;
    Ok(())
}

impl Row {
    fn over_single(self, single: Option<f64>) -> Self {
        let ratio_to_single_row = single.map(|single| self.ops_per_s / single);
        Self {
            ratio_to_single_row,
            ..self
        }
    }
}

/// One line, below [`HEADINGS`].
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            mode,
            operation,
            clients,
            processes,
            ops_per_s,
            p50_ms,
            p99_ms,
            refused,
            retries,
            deadlocks,
            client_cpu_s,
            ..
        } = self;
        write!(
            f,
            "{mode:<27}{operation:<9}{clients:>8}{processes:>7}{ops_per_s:>10.0}"
        )?;
        write!(
            f,
            "{p50_ms:>9.2}{p99_ms:>9.2}{refused:>9}{retries:>9}{deadlocks:>10}"
        )?;
        match self.server_cpu_s {
            Some(cpu) => write!(f, "{cpu:>9.2}")?,
            None => write!(f, "{:>9}", "-")?,
        }
        write!(f, "{client_cpu_s:>9.2}")?;
        match self.ratio_to_single_row {
            Some(ratio) => write!(f, "{ratio:>11.2}")?,
            None => write!(f, "{:>11}", "-")?,
        }
        if self.invariants_ok {
            return f.write_str("  ok");
        }
        write!(f, "  BROKEN: {}", self.broken.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::direct::{Direct, Done};
    use super::*;
    use crate::config::bench::hot::Switch;

    fn row() -> Row {
        Row {
            mode: "single",
            operation: "debit",
            clients: 64,
            processes: 1,
            ops_per_s: 3_000.0,
            p50_ms: 20.0,
            p99_ms: 50.0,
            refused: 0,
            retries: 0,
            deadlocks: 0,
            server_cpu_s: Some(1.5),
            client_cpu_s: 0.5,
            ratio_to_single_row: None,
            invariants_ok: false,
            broken: vec!["slots below zero: 1 instead of 0".to_owned()],
        }
    }

    #[test]
    fn a_row_in_json_has_these_fields_and_no_other() {
        let json = serde_json::to_value(row().over_single(Some(1_500.0))).unwrap();
        let expected = serde_json::json!({
            "mode": "single", "operation": "debit", "clients": 64, "processes": 1, "ops_per_s": 3000.0,
            "p50_ms": 20.0, "p99_ms": 50.0, "refused": 0, "retries": 0, "deadlocks": 0, "server_cpu_s": 1.5,
            "client_cpu_s": 0.5, "ratio_to_single_row": 2.0, "invariants_ok": false,
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn people_are_told_what_does_not_hold() {
        let line = row().to_string();
        assert!(
            line.ends_with("BROKEN: slots below zero: 1 instead of 0"),
            "{line}"
        );
    }

    #[test]
    #[ignore = "needs MariaDB: tests/run"]
    fn a_wrong_row_planted_in_the_tables_is_found() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let server = Server::start(folder.path(), Switch::Off, 8).await.unwrap();
            let mut connection = connect(&server.url()).await.unwrap();
            prepare(&mut connection, Mode::Single).await.unwrap();
            let before = Books::read(&mut connection).await.unwrap();
            let options = client::options(&server.url(), &database()).unwrap();
            let mut told = books::Told::default();
            for (number, direction) in [(0, Direction::Credit), (1, Direction::Debit)] {
                let client = Direct::connect(&options, Mode::Single, direction, number);
                let (done, _) = client.await.unwrap().once(1).await.unwrap();
                let Done::Posted(moved) = done else {
                    panic!("{done:?}");
                };
                told.moved += moved;
                told.requests += 1;
            }
            let sound = Books::read(&mut connection).await.unwrap();
            assert_eq!(sound.wrong(&before, told), Vec::<String>::new());

            for (planted, undone, word) in [
                (
                    "UPDATE wallet_slot SET balance = balance + 1",
                    "UPDATE wallet_slot SET balance = balance - 1",
                    "last entry",
                ),
                (
                    "UPDATE account_entry SET delta = 301 WHERE version = 2",
                    "UPDATE account_entry SET delta = -200 WHERE version = 2",
                    "follow the one before",
                ),
                (
                    "UPDATE request SET version = 9 WHERE version = 1",
                    "UPDATE request SET version = 1 WHERE version = 9",
                    "without their entry",
                ),
            ] {
                raw_sql(planted).execute(&mut connection).await.unwrap();
                let wrong = Books::read(&mut connection).await.unwrap().wrong(&before, told);
                assert!(
                    wrong.iter().any(|line| line.contains(word)),
                    "{planted}: {wrong:?}"
                );
                raw_sql(undone).execute(&mut connection).await.unwrap();
            }
            assert_eq!(Books::read(&mut connection).await.unwrap(), sound);
        });
    }
}
