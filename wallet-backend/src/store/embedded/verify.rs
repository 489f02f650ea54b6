//! Proving a data directory: the whole log is read and replayed from its beginning, and compared with all that was
//! derived from it.
//!
//! Every page's checksum and chain; every record and its links; per slot the chain of balances and versions; no
//! balance under zero; no request twice, no reversal twice, no hold ended twice; receipts, their entries and what they
//! undo; per currency, what came in less what went out is what the accounts have; the newest checkpoint and its runs,
//! item by item; and the roots of the history ([`Heads`]). Changes nothing.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::account::AccountId;
use crate::command::{Changes, Outcome};
use crate::journal::{Heads, Root};
use crate::ledger::invariants::{Violation, check_rows};
use crate::money::Currency;
use crate::store::embedded::books::{Books, filed};
use crate::store::embedded::checkpoint::{Loaded, load_every};
use crate::store::embedded::disk::{Disk, RealDisk};
use crate::store::embedded::error::{Damage, OpenError};
use crate::store::embedded::layout::Layout;
use crate::store::embedded::links::Links;
use crate::store::embedded::open::refuse_without_log;
use crate::store::embedded::open::take_lock;
use crate::store::embedded::record::{Record, decode};
use crate::store::embedded::records::Records;
use crate::store::embedded::report::{Finding, Report};
use crate::store::embedded::requests::Older;
use crate::store::embedded::scan::{Batch, Scan, split_position};
use crate::store::embedded::segment::{Mark, offset};
use crate::store::embedded::verify::roots::Witnesses;

pub(in crate::store::embedded) mod receipts;
mod roots;

/// Findings beyond these are counted, not kept: a damaged directory may have millions.
const MOST_FINDINGS: usize = 1_000;

/// Why a directory could not be checked at all.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error("there is no store in this directory")]
    NoStore,
    #[error(transparent)]
    Open(OpenError),
}

/// Checks the store in `directory`. Blocks; takes as long as reading the whole log.
///
/// # Errors
/// The directory could not be checked: in use, unreadable, of an unknown version, or no store at all. Damage is no
/// error but a finding.
pub fn verify(directory: impl Into<PathBuf>) -> Result<Report, VerifyError> {
    verify_on(&(Arc::new(RealDisk::new(directory)) as Arc<dyn Disk>), |_, _| ())
}

/// The same on any disk. `progress` hears how many pages of how many have been read.
///
/// # Errors
/// As [`verify`].
pub fn verify_on(disk: &Arc<dyn Disk>, progress: impl FnMut(u64, u64)) -> Result<Report, VerifyError> {
    verify_against(disk, &[], progress)
}

/// The same, and that the history has these roots: nothing that they cover was changed since they were taken, not even
/// by somebody who made every checksum right again.
///
/// # Errors
/// As [`verify`].
pub fn verify_against(
    disk: &Arc<dyn Disk>,
    roots: &[Root],
    mut progress: impl FnMut(u64, u64),
) -> Result<Report, VerifyError> {
    let lock = match take_lock(disk.as_ref()) {
        Err(OpenError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Err(VerifyError::NoStore);
        }
        lock => lock.map_err(VerifyError::Open)?,
    };
    let mut report = Report::default();
    let layout = match Layout::read(disk.as_ref()) {
        Ok(layout) if layout.extents.is_empty() => {
            return match refuse_without_log(disk.as_ref()) {
                Ok(()) => Err(VerifyError::NoStore),
                Err(error) => finding_or(error, report),
            };
        }
        Ok(layout) => layout,
        Err(error) => return finding_or(error, report),
    };
    let mut check = Check::new(disk, &layout, roots, &mut report)?;
    let outcome = check.read_log(&layout, &mut progress);
    if outcome.is_ok() {
        check.finish();
        check.finish_roots();
    }
    drop(lock);
    match outcome {
        Ok(()) => Ok(report),
        Err(error) => finding_or(error, report),
    }
}

/// Damage is what was looked for; anything else kept us from looking.
fn finding_or(error: OpenError, mut report: Report) -> Result<Report, VerifyError> {
    match error {
        OpenError::Damaged(damage) => {
            report.findings.push(damage.into());
            Ok(report)
        }
        OpenError::InUse | OpenError::Io { .. } | OpenError::Version { .. } | OpenError::NoLedger { .. } => {
            Err(VerifyError::Open(error))
        }
    }
}

/// A check under way.
struct Check<'a> {
    report: &'a mut Report,
    store: u64,
    records: Records,
    books: Books,
    /// Every fingerprint with its position, as far as the log was read.
    filed: HashMap<u64, Vec<u64>>,
    /// In less out, by currency.
    outside: BTreeMap<Currency, i128>,
    /// What consolidation has moved, by account: nothing, in sum.
    moved: HashMap<AccountId, i128>,
    checkpoint: Option<Loaded>,
    end: Mark,
    heads: Heads,
    witnesses: Witnesses,
}

