//! A segment: one file of the log, zero-filled ahead, used once.
//!
//! `log/NNNNNNNNNN.seg`, numbered from 1. Page 0 is the head: magic, format version, store id, segment number, pages,
//! the segment before it, and for a segment begun at opening the place from which it replaces the old tail. Such a
//! one keeps page 1 for its closing page. A segment is ready once its zeros, its head and its name are synced.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "page numbers are bounded by a segment's size, which is below 2^32 payload bytes"
)]

use std::io;
use std::sync::Arc;

use crate::mutants::{Mutant, is_on};
use crate::store::codec::wire::{CodecError, Reader, Writer};
use crate::store::embedded::disk::{Disk, DiskFile};
use crate::store::embedded::page::{
    self, CLOSING, Found, PAGE, PAYLOAD, PageBuffer, PageHead, PageId, SEGMENT,
};

/// The folder of the segments.
pub(super) const FOLDER: &str = "log";
/// The format of segments, pages and batches. Another version is refused, never guessed at.
pub(super) const FORMAT: u64 = 1;
const MAGIC: u64 = u64::from_le_bytes(*b"SLUICELG");
/// Where page 0 has the version: behind the page's own head and the magic number.
const VERSION_AT: usize = 40;
/// The most pages of a segment: record positions keep a payload offset in 32 bits.
pub(super) const MAX_PAGES: u32 = 1 << 20;
/// Zeros are written in pieces of this many pages.
const FILL_PAGES: usize = 256;

/// The name of a segment's file.
pub(super) fn name(number: u64) -> String {
    format!("{FOLDER}/{number:010}.seg")
}

/// The number in a segment's file name.
pub(super) fn number(file: &str) -> Option<u64> {
    let number = file.strip_suffix(".seg")?.parse().ok()?;
    // Spelled in another way it is somebody else's file.
    (name(number).strip_prefix(FOLDER)?.strip_prefix('/')? == file).then_some(number)
}

/// A place in the log: the end of a batch, where the next one could begin. (0, 0) is the beginning of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) segment: u64,
    pub(super) page: u32,
}

/// A point between two batches, and what the next one must continue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) place: Place,
    /// The last batch before it.
    pub(super) batch: u64,
    /// The checksum of that batch's last page.
    pub(super) chain: u64,
}

/// What page 0 says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHead {
    pub(super) store: u64,
    pub(super) number: u64,
    pub(super) pages: u32,
    /// The segment in use when this one was prepared; 0 for none.
    pub(super) previous: u64,
    /// Where this segment takes over from the old tail.
    pub(super) replaces: Option<Mark>,
}

impl SegmentHead {
    /// The first page that a batch may use.
    pub(super) fn first_page(&self) -> u32 {
        if self.replaces.is_some() { 2 } else { 1 }
    }

    fn page_id(&self, page: u32) -> PageId {
        PageId {
            store: self.store,
            segment: self.number,
            page,
        }
    }
}

/// What is found in page 0.
#[derive(Debug)]
pub(super) enum HeadFound {
    Head(SegmentHead),
    /// Never written whole: the segment was never used.
    Unfinished,
    /// Another version of the format.
    Version(u64),
    Damaged {
        expected: u64,
        found: u64,
    },
    /// The checksum holds and the content makes no sense.
    Nonsense(CodecError),
}

/// A segment that can be written to.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) head: SegmentHead,
    pub(super) file: Arc<dyn DiskFile>,
}

impl Segment {
    /// Makes the file with its zeros and its head; ready when this returns.
    ///
    /// # Errors
    /// What the disk says. What was made of the file is taken away again.
    pub(super) fn prepare(disk: &dyn Disk, head: SegmentHead) -> io::Result<Self> {
        let name = name(head.number);
        let prepared = Self::fill(disk, head, &name);
        if prepared.is_err() {
            // Gone already, or as unwilling as the rest of the disk: opening removes what never got its head.
            drop(disk.remove(&name));
        }
        prepared
    }

