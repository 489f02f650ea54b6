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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{AccountId, EntryKind};

    /// The entries of one slot at these times.
    fn slot(index: u8, times: &[i64]) -> Vec<Entry> {
        let entry = |(version, at): (u64, &i64)| Entry {
            account: AccountId::new("a").unwrap(),
            slot: SlotIndex::new(index).unwrap(),
            version,
            kind: EntryKind::Credit,
            request: None,
            delta: 1,
            held_delta: 0,
            balance_after: 1,
            at: Timestamp(*at),
            link: None,
        };
        (1..).zip(times).map(entry).collect()
    }

    fn page(slots: &[Vec<Entry>], after: &Cursor, limit: usize) -> EntryPage {
        let unseen = slots.iter().map(|entries| {
            let unseen = |entry: &&Entry| entry.version > after.seen(entry.slot);
            entries.iter().filter(unseen).cloned().map(Ok::<_, ()>)
        });
        merge(after, unseen, limit).unwrap()
    }

    fn keys(page: &EntryPage) -> Vec<(u8, u64)> {
        let key = |entry: &Entry| (entry.slot.get(), entry.version);
        page.entries.iter().map(key).collect()
    }

    #[test]
    fn slots_are_merged_by_time_and_then_by_number() {
        let slots = [slot(0, &[1, 4]), slot(1, &[1, 2, 9])];
        let merged = page(&slots, &Cursor::default(), 10);
        assert_eq!(keys(&merged), [(0, 1), (1, 1), (1, 2), (0, 2), (1, 3)]);
    }

    #[test]
    fn a_clock_that_steps_back_hides_no_entry() {
        let slots = [slot(0, &[50, 10, 60]), slot(1, &[20, 30])];
        let mut cursor = Cursor::default();
        let mut seen = Vec::new();
        for _ in 0..5 {
            let one = page(&slots, &cursor, 1);
            seen.extend(keys(&one));
            cursor = one.next;
        }
        assert_eq!(seen, [(1, 1), (1, 2), (0, 1), (0, 2), (0, 3)]);
        assert_eq!(page(&slots, &cursor, 1).entries, []);
    }

    #[test]
    fn a_cursor_keeps_slots_that_this_page_did_not_touch() {
        let slots = [slot(0, &[1]), slot(1, &[2])];
        let first = page(&slots, &Cursor::default(), 2);
        let end = page(&slots, &first.next, 2);
        assert_eq!((end.entries.len(), end.next), (0, first.next));
    }
}
