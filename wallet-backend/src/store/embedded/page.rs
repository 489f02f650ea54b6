//! The page: the unit in which the log is written, once each, and checked.
//!
//! 4096 bytes in eight sectors of 512. The last byte of every sector is a stamp that is never zero, on a file that was
//! zero-filled before: a sector that a power cut left half written has no stamp. So a page with all its stamps was
//! written whole, and then its checksum must hold.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | xxh3-64 of bytes 8..4096, seeded with the store's id, the segment's number and the page's number |
//! | 8..16 | chain: the checksum of the last page of the batch before |
//! | 16..24 | the batch's sequence number |
//! | 24..28 | the page's index in its batch |
//! | 28..30 | payload bytes in this page |
//! | 30 | flags |
//! | 31 | 0 |
//! | 32..4095, without the stamps | payload |
//! | 511, 1023, … 4095 | stamps, `0xA5` |
//!
//! The seed catches a page that belongs elsewhere; the chain one that belongs to another history.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "every offset here is a constant of the layout, or bounded by one, on a buffer of exactly one page"
)]

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::mutants::{Mutant, is_on};

/// Bytes in a page. That of the hardware and of the page cache.
pub(super) const PAGE: usize = 4096;
/// The unit in which disks write or do not write.
const SECTOR: usize = 512;
const STAMP: u8 = 0xA5;
const HEAD: usize = 32;
/// Payload bytes in a page: what the head and the eight stamps leave.
pub(super) const PAYLOAD: usize = PAGE - HEAD - PAGE / SECTOR;

/// The last page of its batch.
pub(super) const LAST: u8 = 1;
/// A page of a tail that was written again at opening.
pub(super) const REWRITTEN: u8 = 2;
/// Page 0 of a segment.
pub(super) const SEGMENT: u8 = 4;
/// The page that makes a rewritten tail count.
pub(super) const CLOSING: u8 = 8;

pub(super) type PageBuffer = [u8; PAGE];

/// Where a page lives; part of its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageId {
    pub(super) store: u64,
    pub(super) segment: u64,
    pub(super) page: u32,
}

/// What a page says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageHead {
    pub(super) chain: u64,
    pub(super) batch: u64,
    pub(super) index: u32,
    pub(super) len: u16,
    pub(super) flags: u8,
}

/// What is found where a page could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Zero all through: never written.
    Empty,
    /// A stamp is missing: not wholly written.
    Torn,
    /// All stamps are there and the checksum is right.
    Good { head: PageHead, checksum: u64 },
    /// All stamps are there and the checksum is wrong.
    Damaged { expected: u64, found: u64 },
}

/// Writes one page into `out` and returns its checksum. `payload` has `head.len` bytes, at most [`PAYLOAD`].
pub(super) fn seal(id: PageId, head: PageHead, payload: &[u8], out: &mut PageBuffer) -> u64 {
    out.fill(0);
    out[8..16].copy_from_slice(&head.chain.to_le_bytes());
    out[16..24].copy_from_slice(&head.batch.to_le_bytes());
    out[24..28].copy_from_slice(&head.index.to_le_bytes());
    out[28..30].copy_from_slice(&head.len.to_le_bytes());
    out[30] = head.flags;
    let mut rest = payload;
    for sector in 0..PAGE / SECTOR {
        let room = room_of(sector);
        let (now, later) = rest.split_at(rest.len().min(room.len()));
        out[room.start..room.start + now.len()].copy_from_slice(now);
        out[sector * SECTOR + SECTOR - 1] = STAMP;
        rest = later;
    }
    let checksum = checksum(id, out);
    out[..8].copy_from_slice(&checksum.to_le_bytes());
    checksum
}

/// Gives a page the stamps and the checksum that its content calls for.
#[cfg(feature = "fuzzing")]
pub(super) fn mend(id: PageId, page: &mut PageBuffer) {
    for sector in 0..PAGE / SECTOR {
        page[sector * SECTOR + SECTOR - 1] = STAMP;
    }
    let checksum = checksum(id, page);
    page[..8].copy_from_slice(&checksum.to_le_bytes());
}

