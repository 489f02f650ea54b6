//! Reading the log batch by batch, and telling its end from damage.
//!
//! The next batch was written only after the sync of the one before had returned. So only the last batch can be torn,
//! and whatever is wrong anywhere else is damage:
//! - A page with all its stamps and a wrong checksum is damage, wherever it is.
//! - A batch that lacks a page, or a page that lacks a stamp, is torn and ends the log; it was never acknowledged.
//!   Whole pages of it may lie further on, since a disk writes in any order. They are ignored.
//! - A whole page of any other batch behind that place is damage: the place was synced once.
//! - In a part that a later segment continues, and before a closing page's mark, nothing may be missing at all.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "page numbers are below a segment's page count"
)]

use crate::store::embedded::disk::DiskFile;
use crate::store::embedded::error::{Damage, OpenError};
use crate::store::embedded::layout::{Extent, Layout};
use crate::store::embedded::page::{self, Found, LAST, PAGE, PAYLOAD, PageBuffer, PageHead, REWRITTEN};
use crate::store::embedded::segment::{self, Mark, Place};

/// Pages that are read at once.
const WINDOW: u32 = 64;

/// A whole batch.
#[derive(Debug)]
pub(super) struct Batch {
    /// Where it begins.
    pub(super) first: Place,
    /// Where it ends.
    pub(super) end: Mark,
    pub(super) payload: Vec<u8>,
}

impl Batch {
    /// Every record with its position, in order.
    pub(super) fn records(&self) -> Result<Vec<(u64, &[u8])>, Damage> {
        let damage = || Damage::at(self.first.segment, self.first.page, "a record's length is wrong");
        let (mut records, mut rest, mut at) = (Vec::new(), self.payload.as_slice(), 0);
        while !rest.is_empty() {
            let (length, behind) = rest.split_first_chunk().ok_or_else(damage)?;
            let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| damage())?;
            let (record, behind) = behind.split_at_checked(length).ok_or_else(damage)?;
            records.push((position(self.first, at), record));
            at += 4 + length;
            rest = behind;
        }
        Ok(records)
    }
}

/// A record's position: segment and payload offset. `into` bytes after the beginning of page `first`.
pub(super) fn position(first: Place, into: usize) -> u64 {
    let offset = u64::from(first.page) * PAYLOAD as u64 + u64::try_from(into).unwrap_or(u64::MAX);
    (first.segment << 32) | offset
}

/// The segment of a position, the page, and the payload byte in that page.
pub(super) fn split_position(position: u64) -> (u64, u32, usize) {
    let offset = position & u64::from(u32::MAX);
    let page = u32::try_from(offset / PAYLOAD as u64).unwrap_or(u32::MAX);
    let into = usize::try_from(offset % PAYLOAD as u64).unwrap_or(0);
    (position >> 32, page, into)
}

/// A walk over the live log.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    layout: &'a Layout,
    /// The extent, and the page in it, that come next.
    at: usize,
    page: u32,
    /// The end of the last batch read.
    end: Mark,
    /// Bytes where a batch should have been, which never became one.
    torn: Option<Place>,
    window: Window,
}

impl<'a> Scan<'a> {
    /// Begins after `mark`, which the layout holds.
    ///
    /// # Errors
    /// Damage where the log does not continue there.
    pub(super) fn after(layout: &'a Layout, mark: Mark) -> Result<Self, OpenError> {
        let of = |extent: &Extent| extent.head.number == mark.place.segment;
        let mut scan = Self {
            layout,
            at: layout.extents.iter().position(of).unwrap_or(0),
            page: mark.place.page,
            end: mark,
            torn: None,
            window: Window::default(),
        };
        if mark.place == Place::default()
            && let Some(first) = layout.extents.first()
        {
            scan.enter(first)?;
        }
        Ok(scan)
    }

    /// Where a batch was dropped that was never wholly written.
    pub(super) fn torn(&self) -> Option<Place> {
        self.torn
    }

