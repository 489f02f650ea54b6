//! The rows that a transaction has, and what it knows and does.
//!
//! Slots that are not locked are shown to the core as empty, so that it takes nothing out of them; what it puts into
//! one is found afterwards ([`Books::check`]).

use std::collections::{BTreeMap, HashMap};

use crate::account::{AccountId, EntryKind, SlotIndex, Timestamp};
use crate::command::{Changes, LedgerError, Outcome, Refusal, Task};
use crate::ledger::atomic::Hand;
use crate::ledger::facts::{Facts, KnownRequests};
use crate::ledger::invariants::Violation;
use crate::ledger::rows::AccountRows;

/// Slots of one account, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SlotSet(u64);

impl SlotSet {
    pub(super) const ALL: Self = Self(u64::MAX);

    pub(super) fn insert(&mut self, index: SlotIndex) {
        self.0 |= 1_u64.checked_shl(index.get().into()).unwrap_or(0);
    }

    pub(super) fn contains(self, index: SlotIndex) -> bool {
        self.0 & 1_u64.checked_shl(index.get().into()).unwrap_or(0) != 0
    }
}

/// One account as far as a transaction has it.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) rows: AccountRows,
    pub(super) locked: SlotSet,
    /// Versions of the slots that have a row.
    pub(super) versions: BTreeMap<SlotIndex, u64>,
    /// What was held when it was locked.
    pub(super) held: i64,
    /// Nothing of the account is out of sight.
    pub(super) whole: bool,
}

/// Why decisions can't stand.
#[derive(Debug)]
pub(super) enum Stop {
    /// They need all of this account.
    Whole(AccountId),
    Broken(Violation),
}

impl From<Violation> for Stop {
    fn from(violation: Violation) -> Self {
        Self::Broken(violation)
    }
}

/// All accounts of a transaction.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub(super) now: Timestamp,
    pub(super) accounts: HashMap<AccountId, Loaded>,
    pub(super) known: KnownRequests,
    /// What was decided, in its order.
    pub(super) applied: Vec<Changes>,
    /// Accounts that are opened here.
    pub(super) opened: Vec<AccountId>,
}

impl Books {
    /// Whether what was decided rests on rows that are locked, and on all of those that it asked for.
    pub(super) fn check(&self, changes: &Changes) -> Result<(), Stop> {
        for entry in &changes.entries {
            let Some(loaded) = self.accounts.get(&entry.account) else {
                continue;
            };
            // What is collected has an order, which those that are not here are part of.
            let collects = match entry.kind {
                EntryKind::Consolidate | EntryKind::Settle => true,
                EntryKind::Release => entry.request.is_none(),
                EntryKind::Credit
                | EntryKind::Debit
                | EntryKind::TransferIn
                | EntryKind::TransferOut
                | EntryKind::Hold
                | EntryKind::Capture
                | EntryKind::Reversal => false,
            };
            if !loaded.locked.contains(entry.slot) || collects && !loaded.whole {
                return Err(Stop::Whole(entry.account.clone()));
            }
        }
        match changes.request.as_ref().map(|record| &record.outcome) {
            Some(Outcome::Refused(refusal)) => self.check_refusal(refusal),
            Some(Outcome::Posted(_) | Outcome::Amended(_)) | None => Ok(()),
        }
    }

    /// Whether a refusal is proven. Those for anything but money rest on rows that are always there.
    pub(super) fn check_refusal(&self, refusal: &Refusal) -> Result<(), Stop> {
        let (Refusal::InsufficientFunds { account, .. }
        | Refusal::BalanceLimit { account, .. }
        | Refusal::AccountNotEmpty { account, .. }) = refusal
        else {
            return Ok(());
        };
        match self.accounts.get(account) {
            Some(loaded) if !loaded.whole => Err(Stop::Whole(account.clone())),
            Some(_) | None => Ok(()),
        }
    }

    /// Makes changes that were checked.
    pub(super) fn apply(&mut self, changes: Changes) -> Result<(), Stop> {
        if changes == Changes::default() {
            return Ok(());
        }
        if let Some(account) = &changes.account
            && !self.accounts.contains_key(&account.id)
        {
            let loaded = Loaded {
                rows: AccountRows::open(account.clone()),
                locked: SlotSet::ALL,
                versions: BTreeMap::new(),
                held: 0,
                whole: true,
            };
            self.accounts.insert(account.id.clone(), loaded);
            self.opened.push(account.id.clone());
        }
        for id in changes.accounts() {
            if let Some(loaded) = self.accounts.get_mut(id) {
                loaded.rows.apply(&changes)?;
            }
        }
        self.known.learn(&changes);
        self.applied.push(changes);
        Ok(())
    }
}

impl Hand for Books {
    fn facts(&self, task: &Task) -> Result<Facts, LedgerError> {
        Ok(self.known.facts(task))
    }

    fn rows(&self, id: &AccountId) -> Option<&AccountRows> {
        self.accounts.get(id).map(|loaded| &loaded.rows)
    }

    fn rows_mut(&mut self, id: &AccountId) -> Option<&mut AccountRows> {
        self.accounts.get_mut(id).map(|loaded| &mut loaded.rows)
    }
}
