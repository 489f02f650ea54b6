//! Which parts of which segments are the log.
//!
//! Segments are read in the order of their numbers. One that was begun at opening replaces everything from the place
//! that its head names, once its closing page is whole; before that it counts for nothing and the old tail stands.
//! What is replaced is dead: it is never read again. Segments that were prepared and never finished are no part of
//! the log either, but only if nothing was ever written to them.

use std::sync::Arc;

use crate::store::embedded::disk::{Disk, DiskFile};
use crate::store::embedded::error::{Damage, OpenError};
use crate::store::embedded::page::{self, Found, PAGE, PageBuffer, PageId, REWRITTEN};
use crate::store::embedded::segment::{self, FOLDER, FORMAT, HeadFound, Mark, Place, SegmentHead};

/// A live part of a segment: pages `head.first_page()` to `end`, without `end`.
#[derive(Clone, Debug)]
pub(super) struct Extent {
    pub(super) head: SegmentHead,
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) end: u32,
    /// What the closing page says, in a segment begun at opening.
    pub(super) closing: Option<Mark>,
}

impl Extent {
    /// Whether a later segment has taken over from here: everything before `end` is known to be whole.
    pub(super) fn is_cut(&self) -> bool {
        self.end < self.head.pages
    }

    pub(super) fn id(&self, page: u32) -> PageId {
        PageId {
            store: self.head.store,
            segment: self.head.number,
            page,
        }
    }
}

/// The log's files, sorted out.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// In the order of the log.
    pub(super) extents: Vec<Extent>,
    /// Segments that were replaced.
    pub(super) dead: Vec<u64>,
    /// Segments that never came into use.
    pub(super) unused: Vec<u64>,
    /// The highest number that any file has.
    pub(super) highest: u64,
}

impl Layout {
    /// Reads every segment's head.
    ///
    /// # Errors
    /// Damage, another format version, or what the disk says.
    pub(super) fn read(disk: &dyn Disk) -> Result<Self, OpenError> {
        let mut numbers: Vec<u64> = disk
            .list(FOLDER)
            .map_err(OpenError::io(format!("list {FOLDER}/")))?
            .iter()
            .filter_map(|name| segment::number(name))
            .collect();
        numbers.sort_unstable();
        let mut layout = Self {
            highest: numbers.last().copied().unwrap_or(0),
            ..Self::default()
        };
        layout.sort_out(disk, &numbers)?;
        layout.check()?;
        Ok(layout)
    }

    /// From the newest segment down, so that what is replaced is known before it is looked at.
    fn sort_out(&mut self, disk: &dyn Disk, numbers: &[u64]) -> Result<(), OpenError> {
        // Who took over, and from where; what lies behind that place is dead.
        let mut taken_over: Option<(u64, Place)> = None;
        for &number in numbers.iter().rev() {
            if taken_over.is_some_and(|(_, from)| number > from.segment) {
                self.dead.push(number);
                continue;
            }
            let file = disk.open(&segment::name(number));
            let file = file.map_err(OpenError::io(format!("open {}", segment::name(number))))?;
            let Some(mut extent) = read_segment(number, file)? else {
                self.unused.push(number);
                continue;
            };
            if let Some((by, from)) = taken_over {
                let pages = extent.head.first_page()..=extent.head.pages;
                if from.segment != number || !pages.contains(&from.page) {
                    return Err(missing(by, from).into());
                }
                extent.end = from.page;
                taken_over = None;
            }
            if let Some(mark) = extent.head.replaces {
                taken_over = Some((number, mark.place));
            }
            self.extents.push(extent);
        }
        self.extents.reverse();
        match taken_over {
            Some((by, from)) if from != Place::default() => Err(missing(by, from).into()),
            _ => Ok(()),
        }
    }

    fn check(&self) -> Result<(), OpenError> {
        let mut before = 0;
        for extent in &self.extents {
            let (number, previous) = (extent.head.number, extent.head.previous);
            if self.store() != Some(extent.head.store) {
                return Err(Damage::at(number, 0, "the segment belongs to another store").into());
            }
            if extent.head.replaces.is_none() && previous != before {
                let what = format!("segment {previous} before it is missing");
                return Err(Damage::at(number, 0, what).into());
            }
            check_size(extent)?;
            before = number;
        }
        Ok(())
    }

    /// The store's id, from any segment.
    pub(super) fn store(&self) -> Option<u64> {
        self.extents.first().map(|extent| extent.head.store)
    }

