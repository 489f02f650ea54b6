//! One account's entries, read one at a time, against what its rows say.

use super::{Rule, Violation, check_rows, signed, step};
use crate::account::{AccountId, Entry, EntryKind, Slot, SlotIndex};
use crate::ledger::rows::AccountRows;

/// A damaged slot breaks every entry after the damage; this many violations of an account say enough.
const MOST_VIOLATIONS: usize = 100;

/// What an account's rows say at one cut, as far as entries prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub account: AccountId,
    /// Every slot row, ascending.
    pub slots: Vec<Slot>,
    /// In open holds, expired or not, in minor units.
    pub held: i64,
    /// What is wrong with the rows alone.
    pub violations: Vec<Violation>,
}

impl Standing {
    /// Of these rows, as they are now.
    #[must_use]
    pub fn of(rows: &AccountRows) -> Self {
        Self {
            account: rows.account().id.clone(),
            slots: rows.slots().to_vec(),
            held: rows.in_held(),
            violations: check_rows(rows),
        }
    }

    /// The version of a slot's row; 0 for a slot without one.
    #[must_use]
    pub fn version(&self, slot: SlotIndex) -> u64 {
        let row = self.slots.get(usize::from(slot.get()));
        row.map_or(0, |row| row.version)
    }
}

/// Which entry of a slot is the first to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    First,
    /// What was there before it is what it says itself.
    Anywhere,
}

/// What the first entry that was read of a slot says of the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    pub slot: SlotIndex,
    /// Of the entry before.
    pub version: u64,
    /// What that must have left.
    balance: i64,
    /// What the first one that was read left.
    after: i64,
}

/// Proves one account's entries against its rows. Entries of a slot come in version order; slots may interleave.
#[derive(Debug)]
pub struct AccountCheck {
    account: AccountId,
    begin: Begin,
    /// At the slot's index; absent while no entry of it was read.
    slots: Vec<Option<Slot>>,
    openings: Vec<Opening>,
    moved: i64,
    held: i64,
    violations: Vec<Violation>,
}

impl AccountCheck {
    /// A check that is to read every entry there is.
    #[must_use]
    pub fn new(account: AccountId) -> Self {
        Self {
            account,
            begin: Begin::First,
            slots: Vec::new(),
            openings: Vec::new(),
            moved: 0,
            held: 0,
            violations: Vec::new(),
        }
    }

    /// A check that is to read every entry after some moment. What was there at that moment is taken from the first
    /// entries and given back by [`AccountCheck::openings`]; of slots without one, [`AccountCheck::anchor`] tells.
    #[must_use]
    pub fn since(account: AccountId) -> Self {
        Self {
            begin: Begin::Anywhere,
            ..Self::new(account)
        }
    }

    /// Slots as they must have been before the first entry that was read of them; not those that began with it.
    #[must_use]
    pub fn openings(&self) -> &[Opening] {
        &self.openings
    }

    /// The newest version that was read of a slot; `None` where none was.
    #[must_use]
    pub fn read(&self, slot: SlotIndex) -> Option<u64> {
        let row = self.slots.get(usize::from(slot.get()));
        row.copied().flatten().map(|slot| slot.version)
    }

    /// Takes the next entry of its slot. After a broken one the chain goes on from what that entry says.
    pub fn push(&mut self, entry: &Entry) {
        if entry.account != self.account {
            self.report(Some(entry.slot), Some(entry.version), Rule::Account, 0, 0);
            return;
        }
        let mut slot = match self.row(entry.slot) {
            Some(slot) => slot,
            None => self.opening(entry),
        };
        if let Err(violation) = step(&mut slot, entry) {
            slot.version = entry.version;
            slot.balance = entry.balance_after;
            self.keep(violation);
        }
        self.set(slot);
        self.held = self.held.saturating_add(entry.held_delta);
        if entry.kind == EntryKind::Consolidate {
            self.moved = self.moved.saturating_add(entry.delta);
        }
    }