impl<'a> Check<'a> {
    fn new(
        disk: &Arc<dyn Disk>,
        layout: &Layout,
        roots: &[Root],
        report: &'a mut Report,
    ) -> Result<Self, VerifyError> {
        let store = layout.store().unwrap_or_default();
        let witnesses = Witnesses::gather(disk.as_ref(), store, roots, &mut report.findings);
        let (newest, damaged) = load_every(disk.as_ref(), store).map_err(VerifyError::Open)?;
        report.findings.extend(damaged.into_iter().map(Finding::of_file));
        report.segments = layout.extents.len();
        report.checkpoint = newest.as_ref().map(|loaded| loaded.number);
        report.runs = newest.as_ref().map_or(0, |loaded| loaded.runs.len());
        Ok(Self {
            report,
            store,
            records: Records::new(Arc::clone(disk), store),
            books: Books::new(store, Vec::new(), Older::default()),
            filed: HashMap::new(),
            outside: BTreeMap::new(),
            moved: HashMap::new(),
            checkpoint: newest,
            end: Mark::default(),
            heads: Heads::default(),
            witnesses: witnesses.map_err(VerifyError::Open)?,
        })
    }

    fn read_log(&mut self, layout: &Layout, progress: &mut dyn FnMut(u64, u64)) -> Result<(), OpenError> {
        let pages = layout.extents.iter().map(|extent| u64::from(extent.end)).sum();
        let mut scan = Scan::after(layout, Mark::default())?;
        let (mut before, mut segment) = (0, 0);
        self.compare_roots();
        while let Some(batch) = scan.next()? {
            self.batch(&batch)?;
            self.end = batch.end;
            if segment != batch.end.place.segment {
                segment = batch.end.place.segment;
                let earlier = layout
                    .extents
                    .iter()
                    .filter(|extent| extent.head.number < segment);
                before = earlier.map(|extent| u64::from(extent.end)).sum();
            }
            progress(u64::from(batch.end.place.page).saturating_add(before), pages);
            if self
                .checkpoint
                .as_ref()
                .is_some_and(|loaded| loaded.mark == batch.end)
            {
                self.compare_checkpoint();
            }
        }
        self.report.torn = scan.torn().map(|place| (place.segment, place.page));
        progress(pages, pages);
        Ok(())
    }

    fn batch(&mut self, batch: &Batch) -> Result<(), OpenError> {
        self.report.batches = self.report.batches.saturating_add(1);
        let (segment, page) = (batch.first.segment, batch.first.page);
        let pages = batch.end.place.page.saturating_sub(page);
        self.report.pages = self.report.pages.saturating_add(pages.into());
        for (position, bytes) in batch.records()? {
            let record = decode(bytes).map_err(|error| Damage::record(segment, page, &error))?;
            self.record(position, &record)?;
            if let Err(violation) = self.books.apply(&record.changes, position) {
                self.found(Finding::of_violation(violation).at(position));
                // The books are half changed: nothing that follows can be judged.
                return Err(Damage::at(
                    segment,
                    page,
                    "the log breaks the books; nothing after was checked",
                )
                .into());
            }
            self.chain(&record.changes);
        }
        Ok(())
    }

    /// What can be said of a record before it is applied.
    fn record(&mut self, position: u64, record: &Record) -> Result<(), OpenError> {
        let Record {
            changes,
            links,
            number,
        } = record;
        if *number != self.books.entries() {
            let mut finding = Finding::text("the record counts other entries before it than there are");
            finding.expected = i64::try_from(self.books.entries()).ok();
            finding.found = i64::try_from(*number).ok();
            self.found(finding.at(position));
        }
        self.report.records = self.report.records.saturating_add(1);
        let entries = u64::try_from(changes.entries.len()).unwrap_or(u64::MAX);
        self.report.entries = self.report.entries.saturating_add(entries);
        let of_log: Vec<Links> = self.books.links(changes).collect();
        for (of_log, found) in of_log.iter().zip(links) {
            if (of_log.before, of_log.skip) != (found.before, found.skip) {
                self.found(Finding::text("an entry's links lead elsewhere").at(position));
            }
            if of_log.trace != found.trace {
                self.found(Finding::text("an entry's sums are not those of the log before it").at(position));
            }
        }
        for entry in &changes.entries {
            if entry.kind == crate::account::EntryKind::Consolidate {
                let moved = self.moved.entry(entry.account.clone()).or_default();
                *moved = moved.saturating_add(entry.delta.into());
            }
        }
        if let Some(request) = &changes.request {
            self.report.requests = self.report.requests.saturating_add(1);
            if let (Outcome::Posted(receipt), Some(operation)) = (&request.outcome, &request.operation) {
                self.receipt(position, receipt, operation, changes)?;
            }
        }
        for (key, filed) in filed(self.store, changes) {
            self.once(key, filed, position, changes)?;
            self.filed.entry(key).or_default().push(position);
        }
        Ok(())
    }