    fn fill(disk: &dyn Disk, head: SegmentHead, name: &str) -> io::Result<Self> {
        let file = match disk.create(name) {
            // Numbers are above every segment in use, so this can only be what an attempt left that failed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                disk.remove(name)?;
                disk.create(name)?
            }
            other => other?,
        };
        let size = offset(head.pages);
        let zeros = vec![0; FILL_PAGES.min(usize::try_from(head.pages).unwrap_or(FILL_PAGES)) * PAGE];
        let mut at = 0;
        while at < size {
            let piece = usize::try_from(size - at).map_or(zeros.len(), |left| left.min(zeros.len()));
            file.write_at(zeros.get(..piece).unwrap_or_default(), at)?;
            at += u64::try_from(piece).unwrap_or(u64::MAX);
        }
        // The zeros first: a head on a file that is not all there must never be found.
        file.sync()?;
        file.write_at(encode_head(&head).as_slice(), 0)?;
        file.sync()?;
        if !is_on(Mutant::LeavesNamesUnsynced) {
            disk.sync_folder(FOLDER)?;
        }
        Ok(Self { head, file })
    }

    /// Writes and syncs the page that makes a rewritten tail count. Everything it vouches for is synced before.
    pub(super) fn close_tail(&self, end: Mark) -> io::Result<()> {
        let mut out = Writer::default();
        write_mark(&end, &mut out);
        let mut buffer = Box::new([0; PAGE]);
        page::seal(
            self.head.page_id(1),
            whole_page(CLOSING, out.bytes.len()),
            &out.bytes,
            &mut buffer,
        );
        self.file.write_at(buffer.as_slice(), offset(1))?;
        if is_on(Mutant::BelievesThePageCache) {
            return Ok(());
        }
        self.file.sync()
    }
}

/// Where a page begins in its file, in bytes.
pub(super) fn offset(page: u32) -> u64 {
    u64::from(page) * PAGE as u64
}

/// Pages that `bytes` of payload fill.
pub(super) fn pages_for(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(PAYLOAD)).unwrap_or(u32::MAX)
}

fn whole_page(flags: u8, len: usize) -> PageHead {
    PageHead {
        chain: 0,
        batch: 0,
        index: 0,
        len: u16::try_from(len).unwrap_or(u16::MAX),
        flags,
    }
}

fn encode_head(head: &SegmentHead) -> Box<PageBuffer> {
    let mut out = Writer::default();
    out.fixed(MAGIC);
    out.fixed(FORMAT);
    out.fixed(head.store);
    out.number(head.number);
    out.number(head.pages.into());
    out.number(head.previous);
    out.byte(head.replaces.is_some().into());
    if let Some(mark) = &head.replaces {
        write_mark(mark, &mut out);
    }
    let mut buffer = Box::new([0; PAGE]);
    // The store's id is what this page tells, so it cannot be part of this page's own checksum's seed.
    let id = head_id(head.number);
    page::seal(id, whole_page(SEGMENT, out.bytes.len()), &out.bytes, &mut buffer);
    buffer
}

fn head_id(segment: u64) -> PageId {
    PageId {
        store: 0,
        segment,
        page: 0,
    }
}

/// Reads page 0 of segment `number`.
pub(super) fn decode_head(number: u64, buffer: &PageBuffer) -> HeadFound {
    let mut bytes = Vec::new();
    match page::inspect(head_id(number), buffer) {
        Found::Empty | Found::Torn => return HeadFound::Unfinished,
        Found::Good { head, .. } => page::payload(buffer, head.len, &mut bytes),
        Found::Damaged { expected, found } => {
            page::payload(buffer, 16, &mut bytes);
            return match read_version(&mut Reader::new(&bytes)) {
                Ok(version) if version != FORMAT && !only_version_differs(number, buffer) => {
                    HeadFound::Version(version)
                }
                _ => HeadFound::Damaged { expected, found },
            };
        }
    }
    let mut from = Reader::new(&bytes);
    match read_version(&mut from) {
        Ok(FORMAT) => {}
        Ok(version) => return HeadFound::Version(version),
        Err(error) => return HeadFound::Nonsense(error),
    }
    match read_head(&mut from) {
        Ok(head) if head.number == number => HeadFound::Head(head),
        Ok(_) => HeadFound::Nonsense(CodecError::Range("a segment's number")),
        Err(error) => HeadFound::Nonsense(error),
    }
}

/// Whether the page would be right with our version in it: then the version is what is damaged. Another version's
/// page may be laid out in another way, and is not ours to judge.
fn only_version_differs(number: u64, buffer: &PageBuffer) -> bool {
    let mut ours = Box::new(*buffer);
    if let Some(place) = ours.get_mut(VERSION_AT..VERSION_AT + 8) {
        place.copy_from_slice(&FORMAT.to_le_bytes());
    }
    matches!(page::inspect(head_id(number), &ours), Found::Good { .. })
}

fn read_version(from: &mut Reader<'_>) -> Result<u64, CodecError> {
    if from.fixed("a segment's head")? != MAGIC {
        return Err(CodecError::Range("a segment's magic number"));
    }
    from.fixed("a segment's head")
}

