//! Transfers: two legs or none.

use wallet_backend::account::{Account, EntryKind, Link, PRIMARY_CAP};
use wallet_backend::command::{LedgerError, Outcome, Posting, Refusal, RequestView};
use wallet_backend::money::Currency;
use wallet_backend::store::Store;

use crate::support::{Bench, credit, id, journal, ordinary, request, slotted, tidy, transfer};

pub(in crate::conformance) fn a_transfer_has_both_legs_source_first(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.open(slotted("b", 2));
    bench.post(credit("a", "c", 10));
    let receipt = bench.post(transfer("a", "t", "b", 4));
    let (out, within) = (bench.entries("a").remove(1), bench.entries("b").remove(0));
    assert_eq!(receipt.legs, [(&out).into(), (&within).into()]);
    assert_eq!(
        (out.kind, out.delta, out.link),
        (EntryKind::TransferOut, -4, Some(Link::Transfer(id("b"))))
    );
    assert_eq!(
        (within.kind, within.delta, within.link),
        (EntryKind::TransferIn, 4, Some(Link::Transfer(id("a"))))
    );
    assert_eq!((within.request, within.slot.get()), (Some(request("t")), 1));
}

pub(in crate::conformance) fn a_transfer_into_a_journal_waits_there(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.open(journal("b"));
    bench.post(credit("a", "c", 10));
    let receipt = bench.post(transfer("a", "t", "b", 4));
    assert_eq!((receipt.posting, receipt.legs.len()), (Posting::Pending, 1));
    assert_eq!(receipt.legs[0].account, id("a"));
    assert_eq!((bench.account("b").pending, bench.account("b").balance()), (4, 4));
}

pub(in crate::conformance) fn a_settled_transfer_shows_its_second_leg_in_the_look_up(
    bench: &Bench<impl Store>,
) {
    bench.open(ordinary("a"));
    bench.open(journal("b"));
    bench.post(credit("a", "c", 10));
    bench.post(transfer("a", "t", "b", 4));
    bench.ask(tidy("b")).unwrap();
    let entry = bench.entries("b").remove(0);
    assert_eq!(
        (entry.kind, entry.link.clone()),
        (EntryKind::Settle, Some(Link::Transfer(id("a"))))
    );
    let Some(RequestView::Decided(Outcome::Posted(now))) = bench.look_up("a", "t") else {
        panic!("not decided");
    };
    assert_eq!((now.posting, now.legs.len()), (Posting::Posted, 2));
    assert_eq!(now.legs[1], (&entry).into());
}

pub(in crate::conformance) fn a_transfer_between_currencies_is_refused(bench: &Bench<impl Store>) {
    let usd = Currency::new("USD").unwrap();
    bench.open(ordinary("a"));
    bench.open(Account {
        currency: usd,
        ..ordinary("b")
    });
    // Without money, too: what the operation is comes before what it costs.
    let expected = Refusal::CurrencyMismatch {
        from: Currency::new("EUR").unwrap(),
        to: usd,
    };
    assert_eq!(bench.refuse(transfer("a", "t", "b", 4)), expected);
}

pub(in crate::conformance) fn a_transfer_to_an_unknown_account_names_to(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    let missing = |account, field| {
        Err(LedgerError::AccountNotFound {
            account: id(account),
            field,
        })
    };
    assert_eq!(bench.ask(transfer("a", "t", "b", 4)), missing("b", "to"));
    assert_eq!(bench.ask(transfer("x", "t", "a", 4)), missing("x", "from"));
    assert_eq!(bench.look_up("a", "t"), Some(RequestView::NotFound));
    bench.open(ordinary("b"));
    bench.post(credit("a", "c", 4));
    bench.post(transfer("a", "t", "b", 4));
}

pub(in crate::conformance) fn a_transfer_to_oneself_is_invalid(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.post(credit("a", "c", 4));
    let answer = bench.ask(transfer("a", "t", "a", 4));
    assert!(matches!(answer, Err(LedgerError::Invalid { field: "to", .. })));
}

pub(in crate::conformance) fn a_refused_transfer_moves_nothing_on_either_side(bench: &Bench<impl Store>) {
    bench.open(slotted("a", 4));
    bench.open(ordinary("b"));
    bench.post(credit("a", "c", 3));
    bench.post(credit("b", "c", PRIMARY_CAP));
    let (before_a, before_b) = (bench.account("a"), bench.account("b"));
    bench.refuse(transfer("a", "t", "b", 4));
    // Enough at the source, which would have to collect; too much at the target.
    bench.refuse(transfer("a", "u", "b", 3));
    assert_eq!((bench.account("a"), bench.account("b")), (before_a, before_b));
}
