//! A copy of a ledger that proves itself, made while the ledger is in use or not.
//!
//! The log is the ledger, and what lies before the end of a whole batch never changes (`live`). So a backup is the log
//! up to the last batch that is whole when it is made, and nobody is held up or locked out for it: every operation that
//! was acknowledged before it began is in it. With it go the newest checkpoint with its index runs, without which
//! opening would take longer, the daily roots, and what others keep beside the ledger.
//!
//! # Order
//! What must not be ahead of the log is copied before the log's end is looked for: a checkpoint, a root and a position
//! are about what was durable when they were written. Then the log; then the copy of it is read through, every page and
//! every record, which gives the root. Every file is synced. The manifest is written last, and without it there is no
//! backup.
//!
//! # An opening meanwhile
//! A process that starts replaces the log's tail and takes the old one away. What is being copied may then end early or
//! be gone: the end is looked for again, and what differs is copied again, a bounded number of times.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use self::manifest::{End, Manifest};
use self::place::{Copied, Original, Place};
use crate::account::Timestamp;
use crate::journal::{Heads, Root};
use crate::store::embedded::blocks::{self, BlockFile, Kind};
use crate::store::embedded::checkpoint;
use crate::store::embedded::disk::{Disk, RealDisk};
use crate::store::embedded::error::{Damage, OpenError};
use crate::store::embedded::history::read_all;
use crate::store::embedded::layout::{Extent, Layout};
use crate::store::embedded::live::{self, Live, may_pass};
use crate::store::embedded::open::refuse_without_log;
use crate::store::embedded::roots;
use crate::store::embedded::segment::{self, Mark, offset};

mod error;
pub(super) mod manifest;
mod place;
mod restore;

pub use error::BackupError;
pub use restore::{Restored, restore};

/// Where a backup is until it is whole.
const MAKING: &str = "backup.partial";
/// Where a ledger is until it is restored.
const RESTORING: &str = "restore.partial";
/// How often the log may be replaced under the copying, and the checkpoint.
const ATTEMPTS: usize = 5;

/// How far a long job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// In bytes.
    Copying,
    /// In pages of the log.
    Proving,
}

/// A backup that was made.
#[derive(Clone, Debug)]
pub struct Backup {
    pub segments: usize,
    pub files: usize,
    pub bytes: u64,
    /// The checkpoint that goes with it.
    pub checkpoint: Option<u64>,
    /// Why the newest one of the ledger does not. The log is complete without.
    pub left_out: Option<String>,
    /// The root of all that is in it, to be kept elsewhere.
    pub root: Root,
}

/// Refuses to let a ledger go on in a backup, or in a directory into which one was only half restored.
pub(super) fn refuse(disk: &dyn Disk) -> Result<(), OpenError> {
    let list = |folder| {
        disk.list(folder)
            .map_err(OpenError::io("list the data directory"))
    };
    let what = if list("")?.iter().any(|name| name == manifest::FILE) {
        format!(
            "this is a backup (it has a {}): restore it into a directory of its own",
            manifest::FILE
        )
    } else if list(RESTORING)?.is_empty() {
        return Ok(());
    } else {
        format!("a restore into this directory was broken off: take {RESTORING} away, and restore again")
    };
    Err(OpenError::NoLedger { what })
}

