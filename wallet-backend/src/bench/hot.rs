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
use self::row::HEADINGS;
pub(crate) use self::row::Row;
use crate::config::bench::hot::{Direction, HotAccount, Mode, Scenario};

mod aggregator;
mod ask;
mod books;
mod chart;
pub(crate) mod client;
mod crew;
mod direct;
mod private;
mod product;
mod row;
pub(crate) mod scenario;
mod text;

/// Caches fill and connections find their pace.
const WARM_UP: Duration = Duration::from_secs(1);
/// The rows that others are held against are those of so many clients.
const COMPARED_AT: u32 = 64;

/// A row of the modes, or a run of a scenario.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Measured {
    Row(Row),
    Run(scenario::Run),
}

impl Measured {
    pub(crate) fn invariants_ok(&self) -> bool {
        match self {
            Self::Row(row) => row.invariants_ok,
            Self::Run(run) => run.invariants_ok,
        }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(row) => row.fmt(f),
            Self::Run(run) => run.fmt(f),
        }
    }
}

/// What stands over what is shown to people.
pub(crate) fn headings(args: &HotAccount) -> &'static str {
    match args.scenario {
        None => HEADINGS,
        Some(Scenario::Published) => scenario::HEADINGS,
    }
}

/// What people may hold it against.
pub(crate) fn beside(args: &HotAccount) -> &'static [&'static str] {
    match args.scenario {
        None => &[],
        Some(Scenario::Published) => &scenario::PUBLISHED,
    }
}

/// Measures what was asked for; `each` hears every row as soon as it is there. A chart is drawn at the end.
///
/// # Errors
/// A server that can't be reached or started, or that fails; an interrupt; what `each` says.
pub(crate) fn run(
    args: &HotAccount,
    each: &mut dyn FnMut(Measured) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
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

async fn measure(
    args: &HotAccount,
    each: &mut dyn FnMut(Measured) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let server = match args.private {
        Some(_) => Some(Server::start(&args.dir, args.binlog, args.most_clients()).await?),
        None => None,
    };
    let url = match (&server, &args.store) {
        (Some(server), _) => server.url(),
        (None, Some(url)) => url.clone(),
        (None, None) => bail!("no server to measure on"),
    };
    let bench = Bench { args, url, server };
    if let Some(Scenario::Published) = args.scenario {
        return scenario::published(&bench, &mut |run| each(Measured::Run(run))).await;
    }
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
            each(Measured::Row(row))?;
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
        .flat_map(|mode| args.clients().iter().map(|clients| (*mode, *clients)))
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
        prepare(&self.url, connection, mode).await?;
        let before = Books::read(connection).await?;
        let mut crew = Crew::start(self.work(mode, direction, clients)).await?;
        crew.go().await?;
        sleep(WARM_UP).await;
        let cpu = self.server_cpu()?;
        sleep(args.seconds()).await;
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
            ops_per_s: came.ops as f64 / args.seconds().as_secs_f64(),
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
                measured: self.args.seconds(),
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
async fn prepare(url: &str, connection: &mut MySqlConnection, mode: Mode) -> anyhow::Result<()> {
    let database = database();
    let made = format!("DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database}; USE {database}");
    raw_sql(AssertSqlSafe(made)).execute(&mut *connection).await?;
    product::set_up(url, &database).await?;
    if mode == Mode::PublishedSumHaving {
        raw_sql(text::WITHOUT_CHECKS).execute(&mut *connection).await?;
    }
    let (names, slots) = match mode {
        Mode::ColdSingle | Mode::Cold => ((0..COLD_ACCOUNTS).map(cold).collect(), 1),
        Mode::Single | Mode::Combined => (vec![HOT.to_owned()], 1),
        Mode::SlotSkipLocked
        | Mode::SlotBlind
        | Mode::Upsert
        | Mode::Journal
        | Mode::Hashed
        | Mode::CombinedSlots
        | Mode::PublishedRandSkipLocked
        | Mode::PublishedSumHaving => (vec![HOT.to_owned()], text::SLOTS),
    };
    let accounts = text::accounts(&names, slots, mode == Mode::Hashed);
    raw_sql(AssertSqlSafe(accounts)).execute(&mut *connection).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::direct::{Direct, Done};
    use super::*;
    use crate::config::bench::hot::Switch;
    use crate::config::{Action, Cli, bench};

    #[test]
    fn every_client_is_in_one_process() {
        let arguments = ["--private", "mariadb", "--processes", "3"];
        let arguments = ["wallet-backend", "bench", "hot-account"]
            .iter()
            .chain(&arguments);
        let Action::Bench(bench::Bench::HotAccount(args)) = Cli::try_parse_from(arguments).unwrap().command
        else {
            panic!("hot-account was asked for");
        };
        let bench = Bench {
            args: &args,
            url: "mysql://root@127.0.0.1".to_owned(),
            server: None,
        };
        let spread = |clients| -> Vec<(u32, u32)> {
            let work = bench.work(Mode::Single, Direction::Debit, clients);
            work.iter().map(|work| (work.first, work.clients)).collect()
        };
        assert_eq!(spread(64), [(0, 21), (21, 21), (42, 22)]);
        assert_eq!(spread(1), [(0, 1)]);
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
            prepare(&server.url(), &mut connection, Mode::Single)
                .await
                .unwrap();
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
