//! A run: the requests between two checkpoints, on disk, sorted by fingerprint, never changed.
//!
//! 16 bytes each, fingerprint and position, 255 to a block. In memory a run keeps a filter (10 bits for each request,
//! about 1 in 100 false) and the first fingerprint of each block; so a new id costs one look at the filter, and a known
//! one the reading of a block.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "block and bit numbers are those of a file that is read here"
)]

use std::io;

use crate::store::embedded::blocks::{BlockError, BlockFile, BlockWriter, FileId, Kind, ROOM, Unpublished};
use crate::store::embedded::disk::Disk;

/// Bytes of one request in a run.
const ITEM: usize = 16;
/// Bits of filter for each request.
const BITS: usize = 10;
/// Words of 64 bits in the part of the filter that one fingerprint looks at: a cache line.
const LINE: usize = 8;

/// A run that is in use.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) number: u64,
    file: BlockFile,
    filter: Filter,
    /// The first fingerprint of each block.
    fences: Vec<u64>,
}

/// Writes a run. `items` (fingerprint, position) sorted.
pub(super) fn write(
    disk: &dyn Disk,
    store: u64,
    number: u64,
    items: &[(u64, u64)],
) -> io::Result<Unpublished> {
    let mut out = BlockWriter::create(disk, id(store, number))?;
    for (fingerprint, position) in items {
        let mut item = [0; ITEM];
        let (front, back) = item.split_at_mut(8);
        front.copy_from_slice(&fingerprint.to_le_bytes());
        back.copy_from_slice(&position.to_le_bytes());
        out.write(&item)?;
    }
    out.finish(&[])
}

fn id(store: u64, number: u64) -> FileId {
    FileId {
        store,
        kind: Kind::Run,
        number,
    }
}

impl Run {
    /// Reads a run once through, which checks every byte of it.
    pub(super) fn open(disk: &dyn Disk, store: u64, number: u64) -> Result<Self, BlockError> {
        let file = BlockFile::open(disk, id(store, number))?;
        let count = usize::try_from(file.body).unwrap_or(usize::MAX) / ITEM;
        let mut filter = Filter::for_items(count);
        let (mut fences, mut last, mut at) = (Vec::new(), 0, 0);
        file.for_each(disk, |piece| {
            for (fingerprint, _) in items(piece) {
                if fingerprint < last {
                    return Err(BlockError::Damaged("the run is not sorted".into()));
                }
                if at % (ROOM / ITEM) == 0 {
                    fences.push(fingerprint);
                }
                filter.insert(fingerprint);
                (last, at) = (fingerprint, at + 1);
            }
            Ok(())
        })?;
        Ok(Self {
            number,
            file,
            filter,
            fences,
        })
    }

    /// Appends the positions filed under a fingerprint.
    pub(super) fn find(
        &self,
        disk: &dyn Disk,
        fingerprint: u64,
        out: &mut Vec<u64>,
    ) -> Result<(), BlockError> {
        if !self.filter.may_hold(fingerprint) {
            return Ok(());
        }
        // Equal fingerprints may begin in the block before the first whose fence equals them.
        let first = self
            .fences
            .partition_point(|fence| *fence < fingerprint)
            .saturating_sub(1);
        for (index, fence) in self.fences.iter().enumerate().skip(first) {
            if *fence > fingerprint {
                break;
            }
            let block = self.file.read(disk, u64::try_from(index).unwrap_or(u64::MAX))?;
            let found = items(&block).filter(|(known, _)| *known == fingerprint);
            out.extend(found.map(|(_, position)| position));
        }
        Ok(())
    }

    /// Every item, for `verify`.
    pub(super) fn items(&self, disk: &dyn Disk) -> Result<Vec<(u64, u64)>, BlockError> {
        let mut all = Vec::new();
        self.file.for_each(disk, |piece| {
            all.extend(items(piece));
            Ok(())
        })?;
        Ok(all)
    }
}

