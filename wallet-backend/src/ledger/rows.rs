//! One account's rows in memory: the account, its slots, its pending credits, its open holds, and their sums.
//!
//! The state changes by [`AccountRows::apply`] only, which checks every step of every slot's chain, so that a wrong
//! decision or a damaged log stops here and not in somebody's balance. An idle account with one slot takes about
//! 150 bytes.

use std::collections::VecDeque;

use smallvec::SmallVec;

use self::backlog::Backlog;
use self::holds::Holds;
use crate::account::{Account, Entry, EntryKind, Hold, Pending, RequestId, Slot, SlotIndex, Timestamp};
use crate::command::{AccountView, Changes};
use crate::ledger::invariants::{Rule, Violation, check_rows, signed, step};
use crate::mutants::{Mutant, is_on};

mod backlog;
mod holds;
mod undo;

pub use undo::Undo;

/// An account's rows. `slots` holds every slot row ever made, ascending from 0 without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountRows {
    account: Account,
    slots: SmallVec<[Slot; 1]>,
    in_slots: i64,
    /// Absent while there never was any.
    backlog: Option<Box<Backlog>>,
    /// Absent while there are none.
    holds: Option<Box<Holds>>,
}

impl AccountRows {
    /// A new account: all its slots, empty.
    #[must_use]
    pub fn open(account: Account) -> Self {
        let mut rows = Self {
            account,
            slots: SmallVec::new(),
            in_slots: 0,
            backlog: None,
            holds: None,
        };
        rows.add_slots();
        rows
    }

    /// Rows as a checkpoint kept them. `slots` ascending from 0, `pending` ascending, `next_pending` above them all,
    /// `holds` open.
    ///
    /// # Errors
    /// The first rule that the rows break.
    pub fn restore(
        account: Account,
        slots: Vec<Slot>,
        pending: VecDeque<Pending>,
        next_pending: u64,
        holds: Vec<Hold>,
    ) -> Result<Self, Violation> {
        let backlog = Backlog {
            rows: pending,
            sum: 0,
            unseen: 0,
            next: next_pending,
        };
        let mut rows = Self {
            account,
            slots: slots.into_iter().collect(),
            in_slots: 0,
            backlog: backlog.boxed(),
            holds: None,
        };
        rows.add_slots();
        for hold in holds {
            if !rows.holds.get_or_insert_default().restore(hold) {
                return Err(rows.broken(None, Rule::HoldRow, 1, 0));
            }
        }
        rows.in_slots = rows.sum(rows.slots.iter().map(|slot| slot.balance))?;
        let in_pending = rows.sum(rows.pending().map(|row| row.amount.minor()))?;
        if let Some(backlog) = &mut rows.backlog {
            backlog.sum = in_pending;
        }
        rows.sum([rows.in_slots, in_pending, rows.in_held()].into_iter())?;
        match check_rows(&rows).into_iter().next() {
            Some(violation) => Err(violation),
            None => Ok(rows),
        }
    }

    /// The same account of which only some rows are shown: `held` is what its other open holds have left, `pending`
    /// what its other pending rows are worth. Both count towards what the account has and may not pass, and neither
    /// towards what can be taken from it.
    ///
    /// # Errors
    /// [`Rule::Overflow`] where that is below zero, or more than fits.
    pub fn hiding(mut self, held: i64, pending: i64) -> Result<Self, Violation> {
        if held != 0 && !self.holds.get_or_insert_default().hide(held) {
            return Err(self.broken(None, Rule::Overflow, self.in_held(), held));
        }
        if pending < 0 {
            return Err(self.broken(None, Rule::Overflow, 0, pending));
        }
        if pending != 0 {
            self.backlog.get_or_insert_default().unseen = pending;
        }
        self.sum([self.in_slots, self.in_pending(), pending, self.in_held()].into_iter())?;
        Ok(self)
    }

    /// The account row.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Every slot row ever made, ascending.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// One slot row.
    #[must_use]
    pub fn slot(&self, index: SlotIndex) -> Option<Slot> {
        self.slots.get(usize::from(index.get())).copied()
    }

    /// Pending credits, oldest first.
    pub fn pending(&self) -> impl ExactSizeIterator<Item = &Pending> {
        let rows = self.backlog.as_ref().map(|backlog| backlog.rows.iter());
        rows.unwrap_or_default()
    }

