//! The heads of all chains as of one batch, on disk: so that a root costs what was written since the last one.
//!
//! `heads/NNNNNNNNNN.heads`, one at a time. Its own fields: the mark in the log, the records up to it, the head of the
//! journal's chain. Its body: every slot that has entries, by account id and number, each whole within its block, so
//! that one is found by reading one block. In memory there is only the first slot of each block, and only while a root
//! is made. Derived data: one that is damaged or lost is made again from the beginning of the log.

use std::io;

use crate::account::{AccountId, SlotIndex};
use crate::journal::{Digest, Head, Heads, Root, RootHasher};
use crate::store::codec::wire::{CodecError, Reader, Writer};
use crate::store::embedded::blocks::{
    self, BlockError, BlockFile, BlockWriter, FileId, Kind, ROOM, remove_unpublished,
};
use crate::store::embedded::disk::Disk;
use crate::store::embedded::segment::{Mark, read_mark, write_mark};

/// A slot that has entries, and where its chain stands.
type Item = (AccountId, SlotIndex, Head);

/// A file of heads that is in use.
#[derive(Debug)]
pub(super) struct HeadsFile {
    file: BlockFile,
    pub(super) mark: Mark,
    pub(super) records: u64,
    pub(super) journal: Digest,
    /// The first slot of each block.
    fences: Vec<(AccountId, SlotIndex)>,
}

impl HeadsFile {
    /// Reads a file once through, which checks every byte of it.
    pub(super) fn open(disk: &dyn Disk, store: u64, number: u64) -> Result<Self, BlockError> {
        let file = BlockFile::open(disk, id(store, number))?;
        let mut fields = Reader::new(&file.fields);
        let (mark, records) = (read_mark(&mut fields)?, fields.number("a count of records")?);
        let journal = read_digest(&mut fields)?;
        let mut opened = Self {
            file,
            mark,
            records,
            journal,
            fences: Vec::new(),
        };
        let (mut fences, mut last) = (Vec::new(), None);
        opened.for_each_block(disk, |items| {
            let sorted = items.is_sorted_by(|a, b| (&a.0, a.1) < (&b.0, b.1));
            let first = items.first().map(|(account, slot, _)| (account.clone(), *slot));
            if !sorted || first.is_none() || first <= last {
                return Err(BlockError::Damaged("the heads are not sorted".into()));
            }
            last = items.last().map(|(account, slot, _)| (account.clone(), *slot));
            fences.extend(first);
            Ok(())
        })?;
        opened.fences = fences;
        Ok(opened)
    }

    /// Where a slot's chain stands.
    pub(super) fn find(
        &self,
        disk: &dyn Disk,
        account: &AccountId,
        slot: SlotIndex,
    ) -> Result<Head, BlockError> {
        let behind = |(of, index): &(AccountId, SlotIndex)| (of, *index) > (account, slot);
        let after = self.fences.partition_point(|fence| !behind(fence));
        let Some(index) = after.checked_sub(1) else {
            return Ok(Head::NONE);
        };
        let block = self.file.read(disk, u64::try_from(index).unwrap_or(u64::MAX))?;
        let items = read_items(&block)?;
        let found = items
            .iter()
            .find(|(of, index, _)| of == account && *index == slot);
        Ok(found.map_or(Head::NONE, |(_, _, head)| *head))
    }

    /// The root of the history up to the mark.
    pub(super) fn root(&self, disk: &dyn Disk) -> Result<Root, BlockError> {
        let mut root = RootHasher::new(self.records, &self.journal);
        self.for_each_block(disk, |items| {
            for (account, slot, head) in &items {
                root.slot(account, *slot, head);
            }
            Ok(())
        })?;
        Ok(root.finish())
    }

    fn for_each_block(
        &self,
        disk: &dyn Disk,
        mut each: impl FnMut(Vec<Item>) -> Result<(), BlockError>,
    ) -> Result<(), BlockError> {
        self.file.for_each(disk, |piece| {
            for block in piece.chunks(ROOM) {
                each(read_items(block)?)?;
            }
            Ok(())
        })
    }
}

