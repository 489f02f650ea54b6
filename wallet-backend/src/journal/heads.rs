//! The heads of all chains, moved on line by line.

use std::collections::BTreeMap;
use std::convert::Infallible;

use super::line::Lines;
use super::root::{Digest, Root, RootHasher};
use crate::account::{AccountId, SlotIndex};
use crate::command::Changes;

/// Where a slot's chain stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The entry that it ends with.
    pub version: u64,
    pub digest: Digest,
}

impl Head {
    /// Of a slot without entries.
    pub const NONE: Self = Self {
        version: 0,
        digest: Digest::ZERO,
    };
}

/// Chains over a history, as far as it was read. Some 120 bytes for each slot that was met.
#[derive(Debug, Default)]
pub struct Heads {
    records: u64,
    journal: Digest,
    slots: BTreeMap<(AccountId, SlotIndex), Head>,
    lines: Lines,
}

impl Heads {
    /// Goes on after `records` lines, whose chain ended in `journal`. The slots' heads are asked for as they are met.
    #[must_use]
    pub fn after(records: u64, journal: Digest) -> Self {
        Self {
            records,
            journal,
            ..Self::default()
        }
    }

    /// Takes in the next record of a history that is read from its beginning.
    pub fn extend(&mut self, changes: &Changes) {
        let none = |_: &AccountId, _: SlotIndex| Ok::<_, Infallible>(Head::NONE);
        match self.extend_from(changes, none) {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// Takes in the next record. `before` tells where a slot's chain stood that was not met yet.
    ///
    /// # Errors
    /// What `before` says; then the record was taken in in part, and the heads are of no use any more.
    pub fn extend_from<E>(
        &mut self,
        changes: &Changes,
        mut before: impl FnMut(&AccountId, SlotIndex) -> Result<Head, E>,
    ) -> Result<(), E> {
        let line = self.lines.write(changes);
        for (entry, text) in changes.entries.iter().zip(line.entries()) {
            let key = (entry.account.clone(), entry.slot);
            let known = self.slots.get(&key).copied();
            let head = known.map_or_else(|| before(&entry.account, entry.slot), Ok)?;
            let next = Head {
                version: entry.version,
                digest: head.digest.then(text),
            };
            self.slots.insert(key, next);
        }
        self.journal = self.journal.then(line.text());
        self.records = self.records.saturating_add(1);
        Ok(())
    }

    /// Lines taken in, and those before them.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The head of the chain over the lines.
    #[must_use]
    pub fn journal(&self) -> Digest {
        self.journal
    }

    /// The slots that were met, in the order in which a root takes them.
    pub fn slots(&self) -> impl ExactSizeIterator<Item = (&AccountId, SlotIndex, &Head)> {
        let slots = self.slots.iter();
        slots.map(|((account, slot), head)| (account, *slot, head))
    }

    /// Where one slot's chain stands, if it was met.
    #[must_use]
    pub fn slot(&self, account: &AccountId, slot: SlotIndex) -> Option<Head> {
        self.slots.get(&(account.clone(), slot)).copied()
    }

    /// The root, if every slot that there is was met: of a history that was read from its beginning.
    #[must_use]
    pub fn root(&self) -> Root {
        let mut root = RootHasher::new(self.records, &self.journal);
        for (account, slot, head) in self.slots() {
            root.slot(account, slot, head);
        }
        root.finish()
    }
}
