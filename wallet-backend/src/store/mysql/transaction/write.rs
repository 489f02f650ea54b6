//! Decisions as rows to write.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::books::Books;
use super::load::ADDED;
use crate::account::{
    Account, AccountId, Entry, EntryKind, Hold, HoldState, Link, RequestId, SlotIndex, Timestamp,
};
use crate::command::{Changes, Outcome};
use crate::store::mysql::text::{HoldRow, PendingRow, SlotRow, Writes};

/// All that the decisions change, each row once and as it becomes.
pub(super) fn writes(books: &Books) -> Writes<'_> {
    let mut writes = Writes::default();
    accounts(books, &mut writes);
    let mut newest: HashMap<(&AccountId, SlotIndex), Timestamp> = HashMap::new();
    let mut held: HashMap<&AccountId, i64> = HashMap::new();
    let mut holds: BTreeMap<(&AccountId, &RequestId), HoldRow<'_>> = BTreeMap::new();
    for changes in &books.applied {
        for entry in &changes.entries {
            let before = books.accounts.get(&entry.account).map_or(0, |loaded| loaded.held);
            let sum = held.entry(&entry.account).or_insert(before);
            *sum = sum.saturating_add(entry.held_delta);
            let primary = entry.slot == SlotIndex::PRIMARY;
            writes.entries.push((entry, if primary { *sum } else { 0 }));
            newest.insert((&entry.account, entry.slot), entry.at);
        }
        for (account, hold) in &changes.holds {
            let swept_version = sweeping(changes, account, hold);
            let row = HoldRow {
                account,
                hold,
                swept_version,
            };
            holds.insert((account, &hold.id), row);
        }
        if let Some(record) = &changes.request {
            let at = match &record.outcome {
                Outcome::Posted(receipt) => receipt.at,
                Outcome::Amended(_) | Outcome::Refused(_) => books.now,
            };
            writes.requests.push((record, at));
        }
        writes.reversals.extend(changes.reversal());
        pending(changes, &mut writes);
    }
    writes
        .requests
        .sort_by_key(|(record, _)| (&record.account, &record.request));
    writes.reversals.sort_unstable();
    writes.holds = holds.into_values().collect();
    slots(books, &newest, &mut writes);
    writes
}

/// Accounts as they become; one that is opened here is new, whatever else happened to it.
fn accounts<'a>(books: &'a Books, writes: &mut Writes<'a>) {
    let mut last: BTreeMap<&AccountId, &Account> = BTreeMap::new();
    let changed = books
        .applied
        .iter()
        .filter_map(|changes| changes.account.as_ref());
    last.extend(changed.map(|account| (&account.id, account)));
    let opened: HashSet<&AccountId> = books.opened.iter().collect();
    let (opened, amended) = last
        .into_values()
        .partition(|account| opened.contains(&account.id));
    (writes.opened, writes.amended) = (opened, amended);
}

/// The version of the entry that gave back the rest of a hold that had expired.
fn sweeping(changes: &Changes, account: &AccountId, hold: &Hold) -> Option<u64> {
    let sweeps = |entry: &&Entry| {
        let of_hold = matches!(&entry.link, Some(Link::Hold(id)) if *id == hold.id);
        of_hold && entry.kind == EntryKind::Release && entry.request.is_none() && entry.account == *account
    };
    let found = changes.entries.iter().find(sweeps).map(|entry| entry.version);
    found.filter(|_| hold.state == HoldState::Expired)
}

/// Pending rows that are added, and those that are settled: either was here before, or is among the added.
fn pending<'a>(changes: &'a Changes, writes: &mut Writes<'a>) {
    for (account, row) in &changes.pending_added {
        writes.added.push(PendingRow {
            account,
            row,
            settled_version: None,
        });
    }
    let mut settling: HashMap<&AccountId, Vec<u64>> = HashMap::new();
    let settle = changes
        .entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Settle);
    for entry in settle {
        settling.entry(&entry.account).or_default().push(entry.version);
    }
    let mut settling: HashMap<_, _> = settling
        .into_iter()
        .map(|(account, versions)| (account, versions.into_iter()))
        .collect();
    for (account, number) in &changes.pending_settled {
        let Some(version) = settling.get_mut(account).and_then(Iterator::next) else {
            continue;
        };
        if *number < ADDED {
            writes.settled.push((*number, version));
        } else {
            let added = writes.added.iter_mut();
            let mut added = added.filter(|added| added.row.number == *number && added.account == account);
            if let Some(added) = added.next() {
                added.settled_version = Some(version);
            }
        }
    }
}

/// Slots that have entries, and those that have no row yet.
fn slots<'a>(
    books: &'a Books,
    newest: &HashMap<(&AccountId, SlotIndex), Timestamp>,
    writes: &mut Writes<'a>,
) {
    for (account, loaded) in &books.accounts {
        for slot in loaded.rows.slots() {
            let version_before = loaded.versions.get(&slot.index).copied();
            if !loaded.locked.contains(slot.index) || version_before == Some(slot.version) {
                continue;
            }
            let primary = slot.index == SlotIndex::PRIMARY;
            writes.slots.push(SlotRow {
                account,
                version_before,
                after: *slot,
                held: if primary { loaded.rows.in_held() } else { 0 },
                at: newest.get(&(account, slot.index)).copied().unwrap_or_default(),
            });
        }
    }
}