/// Copies the ledger on `disk`, in use or not, to the directory `to`, empty or not there; `others` are files of its
/// directory, each replaced whole by whoever writes it, that are copied too. `now` is what the backup says of itself.
/// Blocks.
///
/// # Errors
/// [`BackupError`]; `to` is then as it was.
pub fn backup(
    disk: &Arc<dyn Disk>,
    others: &[&str],
    to: &Path,
    now: Timestamp,
    mut progress: impl FnMut(Phase, u64, u64),
) -> Result<Backup, BackupError> {
    let store = live::patiently(|| Layout::read(disk.as_ref()))?.store();
    let Some(store) = store else {
        refuse_without_log(disk.as_ref())?;
        return Err(BackupError::NoStore);
    };
    let place = Place::begin(to, MAKING)?;
    let mut files = copy_others(disk.as_ref(), others, &place)?;
    let (checkpoint, mut left_out) = match copy_checkpoint(disk.as_ref(), store, &place)? {
        Ok(checkpoint) => (checkpoint, None),
        Err(why) => (None, Some(why)),
    };
    let (segments, live) = copy_log(disk.as_ref(), &place, &mut |done, of| {
        progress(Phase::Copying, done, of);
    })?;
    let copy = RealDisk::for_reading(place.partial());
    let layout = Layout::read(&copy)?;
    let root = prove(&layout, live.end, &mut |done, of| {
        progress(Phase::Proving, done, of)
    })?;
    let mut number = None;
    if let Some(checkpoint) = checkpoint {
        if layout.holds(&checkpoint.mark)? {
            files.extend(checkpoint.files);
            number = Some(checkpoint.number);
        } else {
            let Checkpoint { number, .. } = checkpoint;
            left_out = Some(format!(
                "checkpoint {number} ends where the log has no batch that ends"
            ));
        }
    }
    if number.is_none() {
        remove_checkpoint(&place)?;
    }
    let count = segments.len();
    files.extend(segments);
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let manifest = Manifest {
        store,
        made: now,
        end: End {
            segment: live.end.place.segment,
            page: live.end.place.page,
            batch: live.end.batch,
        },
        root,
        files,
    };
    place.write(manifest::FILE, &manifest.text())?;
    place.finish(manifest::FILE)?;
    Ok(Backup {
        segments: count,
        files: manifest.files.len(),
        bytes: manifest.files.iter().map(|file| file.bytes).sum(),
        checkpoint: number,
        left_out,
        root,
    })
}

/// The daily roots, and what others keep beside the ledger.
fn copy_others(disk: &dyn Disk, others: &[&str], place: &Place) -> Result<Vec<Copied>, BackupError> {
    let published = roots::names(disk).map_err(OpenError::io(format!("list {}/", roots::FOLDER)))?;
    let others = others.iter().map(|name| (*name).to_owned());
    let mut copied = Vec::new();
    for name in others.chain(published) {
        match disk.open(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            file => {
                let file = file.map_err(OpenError::io(format!("open {name}")))?;
                let original = Original::whole(&name, file.as_ref())?;
                copied.push(place.copy(&name, original, &mut |_| ())?);
            }
        }
    }
    Ok(copied)
}

/// A checkpoint with all that it builds on.
#[derive(Debug)]
struct Checkpoint {
    number: u64,
    mark: Mark,
    files: Vec<Copied>,
}

/// The newest checkpoint, whole, if there is one; or why it is left out.
fn copy_checkpoint(
    disk: &dyn Disk,
    store: u64,
    place: &Place,
) -> Result<Result<Option<Checkpoint>, String>, BackupError> {
    let mut why = String::new();
    for _ in 0..ATTEMPTS {
        let numbers = blocks::list(disk, Kind::Checkpoint).map_err(OpenError::io("list state/"))?;
        let Some(number) = numbers.last().copied() else {
            return Ok(Ok(None));
        };
        match try_checkpoint(disk, (store, number), place) {
            Ok(checkpoint) => return Ok(Ok(Some(checkpoint))),
            // Superseded meanwhile, or damaged: another look tells.
            Err(Failed::Source(error)) => why = error,
            Err(Failed::Copy(error)) => return Err(error),
        }
        remove_checkpoint(place)?;
    }
    Ok(Err(why))
}

/// Whose fault it is that a checkpoint was not copied.
enum Failed {
    Source(String),
    Copy(BackupError),
}

impl From<BackupError> for Failed {
    fn from(error: BackupError) -> Self {
        if let BackupError::Open(error) = error {
            Self::Source(error.whole())
        } else {
            Self::Copy(error)
        }
    }
}

fn try_checkpoint(disk: &dyn Disk, (store, number): (u64, u64), place: &Place) -> Result<Checkpoint, Failed> {
    let source = |(file, error): (String, _)| Failed::Source(format!("{file}: {error}"));
    let (mark, ids) = checkpoint::files(disk, store, number).map_err(source)?;
    let copy = RealDisk::for_reading(place.partial());
    let mut files = Vec::new();
    for id in ids {
        let name = id.name();
        let file = disk
            .open(&name)
            .map_err(|error| source((name.clone(), error.into())))?;
        files.push(place.copy(&name, Original::whole(&name, file.as_ref())?, &mut |_| ())?);
        let copied = BlockFile::open(&copy, id).and_then(|file| file.for_each(&copy, |_| Ok(())));
        copied.map_err(|error| source((name, error)))?;
    }
    Ok(Checkpoint { number, mark, files })
}