/// Looks at one page.
pub(super) fn inspect(id: PageId, page: &PageBuffer) -> Found {
    if (0..PAGE / SECTOR).any(|sector| page[sector * SECTOR + SECTOR - 1] == 0) {
        let empty = *page == [0; PAGE];
        if empty || !is_on(Mutant::TakesTornForDamage) {
            return if empty { Found::Empty } else { Found::Torn };
        }
    }
    let (found, expected) = (u64_at(page, 0), checksum(id, page));
    let head = PageHead {
        chain: u64_at(page, 8),
        batch: u64_at(page, 16),
        index: u32::from_le_bytes([page[24], page[25], page[26], page[27]]),
        len: u16::from_le_bytes([page[28], page[29]]),
        flags: page[30],
    };
    if found == expected && usize::from(head.len) <= PAYLOAD {
        Found::Good {
            head,
            checksum: found,
        }
    } else if is_on(Mutant::TakesDamageForTorn) {
        Found::Torn
    } else {
        Found::Damaged { expected, found }
    }
}

/// Appends the first `len` payload bytes of a page to `out`.
pub(super) fn payload(page: &PageBuffer, len: u16, out: &mut Vec<u8>) {
    let mut left = usize::from(len);
    for sector in 0..PAGE / SECTOR {
        let room = room_of(sector);
        let take = left.min(room.len());
        out.extend_from_slice(&page[room.start..room.start + take]);
        left -= take;
    }
}

/// Where a sector keeps payload.
fn room_of(sector: usize) -> std::ops::Range<usize> {
    let start = if sector == 0 { HEAD } else { sector * SECTOR };
    start..(sector + 1) * SECTOR - 1
}

fn checksum(id: PageId, page: &PageBuffer) -> u64 {
    let mut place = [0; 20];
    place[..8].copy_from_slice(&id.store.to_le_bytes());
    place[8..16].copy_from_slice(&id.segment.to_le_bytes());
    place[16..].copy_from_slice(&id.page.to_le_bytes());
    xxh3_64_with_seed(&page[8..], xxh3_64(&place))
}

fn u64_at(page: &PageBuffer, at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&page[at..at + 8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: PageId = PageId {
        store: 7,
        segment: 3,
        page: 9,
    };

    fn full_page() -> (PageHead, Vec<u8>, Box<PageBuffer>) {
        let content: Vec<u8> = (1..=251).cycle().take(PAYLOAD).collect();
        let head = PageHead {
            chain: 11,
            batch: 12,
            index: 13,
            len: u16::try_from(PAYLOAD).unwrap(),
            flags: LAST,
        };
        let mut page = Box::new([0; PAGE]);
        seal(ID, head, &content, &mut page);
        (head, content, page)
    }

    #[test]
    fn a_page_gives_back_its_head_and_payload() {
        let (head, content, page) = full_page();
        assert!(matches!(inspect(ID, &page), Found::Good { head: found, .. } if found == head));
        let mut back = Vec::new();
        payload(&page, head.len, &mut back);
        assert_eq!(back, content);
    }

    #[test]
    fn every_prefix_of_a_page_is_torn_and_only_the_whole_is_good() {
        let (_, _, page) = full_page();
        for written in 1..PAGE {
            let mut torn = [0; PAGE];
            torn[..written].copy_from_slice(&page[..written]);
            assert_eq!(inspect(ID, &torn), Found::Torn, "{written} bytes");
        }
        assert_eq!(inspect(ID, &[0; PAGE]), Found::Empty);
    }

    #[test]
    fn every_flipped_bit_of_a_page_is_damage() {
        let (_, _, mut page) = full_page();
        for bit in 0..PAGE * 8 {
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(inspect(ID, &page), Found::Damaged { .. }), "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_page_in_the_wrong_place_is_damage() {
        let (_, _, page) = full_page();
        let elsewhere = [
            PageId { store: 8, ..ID },
            PageId { segment: 4, ..ID },
            PageId { page: 8, ..ID },
        ];
        for id in elsewhere {
            assert!(matches!(inspect(id, &page), Found::Damaged { .. }), "{id:?}");
        }
    }
}