    /// The next whole batch, or `None` at the end of the log.
    ///
    /// # Errors
    /// Damage, or what the disk says.
    pub(super) fn next(&mut self) -> Result<Option<Batch>, OpenError> {
        let layout = self.layout;
        while let Some(extent) = layout.extents.get(self.at) {
            if self.page < extent.end {
                if let Some(batch) = self.read_batch(extent)? {
                    self.check_batch(extent, &batch)?;
                    self.page = batch.end.place.page;
                    self.end = batch.end;
                    return Ok(Some(batch));
                }
                self.leave(extent)?;
            }
            self.at += 1;
            if let Some(next) = layout.extents.get(self.at) {
                self.enter(next)?;
            }
        }
        Ok(None)
    }

    fn enter(&mut self, extent: &Extent) -> Result<(), OpenError> {
        self.page = extent.head.first_page();
        let number = extent.head.number;
        if let Some(from) = extent.head.replaces
            && (from.batch, from.chain) != (self.end.batch, self.end.chain)
        {
            return Err(Damage::at(number, 0, "the log before it does not end where it begins").into());
        }
        if let Some(closing) = extent.closing
            && closing.place.page == self.page
            && (closing.batch, closing.chain) != (self.end.batch, self.end.chain)
        {
            return Err(Damage::at(number, 1, "the closing page is about another tail").into());
        }
        Ok(())
    }

    /// The batch at `self.page`, or `None` if it is not whole.
    fn read_batch(&mut self, extent: &Extent) -> Result<Option<Batch>, OpenError> {
        let number = extent.head.number;
        let mut payload = Vec::new();
        for page in self.page..extent.end {
            let found = page::inspect(extent.id(page), self.window.of(extent, page)?);
            let (head, checksum) = match found {
                Found::Empty | Found::Torn => return Ok(None),
                Found::Damaged { expected, found } => {
                    return Err(Damage::checksum(number, page, expected, found).into());
                }
                Found::Good { head, checksum } => (head, checksum),
            };
            self.check_page(extent, page, head)?;
            page::payload(self.window.of(extent, page)?, head.len, &mut payload);
            if head.flags & LAST != 0 {
                let first = Place {
                    segment: number,
                    page: self.page,
                };
                let end = Mark {
                    place: Place {
                        segment: number,
                        page: page + 1,
                    },
                    batch: head.batch,
                    chain: checksum,
                };
                return Ok(Some(Batch { first, end, payload }));
            }
        }
        Ok(None)
    }

    /// That a whole page belongs to the batch that should be at `self.page`.
    fn check_page(&self, extent: &Extent, page: u32, head: PageHead) -> Result<(), Damage> {
        let number = extent.head.number;
        let Some(expected) = self.end.batch.checked_add(1) else {
            return Err(Damage::at(number, page, "no number is left for a batch here"));
        };
        if head.batch != expected {
            let what = format!("a page of batch {} where batch {expected} should be", head.batch);
            return Err(Damage::at(number, page, what));
        }
        if head.chain != self.end.chain {
            return Err(Damage::at(
                number,
                page,
                "the page does not continue the batch before",
            ));
        }
        if head.index != page - self.page || (head.flags & LAST == 0 && usize::from(head.len) != PAYLOAD) {
            return Err(Damage::at(number, page, "the page is out of place in its batch"));
        }
        let in_tail = extent.closing.is_some_and(|closing| page < closing.place.page);
        if in_tail != (head.flags & REWRITTEN != 0) {
            return Err(Damage::at(
                number,
                page,
                "the page is on the wrong side of the closing mark",
            ));
        }
        Ok(())
    }

    fn check_batch(&self, extent: &Extent, batch: &Batch) -> Result<(), Damage> {
        if let Some(torn) = self.torn {
            return Err(Damage::at(
                torn.segment,
                torn.page,
                "no whole page, and a later segment goes on",
            ));
        }
        match extent.closing {
            Some(closing) if closing.place.page == batch.end.place.page && closing != batch.end => Err(
                Damage::at(extent.head.number, 1, "the closing page is about another tail"),
            ),
            _ => Ok(()),
        }
    }

