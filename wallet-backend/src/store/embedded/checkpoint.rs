//! Checkpoints: the books as of one batch, so that opening need not read the whole log.
//!
//! `state/NNNNNNNNNN.ckpt`. A base holds every account, a delta those that changed since the one before it, which it
//! names; both name the request runs that go with them and the mark in the log that they stand for. Published by name
//! once the log is durable to the mark. Derived data: a damaged one is reported, and the one before it, or the whole
//! log, is read instead.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use crate::account::AccountId;
use crate::ledger::rows::AccountRows;
use crate::store::codec::wire::{Reader, Writer};
use crate::store::embedded::blocks::{
    self, BlockError, BlockFile, BlockWriter, FORMAT, FileId, Kind, remove_unpublished,
};
use crate::store::embedded::disk::Disk;
use crate::store::embedded::error::{Damage, OpenError};
use crate::store::embedded::layout::Layout;
use crate::store::embedded::links::Chains;
use crate::store::embedded::rows::read_rows;
use crate::store::embedded::run::{self, Run};
use crate::store::embedded::segment::{Mark, read_mark, write_mark};

/// A checkpoint as it is read.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) mark: Mark,
    pub(super) accounts: Vec<(AccountRows, Chains)>,
    pub(super) runs: Vec<Arc<Run>>,
    /// The checkpoint's own number; 0 for the beginning of the log.
    pub(super) number: u64,
    base: u64,
    base_bytes: u64,
    delta_bytes: u64,
}

/// One file's content.
#[derive(Debug)]
struct Part {
    mark: Mark,
    /// The checkpoint that this one adds to; 0 for a base.
    before: u64,
    accounts: Vec<(AccountRows, Chains)>,
    runs: Vec<u64>,
    bytes: u64,
}

/// The newest checkpoint that can be used, or the beginning of the log. Damaged ones are reported and passed over.
///
/// # Errors
/// What the disk says; another format version; a log that does not reach the checkpoint.
pub(super) fn load_newest(disk: &dyn Disk, layout: &Layout, store: u64) -> Result<Loaded, OpenError> {
    let numbers = blocks::list(disk, Kind::Checkpoint).map_err(OpenError::io("list state/"))?;
    for number in numbers.into_iter().rev() {
        let file = id(store, number).name();
        match load(disk, store, number) {
            Ok(loaded) if layout.holds(&loaded.mark)? => return Ok(loaded),
            Ok(loaded) => {
                let page = loaded.mark.place.page.saturating_sub(1);
                let what = format!("{file} was made when a batch ended here; the log has another or none");
                return Err(Damage::at(loaded.mark.place.segment, page, what).into());
            }
            Err((file, error)) => {
                let (file, error) = unusable(file, error)?;
                tracing::error!(file, error, "damaged checkpoint: reading more of the log instead");
            }
        }
    }
    Ok(Loaded::default())
}

/// The newest checkpoint that can be read, and what is wrong with later ones, by file. For `verify`.
///
/// # Errors
/// What the disk says; another format version.
pub(super) fn load_every(disk: &dyn Disk, store: u64) -> Result<(Option<Loaded>, Vec<Unusable>), OpenError> {
    let numbers = blocks::list(disk, Kind::Checkpoint).map_err(OpenError::io("list state/"))?;
    let mut damaged = Vec::new();
    for number in numbers.into_iter().rev() {
        match load(disk, store, number) {
            // What is older is superseded, or part of this one.
            Ok(loaded) => return Ok((Some(loaded), damaged)),
            Err((file, error)) => {
                let report = unusable(file, error)?;
                if !damaged.contains(&report) {
                    damaged.push(report);
                }
            }
        }
    }
    Ok((None, damaged))
}

/// A file that cannot be used, and why.
pub(super) type Unusable = (String, String);

/// Damage is something to report; anything else is a reason to stop.
fn unusable(file: String, error: BlockError) -> Result<Unusable, OpenError> {
    match error {
        BlockError::Io(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(OpenError::io(format!("read {file}"))(source))
        }
        BlockError::Version(found) => Err(OpenError::Version {
            file,
            found,
            known: FORMAT,
        }),
        BlockError::Io(_) | BlockError::Damaged(_) => Ok((file, error.to_string())),
    }
}

