//! Changing an account: status, slots, modes, floor.

use wallet_backend::account::{Account, CreditMode, DebitMode, EntryKind, Status};
use wallet_backend::command::{Amendment, LedgerError, Outcome, Refusal, RequestView};
use wallet_backend::money::MAX_AMOUNT;
use wallet_backend::store::{Cursor, Store};

use crate::support::{
    Bench, SECOND, amend, capture, credit, debit, drain, hashed, hold, id, journal, ordinary, release,
    request, reslot, reversal, slotted, status, tidy, transfer,
};

fn floor(name: &str, floor: i64) -> wallet_backend::command::Task {
    let floor = Some(floor);
    let amendment = Amendment {
        floor,
        ..Amendment::default()
    };
    amend("a", name, amendment)
}

fn modes(name: &str, credit: CreditMode, debit: DebitMode) -> wallet_backend::command::Task {
    let (credit, debit) = (Some(credit), Some(debit));
    let amendment = Amendment {
        credit,
        debit,
        ..Amendment::default()
    };
    amend("a", name, amendment)
}

/// An account with money, a credit, a debit, two transfers and two holds to try things on.
fn busy(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.open(ordinary("b"));
    bench.post(credit("a", "c", 100));
    bench.post(credit("b", "c", 100));
    bench.post(debit("a", "d", 10));
    bench.post(transfer("a", "out", "b", 10));
    bench.post(transfer("b", "in", "a", 10));
    for name in ["h1", "h2", "h3"] {
        bench.post(hold("a", name, 5, 0));
    }
}

pub(in crate::conformance) fn each_status_refuses_what_it_says(bench: &Bench<impl Store>) {
    busy(bench);
    let takes = |n: &str| {
        [
            debit("a", &format!("{n}1"), 1),
            hold("a", &format!("{n}2"), 1, 0),
            transfer("a", &format!("{n}3"), "b", 1),
            reversal("a", &format!("{n}4"), "c"),
            // Of a transfer into the account: it would take it back.
            reversal("b", &format!("{n}5"), "in"),
            drain("a", &format!("{n}6")),
        ]
    };
    let brings = |n: &str, of: &str| {
        [
            credit("a", &format!("{n}7"), 1),
            transfer("b", &format!("{n}8"), "a", 1),
            capture("a", &format!("{n}9"), of, 0),
        ]
    };
    let frozen = Refusal::AccountFrozen { account: id("a") };
    bench.amend(status("a", "freeze-debits", Status::DebitFrozen));
    for task in takes("x") {
        assert_eq!(bench.refuse(task), frozen);
    }
    for task in brings("x", "h1") {
        bench.post(task);
    }
    bench.post(reversal("a", "returns-1", "d"));
    bench.amend(status("a", "freeze", Status::Frozen));
    for task in takes("y").into_iter().chain(brings("y", "h2")) {
        assert_eq!(bench.refuse(task), frozen);
    }
    bench.post(reversal("a", "returns-2", "out"));
    bench.post(release("a", "r", "h2"));
    bench.amend(status("a", "thaw", Status::Active));
    bench.post(capture("a", "k", "h3", 0));
    bench.post(debit("a", "z", 1));
}

pub(in crate::conformance) fn a_status_comes_before_the_operation(bench: &Bench<impl Store>) {
    busy(bench);
    bench.amend(status("a", "freeze", Status::Frozen));
    let frozen = Refusal::AccountFrozen { account: id("a") };
    // Neither the funds nor the hold's rest nor whether it exists is looked at.
    for task in [
        debit("a", "much", MAX_AMOUNT),
        capture("a", "over", "h1", 1_000),
        capture("a", "missing", "no-such-hold", 1),
        transfer("a", "t", "b", MAX_AMOUNT),
    ] {
        assert_eq!(bench.refuse(task), frozen);
    }
    // The account itself, and the request id, come before the status.
    let missing = bench.ask(transfer("a", "t2", "nobody", 1));
    assert!(matches!(
        missing,
        Err(LedgerError::AccountNotFound { field: "to", .. })
    ));
    assert!(matches!(
        bench.ask(debit("a", "d", 11)),
        Err(LedgerError::RequestReused { field: "amount", .. })
    ));
    assert!(bench.decide(debit("a", "d", 10)).1);
}

