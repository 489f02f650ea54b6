//! Accounts against their entries: what each run reads, and holds against what.

use std::collections::HashMap;

use crate::account::{AccountId, Entry, SlotIndex, Timestamp};
use crate::combiner::Queue;
use crate::command::LedgerError;
use crate::jobs::reconcile::report::{Difference, Found};
use crate::ledger::invariants::{AccountCheck, Standing};
use crate::store::{Cursor, Cut, EventCursor, GeneralLedger, Store};

/// Entries that are read at once.
const PAGE: usize = 1_000;
/// Accounts whose rows are read together: they wait for one sync.
const TOGETHER: usize = 64;
/// Accounts with new entries that are looked after at once: under 10 MiB, were all of them split into 64 slots.
const CHANGED: usize = 4_096;

/// A run under way.
pub(super) struct Prover<'a, S> {
    pub(super) queue: &'a Queue<S>,
    /// When it began.
    pub(super) now: Timestamp,
    pub(super) found: Found,
}

impl<S: Store> Prover<'_, S> {
    /// Every entry after `from`, and the accounts that have one: where the next run goes on.
    ///
    /// # Errors
    /// What the store cannot read.
    pub(super) async fn changed(&mut self, from: EventCursor) -> Result<EventCursor, LedgerError> {
        let (end, mut at) = (self.queue.newest_event(), from);
        let mut checks: HashMap<AccountId, AccountCheck> = HashMap::new();
        while at.number < end {
            let page = self.queue.events(at, None, PAGE).await?;
            for event in &page.events {
                let account = &event.entry.account;
                if let Some(check) = checks.get_mut(account) {
                    check.push(&event.entry);
                } else {
                    let mut check = AccountCheck::since(account.clone());
                    check.push(&event.entry);
                    checks.insert(account.clone(), check);
                }
                self.found.entries = self.found.entries.saturating_add(1);
            }
            at = page.next;
            if checks.len() >= CHANGED || at.number >= end {
                self.close(std::mem::take(&mut checks), at).await?;
            }
            breathe().await;
        }
        Ok(at)
    }

    /// Every account, from its first entry on. One that cannot be read hides none of those after it.
    ///
    /// # Errors
    /// The first thing that the store could not read.
    pub(super) async fn everything(&mut self) -> Result<(), LedgerError> {
        let mut last: Option<AccountId> = None;
        let mut unread = None;
        loop {
            let views = self.queue.accounts(last.as_ref(), TOGETHER).await?;
            let ids: Vec<AccountId> = views.into_iter().map(|view| view.account.id).collect();
            for cut in self.queue.cuts(&ids).await? {
                if let Err(error) = self.whole(cut.standing).await {
                    self.queue.health()?;
                    unread.get_or_insert(error);
                }
            }
            match ids.last() {
                Some(id) => last = Some(id.clone()),
                None => return unread.map_or(Ok(()), Err),
            }
            breathe().await;
        }
    }

    /// The books of every currency: those of `opening`, and what has happened since.
    ///
    /// # Errors
    /// What the store cannot read.
    pub(super) async fn general_ledger(
        &mut self,
        opening: GeneralLedger,
    ) -> Result<GeneralLedger, LedgerError> {
        let closing = self.queue.general_ledger(opening).await?;
        let ledger = self.queue.ledger();
        for violation in closing.broken.iter().cloned() {
            self.found
                .add(Difference::of_violation(ledger, violation, self.now));
        }
        for (currency, totals) in &closing.currencies {
            if totals.outside != totals.inside {
                let totals = (totals.outside, totals.inside);
                self.found
                    .add(Difference::of_currency(ledger, *currency, totals, self.now));
            }
        }
        Ok(closing)
    }

    /// Holds accounts whose entries up to `at` were read against their rows.
    async fn close(
        &mut self,
        mut checks: HashMap<AccountId, AccountCheck>,
        at: EventCursor,
    ) -> Result<(), LedgerError> {
        let ids: Vec<AccountId> = checks.keys().cloned().collect();
        for ids in ids.chunks(TOGETHER) {
            for cut in self.queue.cuts(ids).await? {
                if let Some(check) = checks.remove(&cut.standing.account) {
                    self.tail(check, at, cut).await?;
                }
            }
            breathe().await;
        }
        Ok(())
    }

    /// Reads what the account has after `from` up to the cut of its rows, then compares.
    async fn tail(
        &mut self,
        mut check: AccountCheck,
        mut from: EventCursor,
        cut: Cut,
    ) -> Result<(), LedgerError> {
        let Cut { standing, entries } = cut;
        let account = standing.account.clone();
        let behind = |check: &AccountCheck| {
            let mut slots = standing.slots.iter();
            slots.any(|slot| slot.version > 0 && check.read(slot.index) != Some(slot.version))
        };
        while from.number < entries && behind(&check) {
            let page = self.queue.events(from, Some(&account), PAGE).await?;
            for event in page.events.iter().take_while(|event| event.number <= entries) {
                check.push(&event.entry);
            }
            from = page.next;
            breathe().await;
        }
        for slot in standing.slots.iter().filter(|slot| slot.version > 0) {
            if check.read(slot.index).is_none()
                && let Some(newest) = self.entry(&account, slot.index, slot.version).await?
            {
                check.anchor(&newest);
            }
        }
        for opening in check.openings().to_vec() {
            let before = self.entry(&account, opening.slot, opening.version).await?;
            check.confirm(opening, before.as_ref());
        }
        self.compare(check, standing);
        Ok(())
    }

    /// Reads everything that the account has up to the cut of its rows, then compares.
    async fn whole(&mut self, standing: Standing) -> Result<(), LedgerError> {
        let mut check = AccountCheck::new(standing.account.clone());
        let behind = |check: &AccountCheck| {
            let mut slots = standing.slots.iter();
            slots.any(|slot| check.read(slot.index).unwrap_or(0) < slot.version)
        };
        let mut cursor = Cursor::default();
        while behind(&check) {
            let page = self.queue.entries(&standing.account, &cursor, PAGE).await?;
            if page.entries.is_empty() {
                break;
            }
            for entry in &page.entries {
                if entry.version <= standing.version(entry.slot) {
                    check.push(entry);
                    self.found.entries = self.found.entries.saturating_add(1);
                }
            }
            cursor = page.next;
            breathe().await;
        }
        self.compare(check, standing);
        Ok(())
    }

    fn compare(&mut self, check: AccountCheck, standing: Standing) {
        self.found.accounts = self.found.accounts.saturating_add(1);
        let ledger = self.queue.ledger();
        for violation in check.compare(standing) {
            self.found
                .add(Difference::of_violation(ledger, violation, self.now));
        }
    }

    /// One entry of a slot, if the slot has it.
    async fn entry(
        &self,
        account: &AccountId,
        slot: SlotIndex,
        version: u64,
    ) -> Result<Option<Entry>, LedgerError> {
        let seen = |index| {
            if index == slot {
                version.saturating_sub(1)
            } else {
                u64::MAX
            }
        };
        let cursor = Cursor(SlotIndex::all().map(|index| (index, seen(index))).collect());
        let page = self.queue.entries(account, &cursor, 1).await?;
        Ok(page.entries.into_iter().find(|entry| entry.version == version))
    }
}

/// Whoever shares the thread has a turn, also where the store never waits.
async fn breathe() {
    tokio::task::yield_now().await;
}
