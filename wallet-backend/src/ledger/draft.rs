//! Changes in the making: entries with their versions and running balances, over rows that stay as they are.

use crate::account::{Entry, EntryKind, Link, Pending, RequestId, Slot, SlotIndex, Timestamp};
use crate::command::{Changes, Leg};
use crate::ledger::invariants::{Rule, Violation, step};
use crate::ledger::rows::AccountRows;
use crate::ledger::slots::Shift;
use crate::money::Amount;

/// The entries that one task posts to one account.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    rows: &'a AccountRows,
    now: Timestamp,
    /// The slots that have entries here, as they are after them. Few: a search is cheaper than a map.
    touched: Vec<Slot>,
    changes: &'a mut Changes,
}

impl<'a> Draft<'a> {
    pub(super) fn new(rows: &'a AccountRows, now: Timestamp, changes: &'a mut Changes) -> Self {
        Self {
            rows,
            now,
            touched: Vec::new(),
            changes,
        }
    }

    /// Adds one entry to a slot and gives it back as a receipt's leg.
    pub(super) fn post(
        &mut self,
        index: SlotIndex,
        kind: EntryKind,
        delta: i64,
        request: Option<&RequestId>,
        link: Option<Link>,
    ) -> Result<Leg, Violation> {
        let at = self.touch(index)?;
        let missing = self.missing(index);
        let slot = self.touched.get_mut(at).ok_or(missing)?;
        let entry = Entry {
            account: self.rows.account().id.clone(),
            slot: index,
            version: slot.version.saturating_add(1),
            kind,
            request: request.cloned(),
            delta,
            held_delta: 0,
            balance_after: slot.balance.saturating_add(delta),
            at: self.now,
            link,
        };
        step(slot, &entry)?;
        let leg = Leg::from(&entry);
        self.changes.entries.push(entry);
        Ok(leg)
    }

    /// Settles the `count` oldest pending rows into slot 0, one entry each.
    pub(super) fn settle(&mut self, count: usize) -> Result<(), Violation> {
        for row in self.rows.pending().take(count) {
            self.post(
                SlotIndex::PRIMARY,
                EntryKind::Settle,
                row.amount.minor(),
                Some(&row.request),
                row.link.clone(),
            )?;
            let account = self.rows.account().id.clone();
            self.changes.pending_settled.push((account, row.number));
        }
        Ok(())
    }

    /// Moves money between slots: an entry out, an entry in, each linked to the other's slot.
    pub(super) fn shift(&mut self, shifts: &[Shift], request: Option<&RequestId>) -> Result<(), Violation> {
        for Shift { from, to, amount } in shifts {
            let kind = EntryKind::Consolidate;
            let out = amount.saturating_neg();
            self.post(*from, kind, out, request, Some(Link::Slot(*to)))?;
            self.post(*to, kind, *amount, request, Some(Link::Slot(*from)))?;
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
        self.changes.pending_added.push((account, pending));
    }

    /// Where the slot is among the touched ones.
    fn touch(&mut self, index: SlotIndex) -> Result<usize, Violation> {
        if let Some(at) = self.touched.iter().position(|slot| slot.index == index) {
            return Ok(at);
        }
        let slot = self.rows.slot(index).ok_or_else(|| self.missing(index))?;
        self.touched.push(slot);
        Ok(self.touched.len().saturating_sub(1))
    }

    fn missing(&self, index: SlotIndex) -> Violation {
        Violation {
            account: self.rows.account().id.clone(),
            slot: Some(index),
            version: None,
            rule: Rule::SlotMissing,
            expected: 1,
            found: 0,
        }
    }
}
