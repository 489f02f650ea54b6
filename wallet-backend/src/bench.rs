//! `bench engine`: what this build does on this machine, with everything on, beside what the disk alone would do.
//!
//! One hot account, credits and debits in turn, every answer durable: requests, entries and chains are all written.
//! After each row the books are proved: the balance is the sum of what was acknowledged, and reading the whole log
//! again (`verify`) finds nothing. A row whose invariants do not hold says so, whatever its speed.
//!
//! Ratios are between rows of one run, since disks and neighbours change from minute to minute.

use std::fmt;

use serde::Serialize;

use crate::config::bench::{Engine, Work};

mod accounts;
mod folder;
#[cfg(feature = "mysql")]
pub(crate) mod hot;
mod http;
mod library;
mod measure;
mod raw;
mod traffic;

/// One measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) work: &'static str,
    /// Operations to a sync, as it came out.
    pub(crate) batch: f64,
    /// Calls under way at once.
    pub(crate) clients: u32,
    pub(crate) ops_per_s: f64,
    /// Processor time of the whole process; over HTTP without that of the clients.
    pub(crate) cpu_us_per_op: f64,
    /// Of a call, which may be for a whole batch.
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// `ops_per_s` over that of raw at the same batch size; over HTTP, at the last size that was measured.
    pub(crate) ratio_to_raw: Option<f64>,
    /// `cpu_us_per_op` over that of the same server answering a constant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ratio_to_constant: Option<f64>,
    /// What resident memory grew by, over the accounts opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_per_account: Option<f64>,
    pub(crate) invariants_ok: bool,
}

/// What stands over rows that are shown to people.
pub(crate) const HEADINGS: &str = "work             batch  clients       ops/s cpu us/op   p50 ms   p99 ms  of raw  \
                                   invariants";

/// Measures what was asked for; `each` hears every row as soon as it is there. Memory comes first, while the process
/// is fresh.
///
/// # Errors
/// A ledger that can't be made where it should be, or stops; what `each` says.
pub(crate) fn engine(args: &Engine, each: &mut dyn FnMut(Row) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let wanted = |work| args.work.contains(&work);
    if wanted(Work::Accounts) {
        each(accounts::run(args)?)?;
    }
    let mut raw = None;
    for batch in &args.batch {
        let mut bytes_per_op = raw::RECORD_BYTES;
        let mut library = None;
        if wanted(Work::Library) {
            let (row, bytes) = library::batches(args, *batch)?;
            library = Some(row);
            bytes_per_op = bytes;
        }
        if wanted(Work::Raw) {
            let row = raw::run(args, *batch, bytes_per_op)?;
            raw = Some(row.ops_per_s);
            each(row)?;
        }
        if let Some(row) = library {
            each(row.over_raw(raw))?;
        }
        if wanted(Work::LibrarySingle) {
            each(library::single(args, *batch)?.over_raw(raw))?;
        }
    }
    if wanted(Work::HttpBatch) {
        each(http::batches(args)?.over_raw(raw))?;
    }
    if wanted(Work::HttpSingle) {
        let constant = http::constant(args)?;
        let cpu = constant.cpu_us_per_op;
        each(constant)?;
        let row = http::single(args)?;
        let ratio_to_constant = Some(row.cpu_us_per_op / cpu);
        each(Row {
            ratio_to_constant,
            ..row
        })?;
    }
    Ok(())
}

impl Row {
    fn over_raw(self, raw: Option<f64>) -> Self {
        let ratio_to_raw = raw.map(|raw| self.ops_per_s / raw);
        Self { ratio_to_raw, ..self }
    }
}

/// One line, below [`HEADINGS`].
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            work,
            batch,
            clients,
            ops_per_s,
            cpu_us_per_op,
            p50_ms,
            p99_ms,
            ..
        } = self;
        write!(
            f,
            "{work:<14}{batch:>8.1}{clients:>9}{ops_per_s:>12.0}{cpu_us_per_op:>10.2}"
        )?;
        write!(f, "{p50_ms:>9.3}{p99_ms:>9.3}")?;
        match self.ratio_to_raw {
            Some(ratio) => write!(f, "{ratio:>8.2}")?,
            None => write!(f, "{:>8}", "-")?,
        }
        f.write_str(if self.invariants_ok { "  ok" } else { "  BROKEN" })?;
        if let Some(ratio) = self.ratio_to_constant {
            write!(f, ", {ratio:.2} x the CPU of a constant answer")?;
        }
        if let Some(bytes) = self.bytes_per_account {
            write!(f, ", {bytes:.0} bytes an account")?;
        }
        Ok(())
    }
}
