//! A process of clients: the bench starts itself again for each. One line on stdin says what to do, `ready` goes out once
//! all clients are there, `go` starts them, and one line says what came of it.

use std::io::{BufRead as _, Write as _, stdin, stdout};
use std::time::Duration;

use anyhow::Context as _;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use sqlx::mysql::MySqlConnectOptions;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use wallet_backend::clock::Clock;

use super::aggregator;
use super::direct::{Again, Direct, Done};
use super::product::{self, Product};
use crate::bench::measure::process_cpu;
use crate::config::bench::hot::{Direction, Mode};

/// Connections that are made at once: more would overrun a server's queue.
const CONNECTING: usize = 16;

/// What one process is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Work {
    pub(super) url: String,
    pub(super) database: String,
    pub(super) mode: Mode,
    pub(super) direction: Direction,
    /// Its clients: their numbers among those of all processes.
    pub(super) first: u32,
    pub(super) clients: u32,
    pub(super) warm_up: Duration,
    pub(super) measured: Duration,
}

/// What came of it. Sums over all clients; counts and latencies of what ended while it was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Came {
    pub(super) ops: u64,
    pub(super) refused: u64,
    pub(super) retries: u64,
    pub(super) deadlocks: u64,
    /// Processor time of the process.
    pub(super) cpu: Duration,
    /// Microseconds and how many took as long.
    pub(super) latencies: Vec<(u64, u64)>,
    /// From the first operation to the last, warm-up included.
    pub(super) told: super::books::Told,
}

/// Latencies to 1 % and up to a minute.
///
/// # Errors
/// None in practice: the bounds are constants.
pub(super) fn histogram() -> anyhow::Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, 60_000_000, 2)?)
}

/// A process of clients, from its first line to its last.
///
/// # Errors
/// A line that is none; what the server says.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut lines = stdin().lock().lines();
    let line = lines.next().context("nobody says what to do")??;
    let work: Work = serde_json::from_str(&line).context("not a description of work")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let options = options(&work.url, &work.database)?;
        let clients = work.clients(&options).await.context("clients cannot connect")?;
        say("ready")?;
        lines.next().context("nobody says go")??;
        let came = drive(&work, &options, clients).await?;
        say(&serde_json::to_string(&came)?)
    })
}

impl Work {
    /// All of its clients, ready to go.
    async fn clients(&self, options: &MySqlConnectOptions) -> anyhow::Result<Vec<Client>> {
        let (mode, direction) = (self.mode, self.direction);
        let numbers = self.first..self.first.saturating_add(self.clients);
        if mode.is_product() {
            let wallet = product::wallet(&self.url, &self.database, self.clients).await?;
            let client = |number| Product::new(wallet.clone(), mode, direction, number);
            return Ok(numbers.map(client).map(Client::Product).collect());
        }
        stream::iter(numbers)
            .map(|number| Direct::connect(options, mode, direction, number))
            .buffered(CONNECTING)
            .map_ok(Client::Direct)
            .try_collect()
            .await
    }
}

/// Whoever asks for one operation after the other.
#[derive(Debug)]
enum Client {
    Direct(Direct),
    Product(Product),
}

impl Client {
    async fn once(&mut self, clock: &Clock) -> anyhow::Result<(Done, Again)> {
        match self {
            Self::Direct(client) => client.once(clock.now().0).await,
            Self::Product(client) => Ok((client.once().await?, Again::default())),
        }
    }
}

/// # Errors
/// None in practice: the URL has been parsed before.
pub(super) fn options(url: &str, database: &str) -> anyhow::Result<MySqlConnectOptions> {
    Ok(url.parse::<MySqlConnectOptions>()?.database(database))
}

fn say(line: &str) -> anyhow::Result<()> {
    let mut stdout = stdout().lock();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}

/// When what counts begins and ends.
#[derive(Clone, Copy, Debug)]
struct Window {
    begins: Instant,
    ends: Instant,
}

async fn drive(work: &Work, options: &MySqlConnectOptions, clients: Vec<Client>) -> anyhow::Result<Came> {
    let begins = Instant::now() + work.warm_up;
    let window = Window {
        begins,
        ends: begins + work.measured,
    };
    let mut tasks = JoinSet::new();
    for client in clients {
        tasks.spawn(call(client, window));
    }
    let settling = async {
        if work.mode == Mode::Journal {
            aggregator::settle_for_ever(options).await
        } else {
            std::future::pending().await
        }
    };
    let cpu = async {
        sleep_until(window.begins).await;
        let before = process_cpu();
        sleep_until(window.ends).await;
        process_cpu().saturating_sub(before)
    };
    let called = async {
        let mut all = Told::new()?;
        while let Some(ended) = tasks.join_next().await {
            all.add(&ended??)?;
        }
        anyhow::Ok(all)
    };
    let measured = async {
        let (called, cpu) = tokio::join!(called, cpu);
        called.map(|told| told.into_came(cpu))
    };
    tokio::select! {
        came = measured => came,
        failed = settling => Err(failed.err().context("the aggregator has ended")?),
    }
}

