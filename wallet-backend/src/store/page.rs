//! One page of a statement: a k-way merge of an account's slots, shared by every store.
//!
//! Slots are merged at their heads by (time, slot), and each slot is only ever read in version order. So a clock that
//! steps back can disturb the look of a page but never its contents, and the vector of versions seen is a cursor
//! without repeats and without gaps, whatever is written in between.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::account::{Entry, SlotIndex, Timestamp};
use crate::store::{Cursor, EntryPage};

impl Cursor {
    /// The version last seen of a slot; 0 before the first.
    #[must_use]
    pub fn seen(&self, slot: SlotIndex) -> u64 {
        self.0
            .iter()
            .find(|(index, _)| *index == slot)
            .map_or(0, |(_, version)| *version)
    }
}

/// Merges at most `limit` entries. `slots` gives, for each slot, its entries after `after.seen(slot)` in version
/// order; at most `limit` of each are read, and one more.
///
/// # Errors
/// The first error that a slot's entries give.
pub fn merge<I, E>(after: &Cursor, slots: impl IntoIterator<Item = I>, limit: usize) -> Result<EntryPage, E>
where
    I: Iterator<Item = Result<Entry, E>>,
{
    let mut seen: BTreeMap<SlotIndex, u64> = after.0.iter().copied().collect();
    let mut heads = BinaryHeap::new();
    for mut rest in slots {
        if let Some(entry) = rest.next().transpose()? {
            heads.push(Reverse(Head { entry, rest }));
        }
    }
    let mut entries = Vec::new();
    while entries.len() < limit
        && let Some(Reverse(Head { entry, mut rest })) = heads.pop()
    {
        seen.insert(entry.slot, entry.version);
        entries.push(entry);
        if let Some(entry) = rest.next().transpose()? {
            heads.push(Reverse(Head { entry, rest }));
        }
    }
    Ok(EntryPage {
        entries,
        next: Cursor(seen.into_iter().collect()),
    })
}

/// A slot's next entry, and those behind it.
struct Head<I> {
    entry: Entry,
    rest: I,
}

impl<I> Head<I> {
    const fn key(&self) -> (Timestamp, SlotIndex) {
        (self.entry.at, self.entry.slot)
    }
}

impl<I> PartialEq for Head<I> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<I> Eq for Head<I> {}

impl<I> PartialOrd for Head<I> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<I> Ord for Head<I> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}
