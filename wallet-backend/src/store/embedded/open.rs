//! Opening: the newest checkpoint, then the tail of the log, which is written again before anything is answered.
//!
//! After kill -9 or a failed sync the page cache is not the disk: what is read back may never have been written. So
//! everything after the checkpoint goes into a fresh segment, which is synced before its closing page makes it count.
//! A crash at any moment of that leaves the old tail standing, or the new one.
//!
//! A tail of over [`Tail::most`] bytes (checkpoints that failed for long, or were lost) is not written again but for
//! its last batch: each batch was written only after the sync of the one before it had returned, so the log itself
//! proves that all but the last are on the disk.

use std::io;
use std::sync::Arc;

use crate::mutants::{Mutant, is_on};
use crate::store::codec::wire::Writer;
use crate::store::embedded::backup;
use crate::store::embedded::blocks::{self, Kind};
use crate::store::embedded::books::Books;
use crate::store::embedded::checkpoint::{Checkpoints, Loaded, load_newest};
use crate::store::embedded::disk::{Disk, Lock};
use crate::store::embedded::error::{Damage, OpenError};
use crate::store::embedded::events::Part;
use crate::store::embedded::layout::Layout;
use crate::store::embedded::links::Links;
use crate::store::embedded::page::{PAYLOAD, REWRITTEN};
use crate::store::embedded::record::{Record, decode, encode};
use crate::store::embedded::requests::Older;
use crate::store::embedded::scan::{Batch, Scan, position};
use crate::store::embedded::segment::{
    FOLDER, MAX_PAGES, Mark, Place, Segment, SegmentHead, name, offset, pages_for,
};
use crate::store::embedded::write::{append_record, write_batch};

/// Payload of one batch of a rewritten tail.
const REWRITE_BATCH: usize = 1 << 20;

/// How the tail is written again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    /// A tail of more payload bytes keeps its place but for its last batch.
    pub(super) most: u64,
    /// Pages of a fresh segment beyond what the tail needs: room for what comes next.
    pub(super) spare_pages: u32,
}

/// An opened log.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) store: u64,
    pub(super) books: Books,
    /// The fresh segment.
    pub(super) segment: Arc<Segment>,
    /// The live log, the fresh segment included.
    pub(super) parts: Vec<Part>,
    /// The end of the last batch in the log.
    pub(super) end: Mark,
    pub(super) checkpoints: Checkpoints,
    /// Where the newest checkpoint stands.
    pub(super) saved: Mark,
    /// Payload bytes after the checkpoint.
    pub(super) tail: u64,
}

/// Opens the log of a directory that is locked.
///
/// # Errors
/// As [`OpenError`] says. A log that is refused is left as it was.
pub(super) fn open(disk: &Arc<dyn Disk>, tail: Tail, new_store: u64) -> Result<Opened, OpenError> {
    backup::refuse(disk.as_ref())?;
    disk.create_folder(FOLDER)
        .map_err(OpenError::io("make the folder of the log"))?;
    let layout = Layout::read(disk.as_ref())?;
    let store = match layout.store() {
        Some(store) => store,
        None => {
            refuse_without_log(disk.as_ref())?;
            new_store
        }
    };
    let loaded = load_newest(disk.as_ref(), &layout, store)?;
    let survey = survey(&layout, loaded.mark)?;
    if let Some(Place { segment, page }) = survey.torn {
        tracing::warn!(segment, page, "a batch that was never wholly written is dropped");
    }
    let cut = if survey.bytes <= tail.most {
        loaded.mark
    } else {
        survey.before_last
    };
    let checkpoints = Checkpoints::after(disk.as_ref(), store, &loaded)
        .map_err(OpenError::io("sort out the checkpoints"))?;
    let Loaded {
        mark, accounts, runs, ..
    } = loaded;
    let older = Older {
        frozen: Vec::new(),
        runs,
    };
    // Not later: what openings left that were killed must not keep the next from finding room.
    for number in &layout.unused {
        let taken = disk.remove(&name(*number));
        taken.map_err(OpenError::io("take an unused segment away"))?;
    }
    let segment = Segment::prepare(disk.as_ref(), fresh_head(&layout, store, cut, &survey, tail)?)
        .map_err(OpenError::io("make a fresh segment"))?;
    let mut replay = Replay {
        books: Books::new(store, accounts, older),
        segment: Arc::new(segment),
        cut,
        end: mark,
        open: Vec::new(),
        scratch: Writer::default(),
    };
    let mut scan = Scan::after(&layout, mark)?;
    while let Some(batch) = scan.next()? {
        replay.batch(&batch)?;
    }
    let end = replay.close(&layout)?;
    clean_up(disk.as_ref(), &layout, cut).map_err(OpenError::io("take the old tail away"))?;
    Ok(Opened {
        store,
        books: replay.books,
        parts: live_parts(&layout, cut, &replay.segment.head),
        segment: replay.segment,
        end,
        checkpoints,
        saved: mark,
        tail: survey.bytes,
    })
}

