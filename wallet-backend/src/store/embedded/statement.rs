//! A slot's entries in version order, read back over the links.

use crate::account::{AccountId, Entry, SlotIndex};
use crate::store::embedded::error::Damage;
use crate::store::embedded::error::OpenError;
use crate::store::embedded::links::{Chain, Links, skip_of};
use crate::store::embedded::record::Record;
use crate::store::embedded::records::Records;
use crate::store::embedded::scan::split_position;

/// One slot's entries after a version, lazily. Links lead backwards, so a piece is found at its end and walked down.
#[derive(Debug)]
pub(super) struct SlotEntries<'a> {
    records: &'a Records,
    account: &'a AccountId,
    slot: SlotIndex,
    chain: Chain,
    /// The last version handed out or in `piece`.
    seen: u64,
    /// Entries at a time.
    step: u64,
    /// Read and not handed out, the next one last.
    piece: Vec<Entry>,
    /// The record read last: neighbours on a slot are often in one record.
    last: Option<(u64, Record)>,
}

impl<'a> SlotEntries<'a> {
    pub(super) fn after(
        records: &'a Records,
        account: &'a AccountId,
        (slot, chain): (SlotIndex, Chain),
        seen: u64,
        step: u64,
    ) -> Self {
        Self {
            records,
            account,
            slot,
            chain,
            seen,
            step: step.max(1),
            piece: Vec::new(),
            last: None,
        }
    }

    fn fetch(&mut self) -> Result<(), OpenError> {
        let newest = self.chain.newest().map_or(0, |(version, _)| version);
        let first = self.seen.saturating_add(1);
        let end = newest.min(self.seen.saturating_add(self.step));
        if first > end {
            return Ok(());
        }
        let (mut version, mut position) = self.find(end)?;
        loop {
            let (entry, links) = self.entry(version, position)?;
            self.piece.push(entry);
            if version <= first {
                break;
            }
            version = version.saturating_sub(1);
            position = follow(links.before, position);
        }
        self.seen = end;
        Ok(())
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

    fn entry(&mut self, version: u64, position: u64) -> Result<(Entry, Links), OpenError> {
        if self.last.as_ref().is_none_or(|(at, _)| *at != position) {
            self.last = Some((position, self.records.read(position)?));
        }
        let found = self.last.as_ref().and_then(|(_, record)| {
            let entries = record.changes.entries.iter().zip(&record.links);
            entries
                .filter(|(entry, _)| entry.slot == self.slot && entry.version == version)
                .find(|(entry, _)| entry.account == *self.account)
        });
        match found {
            Some((entry, links)) => Ok((entry.clone(), *links)),
            None => {
                let (segment, page, _) = split_position(position);
                let (account, slot) = (self.account, self.slot.get());
                let what = format!("version {version} of slot {slot} of {account} should be here");
                Err(Damage::at(segment, page, what).into())
            }
        }
    }
}

/// A link of a record at `position`: 0 stays in the record.
fn follow(link: u64, position: u64) -> u64 {
    if link == 0 { position } else { link }
}

impl Iterator for SlotEntries<'_> {
    type Item = Result<Entry, OpenError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.piece.is_empty()
            && let Err(error) = self.fetch()
        {
            self.piece.clear();
            return Some(Err(error));
        }
        self.piece.pop().map(Ok)
    }
}