    /// The newest checkpoint against the books as the log makes them, at its mark.
    fn compare_checkpoint(&mut self) {
        let Some(loaded) = self.checkpoint.take() else {
            return;
        };
        let mut findings = Vec::new();
        if self.books.accounts().count() != loaded.accounts.len() {
            findings.push(Finding::text(
                "the checkpoint has another number of accounts than the log",
            ));
        }
        for (rows, chains) in &loaded.accounts {
            let id = &rows.account().id;
            let of_log = self.books.get(id);
            if of_log.is_none_or(|held| held.rows != *rows || held.chains != *chains) {
                let mut finding = Finding::text("the checkpoint's account is not the log's");
                finding.account = Some(id.clone());
                finding.expected = of_log.map(|held| held.rows.total());
                finding.found = Some(rows.total());
                findings.push(finding);
            }
        }
        let mut of_runs = Vec::new();
        for run in &loaded.runs {
            match run.items(self.records.disk()) {
                Ok(items) => of_runs.extend(items),
                Err(error) => findings.push(Finding::text(format!("index run {}: {error}", run.number))),
            }
        }
        let of_log = self.filed.iter();
        let mut of_log: Vec<(u64, u64)> = of_log
            .flat_map(|(key, positions)| positions.iter().map(|position| (*key, *position)))
            .collect();
        of_log.sort_unstable();
        of_runs.sort_unstable();
        if of_log != of_runs {
            let mut finding = Finding::text("the index runs do not file the log's requests");
            finding.expected = i64::try_from(of_log.len()).ok();
            finding.found = i64::try_from(of_runs.len()).ok();
            findings.push(finding);
        }
        for finding in findings {
            self.found(finding);
        }
    }

    /// What can be said at the end of the log.
    fn finish(&mut self) {
        let mut findings = Vec::new();
        if let Some(loaded) = self.checkpoint.take() {
            let place = loaded.mark.place;
            let mut finding = Finding::text("the log has no batch that ends where the checkpoint says");
            finding.segment = Some(place.segment);
            finding.offset = Some(offset(place.page));
            findings.push(finding);
        }
        let mut inside: BTreeMap<Currency, i128> = BTreeMap::new();
        for held in self.books.accounts() {
            findings.extend(check_rows(&held.rows).into_iter().map(Finding::of_violation));
            let sum = inside.entry(held.rows.account().currency).or_default();
            *sum = sum.saturating_add(held.rows.total().into());
            self.report.accounts = self.report.accounts.saturating_add(1);
        }
        for (currency, inside) in inside {
            let outside = self.outside.get(&currency).copied().unwrap_or_default();
            if inside != outside {
                let what =
                    format!("{currency}: what came in less what went out is not what the accounts have");
                let mut finding = Finding::text(what);
                finding.expected = i64::try_from(outside).ok();
                finding.found = i64::try_from(inside).ok();
                findings.push(finding);
            }
        }
        for (account, moved) in &self.moved {
            if *moved != 0 {
                let mut finding = Finding::text("moves between the account's slots do not cancel out");
                finding.account = Some(account.clone());
                finding.expected = Some(0);
                finding.found = i64::try_from(*moved).ok();
                findings.push(finding);
            }
        }
        for finding in findings {
            self.found(finding);
        }
    }

    fn found(&mut self, finding: Finding) {
        if self.report.findings.len() < MOST_FINDINGS {
            self.report.findings.push(finding);
        } else {
            self.report.more_findings = self.report.more_findings.saturating_add(1);
        }
    }
}

fn described(changes: &Changes) -> String {
    changes.request.as_ref().map_or_else(String::new, |record| {
        format!("{} of {}", record.request, record.account)
    })
}

impl Finding {
    fn of_violation(violation: Violation) -> Self {
        let (expected, found) = (Some(violation.expected), Some(violation.found));
        Self {
            what: format!("not so that {}", violation.rule.text()),
            account: Some(violation.account),
            slot: violation.slot,
            version: violation.version,
            expected,
            found,
            ..Self::text("")
        }
    }

    fn of_file((file, what): (String, String)) -> Self {
        Self::text(format!("{file}: {what}"))
    }

    fn at(mut self, position: u64) -> Self {
        let (segment, page, _) = split_position(position);
        self.segment = Some(segment);
        self.offset = Some(offset(page));
        self
    }
}

impl From<Damage> for Finding {
    fn from(damage: Damage) -> Self {
        Self {
            segment: Some(damage.segment),
            offset: Some(damage.offset),
            ..Self::text(damage.what)
        }
    }
}

#[cfg(test)]
mod tests;