/// What stays of the log before `cut`, and the segment that goes on from there.
fn live_parts(layout: &Layout, cut: Mark, fresh: &SegmentHead) -> Vec<Part> {
    let kept = layout.extents.iter();
    let kept = kept.take_while(|extent| extent.head.number <= cut.place.segment);
    let mut parts: Vec<Part> = kept
        .map(|extent| {
            let last = extent.head.number == cut.place.segment;
            Part::of(&extent.head, if last { cut.place.page } else { extent.end })
        })
        .collect();
    parts.push(Part::of(fresh, fresh.pages));
    parts
}

/// A directory without a log is new, unless something was derived from a log that is gone.
pub(super) fn refuse_without_log(disk: &dyn Disk) -> Result<(), OpenError> {
    for kind in [Kind::Checkpoint, Kind::Run] {
        let files = blocks::list(disk, kind);
        let files = files.map_err(OpenError::io(format!("list {}/", kind.folder())))?;
        if !files.is_empty() {
            let what = format!("the log is missing, and {}/ is not empty", kind.folder());
            return Err(Damage::at(1, 0, what).into());
        }
    }
    Ok(())
}

/// What lies behind a mark.
#[derive(Debug, Default)]
struct Survey {
    /// Payload.
    bytes: u64,
    /// Payload of the last batch.
    last_bytes: u64,
    /// The end of the batch before the last.
    before_last: Mark,
    torn: Option<Place>,
}

fn survey(layout: &Layout, mark: Mark) -> Result<Survey, OpenError> {
    let mut scan = Scan::after(layout, mark)?;
    let mut survey = Survey {
        before_last: mark,
        ..Survey::default()
    };
    let mut end = mark;
    while let Some(batch) = scan.next()? {
        survey.last_bytes = u64::try_from(batch.payload.len()).unwrap_or(u64::MAX);
        survey.bytes = survey.bytes.saturating_add(survey.last_bytes);
        survey.before_last = end;
        end = batch.end;
    }
    survey.torn = scan.torn();
    Ok(survey)
}

fn fresh_head(
    layout: &Layout,
    store: u64,
    cut: Mark,
    survey: &Survey,
    tail: Tail,
) -> Result<SegmentHead, OpenError> {
    let bytes = if survey.bytes <= tail.most {
        survey.bytes
    } else {
        survey.last_bytes
    };
    // Links grow with the positions they name: by at most eight bytes in an entry of 25 or more.
    let bytes = usize::try_from(bytes.saturating_add(bytes / 2)).unwrap_or(usize::MAX);
    let batches = u32::try_from(bytes / REWRITE_BATCH).unwrap_or(u32::MAX);
    let pages = pages_for(bytes)
        .saturating_add(batches)
        .saturating_add(tail.spare_pages)
        .saturating_add(4);
    if pages > MAX_PAGES {
        let error = io::Error::other("the tail of the log does not fit a segment");
        return Err(OpenError::io("write the tail again")(error));
    }
    Ok(SegmentHead {
        store,
        number: layout.highest.saturating_add(1),
        pages,
        previous: 0,
        replaces: Some(cut),
    })
}

/// The tail, being applied and written again.
struct Replay {
    books: Books,
    segment: Arc<Segment>,
    /// What ends here or before stays where it is.
    cut: Mark,
    end: Mark,
    /// Payload of the batch that is being collected.
    open: Vec<u8>,
    scratch: Writer,
}

