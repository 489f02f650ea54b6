//! Derived files: checkpoints, request runs, heads of chains. What is in them can be rebuilt from the log.
//!
//! Blocks of 4096 bytes: a checksum (xxh3-64, seeded with store, kind, file number and block number), 8 bytes of zero,
//! 4080 of payload. Block 0 is the head: magic, format version, kind, store, number, the body's length, then the
//! file's own fields. A file is written under a temporary name, synced, and only then given its own.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "block numbers and lengths are those of a file that is read or written here"
)]

use std::io;
use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::store::codec::wire::{CodecError, Reader, Writer};
use crate::store::embedded::disk::{Disk, DiskFile};

const BLOCK: usize = 4096;
const HEAD: usize = 16;
/// Payload bytes of a block.
pub(super) const ROOM: usize = BLOCK - HEAD;
const MAGIC: u64 = u64::from_le_bytes(*b"SLUICEDF");
/// The format of every kind of derived file.
pub(super) const FORMAT: u64 = 1;
/// Where block 0 has the version: behind the block's own head and the magic number.
const VERSION_AT: usize = HEAD + 8;
/// Blocks that are written or read at once.
const CHUNK: usize = 64;
const TEMPORARY: &str = ".tmp";

/// Which derived file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    pub(super) store: u64,
    pub(super) kind: Kind,
    pub(super) number: u64,
}

/// The kinds of derived file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Checkpoint,
    Run,
    Heads,
}

impl Kind {
    pub(super) const fn folder(self) -> &'static str {
        match self {
            Self::Checkpoint => "state",
            Self::Run => "index",
            Self::Heads => "heads",
        }
    }

    const fn ending(self) -> &'static str {
        match self {
            Self::Checkpoint => ".ckpt",
            Self::Run => ".run",
            Self::Heads => ".heads",
        }
    }

    /// The number in a file's name, if it is of this kind.
    pub(super) fn number(self, file: &str) -> Option<u64> {
        file.strip_suffix(self.ending())?.parse().ok()
    }
}

impl FileId {
    pub(super) fn name(self) -> String {
        format!("{}/{:010}{}", self.kind.folder(), self.number, self.kind.ending())
    }

    fn seed(self, block: u64) -> u64 {
        let mut place = Writer::default();
        place.fixed(self.store);
        place.fixed(self.kind as u64);
        place.fixed(self.number);
        place.fixed(block);
        xxh3_64(&place.bytes)
    }
}

/// Why a derived file is of no use.
#[derive(Debug, thiserror::Error)]
pub(super) enum BlockError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("format version {0} is unknown")]
    Version(u64),
    /// Damage: the file can be rebuilt.
    #[error("{0}")]
    Damaged(String),
}

impl From<CodecError> for BlockError {
    fn from(error: CodecError) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// Writes a derived file front to back, its head last.
#[derive(Debug)]
pub(super) struct BlockWriter {
    id: FileId,
    file: Arc<dyn DiskFile>,
    /// The body so far that is in no block yet.
    buffer: Vec<u8>,
    next_block: u64,
    body: u64,
}

impl BlockWriter {
    pub(super) fn create(disk: &dyn Disk, id: FileId) -> io::Result<Self> {
        let name = id.name() + TEMPORARY;
        let file = match disk.create(&name) {
            // Left by an attempt that failed: it never had a name that counts.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                disk.remove(&name)?;
                disk.create(&name)?
            }
            other => other?,
        };
        Ok(Self {
            id,
            file,
            buffer: Vec::new(),
            next_block: 1,
            body: 0,
        })
    }

    pub(super) fn number(&self) -> u64 {
        self.id.number
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        self.body += u64::try_from(bytes.len()).unwrap_or(0);
        if self.buffer.len() >= CHUNK * ROOM {
            let whole = self.buffer.len() / ROOM * ROOM;
            let rest = self.buffer.split_off(whole);
            self.flush()?;
            self.buffer = rest;
        }
        Ok(())
    }

