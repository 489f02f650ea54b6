//! What checking a data directory found, for people.

use std::fmt;

use crate::account::{AccountId, SlotIndex};
use crate::journal::Root;

/// What was read, and everything that is not as it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub segments: usize,
    pub batches: u64,
    /// Pages of 4 KiB that these batches take.
    pub pages: u64,
    pub records: u64,
    pub entries: u64,
    pub requests: u64,
    pub accounts: u64,
    /// The newest checkpoint, and how many runs go with it.
    pub checkpoint: Option<u64>,
    pub runs: usize,
    /// Segment and page of a last batch that was never wholly written, and never acknowledged. No fault.
    pub torn: Option<(u64, u32)>,
    /// The root of the whole history, to be kept elsewhere. `None` where it could not be read to its end.
    pub root: Option<Root>,
    /// Roots of earlier days, and given ones, that the history agrees with.
    pub roots: u64,
    pub findings: Vec<Finding>,
    /// Findings that were not kept.
    pub more_findings: u64,
}

/// One thing that is wrong. Amounts in minor units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub what: String,
    pub account: Option<AccountId>,
    pub slot: Option<SlotIndex>,
    pub version: Option<u64>,
    pub segment: Option<u64>,
    /// Of the page, in the segment's file.
    pub offset: Option<u64>,
    pub expected: Option<i64>,
    pub found: Option<i64>,
}

impl Report {
    /// Nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl Finding {
    pub(super) fn text(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            account: None,
            slot: None,
            version: None,
            segment: None,
            offset: None,
            expected: None,
            found: None,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            segments,
            batches,
            pages,
            records,
            entries,
            requests,
            accounts,
            ..
        } = self;
        write!(
            f,
            "{segments} segments, {batches} batches on {pages} pages, {records} records: "
        )?;
        writeln!(f, "{accounts} accounts, {entries} entries, {requests} requests")?;
        match self.checkpoint {
            Some(number) => writeln!(f, "checkpoint {number} with {} index runs", self.runs)?,
            None => writeln!(f, "no checkpoint yet")?,
        }
        if let Some((segment, page)) = self.torn {
            writeln!(
                f,
                "the last batch, never acknowledged, is torn (segment {segment}, page {page})"
            )?;
        }
        if let Some(root) = self.root {
            writeln!(f, "root {root}; {} earlier ones agree", self.roots)?;
        }
        for finding in &self.findings {
            writeln!(f, "FOUND {finding}")?;
        }
        if self.more_findings > 0 {
            writeln!(f, "and {} more", self.more_findings)?;
        }
        match self.findings.len() {
            0 => write!(f, "all is well"),
            _ => write!(f, "this ledger is not as it was written"),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(account) = &self.account {
            write!(f, ", account {account}")?;
        }
        if let Some(slot) = self.slot {
            write!(f, ", slot {}", slot.get())?;
        }
        if let Some(version) = self.version {
            write!(f, ", version {version}")?;
        }
        if let Some(segment) = self.segment {
            write!(f, ", segment {segment}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", byte {offset}")?;
        }
        if let Some(expected) = self.expected {
            write!(f, ", expected {expected}")?;
        }
        if let Some(found) = self.found {
            write!(f, ", found {found}")?;
        }
        Ok(())
    }
}