    /// The number that the next pending row gets; the first is 1.
    #[must_use]
    pub fn next_pending(&self) -> u64 {
        self.backlog
            .as_ref()
            .map_or(Backlog::FIRST, |backlog| backlog.next)
    }

    /// The sum of the slots, in minor units.
    #[must_use]
    pub const fn in_slots(&self) -> i64 {
        self.in_slots
    }

    /// The sum of the pending rows, in minor units.
    #[must_use]
    pub fn in_pending(&self) -> i64 {
        self.backlog.as_ref().map_or(0, |backlog| backlog.sum)
    }

    /// What waits in pending rows that are not shown, in minor units. 0 but for rows that are [hidden](Self::hiding).
    #[must_use]
    pub(in crate::ledger) fn in_unseen_pending(&self) -> i64 {
        self.backlog.as_ref().map_or(0, |backlog| backlog.unseen)
    }

    /// A hold with something left in it, expired or not.
    #[must_use]
    pub fn hold(&self, id: &RequestId) -> Option<&Hold> {
        self.holds.as_ref()?.get(id)
    }

    /// Every such hold.
    pub fn holds(&self) -> impl Iterator<Item = &Hold> {
        self.holds.iter().flat_map(|holds| holds.iter())
    }

    /// How many there are.
    #[must_use]
    pub fn hold_count(&self) -> usize {
        self.holds.as_ref().map_or(0, |holds| holds.len())
    }

    /// Those of them whose deadline has come, earliest first.
    pub fn expired(&self, now: Timestamp) -> impl Iterator<Item = &Hold> {
        self.holds.iter().flat_map(move |holds| holds.expired(now))
    }

