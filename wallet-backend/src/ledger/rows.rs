//! One account's rows in memory: the account, its slots, its pending credits, and their sums.
//!
//! The state changes by [`AccountRows::apply`] only, which checks every step of every slot's chain, so that a wrong
//! decision or a damaged log stops here and not in somebody's balance. An idle account with one slot takes about
//! 200 bytes.

use std::collections::VecDeque;

use crate::account::{Account, Entry, EntryKind, Pending, Slot, SlotIndex};
use crate::command::{AccountView, Changes};
use crate::ledger::invariants::{Rule, Violation, check_rows, signed, step};

/// An account's rows. `slots` holds every slot row ever made, ascending from 0 without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountRows {
    account: Account,
    slots: Vec<Slot>,
    /// Ascending by number; the oldest settles first.
    pending: VecDeque<Pending>,
    in_slots: i64,
    in_pending: i64,
    next_pending: u64,
}

impl AccountRows {
    /// A new account: all its slots, empty.
    #[must_use]
    pub fn open(account: Account) -> Self {
        let mut rows = Self {
            account,
            slots: Vec::new(),
            pending: VecDeque::new(),
            in_slots: 0,
            in_pending: 0,
            next_pending: 1,
        };
        rows.add_slots();
        rows
    }

    /// Rows as a checkpoint kept them. `slots` ascending from 0, `pending` ascending, `next_pending` above them all.
    ///
    /// # Errors
    /// The first rule that the rows break.
    pub fn restore(
        account: Account,
        slots: Vec<Slot>,
        pending: VecDeque<Pending>,
        next_pending: u64,
    ) -> Result<Self, Violation> {
        let mut rows = Self {
            account,
            slots,
            pending,
            in_slots: 0,
            in_pending: 0,
            next_pending,
        };
        rows.add_slots();
        rows.in_slots = rows.sum(rows.slots.iter().map(|slot| slot.balance))?;
        rows.in_pending = rows.sum(rows.pending.iter().map(|row| row.amount.minor()))?;
        rows.sum([rows.in_slots, rows.in_pending].into_iter())?;
        match check_rows(&rows).into_iter().next() {
            Some(violation) => Err(violation),
            None => Ok(rows),
        }
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
        self.pending.iter()
    }

    /// The number that the next pending row gets; the first is 1.
    #[must_use]
    pub const fn next_pending(&self) -> u64 {
        self.next_pending
    }

    /// The sum of the slots, in minor units.
    #[must_use]
    pub const fn in_slots(&self) -> i64 {
        self.in_slots
    }

    /// The sum of the pending rows, in minor units.
    #[must_use]
    pub const fn in_pending(&self) -> i64 {
        self.in_pending
    }

    /// All the account's money, in minor units.
    #[must_use]
    pub const fn total(&self) -> i64 {
        // `apply` refuses what would make this overflow.
        self.in_slots.saturating_add(self.in_pending)
    }

    /// What an outsider may see.
    #[must_use]
    pub fn view(&self) -> AccountView {
        AccountView {
            account: self.account.clone(),
            slots: self.slots.clone(),
            held: 0,
            pending: self.in_pending,
        }
    }

