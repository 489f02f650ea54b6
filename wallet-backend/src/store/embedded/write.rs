//! Putting a batch's payload into pages and on disk.

use std::io;

use crate::store::embedded::page::{self, LAST, PAGE, PAYLOAD, PageBuffer, PageHead, PageId};
use crate::store::embedded::segment::{Mark, Place, Segment, offset};

/// Pages written by one call.
const PIECE: usize = 256;

/// Writes `payload`, not empty, as the batch after `before`, from page `first` of a segment with room for it. `flags`
/// go on every page. Not synced yet.
///
/// # Errors
/// What the disk says; anything may have been written.
pub(super) fn write_batch(
    segment: &Segment,
    first: u32,
    before: &Mark,
    flags: u8,
    payload: &[u8],
) -> io::Result<Mark> {
    let mut buffer: Box<PageBuffer> = Box::new([0; PAGE]);
    let mut piece = Vec::with_capacity(PAGE.saturating_mul(payload.len().div_ceil(PAYLOAD).min(PIECE)));
    let mut end = Mark {
        place: Place {
            segment: segment.head.number,
            page: first,
        },
        batch: before.batch.saturating_add(1),
        chain: before.chain,
    };
    let mut written = first;
    let mut chunks = payload.chunks(PAYLOAD).peekable();
    while let Some(chunk) = chunks.next() {
        let last = if chunks.peek().is_none() { LAST } else { 0 };
        let head = PageHead {
            chain: before.chain,
            batch: end.batch,
            index: end.place.page.saturating_sub(first),
            len: u16::try_from(chunk.len()).unwrap_or(u16::MAX),
            flags: flags | last,
        };
        let id = PageId {
            store: segment.head.store,
            segment: segment.head.number,
            page: end.place.page,
        };
        end.chain = page::seal(id, head, chunk, &mut buffer);
        end.place.page = end.place.page.saturating_add(1);
        piece.extend_from_slice(buffer.as_slice());
        if last != 0 || piece.len() >= PIECE.saturating_mul(PAGE) {
            segment.file.write_at(&piece, offset(written))?;
            piece.clear();
            written = end.place.page;
        }
    }
    Ok(end)
}

/// The bytes in front of each record: its length.
pub(super) const RECORD_HEAD: usize = 4;

/// Appends a record, with its length, to a batch's payload.
pub(super) fn append_record(record: &[u8], payload: &mut Vec<u8>) {
    let length = u32::try_from(record.len()).unwrap_or(u32::MAX);
    payload.extend_from_slice(&length.to_le_bytes());
    payload.extend_from_slice(record);
}
