//! Credits: slots, caps, and what waits.

use wallet_backend::account::{EntryKind, PRIMARY_CAP, SLOT_CAP, SlotIndex};
use wallet_backend::command::{Outcome, Posting, Refusal, RequestView};
use wallet_backend::store::Store;

use crate::support::{Bench, credit, debit, id, journal, ordinary, request, slotted, tidy, transfer};

pub(in crate::conformance) fn a_credit_is_posted_to_slot_0_of_an_ordinary_account(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    let receipt = bench.post(credit("a", "c", 70));
    let entry = &bench.entries("a")[0];
    assert_eq!(
        (entry.slot, entry.version, entry.delta, entry.balance_after),
        (SlotIndex::PRIMARY, 1, 70, 70)
    );
    assert_eq!(
        (entry.kind, entry.request.clone()),
        (EntryKind::Credit, Some(request("c")))
    );
    assert_eq!(receipt.legs, [entry.into()]);
    assert_eq!((receipt.posting, receipt.at), (Posting::Posted, entry.at));
}

pub(in crate::conformance) fn a_credit_over_the_slots_cap_goes_to_slot_0(bench: &Bench<impl Store>) {
    bench.open(slotted("a", 2));
    bench.post(credit("a", "c", SLOT_CAP));
    bench.post(credit("a", "d", 1));
    assert_eq!(bench.slots("a"), [1, SLOT_CAP]);
}

pub(in crate::conformance) fn a_credit_over_every_cap_is_refused(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.open(ordinary("b"));
    bench.post(credit("a", "c", PRIMARY_CAP));
    bench.post(credit("b", "c", 5));
    let limit = |asked| Refusal::BalanceLimit {
        account: id("a"),
        asked,
    };
    assert_eq!(bench.refuse(credit("a", "d", 1)), limit(1));
    assert_eq!(bench.refuse(transfer("b", "t", "a", 5)), limit(5));
    assert_eq!(bench.account("b").balance(), 5);
    // Taking is bound by no cap.
    bench.post(debit("a", "e", PRIMARY_CAP));
}

pub(in crate::conformance) fn journal_credits_cannot_wait_past_the_cap(bench: &Bench<impl Store>) {
    bench.open(journal("a"));
    bench.post(credit("a", "c", PRIMARY_CAP));
    let limit = Refusal::BalanceLimit {
        account: id("a"),
        asked: 1,
    };
    assert_eq!(bench.refuse(credit("a", "d", 1)), limit);
    bench.ask(tidy("a")).unwrap();
    assert_eq!(bench.refuse(credit("a", "e", 1)), limit);
}

pub(in crate::conformance) fn a_journal_credit_is_spendable_before_it_settles(bench: &Bench<impl Store>) {
    bench.open(journal("a"));
    let receipt = bench.post(credit("a", "c", 10));
    assert_eq!((receipt.posting, receipt.legs.len()), (Posting::Pending, 0));
    let view = bench.account("a");
    assert_eq!((view.balance(), view.available(), view.pending), (10, 10, 10));
    bench.post(debit("a", "d", 10));
    assert_eq!(bench.account("a").balance(), 0);
}

pub(in crate::conformance) fn a_pending_receipt_is_posted_in_the_look_up_once_settled(
    bench: &Bench<impl Store>,
) {
    bench.open(journal("a"));
    let receipt = bench.post(credit("a", "c", 10));
    let pending = RequestView::Decided(Outcome::Posted(receipt.clone()));
    assert_eq!(bench.look_up("a", "c"), Some(pending));
    bench.ask(tidy("a")).unwrap();
    let Some(RequestView::Decided(Outcome::Posted(now))) = bench.look_up("a", "c") else {
        panic!("not decided");
    };
    assert_eq!(now.posting, Posting::Posted);
    assert_eq!(now.legs, [(&bench.entries("a")[0]).into()]);
    // A replay repeats the first receipt all the same.
    assert_eq!(
        bench.decide(credit("a", "c", 10)),
        (Outcome::Posted(receipt), true)
    );
}
