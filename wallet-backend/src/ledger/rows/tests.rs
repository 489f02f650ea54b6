//! What rows take in, and what they refuse.

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

/// A hold of `amount` as it became, under an entry that moves `held` into it.
fn held(version: u64, delta: i64, held: i64, after: i64, hold: &Hold) -> Changes {
    let entry = Entry {
        held_delta: held,
        ..entry(version, EntryKind::Hold, delta, after)
    };
    Changes {
        holds: vec![(account().id, hold.clone())],
        ..entries(vec![entry])
    }
}

fn hold(minor: i64) -> Hold {
    let id = RequestId::new("h").unwrap();
    Hold::new(id, Amount::new(minor).unwrap(), Some(Timestamp(9)))
}

#[test]
fn held_money_is_the_accounts_and_expired_money_is_there_to_be_spent() {
    let mut rows = AccountRows::open(account());
    rows.apply(&entries(vec![entry(1, EntryKind::Credit, 10, 10)]))
        .unwrap();
    rows.apply(&held(2, -6, 6, 4, &hold(6))).unwrap();
    assert_eq!((rows.total(), rows.spendable(Timestamp(8))), (10, 4));
    assert_eq!(rows.spendable(Timestamp(9)), 10);
    let (before, after) = (rows.view(Timestamp(8)), rows.view(Timestamp(9)));
    assert_eq!((before.held, before.pending, before.available()), (6, 0, 4));
    assert_eq!((after.held, after.pending, after.available()), (0, 6, 10));
    let parts = (rows.slots().to_vec(), rows.holds().cloned().collect());
    assert_eq!(
        AccountRows::restore(account(), parts.0, VecDeque::new(), 1, parts.1),
        Ok(rows)
    );
}

#[test]
fn a_hold_without_its_entry_or_against_its_life_is_refused() {
    let credit = entries(vec![entry(1, EntryKind::Credit, 10, 10)]);
    let placed = held(2, -6, 6, 4, &hold(6));
    let more = held(2, -6, 7, 4, &hold(6));
    let again = held(3, 0, 0, 4, &hold(5));
    assert_eq!(broken(&[credit.clone(), more]), (Rule::HeldAmount, None));
    assert_eq!(broken(&[credit, placed, again]), (Rule::HoldRow, None));
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
        AccountRows::restore(account(), rows.slots().to_vec(), waiting, next, Vec::new())
    };
    assert_eq!(again(2).as_ref(), Ok(&rows));
    assert_eq!(again(1).unwrap_err().rule, Rule::PendingNumber);
}

#[test]
fn the_rows_of_an_idle_account_take_less_than_100_bytes_and_its_id() {
    let rows = AccountRows::open(account());
    assert!(!rows.slots.spilled());
    assert!(size_of::<AccountRows>() < 100, "{}", size_of::<AccountRows>());
}

#[test]
fn what_is_hidden_counts_for_what_there_is_and_not_for_what_can_be_taken() {
    let rows = AccountRows::open(account());
    let (total, spendable) = (rows.total(), rows.spendable(Timestamp(0)));
    let hiding = rows.hiding(30, 12).unwrap();
    assert_eq!((hiding.total(), hiding.in_held()), (total + 42, 30));
    assert_eq!(hiding.spendable(Timestamp(0)), spendable);
}