    /// Whether `mark` is the end of a batch in the live log.
    pub(super) fn holds(&self, mark: &Mark) -> Result<bool, OpenError> {
        if mark.place == Place::default() {
            return Ok(*mark == Mark::default());
        }
        let of = |extent: &&Extent| extent.head.number == mark.place.segment;
        let Some((extent, last)) = self.extents.iter().find(of).zip(mark.place.page.checked_sub(1)) else {
            return Ok(false);
        };
        if last < extent.head.first_page() || mark.place.page > extent.end {
            return Ok(false);
        }
        let buffer = read_page(extent.head.number, extent.file.as_ref(), last)?;
        Ok(match page::inspect(extent.id(last), &buffer) {
            Found::Good { head, checksum } => {
                checksum == mark.chain && head.batch == mark.batch && head.flags & page::LAST != 0
            }
            Found::Empty | Found::Torn | Found::Damaged { .. } => false,
        })
    }
}

fn missing(by: u64, from: Place) -> Damage {
    let Place { segment, page } = from;
    let what = format!("it goes on from page {page} of segment {segment}, which is missing");
    Damage::at(by, 0, what)
}

/// One segment, or `None` if it never came into use.
fn read_segment(number: u64, file: Arc<dyn DiskFile>) -> Result<Option<Extent>, OpenError> {
    let size = file
        .size()
        .map_err(OpenError::io(format!("measure {}", segment::name(number))))?;
    if size < segment::offset(1) {
        return Ok(None);
    }
    let head = match segment::decode_head(number, &*read_page(number, file.as_ref(), 0)?) {
        HeadFound::Head(head) => head,
        HeadFound::Unfinished => {
            return match first_written(number, 0, file.as_ref(), size)? {
                None => Ok(None),
                Some(_) => Err(Damage::at(number, 0, "the segment's head is missing").into()),
            };
        }
        HeadFound::Version(found) => {
            return Err(OpenError::Version {
                file: segment::name(number),
                found,
                known: FORMAT,
            });
        }
        HeadFound::Damaged { expected, found } => {
            return Err(Damage::checksum(number, 0, expected, found).into());
        }
        HeadFound::Nonsense(error) => return Err(Damage::at(number, 0, error.to_string()).into()),
    };
    let mut closing = None;
    if head.replaces.is_some() {
        closing = segment::decode_closing(&head, &*read_page(number, file.as_ref(), 1)?)
            .map_err(|(expected, found)| Damage::checksum(number, 1, expected, found))?;
        if closing.is_none() {
            return match first_written(number, head.store, file.as_ref(), size)? {
                None => Ok(None),
                Some(_) => Err(Damage::at(number, 1, "the closing page is missing").into()),
            };
        }
    }
    let end = head.pages;
    Ok(Some(Extent {
        head,
        file,
        end,
        closing,
    }))
}

/// The first page that was wholly written by anything but the rewriting of a tail.
fn first_written(number: u64, store: u64, file: &dyn DiskFile, size: u64) -> Result<Option<u32>, OpenError> {
    for page in 1.. {
        if segment::offset(page).saturating_add(PAGE as u64) > size {
            break;
        }
        let id = PageId {
            store,
            segment: number,
            page,
        };
        match page::inspect(id, &*read_page(number, file, page)?) {
            Found::Empty | Found::Torn => {}
            Found::Good { head, .. } if head.flags & REWRITTEN != 0 => {}
            Found::Good { .. } => return Ok(Some(page)),
            Found::Damaged { expected, found } => {
                return Err(Damage::checksum(number, page, expected, found).into());
            }
        }
    }
    Ok(None)
}

fn check_size(extent: &Extent) -> Result<(), OpenError> {
    let number = extent.head.number;
    let size = extent.file.size();
    let size = size.map_err(OpenError::io(format!("measure {}", segment::name(number))))?;
    if size < segment::offset(extent.end) {
        let last = u32::try_from(size >> PAGE.ilog2()).unwrap_or(extent.end);
        let what = format!("the file ends here and should have {} pages", extent.end);
        return Err(Damage::at(number, last, what).into());
    }
    Ok(())
}

/// Reads one page of a segment.
pub(super) fn read_page(number: u64, file: &dyn DiskFile, page: u32) -> Result<Box<PageBuffer>, OpenError> {
    let mut buffer = Box::new([0; PAGE]);
    file.read_at(buffer.as_mut_slice(), segment::offset(page))
        .map_err(OpenError::io(format!(
            "read {} at byte {}",
            segment::name(number),
            segment::offset(page)
        )))?;
    Ok(buffer)
}
/// Whether a store was ever made on this disk.
///
/// # Errors
/// What is there cannot be read, or is of another version.
pub fn is_there(disk: &dyn Disk) -> Result<bool, OpenError> {
    Layout::read(disk).map(|layout| !layout.extents.is_empty())
}