fn read_head(from: &mut Reader<'_>) -> Result<SegmentHead, CodecError> {
    let head = SegmentHead {
        store: from.fixed("a store's id")?,
        number: from.number("a segment's number")?,
        pages: u32::try_from(from.number("a page count")?)
            .ok()
            .filter(|pages| (2..=MAX_PAGES).contains(pages))
            .ok_or(CodecError::Range("a page count"))?,
        previous: from.number("a segment's number")?,
        replaces: match from.byte("a place")? {
            0 => None,
            _ => Some(read_mark(from)?),
        },
    };
    from.end()?;
    Ok(head)
}

/// What a closing page says: where the rewritten tail ends. `None` if the page was never written whole.
///
/// # Errors
/// Damage: (expected, found) checksums.
pub(super) fn decode_closing(head: &SegmentHead, buffer: &PageBuffer) -> Result<Option<Mark>, (u64, u64)> {
    match page::inspect(head.page_id(1), buffer) {
        Found::Empty | Found::Torn => Ok(None),
        Found::Damaged { expected, found } => Err((expected, found)),
        Found::Good { head, checksum } => {
            let mut bytes = Vec::new();
            page::payload(buffer, head.len, &mut bytes);
            read_mark(&mut Reader::new(&bytes))
                .map(Some)
                .map_err(|_| (checksum, checksum))
        }
    }
}

/// A mark, also as checkpoints keep it.
pub(super) fn write_mark(mark: &Mark, out: &mut Writer) {
    out.number(mark.place.segment);
    out.number(mark.place.page.into());
    out.number(mark.batch);
    out.fixed(mark.chain);
}

/// The reverse of [`write_mark`].
pub(super) fn read_mark(from: &mut Reader<'_>) -> Result<Mark, CodecError> {
    Ok(Mark {
        place: Place {
            segment: from.number("a place")?,
            page: u32::try_from(from.number("a place")?).map_err(|_| CodecError::Range("a place"))?,
        },
        batch: from.number("a batch")?,
        chain: from.fixed("a chain")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::embedded::disk::RealDisk;

    fn head() -> SegmentHead {
        SegmentHead {
            store: 5,
            number: 7,
            pages: 8,
            previous: 6,
            replaces: Some(Mark {
                place: Place { segment: 6, page: 3 },
                batch: 40,
                chain: 99,
            }),
        }
    }

    fn read(file: &dyn DiskFile, page: u32) -> Box<PageBuffer> {
        let mut buffer = Box::new([0; PAGE]);
        file.read_at(buffer.as_mut_slice(), offset(page)).unwrap();
        buffer
    }

    #[test]
    fn a_prepared_segment_is_zero_but_for_its_head() {
        let folder = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(folder.path());
        disk.create_folder(FOLDER).unwrap();
        let segment = Segment::prepare(&disk, head()).unwrap();
        assert_eq!(segment.file.size().unwrap(), offset(8));
        let found = decode_head(7, &read(segment.file.as_ref(), 0));
        assert!(matches!(found, HeadFound::Head(found) if found == head()));
        for page in 1..8 {
            assert_eq!(*read(segment.file.as_ref(), page), [0; PAGE]);
        }
    }

    #[test]
    fn a_tail_counts_once_its_closing_page_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(folder.path());
        disk.create_folder(FOLDER).unwrap();
        let segment = Segment::prepare(&disk, head()).unwrap();
        let end = Mark {
            place: Place { segment: 7, page: 5 },
            batch: 44,
            chain: 1,
        };
        assert_eq!(decode_closing(&head(), &read(segment.file.as_ref(), 1)), Ok(None));
        segment.close_tail(end).unwrap();
        let closing = read(segment.file.as_ref(), 1);
        assert_eq!(decode_closing(&head(), &closing), Ok(Some(end)));
        let mut torn = closing.clone();
        torn[PAGE - 1] = 0;
        assert_eq!(decode_closing(&head(), &torn), Ok(None));
        let mut damaged = closing;
        damaged[100] ^= 1;
        assert!(decode_closing(&head(), &damaged).is_err());
    }

    #[test]
    fn another_format_version_is_named_unless_only_the_version_was_damaged() {
        let mut page = encode_head(&head());
        page[40] = 9;
        assert!(matches!(decode_head(7, &page), HeadFound::Damaged { .. }));
        page[100] = 9;
        assert!(matches!(decode_head(7, &page), HeadFound::Version(9)));
    }
}