fn remove_checkpoint(place: &Place) -> Result<(), BackupError> {
    for kind in [Kind::Checkpoint, Kind::Run] {
        place.remove(kind.folder())?;
    }
    Ok(())
}

/// The log up to its end as it is now.
fn copy_log(
    disk: &dyn Disk,
    place: &Place,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Vec<Copied>, Live), BackupError> {
    let mut copied = BTreeMap::new();
    for _ in 0..ATTEMPTS {
        let live = live::read(disk)?;
        match copy_segments(&live, place, &mut copied, progress) {
            Ok(()) => {
                let segments = copied.into_values().map(|(_, segment)| segment);
                return Ok((segments.collect(), live));
            }
            Err(BackupError::Open(error)) if may_pass(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Err(BackupError::Restless)
}

/// Brings `copied` (by number: pages, file) up to what a log has.
fn copy_segments(
    live: &Live,
    place: &Place,
    copied: &mut BTreeMap<u64, (u32, Copied)>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), BackupError> {
    let wanted = wanted(live);
    let all: u64 = wanted.iter().map(|(extent, _)| size_of(extent, live)).sum();
    let stays = |number: &u64, pages: u32| {
        let mut wanted = wanted.iter();
        wanted.any(|(extent, end)| extent.head.number == *number && *end == pages)
    };
    let gone: Vec<u64> = copied
        .iter()
        .filter(|(number, (pages, _))| !stays(number, *pages))
        .map(|(number, _)| *number)
        .collect();
    for number in gone {
        copied.remove(&number);
        place.remove(&segment::name(number))?;
    }
    let mut done = 0_u64;
    for (extent, pages) in wanted {
        let (number, size) = (extent.head.number, size_of(extent, live));
        if copied.contains_key(&number) {
            done = done.saturating_add(size);
            continue;
        }
        let original = Original {
            file: extent.file.as_ref(),
            bytes: offset(pages).min(size),
            size,
        };
        let segment = place.copy(&segment::name(number), original, &mut |bytes| {
            done = done.saturating_add(bytes);
            progress(done, all);
        })?;
        copied.insert(number, (pages, segment));
    }
    Ok(())
}

/// The segments up to the end, and how many pages of each.
fn wanted(live: &Live) -> Vec<(&Extent, u32)> {
    let end = live.end.place;
    let extents = live.layout.extents.iter().enumerate();
    let wanted = extents.filter(|(at, extent)| *at == 0 || extent.head.number <= end.segment);
    let wanted = wanted.map(|(_, extent)| {
        let pages = if extent.head.number < end.segment {
            extent.end
        } else {
            end.page.clamp(extent.head.first_page(), extent.end)
        };
        (extent, pages)
    });
    wanted.collect()
}

/// A segment's file in the copy. The last one has all its pages, whatever a later one may have cut off.
fn size_of(extent: &Extent, live: &Live) -> u64 {
    offset(if extent.head.number < live.end.place.segment {
        extent.end
    } else {
        extent.head.pages
    })
}

/// Reads a copy through, which must end as the log did.
fn prove(layout: &Layout, end: Mark, progress: &mut dyn FnMut(u64, u64)) -> Result<Root, BackupError> {
    let mut heads = Heads::default();
    let found = read_all(layout, progress, |changes| {
        heads.extend(changes);
        Ok::<_, OpenError>(())
    })?;
    if (found.batch, found.chain) != (end.batch, end.chain) {
        let what = format!(
            "the copy ends with batch {}, and not with {}",
            found.batch, end.batch
        );
        let (segment, page) = (found.place.segment, found.place.page);
        return Err(OpenError::from(Damage::at(segment, page, what)).into());
    }
    Ok(heads.root())
}

impl fmt::Display for Backup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            segments,
            files,
            bytes,
            root,
            ..
        } = self;
        write!(
            f,
            "copied {files} files of {bytes} bytes: {segments} segments of the log"
        )?;
        match (self.checkpoint, &self.left_out) {
            (Some(number), _) => writeln!(f, ", checkpoint {number}")?,
            (None, Some(why)) => writeln!(
                f,
                "; the checkpoint is left out, and the log complete without ({why})"
            )?,
            (None, None) => writeln!(f, ", no checkpoint yet")?,
        }
        write!(f, "root {root}")
    }
}
