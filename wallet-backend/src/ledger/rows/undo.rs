//! Taking applied changes back: the rows that they replaced, as they were.

use super::AccountRows;
use super::backlog::Backlog;
use crate::account::{Account, Hold, Pending, RequestId, Slot};
use crate::command::Changes;

/// What one account's rows were where changes touch them. It is of use once, after those changes and before any other.
#[derive(Clone, Debug)]
pub struct Undo {
    /// `None` where the account row stays.
    account: Option<Account>,
    slot_rows: usize,
    slots: Vec<Slot>,
    in_slots: i64,
    in_pending: i64,
    next_pending: u64,
    settled: Vec<Pending>,
    /// `None`: it was not there.
    holds: Vec<(RequestId, Option<Hold>)>,
}

impl AccountRows {
    /// What will take `changes` back, which are not applied yet. Takes time in them, not in the rows.
    #[must_use]
    pub fn undo_of(&self, changes: &Changes) -> Undo {
        let id = &self.account.id;
        let mut slots: Vec<Slot> = Vec::new();
        for entry in changes.entries.iter().filter(|entry| entry.account == *id) {
            if slots.iter().all(|slot| slot.index != entry.slot) {
                slots.extend(self.slot(entry.slot));
            }
        }
        let settled = changes.pending_settled.iter().filter(|(of, _)| of == id);
        let backlog = self.backlog.as_ref();
        let settled = settled.filter_map(|(_, number)| backlog?.find(*number).cloned());
        let holds = changes.holds.iter().filter(|(of, _)| of == id);
        Undo {
            account: changes
                .account
                .as_ref()
                .filter(|account| account.id == *id)
                .map(|_| self.account.clone()),
            slot_rows: self.slots.len(),
            slots,
            in_slots: self.in_slots,
            in_pending: self.in_pending(),
            next_pending: self.next_pending(),
            settled: settled.collect(),
            holds: holds
                .map(|(_, hold)| (hold.id.clone(), self.hold(&hold.id).cloned()))
                .collect(),
        }
    }

    /// Takes the changes back that `undo` was made for.
    pub fn undo(&mut self, undo: Undo) {
        if let Some(account) = undo.account {
            self.account = account;
        }
        self.slots.truncate(undo.slot_rows);
        for slot in undo.slots {
            if let Some(place) = self.slots.get_mut(usize::from(slot.index.get())) {
                *place = slot;
            }
        }
        let mut backlog = self
            .backlog
            .take()
            .map_or_else(Backlog::default, |backlog| *backlog);
        let added = backlog.rows.partition_point(|row| row.number < undo.next_pending);
        backlog.rows.truncate(added);
        for row in undo.settled {
            let at = backlog.rows.partition_point(|other| other.number < row.number);
            backlog.rows.insert(at, row);
        }
        (backlog.sum, backlog.next) = (undo.in_pending, undo.next_pending);
        self.backlog = backlog.boxed();
        for (id, hold) in undo.holds {
            let holds = self.holds.get_or_insert_default();
            holds.put_back(&id, hold);
            if holds.is_empty() {
                self.holds = None;
            }
        }
        self.in_slots = undo.in_slots;
    }
}