    /// Applies what concerns this account; the rest of `changes` is passed over. Where it adds several kinds of row,
    /// entries come first, then what settles, then what is newly pending.
    ///
    /// # Errors
    /// The first broken rule, naming account, slot and version. The rows may then be half changed: a store that meets
    /// this must stop, since its decision or its log is wrong.
    pub fn apply(&mut self, changes: &Changes) -> Result<(), Violation> {
        if let Some(account) = &changes.account
            && account.id == self.account.id
        {
            self.account = account.clone();
            self.add_slots();
        }
        let mut unsettled: i64 = 0;
        for entry in &changes.entries {
            if entry.account == self.account.id {
                self.enter(entry)?;
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
        for (account, row) in &changes.pending_added {
            if *account == self.account.id {
                self.await_settling(row)?;
            }
        }
        self.sum([self.in_slots, self.in_pending].into_iter())?;
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
        let found = self.pending.binary_search_by_key(&number, |row| row.number);
        match found.ok().and_then(|at| self.pending.remove(at)) {
            Some(row) => {
                let amount = row.amount.minor();
                self.in_pending = self.in_pending.saturating_sub(amount);
                // The backlog of a burst is not kept as capacity of an idle account.
                if self.pending.is_empty() {
                    self.pending = VecDeque::new();
                }
                Ok(amount)
            }
            None => Err(self.broken(Some(number), Rule::PendingNumber, signed(number), 0)),
        }
    }

    fn await_settling(&mut self, row: &Pending) -> Result<(), Violation> {
        if row.number != self.next_pending {
            let (expected, found) = (signed(self.next_pending), signed(row.number));
            return Err(self.broken(Some(row.number), Rule::PendingNumber, expected, found));
        }
        self.in_pending = self.sum([self.in_pending, row.amount.minor()].into_iter())?;
        self.next_pending = self.next_pending.saturating_add(1);
        self.pending.push_back(row.clone());
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
mod tests {
    use super::*;
    use crate::account::{AccountId, RequestId, Timestamp};
    use crate::money::{Amount, Currency};

    fn account() -> Account {
        let id = AccountId::new("a").unwrap();
        Account::new(id, Currency::new("EUR").unwrap())
    }

    fn entry(version: u64, kind: EntryKind, delta: i64, balance_after: i64) -> Entry {
        Entry {
            account: account().id,
            slot: SlotIndex::PRIMARY,
            version,
            kind,
            request: None,
            delta,
            held_delta: 0,
            balance_after,
            at: Timestamp::default(),
            link: None,
        }
    }

    fn entries(entries: Vec<Entry>) -> Changes {
        Changes {
            entries,
            ..Changes::default()
        }
    }

    fn pending(number: u64, minor: i64) -> Changes {
        let row = Pending {
            number,
            amount: Amount::new(minor).unwrap(),
            request: RequestId::new("r").unwrap(),
            link: None,
            at: Timestamp::default(),
        };
        Changes {
            pending_added: vec![(account().id, row)],
            ..Changes::default()
        }
    }

    fn settled(number: u64, minor: i64) -> Changes {
        Changes {
            pending_settled: vec![(account().id, number)],
            ..entries(vec![entry(1, EntryKind::Settle, minor, minor)])
        }
    }

    fn broken(steps: &[Changes]) -> (Rule, Option<u64>) {
        let mut rows = AccountRows::open(account());
        let violation = steps
            .iter()
            .find_map(|changes| rows.apply(changes).err())
            .unwrap();
        (violation.rule, violation.version)
    }

    #[test]
    fn a_chain_of_entries_moves_the_slot() {
        let mut rows = AccountRows::open(account());
        let changes = entries(vec![
            entry(1, EntryKind::Credit, 5, 5),
            entry(2, EntryKind::Debit, -2, 3),
        ]);
        rows.apply(&changes).unwrap();
        let slot = rows.slots()[0];
        assert_eq!((slot.balance, slot.version, rows.total()), (3, 2, 3));
    }

    #[test]
    fn what_a_wrong_decision_or_a_damaged_log_would_do_is_refused_with_its_version() {
        let credit = |version, delta, after| entries(vec![entry(version, EntryKind::Credit, delta, after)]);
        let mut elsewhere = entry(1, EntryKind::Credit, 1, 1);
        elsewhere.slot = SlotIndex::new(9).unwrap();
        let cases = [
            (vec![credit(2, 5, 5)], Rule::VersionGap, Some(2)),
            (vec![credit(1, 5, 5), credit(1, 5, 10)], Rule::VersionGap, Some(1)),
            (vec![credit(1, 5, 6)], Rule::BalanceChain, Some(1)),
            (vec![credit(1, -5, -5)], Rule::NegativeBalance, Some(1)),
            (
                vec![credit(1, i64::MAX, i64::MAX), credit(2, 1, 0)],
                Rule::Overflow,
                Some(2),
            ),
            (
                vec![credit(1, i64::MAX, i64::MAX), pending(1, 1)],
                Rule::Overflow,
                None,
            ),
            (vec![entries(vec![elsewhere])], Rule::SlotMissing, Some(1)),
            (vec![pending(2, 5)], Rule::PendingNumber, Some(2)),
            (vec![pending(1, 5), settled(2, 5)], Rule::PendingNumber, Some(2)),
            (vec![pending(1, 5), settled(1, 6)], Rule::PendingAmount, None),
            (
                vec![entries(vec![entry(1, EntryKind::Settle, 5, 5)])],
                Rule::PendingAmount,
                None,
            ),
        ];
        for (steps, rule, version) in cases {
            assert_eq!(broken(&steps), (rule, version), "{steps:?}");
        }
    }

    #[test]
    fn a_settled_row_is_gone_and_its_number_is_not_used_again() {
        let mut rows = AccountRows::open(account());
        rows.apply(&pending(1, 5)).unwrap();
        assert_eq!((rows.in_pending(), rows.total()), (5, 5));
        rows.apply(&settled(1, 5)).unwrap();
        assert_eq!((rows.in_pending(), rows.in_slots()), (0, 5));
        assert_eq!((rows.pending().len(), rows.next_pending()), (0, 2));
    }

    #[test]
    fn rows_come_back_from_their_parts_and_wrong_parts_do_not() {
        let mut rows = AccountRows::open(account());
        rows.apply(&pending(1, 5)).unwrap();
        let again = |next| {
            let waiting = rows.pending().cloned().collect();
            AccountRows::restore(account(), rows.slots().to_vec(), waiting, next)
        };
        assert_eq!(again(2).as_ref(), Ok(&rows));
        assert_eq!(again(1).unwrap_err().rule, Rule::PendingNumber);
    }

    #[test]
    fn an_idle_account_takes_less_than_300_bytes() {
        let rows = AccountRows::open(account());
        let heap = rows.slots.capacity() * size_of::<Slot>() + rows.pending.capacity();
        assert!(size_of::<AccountRows>() + heap + 64 < 300);
    }
}
