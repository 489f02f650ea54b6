//! What an account's past is told from, in few steps however long it is: running sums beside its entries.
//!
//! What a slot had at a moment is what its last entry by then left in it, and that entry is found by its time over the
//! links. Two things are more than entries tell. What was **held**: every entry of slot 0, where all holds are placed
//! and ended, carries the sum after it. What was **pending**: it has no entry yet. But pending credits settle in the
//! order in which they were accepted, and expired holds are swept in the order of their deadlines, so that of each
//! kind what was outstanding at a moment is what went to slot 0 from the last entry by then up to the last entry
//! that settled what was due by then. So entries of slot 0 carry, of both kinds, the sum of all that has gone there
//! and when the last of it was due.
//!
//! ```text
//! slot 0      | 41 debit | 42 settle a | 43 debit | 44 settle b | 45 settle c |       a accepted at 1, b at 2, c at 8
//! at          | 3        | 4           | 4        | 9           | 9           |
//! settled, due| 0        | a, 1        | a, 1     | a+b, 2      | a+b+c, 8    |       pending at 4: (a+b) - (a) = b
//! ```
//!
//! Where the clock is set back, an entry counts from the newest time that the account had seen: time goes one way in
//! every account, so an answer about the past never changes.

use crate::account::{AccountId, Entry, EntryKind, Hold, Link, Pending, SlotIndex, Timestamp};
use crate::command::Changes;
use crate::ledger::rows::AccountRows;

mod codec;

pub(super) use codec::{Traces, read_past, write_past};

/// Money that has gone back to slot 0, in the order in which it was due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Returned {
    /// All of it so far, in minor units: an account may turn over more than it can have.
    pub(super) sum: u128,
    /// When the last of it was due; it rises. 0 before the first.
    pub(super) due: Timestamp,
}

/// Sums of an account after an entry of slot 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// In open holds, expired or not, in minor units.
    pub(super) held: i64,
    /// Pending credits, due when they were accepted.
    pub(super) settled: Returned,
    /// Expired holds, due at their deadlines.
    pub(super) swept: Returned,
}

/// What an entry carries beside itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Trace {
    /// The time from which it counts, where that is later than its own.
    pub(super) late: Option<Timestamp>,
    /// Of an entry of another slot than 0, nothing.
    pub(super) sums: Sums,
}

/// Where an account's entries have got to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Past {
    /// The newest time that the account has seen.
    latest: Timestamp,
    /// Absent while there is nothing in them.
    sums: Option<Box<Sums>>,
}

impl Returned {
    fn add(&mut self, amount: i64) {
        self.sum = self.sum.saturating_add(u128::try_from(amount).unwrap_or(0));
    }

    /// Whether all of it was due by `at`.
    pub(super) fn was_due(&self, at: Timestamp) -> bool {
        self.sum == 0 || self.due <= at
    }

    /// What went back since `earlier`, in minor units.
    pub(super) fn since(&self, earlier: &Self) -> i64 {
        i64::try_from(self.sum.saturating_sub(earlier.sum)).unwrap_or(i64::MAX)
    }
}

impl Sums {
    /// The sums after one more entry, where nothing but the entry is known: what it returned was due no later than
    /// what was returned before.
    pub(super) fn after(mut self, entry: &Entry) -> Self {
        self.held = self.held.saturating_add(entry.held_delta);
        if entry.kind == EntryKind::Settle {
            self.settled.add(entry.delta);
        } else if is_sweep(entry) {
            self.swept.add(entry.delta);
        }
        self
    }
}

/// The end of a hold that nobody asked for.
fn is_sweep(entry: &Entry) -> bool {
    entry.kind == EntryKind::Release && entry.request.is_none()
}

impl Trace {
    /// From when on the entry counts.
    pub(super) fn counted(&self, entry: &Entry) -> Timestamp {
        self.late.unwrap_or(entry.at)
    }
}

impl Past {
    pub(super) fn sums(&self) -> Sums {
        self.sums.as_deref().copied().unwrap_or_default()
    }

    /// The traces of the entries of `changes` in this account, to be asked for in their order. `rows` is the account
    /// before them.
    pub(super) fn follow<'a>(
        &self,
        rows: &'a AccountRows,
        changes: &'a Changes,
    ) -> Follow<'a, impl Iterator<Item = &'a Pending> + use<'a>> {
        Follow {
            account: &rows.account().id,
            pending: rows.pending(),
            holds: &changes.holds,
            latest: self.latest,
            sums: self.sums(),
        }
    }

    /// Takes in `changes`. `rows` is the account before them.
    pub(super) fn apply(&mut self, rows: &AccountRows, changes: &Changes) {
        let id = &rows.account().id;
        let mut follow = self.follow(rows, changes);
        for entry in changes.entries.iter().filter(|entry| entry.account == *id) {
            follow.trace(entry);
        }
        let (mut latest, sums) = (follow.latest, follow.sums);
        for (_, row) in changes.pending_added.iter().filter(|(account, _)| account == id) {
            latest = latest.max(row.at);
        }
        self.latest = latest;
        match &mut self.sums {
            Some(kept) if sums != Sums::default() => **kept = sums,
            kept => *kept = boxed(sums),
        }
    }

    /// Of what an account has outstanding now, what was due by `at`, in minor units: pending credits, expired holds.
    pub(super) fn outstanding(&self, rows: &AccountRows, at: Timestamp) -> (i64, i64) {
        let mut due = self.sums().settled.due;
        let accepted = rows.pending().take_while(|row| {
            due = due.max(row.at);
            due <= at
        });
        let accepted = accepted.map(|row| row.amount.minor());
        (accepted.fold(0, i64::saturating_add), rows.in_expired(at))
    }
}

/// Goes through an account's entries in a record, one after the other.
pub(super) struct Follow<'a, P> {
    account: &'a AccountId,
    /// The pending rows, of which each entry that settles takes the next.
    pending: P,
    holds: &'a [(AccountId, Hold)],
    latest: Timestamp,
    sums: Sums,
}

impl<'a, P: Iterator<Item = &'a Pending>> Follow<'a, P> {
    pub(super) const fn account(&self) -> &'a AccountId {
        self.account
    }

    pub(super) fn trace(&mut self, entry: &Entry) -> Trace {
        self.latest = self.latest.max(entry.at);
        self.sums = self.sums.after(entry);
        if entry.kind == EntryKind::Settle {
            let accepted = self.pending.next().map_or(entry.at, |row| row.at);
            self.sums.settled.due = self.sums.settled.due.max(accepted);
        } else if is_sweep(entry) {
            let deadline = self.deadline(entry).unwrap_or(entry.at);
            self.sums.swept.due = self.sums.swept.due.max(deadline);
        }
        Trace {
            late: (self.latest > entry.at).then_some(self.latest),
            sums: if entry.slot == SlotIndex::PRIMARY {
                self.sums
            } else {
                Sums::default()
            },
        }
    }

    fn deadline(&self, entry: &Entry) -> Option<Timestamp> {
        let Some(Link::Hold(id)) = &entry.link else {
            return None;
        };
        let mut holds = self.holds.iter();
        let (_, hold) = holds.find(|(account, hold)| account == self.account && hold.id == *id)?;
        hold.expires_at
    }
}

fn boxed(sums: Sums) -> Option<Box<Sums>> {
    (sums != Sums::default()).then(|| Box::new(sums))
}