/// The newest file that can be read. Damaged ones are passed over with a warning.
///
/// # Errors
/// What the disk says.
pub(super) fn newest(disk: &dyn Disk, store: u64) -> io::Result<Option<HeadsFile>> {
    for number in blocks::list(disk, Kind::Heads)?.into_iter().rev() {
        match HeadsFile::open(disk, store, number) {
            Ok(file) => return Ok(Some(file)),
            Err(BlockError::Io(error)) => return Err(error),
            Err(error) => {
                let file = id(store, number).name();
                tracing::warn!(file, %error, "unusable heads: they are made again from the log");
            }
        }
    }
    Ok(None)
}

/// Every file by its name, with its root or what is wrong with it. For `verify`.
///
/// # Errors
/// What the disk says of the folder.
pub(super) fn roots(disk: &dyn Disk, store: u64) -> io::Result<Vec<(String, Result<Root, BlockError>)>> {
    let numbers = blocks::list(disk, Kind::Heads)?;
    let read = numbers.into_iter().map(|number| {
        let file = HeadsFile::open(disk, store, number);
        let root = file.and_then(|file| file.root(disk));
        (id(store, number).name(), root)
    });
    Ok(read.collect())
}

/// Writes `before` with what is `new`, as of `mark`, and takes every earlier file away.
///
/// # Errors
/// What the disk says; damage in `before`.
pub(super) fn write(
    disk: &dyn Disk,
    store: u64,
    before: Option<&HeadsFile>,
    new: &Heads,
    mark: &Mark,
) -> Result<HeadsFile, BlockError> {
    disk.create_folder(Kind::Heads.folder())?;
    remove_unpublished(disk, Kind::Heads)?;
    let earlier = blocks::list(disk, Kind::Heads)?;
    let number = earlier.last().copied().unwrap_or(0).saturating_add(1);
    let mut out = Items::create(disk, id(store, number))?;
    let mut new_slots = new.slots().peekable();
    if let Some(before) = before {
        before.for_each_block(disk, |items| {
            for (account, slot, head) in items {
                while let Some((of, index, newer)) =
                    new_slots.next_if(|(of, index, _)| (*of, *index) < (&account, slot))
                {
                    out.add(of, index, newer)?;
                }
                let newer = new_slots.next_if(|(of, index, _)| (*of, *index) == (&account, slot));
                out.add(&account, slot, newer.map_or(&head, |(_, _, newer)| newer))?;
            }
            Ok(())
        })?;
    }
    for (account, slot, head) in new_slots {
        out.add(account, slot, head)?;
    }
    let mut fields = Writer::default();
    write_mark(mark, &mut fields);
    fields.number(new.records());
    fields.bytes.extend_from_slice(&new.journal().0);
    out.publish(disk, &fields.bytes)?;
    for number in earlier {
        disk.remove(&id(store, number).name())?;
    }
    HeadsFile::open(disk, store, number)
}

fn id(store: u64, number: u64) -> FileId {
    FileId {
        store,
        kind: Kind::Heads,
        number,
    }
}

/// Writes items, each whole within a block.
struct Items {
    out: BlockWriter,
    /// The block that is being filled.
    block: Writer,
    item: Writer,
}

impl Items {
    fn create(disk: &dyn Disk, id: FileId) -> io::Result<Self> {
        Ok(Self {
            out: BlockWriter::create(disk, id)?,
            block: Writer::default(),
            item: Writer::default(),
        })
    }

    fn add(&mut self, account: &AccountId, slot: SlotIndex, head: &Head) -> io::Result<()> {
        self.item.bytes.clear();
        self.item.text(account.as_str());
        self.item.byte(slot.get());
        self.item.number(head.version);
        self.item.bytes.extend_from_slice(&head.digest.0);
        if self.block.bytes.len().saturating_add(self.item.bytes.len()) > ROOM {
            // An account id is never empty: zeros end a block.
            self.block.bytes.resize(ROOM, 0);
            self.out.write(&self.block.bytes)?;
            self.block.bytes.clear();
        }
        self.block.bytes.extend_from_slice(&self.item.bytes);
        Ok(())
    }