pub(in crate::conformance) fn an_account_closes_only_when_nothing_is_in_it(bench: &Bench<impl Store>) {
    bench.open(journal("a"));
    bench.post(credit("a", "c", 30));
    let not_empty = |balance| Refusal::AccountNotEmpty {
        account: id("a"),
        balance,
    };
    let refusal = bench.refuse(status("a", "pending", Status::Closed));
    assert_eq!(refusal, not_empty(30));
    bench.post(hold("a", "h", 30, 1));
    assert_eq!(bench.refuse(status("a", "held", Status::Closed)), not_empty(30));
    bench.time.pass(SECOND);
    assert_eq!(
        bench.refuse(status("a", "expired", Status::Closed)),
        not_empty(30)
    );
    bench.post(drain("a", "all"));
    let view = bench.amend(status("a", "close", Status::Closed));
    assert_eq!((view.account.status, view.balance()), (Status::Closed, 0));
    // The refusals were stored.
    let (again, replayed) = bench.decide(status("a", "held", Status::Closed));
    assert_eq!((again, replayed), (Outcome::Refused(not_empty(30)), true));
}

pub(in crate::conformance) fn an_amendment_answers_the_account_and_repeats_it(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.post(credit("a", "c", 7));
    let change = reslot("a", "m", 3);
    let first = bench.amend(change.clone());
    assert_eq!((first.slots.len(), first.balance()), (3, 7));
    assert_eq!(first, bench.account("a"));
    bench.post(credit("a", "d", 7));
    let outcome = Outcome::Amended(Box::new(first));
    assert_eq!(bench.decide(change), (outcome.clone(), true));
    assert_eq!(bench.look_up("a", "m"), Some(RequestView::Decided(outcome)));
    // Nothing to change is no fault.
    let same = bench.amend(amend("a", "n", Amendment::default()));
    assert_eq!(same, bench.account("a"));
}

pub(in crate::conformance) fn raising_and_lowering_slots_loses_nothing_and_goes_on_counting(
    bench: &Bench<impl Store>,
) {
    bench.open(slotted("a", 2));
    bench.post(credit("a", "c0", 10));
    bench.amend(reslot("a", "up", 64));
    bench.post(credit("a", "c1", 10));
    assert_eq!(bench.slots("a").len(), 64);
    let low = bench.amend(reslot("a", "down", 1));
    // The rows stay and are empty; what they had is in slot 0, in the same step.
    assert_eq!(
        (low.slots.len(), low.slots[0].balance, low.balance()),
        (64, 20, 20)
    );
    let moved: Vec<_> = bench
        .entries("a")
        .into_iter()
        .filter(|entry| entry.kind == EntryKind::Consolidate)
        .collect();
    assert!(moved.iter().all(|entry| entry.request == Some(request("down"))));
    bench.post(credit("a", "c2", 1));
    assert_eq!(bench.slots("a")[0], 21);
    let before = bench.account("a").slots[1].version;
    bench.amend(reslot("a", "again", 2));
    bench.post(credit("a", "c3", 1));
    assert_eq!(bench.account("a").slots[1].version, before + 1);
    bench.post(debit("a", "all", 22));
    assert_eq!(bench.account("a").balance(), 0);
}

pub(in crate::conformance) fn cursors_stay_valid_over_reslotting(bench: &Bench<impl Store>) {
    bench.open(hashed("a", 4));
    bench.post(credit("a", "c", 1_000));
    let (mut cursor, mut seen) = (Cursor::default(), Vec::new());
    for (n, slots) in [8, 1, 64, 3, 1, 2].into_iter().enumerate() {
        bench.ask(tidy("a")).unwrap();
        bench.post(debit("a", &format!("d{n}"), 1));
        bench.amend(reslot("a", &format!("m{n}"), slots));
        let page = bench.page("a", &cursor, 1_000);
        seen.extend(page.entries);
        cursor = page.next;
    }
    let key = |entry: &wallet_backend::account::Entry| (entry.slot, entry.version);
    let mut seen: Vec<_> = seen.iter().map(key).collect();
    let mut all: Vec<_> = bench.entries("a").iter().map(key).collect();
    seen.sort_unstable();
    all.sort_unstable();
    assert_eq!(seen, all);
    assert_eq!(bench.account("a").balance(), 994);
}