/// One client's operations, one after the other, until the window ends.
async fn call(mut client: Client, window: Window) -> anyhow::Result<Told> {
    let clock = Clock::default();
    let mut told = Told::new()?;
    loop {
        let since = Instant::now();
        if since >= window.ends {
            return Ok(told);
        }
        let (done, again) = client.once(&clock).await?;
        let ended = Instant::now();
        let counts = ended >= window.begins && ended < window.ends;
        told.take(done, again, counts.then(|| ended.duration_since(since)));
    }
}

/// What clients were told so far.
#[derive(Debug)]
struct Told {
    came: Came,
    latencies: Histogram<u64>,
}

impl Told {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            came: Came::default(),
            latencies: histogram()?,
        })
    }

    /// One answer; `took` if it is one of those that count.
    fn take(&mut self, done: Done, again: Again, took: Option<Duration>) {
        let came = &mut self.came;
        let (moved, requests) = match done {
            Done::Posted(moved) | Done::Lost(moved) => (moved, 1),
            Done::Kept => (0, 1),
            Done::Refused => (0, 0),
        };
        came.told.moved = came.told.moved.saturating_add(moved);
        came.told.requests = came.told.requests.saturating_add(requests);
        let Some(took) = took else { return };
        came.retries = came.retries.saturating_add(again.retries);
        came.deadlocks = came.deadlocks.saturating_add(again.deadlocks);
        match done {
            Done::Posted(_) => {
                came.ops = came.ops.saturating_add(1);
                let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
                self.latencies.saturating_record(micros);
            }
            Done::Lost(_) | Done::Refused | Done::Kept => came.refused = came.refused.saturating_add(1),
        }
    }

    fn add(&mut self, other: &Self) -> anyhow::Result<()> {
        self.latencies.add(&other.latencies)?;
        self.came.add(&other.came);
        Ok(())
    }

    fn into_came(self, cpu: Duration) -> Came {
        let recorded = self.latencies.iter_recorded();
        Came {
            cpu,
            latencies: recorded
                .map(|value| (value.value_iterated_to(), value.count_at_value()))
                .collect(),
            ..self.came
        }
    }
}

impl Came {
    /// Counts that of another process, too.
    pub(super) fn add(&mut self, other: &Self) {
        self.ops = self.ops.saturating_add(other.ops);
        self.refused = self.refused.saturating_add(other.refused);
        self.retries = self.retries.saturating_add(other.retries);
        self.deadlocks = self.deadlocks.saturating_add(other.deadlocks);
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.latencies.extend_from_slice(&other.latencies);
        self.told.moved = self.told.moved.saturating_add(other.told.moved);
        self.told.requests = self.told.requests.saturating_add(other.told.requests);
    }

    /// Milliseconds at each of these quantiles.
    ///
    /// # Errors
    /// None in practice, as for [`histogram`].
    pub(super) fn quantiles<const N: usize>(&self, at: [f64; N]) -> anyhow::Result<[f64; N]> {
        let mut merged = histogram()?;
        for (micros, count) in &self.latencies {
            merged.saturating_record_n(*micros, *count);
        }
        Ok(at.map(|quantile| merged.value_at_quantile(quantile) as f64 / 1e3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn what_ends_outside_of_the_window_is_in_the_books_and_not_in_the_rate() {
        let mut told = Told::new().unwrap();
        told.take(Done::Posted(300), Again::default(), None);
        told.take(Done::Posted(-200), Again::default(), Some(MILLISECOND));
        let came = told.into_came(Duration::ZERO);
        assert_eq!((came.ops, came.told.moved, came.told.requests), (1, 100, 2));
    }

    #[test]
    fn a_lost_credit_is_acknowledged_and_counts_as_refused() {
        let mut told = Told::new().unwrap();
        told.take(Done::Lost(300), Again::default(), Some(MILLISECOND));
        let came = told.into_came(Duration::ZERO);
        assert_eq!((came.ops, came.refused, came.told.moved), (0, 1, 300));
    }

    #[test]
    fn processes_are_merged_into_one_row_over_their_pipes() {
        let mut merged = Came::default();
        for (took, retries) in [(1, 2), (3, 0)] {
            let mut told = Told::new().unwrap();
            let again = Again {
                retries,
                deadlocks: 1,
            };
            told.take(Done::Posted(300), again, Some(took * MILLISECOND));
            let line = serde_json::to_string(&told.into_came(MILLISECOND)).unwrap();
            merged.add(&serde_json::from_str(&line).unwrap());
        }
        assert_eq!((merged.ops, merged.retries, merged.deadlocks), (2, 2, 2));
        assert_eq!((merged.cpu, merged.told.moved), (2 * MILLISECOND, 600));
        let [p50, p99] = merged.quantiles([0.5, 0.99]).unwrap();
        assert!(
            (0.9..1.1).contains(&p50) && (2.9..3.1).contains(&p99),
            "{p50} {p99}"
        );
    }
}
