//! Clocks, processor time, resident memory and latencies.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

use super::Row;

/// Processor time that all threads of this process have used.
pub(super) fn process_cpu() -> Duration {
    cpu(ClockId::ProcessCPUTime)
}

/// The same of this thread.
pub(super) fn thread_cpu() -> Duration {
    cpu(ClockId::ThreadCPUTime)
}

fn cpu(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Bytes of this process that are in memory.
///
/// # Errors
/// A system without `/proc`.
pub(super) fn resident() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let kilobytes = kilobytes.context("/proc/self/status has no VmRSS")?;
    Ok(kilobytes.saturating_mul(1024))
}

/// Latencies, to 1 % and up to a minute. Clones count into the same.
#[derive(Clone, Debug)]
pub(super) struct Latencies(Arc<Mutex<Histogram<u64>>>);

impl Latencies {
    /// # Errors
    /// None in practice: the bounds are constants.
    pub(super) fn new() -> anyhow::Result<Self> {
        let histogram = Histogram::new_with_bounds(1, 60_000_000, 2)?;
        Ok(Self(Arc::new(Mutex::new(histogram))))
    }

    /// Counts what began at `since` and ends now.
    pub(super) fn end(&self, since: Instant) {
        let micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.lock().saturating_record(micros);
    }

    /// In milliseconds.
    fn at(&self, quantile: f64) -> f64 {
        self.lock().value_at_quantile(quantile) as f64 / 1e3
    }

    fn lock(&self) -> MutexGuard<'_, Histogram<u64>> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a span of work took.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) elapsed: Duration,
    pub(super) cpu: Duration,
}

impl Span {
    /// The row of `ops` operations in calls of these latencies. Batch, ratios and the proof are the caller's.
    pub(super) fn row(&self, work: &'static str, clients: u32, ops: u64, latencies: &Latencies) -> Row {
        let ops = ops as f64;
        Row {
            work,
            batch: 1.0,
            clients,
            ops_per_s: ops / self.elapsed.as_secs_f64(),
            cpu_us_per_op: self.cpu.as_secs_f64() * 1e6 / ops.max(1.0),
            p50_ms: latencies.at(0.5),
            p99_ms: latencies.at(0.99),
            ratio_to_raw: None,
            ratio_to_constant: None,
            bytes_per_account: None,
            invariants_ok: false,
        }
    }
}
