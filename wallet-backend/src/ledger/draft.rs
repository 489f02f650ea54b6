//! Changes in the making: entries with their versions and running balances, over rows that stay as they are.

use smallvec::SmallVec;

use crate::account::{
    Entry, EntryKind, Hold, HoldState, Link, Pending, RequestId, Slot, SlotIndex, Timestamp,
};
use crate::command::{Changes, Leg};
use crate::ledger::invariants::{Rule, Violation, step};
use crate::ledger::rows::AccountRows;
use crate::ledger::slots::Shift;
use crate::money::Amount;
use crate::mutants::{Mutant, is_on};

/// What an entry does, apart from where.
#[derive(Debug)]
pub(super) struct Effect<'a> {
    pub(super) kind: EntryKind,
    /// Minor units, added to the slot.
    pub(super) delta: i64,
    /// Minor units, added to what is held.
    pub(super) held_delta: i64,
    pub(super) request: Option<&'a RequestId>,
    pub(super) link: Option<Link>,
}

/// The entries that one task posts to one account.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    rows: &'a AccountRows,
    now: Timestamp,
    /// The slots that have entries here, as they are after them. Few: a search is cheaper than a map.
    touched: SmallVec<[Slot; 2]>,
    changes: &'a mut Changes,
}

impl<'a> Draft<'a> {
    pub(super) fn new(rows: &'a AccountRows, now: Timestamp, changes: &'a mut Changes) -> Self {
        Self {
            rows,
            now,
            touched: SmallVec::new(),
            changes,
        }
    }

    /// Adds one entry to a slot and gives it back as a receipt's leg.
    pub(super) fn post(&mut self, index: SlotIndex, effect: Effect<'_>) -> Result<Leg, Violation> {
        let Effect {
            kind,
            delta,
            held_delta,
            request,
            link,
        } = effect;
        let (rows, now) = (self.rows, self.now);
        let slot = self.touch(index)?;
        let before = if is_on(Mutant::SetsWhatItRead) {
            rows.slot(index).map_or(0, |slot| slot.balance)
        } else {
            slot.balance
        };
        let entry = Entry {
            account: rows.account().id.clone(),
            slot: index,
            version: slot.version.saturating_add(1),
            kind,
            request: request.cloned(),
            delta,
            held_delta,
            balance_after: before.saturating_add(delta),
            at: now,
            link,
        };
        step(slot, &entry)?;
        let leg = Leg::from(&entry);
        if self.changes.entries.is_empty() {
            // Most tasks post one.
            self.changes.entries.reserve_exact(1);
        }
        self.changes.entries.push(entry);
        Ok(leg)
    }

    /// Gives the rest of the `count` holds that expired first back to slot 0, one entry each.
    pub(super) fn expire(&mut self, count: usize) -> Result<(), Violation> {
        for hold in self.rows.expired(self.now).take(count) {
            let rest = hold.rest();
            let effect = Effect {
                kind: EntryKind::Release,
                delta: rest,
                held_delta: rest.saturating_neg(),
                request: None,
                link: Some(Link::Hold(hold.id.clone())),
            };
            self.post(SlotIndex::PRIMARY, effect)?;
            self.keep(hold.ended(HoldState::Expired));
        }
        Ok(())
    }

    /// Files a hold as it became. Each at most once.
    pub(super) fn keep(&mut self, hold: Hold) {
        let account = self.rows.account().id.clone();
        self.changes.holds.push((account, hold));
    }

    /// Settles the `count` oldest pending rows into slot 0, one entry each.
    pub(super) fn settle(&mut self, count: usize) -> Result<(), Violation> {
        for row in self.rows.pending().take(count) {
            let effect = Effect {
                kind: EntryKind::Settle,
                delta: row.amount.minor(),
                held_delta: 0,
                request: Some(&row.request),
                link: row.link.clone(),
            };
            self.post(SlotIndex::PRIMARY, effect)?;
            if is_on(Mutant::SettlesTwice) {
                let again = Effect {
                    kind: EntryKind::Settle,
                    delta: row.amount.minor(),
                    held_delta: 0,
                    request: Some(&row.request),
                    link: row.link.clone(),
                };
                self.post(SlotIndex::PRIMARY, again)?;
            }
            let account = self.rows.account().id.clone();
            self.changes.pending_settled.push((account, row.number));
        }
        Ok(())
    }

    /// Moves money between slots: an entry out, an entry in, each linked to the other's slot.
    pub(super) fn shift(&mut self, shifts: &[Shift], request: Option<&RequestId>) -> Result<(), Violation> {
        for Shift { from, to, amount } in shifts {
            let moved = |delta, other| Effect {
                kind: EntryKind::Consolidate,
                delta,
                held_delta: 0,
                request,
                link: Some(Link::Slot(other)),
            };
            self.post(*from, moved(amount.saturating_neg(), *to))?;
            if !is_on(Mutant::MovesOutOnly) {
                self.post(*to, moved(*amount, *from))?;
            }
        }
        Ok(())
    }

    /// Leaves a credit waiting. At most one per draft: the next number is the rows'.
    pub(super) fn wait(&mut self, amount: Amount, request: &RequestId, link: Option<Link>) {
        let pending = Pending {
            number: self.rows.next_pending(),
            amount,
            request: request.clone(),
            link,
            at: self.now,
        };
        let account = self.rows.account().id.clone();
        if !is_on(Mutant::LosesWhatWaits) {
            self.changes.pending_added.push((account, pending));
        }
    }

    /// The slot among the touched ones.
    fn touch(&mut self, index: SlotIndex) -> Result<&mut Slot, Violation> {
        let rows = self.rows;
        let known = self.touched.iter().position(|slot| slot.index == index);
        if known.is_none() {
            let slot = rows.slot(index).ok_or_else(|| missing(rows, index))?;
            self.touched.push(slot);
        }
        let slot = match known {
            Some(at) => self.touched.get_mut(at),
            None => self.touched.last_mut(),
        };
        slot.ok_or_else(|| missing(rows, index))
    }
}

fn missing(rows: &AccountRows, index: SlotIndex) -> Violation {
    Violation {
        account: rows.account().id.clone(),
        slot: Some(index),
        version: None,
        rule: Rule::SlotMissing,
        expected: 1,
        found: 0,
    }
}