impl Replay {
    fn batch(&mut self, batch: &Batch) -> Result<(), OpenError> {
        let Place { segment, page } = batch.first;
        for (position, bytes) in batch.records()? {
            let record = decode(bytes).map_err(|error| Damage::record(segment, page, &error))?;
            if record.number != self.books.entries() {
                let (found, expected) = (record.number, self.books.entries());
                let what = format!("a record counts {found} entries before it, and there are {expected}");
                return Err(Damage::at(segment, page, what).into());
            }
            let position = if batch.end.batch <= self.cut.batch {
                position
            } else {
                self.write_again(&record)?
            };
            self.books.apply(&record.changes, position).map_err(|violation| {
                Damage::at(
                    segment,
                    page,
                    format!("a record of this batch breaks the books: {violation}"),
                )
            })?;
        }
        if batch.end.batch <= self.cut.batch {
            self.end = batch.end;
        }
        Ok(())
    }

    /// Puts a record into the fresh segment; its links are those of its new place.
    fn write_again(&mut self, record: &Record) -> Result<u64, OpenError> {
        self.scratch.bytes.clear();
        let links: Vec<Links> = self.books.links(&record.changes).collect();
        encode(record.number, &record.changes, &links, &mut self.scratch);
        let more = self.scratch.bytes.len().saturating_add(4);
        if !self.open.is_empty() && self.open.len().saturating_add(more) > REWRITE_BATCH {
            self.flush()?;
        }
        let first = Place {
            segment: self.segment.head.number,
            page: self.next_page(),
        };
        let position = position(first, self.open.len());
        append_record(&self.scratch.bytes, &mut self.open);
        Ok(position)
    }

    fn next_page(&self) -> u32 {
        if self.end.place.segment == self.segment.head.number {
            self.end.place.page
        } else {
            self.segment.head.first_page()
        }
    }

    fn flush(&mut self) -> Result<(), OpenError> {
        if self.open.is_empty() {
            return Ok(());
        }
        let first = self.next_page();
        if first.saturating_add(pages_for(self.open.len())) > self.segment.head.pages {
            let bytes = self.open.len().div_ceil(PAYLOAD);
            let error = io::Error::other(format!("{bytes} pages more than the segment has"));
            return Err(OpenError::io("write the tail again")(error));
        }
        self.end = write_batch(&self.segment, first, &self.end, REWRITTEN, &self.open)
            .map_err(OpenError::io("write the tail again"))?;
        self.open.clear();
        Ok(())
    }

    /// Syncs the rewritten tail, and then the page that makes it count.
    fn close(&mut self, layout: &Layout) -> Result<Mark, OpenError> {
        self.flush()?;
        let failed = |error| OpenError::io("sync the tail")(error);
        if !is_on(Mutant::BelievesThePageCache) {
            self.segment.file.sync().map_err(failed)?;
        }
        let closing = Mark {
            place: Place {
                segment: self.segment.head.number,
                page: self.next_page(),
            },
            ..self.end
        };
        debug_assert!(layout.highest < self.segment.head.number, "numbers are used once");
        self.segment.close_tail(closing).map_err(failed)?;
        Ok(self.end)
    }
}

/// The fresh segment counts: what it replaces is dead, and its room is given back.
fn clean_up(disk: &dyn Disk, layout: &Layout, cut: Mark) -> io::Result<()> {
    let replaced = layout.extents.iter().map(|extent| extent.head.number);
    let replaced = replaced.filter(|number| *number > cut.place.segment);
    for number in layout.dead.iter().copied().chain(replaced) {
        disk.remove(&name(number))?;
    }
    let kept = layout
        .extents
        .iter()
        .find(|extent| extent.head.number == cut.place.segment);
    if let Some(kept) = kept
        && kept.file.size()? > offset(cut.place.page)
    {
        kept.file.cut(offset(cut.place.page))?;
    }
    Ok(())
}

/// Keeps a second process out.
pub(super) fn take_lock(disk: &dyn Disk) -> Result<Box<dyn Lock>, OpenError> {
    disk.lock().map_err(|error| {
        if error.kind() == io::ErrorKind::WouldBlock {
            OpenError::InUse
        } else {
            OpenError::io("lock the data directory")(error)
        }
    })
}