pub(in crate::conformance) fn modes_change_while_money_is_in_them(bench: &Bench<impl Store>) {
    bench.open(slotted("a", 3));
    bench.amend(modes("m1", CreditMode::Journal, DebitMode::Primary));
    bench.post(credit("a", "c1", 30));
    bench.amend(modes("m2", CreditMode::Slot, DebitMode::Hashed));
    bench.post(credit("a", "c2", 30));
    assert_eq!(bench.account("a").pending, 30);
    bench.ask(tidy("a")).unwrap();
    assert_eq!(bench.slots("a"), [20, 20, 20]);
    bench.post(debit("a", "d1", 20));
    bench.amend(modes("m3", CreditMode::Upsert, DebitMode::Primary));
    bench.post(debit("a", "d2", 40));
    assert_eq!(bench.account("a").balance(), 0);
}

pub(in crate::conformance) fn a_floor_is_raised_only_to_what_there_is(bench: &Bench<impl Store>) {
    bench.open(journal("a"));
    bench.post(credit("a", "c", 50));
    bench.post(hold("a", "h", 20, 0));
    let (account, asked, available) = (id("a"), 31, 30);
    let short = Refusal::InsufficientFunds {
        account,
        asked,
        available,
    };
    assert_eq!(bench.refuse(floor("m1", 31)), short);
    let view = bench.amend(floor("m2", 30));
    assert_eq!((view.account.floor, view.available()), (30, 0));
    bench.refuse(debit("a", "d", 1));
    bench.amend(floor("m3", 10));
    bench.post(debit("a", "e", 20));
}

pub(in crate::conformance) fn terms_that_no_account_could_have_are_no_amendment(bench: &Bench<impl Store>) {
    bench.open(Account {
        floor: 5,
        ..slotted("a", 3)
    });
    bench.post(credit("a", "c", 50));
    let both = Amendment {
        debit: Some(DebitMode::Hashed),
        floor: Some(1),
        ..Amendment::default()
    };
    let bad = [
        (floor("m", -1), "floor"),
        (floor("m", MAX_AMOUNT + 1), "floor"),
        (amend("a", "m", both), "floor"),
        (modes("m", CreditMode::Slot, DebitMode::Hashed), "debit"),
    ];
    for (task, field) in bad {
        let answer = bench.ask(task);
        assert!(
            matches!(answer, Err(LedgerError::Invalid { field: f, .. }) if f == field),
            "{answer:?}"
        );
    }
    // Nothing of it was remembered, and together it can be had.
    let both = Amendment {
        debit: Some(DebitMode::Hashed),
        floor: Some(0),
        ..Amendment::default()
    };
    bench.amend(amend("a", "m", both));
    let raised = bench.ask(floor("n", 1));
    assert!(matches!(raised, Err(LedgerError::Invalid { field: "floor", .. })));
}

pub(in crate::conformance) fn a_reused_id_of_the_new_commands_names_its_field(bench: &Bench<impl Store>) {
    busy(bench);
    bench.post(capture("a", "k", "h1", 3));
    bench.post(release("a", "r", "h2"));
    bench.post(reversal("a", "u", "d"));
    bench.amend(reslot("a", "m", 3));
    let others = [
        (credit("a", "h1", 5), "type"),
        (hold("a", "h1", 6, 0), "amount"),
        (hold("a", "h1", 5, 1), "expires_in_s"),
        (capture("a", "k", "h2", 3), "hold_id"),
        (capture("a", "k", "h1", 0), "amount"),
        (release("a", "r", "h3"), "hold_id"),
        (reversal("a", "u", "out"), "reverses"),
        (reslot("a", "m", 4), "slots"),
        (status("a", "m", Status::Frozen), "status"),
        (drain("a", "d"), "amount"),
    ];
    for (task, field) in others {
        let name = task.request().unwrap().clone();
        let reused = LedgerError::RequestReused {
            account: id("a"),
            request: name,
            field,
        };
        assert_eq!(bench.ask(task), Err(reused));
    }
}