    /// Completes the body and syncs it all, under the temporary name still. `fields`: at most 4000 bytes.
    pub(super) fn finish(mut self, fields: &[u8]) -> io::Result<Unpublished> {
        self.flush()?;
        let mut head = Writer::default();
        head.fixed(MAGIC);
        head.fixed(FORMAT);
        head.number(self.id.kind as u64);
        head.fixed(self.id.store);
        head.number(self.id.number);
        head.number(self.body);
        head.bytes.extend_from_slice(fields);
        if head.bytes.len() > ROOM {
            return Err(io::Error::other("the head of a derived file is too long"));
        }
        self.file.write_at(&block(self.id, 0, &head.bytes), 0)?;
        self.file.sync()?;
        Ok(Unpublished {
            id: self.id,
            bytes: self.next_block * BLOCK as u64,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut out = Vec::with_capacity(self.buffer.len() / ROOM * BLOCK + BLOCK);
        let first = self.next_block;
        for payload in self.buffer.chunks(ROOM) {
            out.extend_from_slice(&block(self.id, self.next_block, payload));
            self.next_block += 1;
        }
        self.buffer.clear();
        self.file.write_at(&out, first * BLOCK as u64)
    }
}

/// A derived file that is complete and synced, and does not count yet.
#[derive(Debug)]
#[must_use]
pub(super) struct Unpublished {
    id: FileId,
    pub(super) bytes: u64,
}

impl Unpublished {
    /// Gives the file its name. Only after the log is durable to the position that the file covers.
    pub(super) fn publish(self, disk: &dyn Disk) -> io::Result<()> {
        let name = self.id.name();
        disk.rename(&(name.clone() + TEMPORARY), &name)?;
        disk.sync_folder(self.id.kind.folder())
    }
}

fn block(id: FileId, number: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEAD];
    bytes.extend_from_slice(payload);
    bytes.resize(BLOCK, 0);
    seal(id, number, &mut bytes);
    bytes
}

fn seal(id: FileId, number: u64, block: &mut [u8]) {
    let sum = xxh3_64_with_seed(block.get(8..).unwrap_or_default(), id.seed(number));
    if let Some(place) = block.first_chunk_mut() {
        *place = sum.to_le_bytes();
    }
}

/// Gives every block of a file the checksum that its content calls for.
#[cfg(feature = "fuzzing")]
pub(super) fn mend(id: FileId, file: &mut [u8]) {
    for (number, block) in (0..).zip(file.chunks_exact_mut(BLOCK)) {
        seal(id, number, block);
    }
}

/// A derived file that is there to be read. Not kept open: there may be thousands.
#[derive(Debug)]
pub(super) struct BlockFile {
    id: FileId,
    /// Bytes of body.
    pub(super) body: u64,
    /// The file's own fields, in the head.
    pub(super) fields: Vec<u8>,
}

impl BlockFile {
    pub(super) fn open(disk: &dyn Disk, id: FileId) -> Result<Self, BlockError> {
        let file = disk.open(&id.name())?;
        let size = file.size()?;
        if size < BLOCK as u64 {
            return Err(BlockError::Damaged("the file is too short".into()));
        }
        let mut raw = vec![0; BLOCK];
        file.read_at(&mut raw, 0)?;
        let checked = check(id, 0, &raw);
        let mut from = Reader::new(raw.get(HEAD..).unwrap_or_default());
        if from.fixed("magic")? == MAGIC {
            let version = from.fixed("version")?;
            if version != FORMAT && !only_version_differs(id, &raw) {
                return Err(BlockError::Version(version));
            }
        }
        checked?;
        let same = from.number("a kind")? == id.kind as u64
            && from.fixed("a store")? == id.store
            && from.number("a number")? == id.number;
        let body = from.number("a length")?;
        let blocks = body.div_ceil(ROOM as u64).saturating_add(1);
        if !same || blocks.saturating_mul(BLOCK as u64) != size {
            return Err(BlockError::Damaged("the head does not fit the file".into()));
        }
        let left = from.remaining();
        Ok(Self {
            id,
            body,
            fields: from.take(left, "fields")?.to_vec(),
        })
    }

    /// Blocks of body.
    pub(super) fn blocks(&self) -> u64 {
        self.body.div_ceil(ROOM as u64)
    }

    /// Payload of the body's block `index`, from 0.
    pub(super) fn read(&self, disk: &dyn Disk, index: u64) -> Result<Vec<u8>, BlockError> {
        self.read_some(disk.open(&self.id.name())?.as_ref(), index, 1)
    }

    /// Calls `each` with every piece of the body in order.
    pub(super) fn for_each(
        &self,
        disk: &dyn Disk,
        mut each: impl FnMut(&[u8]) -> Result<(), BlockError>,
    ) -> Result<(), BlockError> {
        let file = disk.open(&self.id.name())?;
        let mut index = 0;
        while index < self.blocks() {
            let count = (self.blocks() - index).min(CHUNK as u64);
            each(&self.read_some(file.as_ref(), index, count)?)?;
            index += count;
        }
        Ok(())
    }