    /// The log has no whole batch here: makes sure that nothing behind was ever acknowledged.
    fn leave(&mut self, extent: &Extent) -> Result<(), OpenError> {
        let number = extent.head.number;
        if extent.is_cut() || extent.closing.is_some_and(|mark| self.page < mark.place.page) {
            let what = "a batch that was synced is not whole";
            return Err(Damage::at(number, self.page, what).into());
        }
        let earlier = self.torn;
        for page in self.page..extent.end {
            match page::inspect(extent.id(page), self.window.of(extent, page)?) {
                Found::Empty => continue,
                Found::Torn => {}
                Found::Damaged { expected, found } => {
                    return Err(Damage::checksum(number, page, expected, found).into());
                }
                Found::Good { head, .. } => {
                    self.check_page(extent, page, head)
                        .map_err(|_| Damage::at(number, self.page, "a batch that was synced is not whole"))?;
                    if let Some(torn) = earlier {
                        let what = "no whole page, and a later segment goes on";
                        return Err(Damage::at(torn.segment, torn.page, what).into());
                    }
                }
            }
            self.torn.get_or_insert(Place {
                segment: number,
                page: self.page,
            });
        }
        Ok(())
    }
}

/// A piece of a segment, read at once.
#[derive(Debug, Default)]
pub(super) struct Window {
    segment: u64,
    first: u32,
    bytes: Vec<u8>,
}

impl Window {
    /// A page of segment `number`, and with it those that follow before `end`.
    pub(super) fn page(
        &mut self,
        number: u64,
        file: &dyn DiskFile,
        end: u32,
        page: u32,
    ) -> Result<&PageBuffer, OpenError> {
        let held = u32::try_from(self.bytes.len() / PAGE).unwrap_or(0);
        if self.segment != number || page < self.first || page >= self.first + held {
            let pages = usize::try_from(WINDOW.min(end.saturating_sub(page)).max(1)).unwrap_or(1);
            if self.bytes.len() != pages * PAGE {
                self.bytes = vec![0; pages * PAGE];
            }
            (self.segment, self.first) = (number, page);
            let read = file.read_at(&mut self.bytes, segment::offset(page));
            if let Err(error) = read {
                self.bytes.clear();
                let (name, at) = (segment::name(number), segment::offset(page));
                return Err(OpenError::io(format!("read {name} at byte {at}"))(error));
            }
        }
        let start = usize::try_from(page - self.first).unwrap_or(0) * PAGE;
        self.bytes
            .get(start..)
            .and_then(|rest| rest.first_chunk())
            .ok_or_else(|| Damage::at(number, page, "the page is outside of its segment").into())
    }

    fn of<'a>(&'a mut self, extent: &Extent, page: u32) -> Result<&'a PageBuffer, OpenError> {
        self.page(extent.head.number, extent.file.as_ref(), extent.end, page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::embedded::disk::{Disk as _, RealDisk};
    use crate::store::embedded::segment::{FOLDER, Segment, SegmentHead};
    use crate::store::embedded::write::write_batch;

    /// A mark comes from a checkpoint, whose checksum says nothing of where its numbers came from. Adding one to the
    /// last number there is would have ended the process instead of saying what is wrong.
    #[test]
    fn a_batch_after_the_last_number_there_is_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(folder.path());
        disk.create_folder(FOLDER).unwrap();
        let head = SegmentHead {
            store: 1,
            number: 1,
            pages: 4,
            previous: 0,
            replaces: None,
        };
        let segment = Segment::prepare(&disk, head).unwrap();
        let before = Mark {
            batch: u64::MAX - 1,
            ..Mark::default()
        };
        let last = write_batch(&segment, 1, &before, 0, b"batch").unwrap();
        assert_eq!(last.batch, u64::MAX);
        write_batch(&segment, 2, &last, 0, b"batch").unwrap();
        let layout = Layout::read(&disk).unwrap();
        let next = Scan::after(&layout, last).unwrap().next();
        assert!(matches!(next, Err(OpenError::Damaged(_))), "{next:?}");
    }
}