    /// The next deadline of a hold, come or not.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.holds.as_ref()?.next_deadline()
    }

    /// The sum of the holds, expired or not, in minor units.
    #[must_use]
    pub fn in_held(&self) -> i64 {
        self.holds.as_ref().map_or(0, |holds| holds.sum())
    }

    /// The part of it that is expired. Takes time in the number of holds that no sweep has met yet.
    #[must_use]
    pub fn in_expired(&self, now: Timestamp) -> i64 {
        self.expired(now).map(Hold::rest).fold(0, i64::saturating_add)
    }

    /// All the account's money, in minor units.
    #[must_use]
    pub fn total(&self) -> i64 {
        // `apply` refuses what would make this overflow.
        let loose = self.in_slots.saturating_add(self.in_pending());
        let unseen = self.in_unseen_pending();
        loose.saturating_add(unseen).saturating_add(self.in_held())
    }

    /// What could be taken, were there no floor: slots, pending credits and expired holds, in minor units.
    #[must_use]
    pub fn spendable(&self, now: Timestamp) -> i64 {
        let loose = self.in_slots.saturating_add(self.in_pending());
        let all = loose.saturating_add(self.in_expired(now));
        if is_on(Mutant::RefusesWithoutProof) {
            self.slot(SlotIndex::PRIMARY).map_or(0, |slot| slot.balance)
        } else if is_on(Mutant::LeavesPendingOut) {
            all.saturating_sub(self.in_pending())
        } else if is_on(Mutant::LeavesExpiredOut) {
            all.saturating_sub(self.in_expired(now))
        } else {
            all
        }
    }

    /// What an outsider may see.
    #[must_use]
    pub fn view(&self, now: Timestamp) -> AccountView {
        let expired = match self.in_expired(now) {
            _ if is_on(Mutant::ReadsExpiredAsHeld) => 0,
            expired => expired,
        };
        let mut slots = self.slots.to_vec();
        if is_on(Mutant::ReadsPastASlot) && slots.len() > 1 {
            slots.pop();
        }
        AccountView {
            account: self.account.clone(),
            slots,
            held: self.in_held().saturating_sub(expired),
            pending: self.in_pending().saturating_add(expired),
        }
    }

    /// Applies what concerns this account; the rest of `changes` is passed over. Where it adds several kinds of row,
    /// entries come first, then what settles, then holds, then what is newly pending.
    ///
    /// # Errors
    /// The first broken rule, naming account, slot and version. The rows may then be half changed: a store that meets
    /// this must stop, since its decision or its log is wrong.
    pub fn apply(&mut self, changes: &Changes) -> Result<(), Violation> {
        if let Some(account) = &changes.account
            && account.id == self.account.id
        {
            if account.currency != self.account.currency {
                return Err(self.broken(None, Rule::Account, 1, 0));
            }
            self.account = account.clone();
            self.add_slots();
        }
        let (mut unsettled, mut unheld): (i64, i64) = (0, 0);
        for entry in &changes.entries {
            if entry.account == self.account.id {
                self.enter(entry)?;
                unheld = unheld.saturating_add(entry.held_delta);
                if entry.kind == EntryKind::Settle {
                    unsettled = unsettled.saturating_add(entry.delta);
                }
            }
        }
        for (account, number) in &changes.pending_settled {
            if *account == self.account.id {
                unsettled = unsettled.saturating_sub(self.settle(*number)?);
            }
        }
        if unsettled != 0 {
            return Err(self.broken(None, Rule::PendingAmount, 0, unsettled));
        }
        for (account, hold) in &changes.holds {
            if *account == self.account.id {
                unheld = unheld.saturating_sub(self.set_aside(hold)?);
            }
        }
        if unheld != 0 {
            return Err(self.broken(None, Rule::HeldAmount, 0, unheld));
        }
        for (account, row) in &changes.pending_added {
            if *account == self.account.id {
                self.await_settling(row)?;
            }
        }
        let pending = [self.in_pending(), self.in_unseen_pending()];
        self.sum([self.in_slots, self.in_held()].into_iter().chain(pending))?;
        if is_on(Mutant::DropsDrainedSlots) {
            self.slots.truncate(usize::from(self.account.slots.get()));
        }
        Ok(())
    }

    fn enter(&mut self, entry: &Entry) -> Result<(), Violation> {
        let Some(sum) = self.in_slots.checked_add(entry.delta) else {
            return Err(self.broken(Some(entry.version), Rule::Overflow, self.in_slots, entry.delta));
        };
        let Some(slot) = self.slots.get_mut(usize::from(entry.slot.get())) else {
            let mut missing = self.broken(Some(entry.version), Rule::SlotMissing, 1, 0);
            missing.slot = Some(entry.slot);
            return Err(missing);
        };
        step(slot, entry)?;
        self.in_slots = sum;
        Ok(())
    }

    /// Takes a pending row away and says what it was worth.
    fn settle(&mut self, number: u64) -> Result<i64, Violation> {
        let taken = self.backlog.as_mut().and_then(|backlog| backlog.take(number));
        match taken {
            Some(row) => Ok(row.amount.minor()),
            None => Err(self.broken(Some(number), Rule::PendingNumber, signed(number), 0)),
        }
    }

    /// Takes in a hold as it became and says by how much what is held changed.
    fn set_aside(&mut self, hold: &Hold) -> Result<i64, Violation> {
        let holds = self.holds.get_or_insert_default();
        let change = holds.put(hold);
        if holds.is_empty() {
            self.holds = None;
        }
        change.ok_or_else(|| self.broken(None, Rule::HoldRow, 1, 0))
    }

    fn await_settling(&mut self, row: &Pending) -> Result<(), Violation> {
        let next = self.next_pending();
        if row.number != next {
            let (expected, found) = (signed(next), signed(row.number));
            return Err(self.broken(Some(row.number), Rule::PendingNumber, expected, found));
        }
        let sum = self.sum([self.in_pending(), row.amount.minor()].into_iter())?;
        let backlog = self.backlog.get_or_insert_default();
        backlog.sum = sum;
        backlog.next = next.saturating_add(1);
        backlog.rows.push_back(row.clone());
        Ok(())
    }

    fn add_slots(&mut self) {
        let have = self.slots.len();
        let want = usize::from(self.account.slots.get());
        self.slots.reserve_exact(want.saturating_sub(have));
        self.slots.extend(
            (0..self.account.slots.get())
                .skip(have)
                .filter_map(SlotIndex::new)
                .map(Slot::empty),
        );
    }

    fn sum(&self, mut amounts: impl Iterator<Item = i64>) -> Result<i64, Violation> {
        amounts.try_fold(0_i64, |sum, amount| {
            sum.checked_add(amount)
                .ok_or_else(|| self.broken(None, Rule::Overflow, sum, amount))
        })
    }

    fn broken(&self, version: Option<u64>, rule: Rule, expected: i64, found: i64) -> Violation {
        Violation {
            account: self.account.id.clone(),
            slot: None,
            version,
            rule,
            expected,
            found,
        }
    }
}

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;