/// Loads checkpoint `number` with all that it builds on. The error names the file at fault.
pub(super) fn load(disk: &dyn Disk, store: u64, number: u64) -> Result<Loaded, (String, BlockError)> {
    let named = |number| move |error| (id(store, number).name(), error);
    let newest = read_part(disk, store, number).map_err(named(number))?;
    let mut loaded = Loaded {
        mark: newest.mark,
        number,
        ..Loaded::default()
    };
    for run in &newest.runs {
        let file = FileId {
            store,
            kind: Kind::Run,
            number: *run,
        };
        let run = Run::open(disk, store, *run).map_err(|error| (file.name(), error))?;
        loaded.runs.push(Arc::new(run));
    }
    let mut parts = vec![newest];
    let mut at = number;
    while let Some(before) = parts.last().map(|part| part.before).filter(|before| *before != 0) {
        if before >= at {
            let error = BlockError::Damaged("it builds on a later one".into());
            return Err(named(at)(error));
        }
        parts.push(read_part(disk, store, before).map_err(named(before))?);
        at = before;
    }
    loaded.base = at;
    loaded.base_bytes = parts.last().map_or(0, |base| base.bytes);
    loaded.delta_bytes = parts.iter().rev().skip(1).map(|part| part.bytes).sum();
    let mut accounts: HashMap<AccountId, (AccountRows, Chains)> = HashMap::new();
    for part in parts.into_iter().rev() {
        let of_part = part.accounts.into_iter();
        accounts.extend(of_part.map(|(rows, chains)| (rows.account().id.clone(), (rows, chains))));
    }
    loaded.accounts = accounts.into_values().collect();
    Ok(loaded)
}

fn read_part(disk: &dyn Disk, store: u64, number: u64) -> Result<Part, BlockError> {
    let file = BlockFile::open(disk, id(store, number))?;
    let mut fields = Reader::new(&file.fields);
    let mark = read_mark(&mut fields)?;
    let before = fields.number("a checkpoint's number")?;
    let count = fields.number("an account count")?;
    let mut body = Vec::with_capacity(usize::try_from(file.body).unwrap_or(0));
    file.for_each(disk, |piece| {
        body.extend_from_slice(piece);
        Ok(())
    })?;
    let mut from = Reader::new(&body);
    let mut accounts = Vec::new();
    for _ in 0..count {
        accounts.push(read_rows(&mut from)?);
    }
    let mut runs = Vec::new();
    for _ in 0..from.length("runs")? {
        runs.push(from.number("a run's number")?);
    }
    from.end()?;
    Ok(Part {
        mark,
        before,
        accounts,
        runs,
        bytes: file.body,
    })
}

/// A checkpoint's mark, and the files that it takes: those of accounts, and its runs, which are not looked into.
///
/// # Errors
/// The file at fault, and why.
pub(super) fn files(
    disk: &dyn Disk,
    store: u64,
    number: u64,
) -> Result<(Mark, Vec<FileId>), (String, BlockError)> {
    let named = |number| move |error| (id(store, number).name(), error);
    let Part {
        mark, runs, before, ..
    } = read_part(disk, store, number).map_err(named(number))?;
    let kind = Kind::Run;
    let runs = runs.into_iter().map(|number| FileId { store, kind, number });
    let mut files: Vec<FileId> = runs.chain([id(store, number)]).collect();
    let (mut at, mut before) = (number, before);
    while before != 0 {
        if before >= at {
            let error = BlockError::Damaged("it builds on a later one".into());
            return Err(named(at)(error));
        }
        files.push(id(store, before));
        at = before;
        before = read_part(disk, store, at).map_err(named(at))?.before;
    }
    Ok((mark, files))
}

fn id(store: u64, number: u64) -> FileId {
    FileId {
        store,
        kind: Kind::Checkpoint,
        number,
    }
}

/// What publishing gave.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) run: Option<Run>,
    /// The deltas outweigh their base: the next one should hold everything again.
    pub(super) next_full: bool,
}

