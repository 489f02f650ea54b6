//! A slot's entries, read back over the links: one by its version or by what it tells, or all in order.

use crate::account::{AccountId, Entry, SlotIndex};
use crate::store::embedded::error::Damage;
use crate::store::embedded::error::OpenError;
use crate::store::embedded::links::{Chain, Links, skip_of};
use crate::store::embedded::record::Record;
use crate::store::embedded::records::Records;
use crate::store::embedded::scan::split_position;

/// An entry and where it stands in the log.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) entry: Entry,
    /// Of all entries of the log: the first is 1.
    pub(super) number: u64,
    /// Of its record.
    pub(super) position: u64,
}

/// One slot's entries, by version.
#[derive(Debug)]
pub(super) struct SlotReader<'a> {
    records: &'a Records,
    account: &'a AccountId,
    slot: SlotIndex,
    chain: Chain,
    /// The record read last: neighbours on a slot are often in one record.
    last: Option<(u64, Record)>,
}

impl<'a> SlotReader<'a> {
    pub(super) fn new(
        records: &'a Records,
        account: &'a AccountId,
        (slot, chain): (SlotIndex, Chain),
    ) -> Self {
        Self {
            records,
            account,
            slot,
            chain,
            last: None,
        }
    }

    pub(super) const fn slot(&self) -> SlotIndex {
        self.slot
    }

    /// The version of the newest entry; 0 where there is none.
    fn newest(&self) -> u64 {
        self.chain.newest().map_or(0, |(version, _)| version)
    }

    /// The entry of this version, from 1 to the newest.
    pub(super) fn get(&mut self, version: u64) -> Result<(Entry, Links), OpenError> {
        let (version, position) = self.find(version)?;
        let (located, links) = self.entry(version, position)?;
        Ok((located.entry, links))
    }

    /// The last entry for which this holds, if it holds for all before that one and for none after it.
    pub(super) fn last(
        &mut self,
        holds: impl Fn(&Entry, &Links) -> bool,
    ) -> Result<Option<(Entry, Links)>, OpenError> {
        let Some((mut version, mut position)) = self.chain.newest() else {
            return Ok(None);
        };
        let (mut found, mut links) = self.entry(version, position)?;
        while !holds(&found.entry, &links) {
            // Down by long steps as long as it does not hold there either, and by a short one where it does.
            let (skip, at) = (skip_of(version), follow(links.skip, position));
            if skip > 0 {
                let there = self.entry(skip, at)?;
                if !holds(&there.0.entry, &there.1) {
                    ((found, links), version, position) = (there, skip, at);
                    continue;
                }
            }
            version = version.saturating_sub(1);
            if version == 0 {
                return Ok(None);
            }
            position = follow(links.before, position);
            (found, links) = self.entry(version, position)?;
        }
        Ok(Some((found.entry, links)))
    }

    /// The last version whose record lies before `wanted`. A link says where the record is without reading it.
    fn last_before(&mut self, wanted: u64) -> Result<u64, OpenError> {
        let known = self.chain.positions().iter().find(|(_, at)| *at >= wanted);
        let Some((mut version, mut position)) = known.copied() else {
            return Ok(self.chain.newest().map_or(0, |(version, _)| version));
        };
        while version > 1 {
            let (_, links) = self.entry(version, position)?;
            let (skip, before) = (follow(links.skip, position), follow(links.before, position));
            if skip_of(version) > 0 && skip >= wanted {
                (version, position) = (skip_of(version), skip);
            } else if before >= wanted {
                (version, position) = (version.saturating_sub(1), before);
            } else {
                break;
            }
        }
        Ok(version.saturating_sub(1))
    }

    /// Where `wanted` is.
    fn find(&mut self, wanted: u64) -> Result<(u64, u64), OpenError> {
        let known = self
            .chain
            .positions()
            .iter()
            .find(|(version, _)| *version >= wanted);
        let (mut version, mut position) = known.copied().unwrap_or_default();
        while version > wanted {
            let (_, links) = self.entry(version, position)?;
            if skip_of(version) >= wanted {
                version = skip_of(version);
                position = follow(links.skip, position);
            } else {
                version = version.saturating_sub(1);
                position = follow(links.before, position);
            }
        }
        Ok((version, position))
    }

    fn entry(&mut self, version: u64, position: u64) -> Result<(Located, Links), OpenError> {
        if self.last.as_ref().is_none_or(|(at, _)| *at != position) {
            self.last = Some((position, self.records.read(position)?));
        }
        let found = self.last.as_ref().and_then(|(_, record)| {
            let entries = record.changes.entries.iter().zip(&record.links);
            let mut numbered = (record.number.saturating_add(1)..).zip(entries);
            numbered.find(|(_, (entry, _))| {
                entry.slot == self.slot && entry.version == version && entry.account == *self.account
            })
        });
        match found {
            Some((number, (entry, links))) => {
                let entry = entry.clone();
                let located = Located {
                    entry,
                    number,
                    position,
                };
                Ok((located, *links))
            }
            None => {
                let (segment, page, _) = split_position(position);
                let (account, slot) = (self.account, self.slot.get());
                let what = format!("version {version} of slot {slot} of {account} should be here");
                Err(Damage::at(segment, page, what).into())
            }
        }
    }
}

/// One slot's entries after a version, lazily. Links lead backwards, so a piece is found at its end and walked down.
#[derive(Debug)]
pub(super) struct SlotEntries<'a> {
    reader: SlotReader<'a>,
    /// The last version handed out or in `piece`.
    seen: u64,
    /// Entries at a time.
    step: u64,
    /// Read and not handed out, the next one last.
    piece: Vec<Located>,
}

impl<'a> SlotEntries<'a> {
    pub(super) fn after(reader: SlotReader<'a>, seen: u64, step: u64) -> Self {
        Self {
            reader,
            seen,
            step: step.max(1),
            piece: Vec::new(),
        }
    }

    /// Those in the record at `position` and after it.
    pub(super) fn since(mut reader: SlotReader<'a>, position: u64, step: u64) -> Result<Self, OpenError> {
        let seen = reader.last_before(position)?;
        Ok(Self::after(reader, seen, step))
    }

    /// The next one, and where it stands.
    pub(super) fn next_located(&mut self) -> Result<Option<Located>, OpenError> {
        if self.piece.is_empty()
            && let Err(error) = self.fetch()
        {
            self.piece.clear();
            return Err(error);
        }
        Ok(self.piece.pop())
    }

    fn fetch(&mut self) -> Result<(), OpenError> {
        let first = self.seen.saturating_add(1);
        let end = self.reader.newest().min(self.seen.saturating_add(self.step));
        if first > end {
            return Ok(());
        }
        let (mut version, mut position) = self.reader.find(end)?;
        loop {
            let (located, links) = self.reader.entry(version, position)?;
            self.piece.push(located);
            if version <= first {
                break;
            }
            version = version.saturating_sub(1);
            position = follow(links.before, position);
        }
        self.seen = end;
        Ok(())
    }
}

/// A link of a record at `position`: 0 stays in the record.
fn follow(link: u64, position: u64) -> u64 {
    if link == 0 { position } else { link }
}

impl Iterator for SlotEntries<'_> {
    type Item = Result<Entry, OpenError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_located()
            .map(|found| found.map(|found| found.entry))
            .transpose()
    }
}
