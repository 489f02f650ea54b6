//! Reversals: wholly, once, and never where nothing can carry them.

use wallet_backend::account::{Account, EntryKind, Link, PRIMARY_CAP, SlotCount, Status};
use wallet_backend::command::{Answer, LedgerError, Outcome, Posting, Refusal};
use wallet_backend::store::Store;

use crate::support::{
    Bench, abandon, amend, capture, capture_part, credit, debit, drain, hold, id, journal, ordinary, release,
    request, reversal, slotted, status, tidy, transfer,
};

fn already(of: &str, by: &str) -> Refusal {
    Refusal::AlreadyReversed {
        reverses: request(of),
        by: request(by),
    }
}

pub(in crate::conformance) fn a_credit_is_reversed_once_by_whatever_id(bench: &Bench<impl Store>) {
    bench.open(slotted("a", 3));
    bench.post(credit("a", "c", 70));
    bench.post(credit("a", "d", 100));
    let receipt = bench.post(reversal("a", "u", "c"));
    assert_eq!((receipt.amount.minor(), receipt.legs[0].delta), (70, -70));
    let entry = bench
        .entries("a")
        .into_iter()
        .find(|entry| entry.kind == EntryKind::Reversal);
    assert_eq!(entry.unwrap().link, Some(Link::Reversed(request("c"))));
    assert!(bench.decide(reversal("a", "u", "c")).1);
    for n in 0..10 {
        let again = bench.refuse(reversal("a", &format!("u{n}"), "c"));
        assert_eq!(again, already("c", "u"));
    }
    assert_eq!(bench.account("a").balance(), 100);
}

pub(in crate::conformance) fn a_debit_is_reversed_by_returning_it(bench: &Bench<impl Store>) {
    bench.open(journal("a"));
    bench.post(credit("a", "c", 70));
    bench.post(debit("a", "d", 30));
    bench.post(drain("a", "all"));
    bench.post(reversal("a", "u", "d"));
    // What was taken at the most is returned as it was, and at once, in every mode.
    let receipt = bench.post(reversal("a", "v", "all"));
    assert_eq!((receipt.amount.minor(), receipt.posting), (40, Posting::Posted));
    assert_eq!((bench.slots("a"), bench.account("a").pending), (vec![70], 0));
}

pub(in crate::conformance) fn a_captured_hold_is_reversed_by_its_capture(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.post(credit("a", "c", 100));
    bench.post(hold("a", "h", 60, 0));
    bench.post(capture_part("a", "k", "h", 10));
    bench.post(capture("a", "l", "h", 20));
    bench.post(reversal("a", "u", "l"));
    let view = bench.account("a");
    assert_eq!((view.balance(), view.held), (90, 0));
    assert_eq!(bench.refuse(reversal("a", "v", "l")), already("l", "u"));
    bench.post(reversal("a", "w", "k"));
    assert_eq!(bench.account("a").balance(), 100);
}

pub(in crate::conformance) fn a_transfer_is_reversed_by_taking_from_its_target(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.open(Account {
        slots: SlotCount::new(3).unwrap(),
        ..journal("b")
    });
    bench.post(credit("a", "c", 50));
    bench.post(transfer("a", "t", "b", 30));
    let receipt = bench.post(reversal("a", "u", "t"));
    let legs: Vec<_> = receipt
        .legs
        .iter()
        .map(|leg| (leg.account.as_str(), leg.delta))
        .collect();
    assert_eq!(legs, [("b", -30), ("a", 30)]);
    assert_eq!(
        (bench.account("a").balance(), bench.account("b").balance()),
        (50, 0)
    );
    let taken = bench.entries("b").pop().unwrap();
    assert_eq!(
        (taken.request, taken.link),
        (Some(request("u")), Some(Link::Transfer(id("a"))))
    );
    assert_eq!(bench.refuse(reversal("a", "v", "t")), already("t", "u"));
    // The transfer's id is the source's: the target has nothing of that name.
    let missing = LedgerError::NothingToReverse {
        account: id("b"),
        reverses: request("t"),
    };
    assert_eq!(bench.ask(reversal("b", "u", "t")), Err(missing));
    // Spent, it cannot be taken back.
    bench.post(transfer("a", "t2", "b", 30));
    bench.post(debit("b", "spent", 1));
    let (account, asked, available) = (id("b"), 30, 29);
    let short = Refusal::InsufficientFunds {
        account,
        asked,
        available,
    };
    assert_eq!(bench.refuse(reversal("a", "u2", "t2")), short);
}

