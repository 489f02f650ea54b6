//! Debits: the floor, collection, hashed slots, and the proof of a refusal.

use std::collections::BTreeSet;

use wallet_backend::account::{Account, EntryKind, Link, SlotCount, SlotIndex};
use wallet_backend::command::{Outcome, Refusal};
use wallet_backend::store::Store;

use crate::support::{
    Bench, amount, credit, debit, drain, hashed, id, journal, ordinary, request, slotted, tidy, transfer,
};

pub(in crate::conformance) fn a_debit_leaves_the_floor(bench: &Bench<impl Store>) {
    bench.open(Account {
        floor: 30,
        ..ordinary("a")
    });
    bench.post(credit("a", "c", 100));
    let refusal = bench.refuse(debit("a", "d", 71));
    let available = 70;
    assert_eq!(
        refusal,
        Refusal::InsufficientFunds {
            account: id("a"),
            asked: 71,
            available
        }
    );
    bench.post(debit("a", "e", 70));
    assert_eq!(
        (bench.account("a").balance(), bench.account("a").available()),
        (30, 0)
    );
}

/// An account whose four slots have 15 each, and whose debits are hashed.
fn spread(bench: &Bench<impl Store>) {
    bench.open(hashed("a", 4));
    bench.post(credit("a", "all", 60));
    bench.ask(tidy("a")).unwrap();
    assert_eq!(bench.slots("a"), [15, 15, 15, 15]);
}

pub(in crate::conformance) fn a_debit_that_slot_0_can_pay_touches_no_other_slot(bench: &Bench<impl Store>) {
    bench.open(slotted("a", 3));
    bench.post(credit("a", "c", 50));
    bench.post(debit("a", "d", 20));
    assert_eq!(bench.slots("a"), [30, 0, 0]);
    bench.post(credit("a", "e", 5));
    let receipt = bench.post(debit("a", "f", 30));
    assert_eq!(receipt.legs[0].balance_after, 0);
    assert_eq!(bench.slots("a"), [0, 5, 0]);
}

/// Once all of them went into one record, and one of so many rows that it fitted no segment was refused for ever.
pub(in crate::conformance) fn a_debit_settles_as_many_rows_as_it_needs_however_many(
    bench: &Bench<impl Store>,
) {
    bench.open(journal("a"));
    bench.ask_all((0..3_500).map(|n| credit("a", &format!("{n:x>64}"), 1)).collect());
    assert_eq!(bench.post(debit("a", "d", 3_400)).legs[0].balance_after, 0);
    let account = bench.account("a");
    assert_eq!((account.balance(), account.pending), (100, 100));
    assert_eq!(bench.entries("a").len(), 3_401);
}

pub(in crate::conformance) fn a_short_debit_settles_pending_before_it_empties_slots(
    bench: &Bench<impl Store>,
) {
    bench.open(Account {
        slots: SlotCount::new(3).unwrap(),
        ..journal("a")
    });
    for n in 0..4 {
        bench.post(credit("a", &format!("c{n}"), 10));
    }
    bench.post(debit("a", "d", 15));
    // Two rows were enough; the other two go on waiting.
    assert_eq!(
        (bench.slots("a"), bench.account("a").pending),
        (vec![5, 0, 0], 20)
    );
    let kinds: Vec<_> = bench.entries("a").iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [EntryKind::Settle, EntryKind::Settle, EntryKind::Debit]);
    let settled = &bench.entries("a")[1];
    assert_eq!(
        (settled.request.clone(), settled.delta),
        (Some(request("c1")), 10)
    );
}

