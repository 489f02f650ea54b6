//! What an account had at a moment of its past, told by going through all that has happened to it.

use std::collections::{BTreeMap, HashMap};

use crate::account::{AccountId, Entry, EntryKind, Link, RequestId, Slot, SlotIndex, Timestamp};
use crate::command::{Changes, LedgerError, PastView};
use crate::money::Currency;
use crate::store::Moment;

/// What has happened to an account, beside its entries.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// The newest time that the account has seen.
    latest: Timestamp,
    /// Entries that count from a later time than their own, since the clock had been set back.
    late: HashMap<(SlotIndex, u64), Timestamp>,
    /// Pending credits: when each was accepted, and its amount.
    accepted: Vec<(Timestamp, i64)>,
    deadlines: HashMap<RequestId, Timestamp>,
}

impl Past {
    pub(super) fn apply(&mut self, id: &AccountId, changes: &Changes) {
        for entry in changes.entries.iter().filter(|entry| entry.account == *id) {
            self.latest = self.latest.max(entry.at);
            if self.latest > entry.at {
                self.late.insert((entry.slot, entry.version), self.latest);
            }
        }
        for (_, row) in changes.pending_added.iter().filter(|(account, _)| account == id) {
            self.latest = self.latest.max(row.at);
            let before = self.accepted.last().map_or(row.at, |(at, _)| *at);
            self.accepted.push((before.max(row.at), row.amount.minor()));
        }
        for (_, hold) in changes.holds.iter().filter(|(account, _)| account == id) {
            self.deadlines
                .extend(hold.expires_at.map(|at| (hold.id.clone(), at)));
        }
    }

    /// `slots`: the account's entries, by slot.
    pub(super) fn view(
        &self,
        account: (&AccountId, Currency),
        slots: &[Vec<Entry>],
        moment: &Moment,
    ) -> Result<PastView, LedgerError> {
        let counted = |entry: &Entry| {
            let late = self.late.get(&(entry.slot, entry.version));
            late.copied().unwrap_or(entry.at)
        };
        if let Moment::Cursor(cursor) = moment {
            let newest = |slot: SlotIndex| slots.get(usize::from(slot.get())).and_then(|slot| slot.last());
            let newest = |slot| newest(slot).map_or(0, |entry| entry.version);
            if cursor.0.iter().any(|(slot, version)| *version > newest(*slot)) {
                return Err(Moment::ahead());
            }
        }
        let is_in = |entry: &&Entry| match moment {
            Moment::Time(at) => counted(entry) <= *at,
            Moment::Cursor(cursor) => entry.version <= cursor.seen(entry.slot),
        };
        let entries: Vec<&Entry> = slots.iter().flatten().filter(is_in).collect();
        let at = match moment {
            Moment::Time(at) => Some(*at),
            Moment::Cursor(_) => entries.iter().map(|entry| counted(entry)).max(),
        };
        let (open, expired) = self.holds(&entries, at);
        Ok(PastView {
            account: account.0.clone(),
            currency: account.1,
            at,
            slots: last_of_each(&entries),
            held: open,
            pending: expired.saturating_add(self.pending(&entries, at)),
        })
    }

    /// What was open, and what had expired by `at` and had not been swept.
    fn holds(&self, entries: &[&Entry], at: Option<Timestamp>) -> (i64, i64) {
        let mut rests: BTreeMap<&RequestId, i64> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.held_delta != 0) {
            let hold = match &entry.link {
                Some(Link::Hold(hold)) => Some(hold),
                _ => entry.request.as_ref(),
            };
            if let Some(hold) = hold {
                let rest = rests.entry(hold).or_default();
                *rest = rest.saturating_add(entry.held_delta);
            }
        }
        let due = |hold: &RequestId| {
            self.deadlines
                .get(hold)
                .is_some_and(|deadline| Some(*deadline) <= at)
        };
        rests
            .into_iter()
            .fold((0, 0), |(open, expired): (i64, i64), (hold, rest)| {
                if due(hold) {
                    (open, expired.saturating_add(rest))
                } else {
                    (open.saturating_add(rest), expired)
                }
            })
    }

    /// What had been accepted by `at` and had not settled: the oldest settle first.
    fn pending(&self, entries: &[&Entry], at: Option<Timestamp>) -> i64 {
        let settled = entries.iter().filter(|entry| entry.kind == EntryKind::Settle);
        let rest = self.accepted.iter().skip(settled.count());
        let accepted = rest.filter(|(accepted, _)| Some(*accepted) <= at);
        accepted.map(|(_, amount)| *amount).fold(0, i64::saturating_add)
    }
}

/// In the order of the slots, since the entries are.
fn last_of_each(entries: &[&Entry]) -> Vec<Slot> {
    let mut slots: BTreeMap<SlotIndex, Slot> = BTreeMap::new();
    for entry in entries {
        let slot = Slot {
            index: entry.slot,
            balance: entry.balance_after,
            version: entry.version,
        };
        slots.insert(entry.slot, slot);
    }
    slots.into_values().collect()
}