/// Writes checkpoints, one after the other.
#[derive(Debug)]
pub(super) struct Checkpoints {
    store: u64,
    /// The newest published; 0 for none.
    newest: u64,
    base: u64,
    base_bytes: u64,
    delta_bytes: u64,
    runs: Vec<u64>,
    next_number: u64,
    next_run: u64,
}

impl Checkpoints {
    /// Goes on from the checkpoint that was loaded. What does not belong to it is taken
    /// away: damaged, orphaned or superseded, it is rebuilt by the next checkpoints.
    pub(super) fn after(disk: &dyn Disk, store: u64, loaded: &Loaded) -> io::Result<Self> {
        for kind in [Kind::Checkpoint, Kind::Run] {
            disk.create_folder(kind.folder())?;
            remove_unpublished(disk, kind)?;
        }
        let runs: Vec<u64> = loaded.runs.iter().map(|run| run.number).collect();
        let numbers = blocks::list(disk, Kind::Checkpoint)?;
        let unused = |number: &&u64| **number > loaded.number || **number < loaded.base;
        for number in numbers.iter().filter(unused).rev() {
            disk.remove(&id(store, *number).name())?;
        }
        disk.sync_folder(Kind::Checkpoint.folder())?;
        let all_runs = blocks::list(disk, Kind::Run)?;
        for run in all_runs.iter().filter(|run| !runs.contains(run)) {
            let kind = Kind::Run;
            let number = *run;
            disk.remove(&FileId { store, kind, number }.name())?;
        }
        let first_own = |numbers: &[u64]| numbers.last().copied().unwrap_or(0).saturating_add(1);
        Ok(Self {
            store,
            newest: loaded.number,
            base: loaded.base,
            base_bytes: loaded.base_bytes,
            delta_bytes: loaded.delta_bytes,
            runs,
            next_number: first_own(&numbers),
            next_run: first_own(&all_runs),
        })
    }

    /// Whether there is a base that a delta could build on.
    pub(super) fn has_base(&self) -> bool {
        self.base != 0
    }

    /// A file for the accounts.
    pub(super) fn begin(&mut self, disk: &dyn Disk) -> io::Result<BlockWriter> {
        let number = self.next_number;
        self.next_number = number.saturating_add(1);
        BlockWriter::create(disk, id(self.store, number))
    }

    /// Completes a checkpoint whose accounts are written, with a run of `items`. The log is durable to `mark`.
    pub(super) fn publish(
        &mut self,
        disk: &dyn Disk,
        mut file: BlockWriter,
        full: bool,
        mark: Mark,
        accounts: u64,
        items: &[(u64, u64)],
    ) -> io::Result<Written> {
        let run = if items.is_empty() {
            None
        } else {
            let number = self.next_run;
            self.next_run = number.saturating_add(1);
            run::write(disk, self.store, number, items)?.publish(disk)?;
            Some(Run::open(disk, self.store, number).map_err(io::Error::other)?)
        };
        let mut runs = self.runs.clone();
        runs.extend(run.iter().map(|run| run.number));
        let mut tail = Writer::default();
        tail.length(runs.len());
        for run in &runs {
            tail.number(*run);
        }
        file.write(&tail.bytes)?;
        let mut fields = Writer::default();
        write_mark(&mark, &mut fields);
        fields.number(if full { 0 } else { self.newest });
        fields.number(accounts);
        let number = file.number();
        let complete = file.finish(&fields.bytes)?;
        let bytes = complete.bytes;
        complete.publish(disk)?;
        self.runs = runs;
        self.newest = number;
        if full {
            (self.base, self.base_bytes, self.delta_bytes) = (number, bytes, 0);
        } else {
            self.delta_bytes = self.delta_bytes.saturating_add(bytes);
        }
        let next_full = self.delta_bytes > self.base_bytes;
        Ok(Written { run, next_full })
    }

    /// Takes away the checkpoints before the base.
    pub(super) fn remove_superseded(&self, disk: &dyn Disk) -> io::Result<()> {
        for number in blocks::list(disk, Kind::Checkpoint)? {
            if number < self.base {
                disk.remove(&id(self.store, number).name())?;
            }
        }
        Ok(())
    }
}