    fn publish(mut self, disk: &dyn Disk, fields: &[u8]) -> io::Result<()> {
        self.out.write(&self.block.bytes)?;
        self.out.finish(fields)?.publish(disk)
    }
}

fn read_items(block: &[u8]) -> Result<Vec<Item>, CodecError> {
    let (mut from, mut items) = (Reader::new(block), Vec::new());
    while from.remaining() > 0 && !from.at_zero() {
        let account = from.account()?;
        let slot = SlotIndex::new(from.byte("a slot")?).ok_or(CodecError::Range("a slot"))?;
        let version = from.number("a version")?;
        let digest = read_digest(&mut from)?;
        items.push((account, slot, Head { version, digest }));
    }
    Ok(items)
}

fn read_digest(from: &mut Reader<'_>) -> Result<Digest, CodecError> {
    let bytes = from.take(32, "a digest")?;
    bytes
        .try_into()
        .map(Digest)
        .map_err(|_| CodecError::Short("a digest"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Account, Entry, EntryKind, Timestamp};
    use crate::command::Changes;
    use crate::money::Currency;
    use crate::store::embedded::disk::RealDisk;
    use crate::store::embedded::segment::Place;

    const STORE: u64 = 5;

    fn account(number: u64) -> AccountId {
        AccountId::new(&format!("account-with-a-long-name-{number:06}")).unwrap()
    }

    fn entered(number: u64, slot: u8, version: u64) -> Changes {
        let entry = Entry {
            account: account(number),
            slot: SlotIndex::new(slot).unwrap(),
            version,
            kind: EntryKind::Consolidate,
            request: None,
            delta: 0,
            held_delta: 0,
            balance_after: 0,
            at: Timestamp(1),
            link: None,
        };
        Changes {
            entries: vec![entry],
            ..Changes::default()
        }
    }

    fn mark(batch: u64) -> Mark {
        let place = Place { segment: 1, page: 2 };
        Mark {
            place,
            batch,
            chain: 3,
        }
    }

    #[test]
    fn heads_that_go_on_from_a_file_are_those_of_the_whole_history() {
        let folder = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(folder.path());
        let (mut whole, mut file): (Heads, Option<HeadsFile>) = (Heads::default(), None);
        // Every account in the first round, some old and some new ones in each later one.
        let rounds = [(0, 500, 2), (0, 700, 7), (300, 301, 1), (690, 900, 3)];
        for (round, (from, to, step)) in (1..).zip(rounds) {
            let mut more = match &file {
                Some(file) => Heads::after(file.records, file.journal),
                None => Heads::default(),
            };
            for number in (from..to).step_by(step) {
                let changes = entered(number, u8::try_from(number % 3).unwrap(), round);
                whole.extend(&changes);
                more.extend_from(&changes, |account, slot| match &file {
                    Some(file) => file.find(&disk, account, slot),
                    None => Ok(Head::NONE),
                })
                .unwrap();
            }
            let written = write(&disk, STORE, file.as_ref(), &more, &mark(round)).unwrap();
            assert_eq!(written.root(&disk).unwrap(), whole.root());
            assert_eq!(written.mark, mark(round));
            file = Some(written);
        }
        assert_eq!(disk.list("heads").unwrap(), ["0000000004.heads"]);
        assert!(file.unwrap().fences.len() > 5);
    }

    #[test]
    fn damaged_heads_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(folder.path());
        let mut heads = Heads::default();
        heads.extend(&entered(1, 0, 1));
        let account = Account::new(account(2), Currency::new("EUR").unwrap());
        heads.extend(&Changes {
            account: Some(account),
            ..Changes::default()
        });
        write(&disk, STORE, None, &heads, &mark(1)).unwrap();
        assert_eq!(newest(&disk, STORE).unwrap().unwrap().records, 2);
        let file = disk.open("heads/0000000001.heads").unwrap();
        file.write_at(&[7], 5_000).unwrap();
        assert!(newest(&disk, STORE).unwrap().is_none());
    }
}