pub(in crate::conformance) fn a_debit_empties_only_as_many_slots_as_it_needs(bench: &Bench<impl Store>) {
    spread(bench);
    // No slot has 31 by itself: slot 0, slot 1 and slot 2 do, whole; slot 3 is left alone.
    bench.post(debit("a", "d", 31));
    assert_eq!(bench.slots("a"), [14, 0, 0, 15]);
    let moves: Vec<_> = bench
        .entries("a")
        .into_iter()
        .filter(|entry| entry.request == Some(request("d")))
        .map(|entry| (entry.slot.get(), entry.delta, entry.kind, entry.link))
        .collect();
    let to = |slot| SlotIndex::new(slot).map(Link::Slot);
    let expected = [
        (0, 15, EntryKind::Consolidate, to(1)),
        (0, 15, EntryKind::Consolidate, to(2)),
        (0, -31, EntryKind::Debit, None),
        (1, -15, EntryKind::Consolidate, to(0)),
        (2, -15, EntryKind::Consolidate, to(0)),
    ];
    let mut by_slot = moves;
    by_slot.sort_by_key(|(slot, ..)| *slot);
    assert_eq!(by_slot, expected);
}

pub(in crate::conformance) fn a_debit_of_everything_leaves_zero_everywhere(bench: &Bench<impl Store>) {
    bench.open(Account {
        slots: SlotCount::new(2).unwrap(),
        ..journal("a")
    });
    bench.open(slotted("b", 2));
    bench.post(credit("a", "c", 3));
    bench.post(credit("b", "c", 4));
    bench.post(transfer("b", "t", "a", 4));
    bench.post(debit("a", "d", 7));
    assert_eq!(
        (bench.account("a").balance(), bench.account("b").balance()),
        (0, 0)
    );
}

pub(in crate::conformance) fn insufficient_funds_names_what_was_available(bench: &Bench<impl Store>) {
    bench.open(slotted("a", 4));
    bench.post(credit("a", "c", 9));
    let refusal = bench.refuse(debit("a", "d", 10));
    let expected = Refusal::InsufficientFunds {
        account: id("a"),
        asked: 10,
        available: 9,
    };
    assert_eq!(refusal, expected);
    assert_eq!(bench.entries("a").len(), 1);
}

pub(in crate::conformance) fn a_hashed_debit_takes_from_its_own_slot(bench: &Bench<impl Store>) {
    spread(bench);
    let receipts: Vec<_> = (0..30)
        .map(|n| bench.post(debit("a", &format!("d{n}"), 1)))
        .collect();
    let slots: BTreeSet<u8> = receipts
        .iter()
        .map(|receipt| receipt.legs[0].slot.get())
        .collect();
    assert_eq!(slots, [1, 2, 3].into());
    assert_eq!(bench.slots("a")[0], 15);
    assert_eq!(bench.account("a").balance(), 30);
}

pub(in crate::conformance) fn a_hashed_debit_that_its_slot_cannot_pay_collects(bench: &Bench<impl Store>) {
    spread(bench);
    let receipt = bench.post(debit("a", "d", 60));
    assert_eq!(receipt.legs[0].slot, SlotIndex::PRIMARY);
    assert_eq!(bench.slots("a"), [0, 0, 0, 0]);
    bench.refuse(debit("a", "e", 1));
}

pub(in crate::conformance) fn a_debit_of_all_there_is_leaves_the_floor_and_repeats_its_first_amount(
    bench: &Bench<impl Store>,
) {
    bench.open(Account {
        floor: 30,
        ..ordinary("a")
    });
    let nothing = bench.refuse(drain("a", "early"));
    assert!(matches!(nothing, Refusal::InsufficientFunds { available: 0, .. }));
    bench.post(credit("a", "c", 100));
    let first = bench.post(drain("a", "all"));
    assert_eq!((first.amount, first.legs[0].delta), (amount(70), -70));
    bench.post(credit("a", "d", 55));
    assert_eq!(bench.decide(drain("a", "all")), (Outcome::Posted(first), true));
    assert_eq!(bench.account("a").balance(), 85);
}

pub(in crate::conformance) fn a_debit_of_all_there_is_collects_from_everywhere(bench: &Bench<impl Store>) {
    bench.open(Account {
        slots: SlotCount::new(3).unwrap(),
        ..journal("a")
    });
    bench.open(hashed("b", 3));
    bench.post(credit("a", "c", 40));
    bench.post(credit("b", "c", 60));
    bench.ask(tidy("b")).unwrap();
    for (name, minor) in [("a", 40), ("b", 60)] {
        assert_eq!(bench.post(drain(name, "all")).amount, amount(minor));
        assert_eq!(bench.account(name).balance(), 0);
    }
}