    /// Takes a slot's newest entry, of a slot that had none since the moment at which the check begins.
    pub fn anchor(&mut self, entry: &Entry) {
        self.set(Slot {
            index: entry.slot,
            balance: entry.balance_after,
            version: entry.version,
        });
    }

    /// That an opening is what the entry of that version left; `None` where there is no such entry.
    pub fn confirm(&mut self, opening: Opening, entry: Option<&Entry>) {
        let (slot, version) = (Some(opening.slot), opening.version.saturating_add(1));
        match entry {
            None => self.report(slot, Some(version), Rule::VersionGap, signed(version), 0),
            Some(entry) if entry.balance_after != opening.balance => {
                let delta = opening.after.saturating_sub(opening.balance);
                let expected = entry.balance_after.saturating_add(delta);
                self.report(slot, Some(version), Rule::BalanceChain, expected, opening.after);
            }
            Some(_) => {}
        }
    }

    /// Compares with the rows and returns everything that was found, empty where all holds.
    #[must_use]
    pub fn finish(self, rows: &AccountRows) -> Vec<Violation> {
        self.compare(Standing::of(rows))
    }

    /// The same with what the rows said at the moment up to which entries were read.
    #[must_use]
    pub fn compare(mut self, standing: Standing) -> Vec<Violation> {
        if self.moved != 0 {
            let moved = self.moved;
            self.report(None, None, Rule::Consolidation, 0, moved);
        }
        if self.begin == Begin::First && self.held != standing.held {
            let held = self.held;
            self.report(None, None, Rule::HeldAmount, held, standing.held);
        }
        for index in SlotIndex::all() {
            let proven = self.row(index).unwrap_or(Slot::empty(index));
            let row = standing.slots.get(usize::from(index.get()));
            let (slot, version) = (Some(index), Some(proven.version));
            match row {
                None if proven.version == 0 => {}
                None => self.report(slot, version, Rule::SlotMissing, 1, 0),
                Some(row) => {
                    if row.version != proven.version {
                        let (expected, found) = (signed(proven.version), signed(row.version));
                        self.report(slot, version, Rule::SlotVersion, expected, found);
                    }
                    if row.balance != proven.balance {
                        self.report(slot, version, Rule::SlotBalance, proven.balance, row.balance);
                    }
                }
            }
        }
        self.violations.extend(standing.violations);
        self.violations
    }

    fn row(&self, slot: SlotIndex) -> Option<Slot> {
        self.slots.get(usize::from(slot.get())).copied().flatten()
    }

    fn set(&mut self, slot: Slot) {
        let at = usize::from(slot.index.get());
        if self.slots.len() <= at {
            self.slots.resize(at.saturating_add(1), None);
        }
        if let Some(row) = self.slots.get_mut(at) {
            *row = Some(slot);
        }
    }

    /// What the slot was before the first entry that is read of it.
    fn opening(&mut self, entry: &Entry) -> Slot {
        if self.begin == Begin::First || entry.version <= 1 {
            return Slot::empty(entry.slot);
        }
        let opening = Slot {
            index: entry.slot,
            balance: entry.balance_after.saturating_sub(entry.delta),
            version: entry.version.saturating_sub(1),
        };
        self.openings.push(Opening {
            slot: opening.index,
            version: opening.version,
            balance: opening.balance,
            after: entry.balance_after,
        });
        opening
    }

    fn report(
        &mut self,
        slot: Option<SlotIndex>,
        version: Option<u64>,
        rule: Rule,
        expected: i64,
        found: i64,
    ) {
        self.keep(Violation {
            account: self.account.clone(),
            slot,
            version,
            rule,
            expected,
            found,
        });
    }

    fn keep(&mut self, violation: Violation) {
        if self.violations.len() < MOST_VIOLATIONS {
            self.violations.push(violation);
        }
    }
}