    fn read_some(&self, file: &dyn DiskFile, index: u64, count: u64) -> Result<Vec<u8>, BlockError> {
        let mut raw = vec![0; usize::try_from(count).unwrap_or(1) * BLOCK];
        file.read_at(&mut raw, (index + 1) * BLOCK as u64)?;
        let mut out = Vec::with_capacity(raw.len());
        for (number, block) in (index + 1..).zip(raw.chunks(BLOCK)) {
            check(self.id, number, block)?;
            out.extend_from_slice(block.get(HEAD..).unwrap_or_default());
        }
        let left = self.body.saturating_sub(index * ROOM as u64);
        out.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        Ok(out)
    }
}

/// Whether the head would be right with our version in it: then the version is what is damaged.
fn only_version_differs(id: FileId, head: &[u8]) -> bool {
    let mut ours = head.to_vec();
    if let Some(place) = ours.get_mut(VERSION_AT..VERSION_AT + 8) {
        place.copy_from_slice(&FORMAT.to_le_bytes());
    }
    check(id, 0, &ours).is_ok()
}

fn check(id: FileId, number: u64, block: &[u8]) -> Result<(), BlockError> {
    let sum = xxh3_64_with_seed(block.get(8..).unwrap_or_default(), id.seed(number));
    if block.first_chunk() == Some(&sum.to_le_bytes()) {
        Ok(())
    } else {
        let at = number * BLOCK as u64;
        Err(BlockError::Damaged(format!("a wrong checksum at byte {at}")))
    }
}

/// The numbers of the files of a kind, ascending.
pub(super) fn list(disk: &dyn Disk, kind: Kind) -> io::Result<Vec<u64>> {
    let names = disk.list(kind.folder())?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| kind.number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Takes away what attempts left behind that never got a name.
pub(super) fn remove_unpublished(disk: &dyn Disk, kind: Kind) -> io::Result<()> {
    for name in disk.list(kind.folder())? {
        if name.ends_with(TEMPORARY) {
            disk.remove(&format!("{}/{name}", kind.folder()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::embedded::disk::RealDisk;

    const ID: FileId = FileId {
        store: 3,
        kind: Kind::Run,
        number: 4,
    };

    fn written(length: usize) -> (tempfile::TempDir, RealDisk, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(folder.path());
        disk.create_folder(ID.kind.folder()).unwrap();
        let body: Vec<u8> = (0..=252).cycle().take(length).collect();
        let mut out = BlockWriter::create(&disk, ID).unwrap();
        for piece in body.chunks(1000) {
            out.write(piece).unwrap();
        }
        out.finish(b"fields").unwrap().publish(&disk).unwrap();
        (folder, disk, body)
    }

    #[test]
    fn a_body_of_any_length_comes_back() {
        for length in [0, 1, ROOM - 1, ROOM, ROOM + 1, CHUNK * ROOM, 3 * CHUNK * ROOM + 5] {
            let (_folder, disk, body) = written(length);
            let file = BlockFile::open(&disk, ID).unwrap();
            let mut back = Vec::new();
            file.for_each(&disk, |piece| {
                back.extend_from_slice(piece);
                Ok(())
            })
            .unwrap();
            assert!(back == body, "{length}");
            assert!(file.fields.starts_with(b"fields"));
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let (_folder, disk, _) = written(ROOM + 7);
        let raw = disk.open(&ID.name()).unwrap();
        let size = raw.size().unwrap();
        for at in 0..size {
            let mut byte = [0];
            raw.read_at(&mut byte, at).unwrap();
            raw.write_at(&[byte[0] ^ 4], at).unwrap();
            let found = BlockFile::open(&disk, ID).and_then(|file| file.for_each(&disk, |_| Ok(())));
            assert!(found.is_err(), "byte {at}");
            raw.write_at(&byte, at).unwrap();
        }
    }

    #[test]
    fn a_file_of_another_store_or_number_is_refused() {
        let (_folder, disk, _) = written(10);
        assert!(matches!(
            BlockFile::open(&disk, FileId { store: 9, ..ID }),
            Err(BlockError::Damaged(_))
        ));
        disk.rename(&ID.name(), &FileId { number: 5, ..ID }.name())
            .unwrap();
        assert!(matches!(
            BlockFile::open(&disk, FileId { number: 5, ..ID }),
            Err(BlockError::Damaged(_))
        ));
    }
}