fn items(bytes: &[u8]) -> impl Iterator<Item = (u64, u64)> + '_ {
    bytes.chunks_exact(ITEM).filter_map(|item| {
        let (front, back) = item.split_first_chunk()?;
        Some((
            u64::from_le_bytes(*front),
            u64::from_le_bytes(*back.first_chunk()?),
        ))
    })
}

/// A Bloom filter whose six bits for one fingerprint lie in one cache line (Putze, Sanders, Singler, 2007).
#[derive(Debug)]
struct Filter {
    words: Vec<u64>,
}

impl Filter {
    fn for_items(count: usize) -> Self {
        let lines = (count.saturating_mul(BITS) / (LINE * 64)).saturating_add(1);
        Self {
            words: vec![0; lines * LINE],
        }
    }

    fn insert(&mut self, fingerprint: u64) {
        for (word, bit) in places(fingerprint, self.words.len()) {
            if let Some(word) = self.words.get_mut(word) {
                *word |= bit;
            }
        }
    }

    fn may_hold(&self, fingerprint: u64) -> bool {
        places(fingerprint, self.words.len())
            .all(|(word, bit)| self.words.get(word).is_some_and(|word| word & bit != 0))
    }
}

/// Six bits of one line. The fingerprint is a hash already; its halves choose line and bits.
fn places(fingerprint: u64, words: usize) -> impl Iterator<Item = (usize, u64)> {
    let lines = words / LINE;
    let line = usize::try_from(fingerprint >> 32).unwrap_or(0) % lines.max(1);
    let mut bits = fingerprint.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..6).map(move |_| {
        bits = bits.rotate_left(9);
        let bit = usize::try_from(bits & 511).unwrap_or(0);
        (line * LINE + bit / 64, 1 << (bit % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::embedded::disk::RealDisk;
    use xxhash_rust::xxh3::xxh3_64;

    fn run_of(items: &[(u64, u64)]) -> (tempfile::TempDir, RealDisk, Run) {
        let folder = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(folder.path());
        disk.create_folder(Kind::Run.folder()).unwrap();
        write(&disk, 1, 1, items).unwrap().publish(&disk).unwrap();
        let run = Run::open(&disk, 1, 1).unwrap();
        (folder, disk, run)
    }

    #[test]
    fn every_request_is_found_and_few_others_reach_the_disk() {
        let mut items: Vec<(u64, u64)> = (0..5000_u64).map(|i| (xxh3_64(&i.to_le_bytes()), i)).collect();
        items.sort_unstable();
        let (_folder, disk, run) = run_of(&items);
        for (fingerprint, position) in &items {
            let mut found = Vec::new();
            run.find(&disk, *fingerprint, &mut found).unwrap();
            assert_eq!(found, [*position]);
        }
        let others = (5000..15000_u64).map(|i| xxh3_64(&i.to_le_bytes()));
        let passed = others.filter(|other| run.filter.may_hold(*other)).count();
        assert!(passed < 400, "{passed} of 10000 pass the filter");
    }

    #[test]
    fn equal_fingerprints_are_all_found_over_a_block_border() {
        let mut items: Vec<(u64, u64)> = (0..250).map(|i| (i, i)).collect();
        items.extend((0..300).map(|i| (250, 1000 + i)));
        items.push((251, 7));
        let (_folder, disk, run) = run_of(&items);
        let mut found = Vec::new();
        run.find(&disk, 250, &mut found).unwrap();
        assert_eq!(found, (1000..1300).collect::<Vec<_>>());
    }

    /// With a file open for every run, a year of checkpoints was once more than a process may have open.
    #[test]
    fn a_run_holds_no_file_open_between_looks() {
        let (_folder, disk, run) = run_of(&[(7, 1)]);
        disk.remove(&id(1, run.number).name()).unwrap();
        let looked = run.find(&disk, 7, &mut Vec::new());
        assert!(matches!(looked, Err(BlockError::Io(error)) if error.kind() == io::ErrorKind::NotFound));
    }
}