pub(in crate::conformance) fn what_cannot_be_reversed_says_so(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.post(credit("a", "c", 100));
    bench.post(credit("a", "c2", 100));
    bench.post(hold("a", "h", 10, 0));
    bench.post(release("a", "r", "h"));
    bench.post(reversal("a", "u", "c2"));
    bench.refuse(debit("a", "too-much", 1_000));
    bench.amend(amend("a", "m", wallet_backend::command::Amendment::default()));
    bench.decide(abandon("a", "x"));
    let before = (bench.account("a"), bench.entries("a"));
    for of in ["h", "r", "u", "too-much", "m", "x"] {
        let refusal = bench.refuse(reversal("a", &format!("of-{of}"), of));
        let reverses = request(of);
        assert_eq!(refusal, Refusal::NotReversible { reverses });
    }
    assert_eq!((bench.account("a"), bench.entries("a")), before);
}

pub(in crate::conformance) fn a_reversal_that_the_account_cannot_carry_is_refused(bench: &Bench<impl Store>) {
    bench.open(Account {
        floor: 20,
        ..ordinary("a")
    });
    bench.post(credit("a", "c", 50));
    bench.post(debit("a", "d", 10));
    let (account, asked, available) = (id("a"), 50, 20);
    let short = Refusal::InsufficientFunds {
        account,
        asked,
        available,
    };
    assert_eq!(bench.refuse(reversal("a", "u", "c")), short);
    bench.post(credit("a", "more", 30));
    // That refusal stays; another id may.
    assert!(bench.decide(reversal("a", "u", "c")).1);
    bench.post(reversal("a", "v", "c"));
    assert_eq!(bench.account("a").balance(), 20);
}

pub(in crate::conformance) fn what_is_returned_may_pass_a_cap(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.post(credit("a", "c", 10));
    bench.post(debit("a", "d", 10));
    bench.post(credit("a", "full", PRIMARY_CAP));
    bench.post(reversal("a", "u", "d"));
    assert_eq!(bench.account("a").balance(), PRIMARY_CAP + 10);
}

pub(in crate::conformance) fn a_reversal_of_what_never_was_is_never_remembered(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    let missing = Err(LedgerError::NothingToReverse {
        account: id("a"),
        reverses: request("c"),
    });
    assert_eq!(bench.ask(reversal("a", "u", "c")), missing);
    bench.post(credit("a", "c", 5));
    bench.post(reversal("a", "u", "c"));
    assert_eq!(bench.account("a").balance(), 0);
}

pub(in crate::conformance) fn a_pending_credit_can_be_reversed(bench: &Bench<impl Store>) {
    bench.open(journal("a"));
    bench.post(credit("a", "c", 5));
    bench.post(reversal("a", "u", "c"));
    bench.ask(tidy("a")).unwrap();
    let kinds: Vec<_> = bench.entries("a").iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [EntryKind::Settle, EntryKind::Reversal]);
    assert_eq!(bench.account("a").balance(), 0);
}

pub(in crate::conformance) fn a_reversal_in_a_batch_sees_what_it_reverses(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    let answers = bench.ask_all(vec![
        credit("a", "c", 5),
        reversal("a", "u", "c"),
        reversal("a", "v", "c"),
        reversal("a", "w", "u"),
    ]);
    let refused = |refusal| {
        Ok(Answer::Decided {
            outcome: Outcome::Refused(refusal),
            replayed: false,
        })
    };
    assert_eq!(answers[2], refused(already("c", "u")));
    let reverses = request("u");
    assert_eq!(answers[3], refused(Refusal::NotReversible { reverses }));
    assert_eq!(bench.account("a").balance(), 0);
}

pub(in crate::conformance) fn a_closed_account_takes_nothing_but_what_returns(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.open(ordinary("b"));
    bench.post(credit("a", "c", 30));
    bench.post(transfer("a", "t", "b", 10));
    bench.post(debit("a", "d", 20));
    bench.amend(status("a", "close", Status::Closed));
    let closed = Refusal::AccountClosed { account: id("a") };
    for task in [
        credit("a", "c1", 1),
        debit("a", "d1", 1),
        hold("a", "h1", 1, 0),
        transfer("b", "t1", "a", 1),
        transfer("a", "t2", "b", 1),
        reversal("a", "u1", "c"),
        status("a", "open", Status::Active),
    ] {
        assert_eq!(bench.refuse(task), closed);
    }
    bench.post(reversal("a", "u2", "d"));
    bench.post(reversal("a", "u3", "t"));
    let (a, b) = (bench.account("a"), bench.account("b"));
    assert_eq!(
        (a.account.status, a.balance(), b.balance()),
        (Status::Closed, 30, 0)
    );
}
