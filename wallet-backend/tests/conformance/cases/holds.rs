//! Holds: money set aside, captured in parts, given back, expired.

use wallet_backend::account::{Entry, EntryKind, Hold, HoldState, Link, MAX_HELD, Timestamp};
use wallet_backend::command::{Answer, HoldView, LedgerError, Outcome, Refusal};
use wallet_backend::store::Store;

use crate::support::{
    Bench, SECOND, amount, capture, capture_part, credit, debit, drain, hold, id, journal, ordinary, release,
    request, slotted, tidy,
};

/// An account with 100, of which 60 are held under `h` for ten seconds.
fn with_hold(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.post(credit("a", "c", 100));
    bench.post(hold("a", "h", 60, 10));
}

/// Balance, available, held, pending.
fn sums(bench: &Bench<impl Store>) -> (i64, i64, i64, i64) {
    let view = bench.account("a");
    (view.balance(), view.available(), view.held, view.pending)
}

/// Of the newest entries: kind, what they add to the slot and to what is held.
fn last(bench: &Bench<impl Store>, count: usize) -> Vec<(EntryKind, i64, i64)> {
    let entries = bench.entries("a");
    let newest = entries[entries.len() - count..].iter();
    newest
        .map(|entry| (entry.kind, entry.delta, entry.held_delta))
        .collect()
}

fn not_open(state: HoldState) -> Refusal {
    Refusal::HoldNotOpen {
        hold: request("h"),
        state,
    }
}

pub(in crate::conformance) fn a_hold_takes_money_out_of_the_slots_and_stays_the_accounts(
    bench: &Bench<impl Store>,
) {
    with_hold(bench);
    assert_eq!(sums(bench), (100, 40, 60, 0));
    assert_eq!(last(bench, 1), [(EntryKind::Hold, -60, 60)]);
    let placed = Hold::new(request("h"), amount(60), Some(Timestamp(11 * SECOND)));
    assert_eq!(bench.hold("a", "h"), placed);
    let again = bench.decide(hold("a", "h", 60, 10));
    assert!(again.1, "the hold's id is its request's: {again:?}");
}

pub(in crate::conformance) fn a_hold_beyond_the_funds_is_refused(bench: &Bench<impl Store>) {
    with_hold(bench);
    let (account, asked, available) = (id("a"), 41, 40);
    let short = Refusal::InsufficientFunds {
        account,
        asked,
        available,
    };
    assert_eq!(bench.refuse(hold("a", "i", 41, 0)), short);
    assert_eq!(bench.refuse(debit("a", "d", 41)), short);
    assert_eq!(bench.look_up_hold("a", "i"), Some(HoldView::NotFound));
}

pub(in crate::conformance) fn five_holds_of_a_fifth_fit_and_a_sixth_does_not(bench: &Bench<impl Store>) {
    bench.open(slotted("a", 4));
    bench.post(credit("a", "c", 5_000));
    let tasks = (0..6).map(|n| hold("a", &format!("h{n}"), 1_000, 0)).collect();
    let posted = bench.ask_all(tasks).into_iter().map(|answer| {
        matches!(
            answer,
            Ok(Answer::Decided {
                outcome: Outcome::Posted(_),
                ..
            })
        )
    });
    assert_eq!(posted.collect::<Vec<_>>(), [true, true, true, true, true, false]);
    assert_eq!(sums(bench), (5_000, 0, 5_000, 0));
}

pub(in crate::conformance) fn a_capture_may_be_partial_until_nothing_is_left(bench: &Bench<impl Store>) {
    with_hold(bench);
    let receipt = bench.post(capture_part("a", "k1", "h", 20));
    assert_eq!((receipt.amount, receipt.legs[0].held_delta), (amount(20), -20));
    assert_eq!(sums(bench), (80, 40, 40, 0));
    assert_eq!(bench.hold("a", "h").state, HoldState::Open);
    bench.post(capture_part("a", "k2", "h", 0));
    let ended = bench.hold("a", "h");
    assert_eq!(
        (ended.state, ended.captured, ended.released),
        (HoldState::Captured, 60, 0)
    );
    assert_eq!(sums(bench), (40, 40, 0, 0));
    assert_eq!(
        bench.refuse(capture("a", "k3", "h", 1)),
        not_open(HoldState::Captured)
    );
}

pub(in crate::conformance) fn a_final_capture_gives_the_rest_back(bench: &Bench<impl Store>) {
    with_hold(bench);
    let receipt = bench.post(capture("a", "k", "h", 45));
    let legs: Vec<_> = receipt
        .legs
        .iter()
        .map(|leg| (leg.delta, leg.held_delta))
        .collect();
    assert_eq!(legs, [(0, -45), (15, -15)]);
    assert_eq!(
        last(bench, 2),
        [(EntryKind::Capture, 0, -45), (EntryKind::Release, 15, -15)]
    );
    assert_eq!(sums(bench), (55, 55, 0, 0));
    let ended = bench.hold("a", "h");
    assert_eq!(
        (ended.state, ended.captured, ended.released),
        (HoldState::Captured, 45, 15)
    );
}

pub(in crate::conformance) fn a_capture_beyond_the_rest_is_refused_and_changes_nothing(
    bench: &Bench<impl Store>,
) {
    with_hold(bench);
    bench.post(capture_part("a", "k1", "h", 50));
    let (before, entries) = (bench.account("a"), bench.entries("a"));
    let refusal = bench.refuse(capture("a", "k2", "h", 11));
    let (hold, asked, rest) = (request("h"), 11, 10);
    assert_eq!(refusal, Refusal::HoldExceeded { hold, asked, rest });
    assert_eq!((bench.account("a"), bench.entries("a")), (before, entries));
    // The refusal sticks; another id takes what there is.
    assert!(bench.decide(capture("a", "k2", "h", 11)).1);
    bench.post(capture("a", "k3", "h", 10));
}

pub(in crate::conformance) fn a_release_gives_the_rest_back_and_ends_the_hold(bench: &Bench<impl Store>) {
    with_hold(bench);
    bench.post(capture_part("a", "k", "h", 20));
    let receipt = bench.post(release("a", "r", "h"));
    assert_eq!(receipt.amount, amount(40));
    assert_eq!(last(bench, 1), [(EntryKind::Release, 40, -40)]);
    assert_eq!(
        bench.entries("a").last().unwrap().link,
        Some(Link::Hold(request("h")))
    );
    assert_eq!(sums(bench), (80, 80, 0, 0));
    let ended = bench.hold("a", "h");
    assert_eq!(
        (ended.state, ended.captured, ended.released),
        (HoldState::Released, 20, 40)
    );
}

pub(in crate::conformance) fn an_ended_hold_answers_how_it_ended(bench: &Bench<impl Store>) {
    with_hold(bench);
    bench.post(release("a", "r", "h"));
    assert_eq!(
        bench.refuse(capture("a", "k", "h", 1)),
        not_open(HoldState::Released)
    );
    assert_eq!(
        bench.refuse(release("a", "s", "h")),
        not_open(HoldState::Released)
    );
    // Long past its deadline it is still the release that ended it.
    bench.time.pass(100 * SECOND);
    assert_eq!(bench.hold("a", "h").state, HoldState::Released);
    assert!(bench.decide(release("a", "r", "h")).1);
}

pub(in crate::conformance) fn a_hold_that_never_was_is_never_remembered(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.post(credit("a", "c", 100));
    let missing = |name: &str| {
        Err(LedgerError::HoldNotFound {
            account: id("a"),
            hold: request(name),
        })
    };
    assert_eq!(bench.ask(capture("a", "k", "h", 1)), missing("h"));
    assert_eq!(bench.ask(release("a", "r", "h")), missing("h"));
    // A credit's id is no hold's.
    assert_eq!(bench.ask(release("a", "r", "c")), missing("c"));
    assert_eq!(bench.look_up_hold("a", "h"), Some(HoldView::NotFound));
    assert_eq!(bench.look_up_hold("nobody", "h"), None);
    bench.post(hold("a", "h", 5, 0));
    bench.post(capture("a", "k", "h", 1));
}

pub(in crate::conformance) fn an_expired_hold_is_available_before_any_sweep(bench: &Bench<impl Store>) {
    with_hold(bench);
    bench.time.pass(10 * SECOND - 1);
    assert_eq!(sums(bench), (100, 40, 60, 0));
    assert_eq!(bench.untidy(), []);
    bench.time.pass(1);
    assert_eq!(sums(bench), (100, 100, 0, 60));
    assert_eq!(bench.hold("a", "h").state, HoldState::Expired);
    assert_eq!(bench.entries("a").len(), 2);
    assert_eq!(bench.untidy(), [id("a")]);
}

pub(in crate::conformance) fn an_expired_hold_is_spent_by_a_debit_that_is_short(bench: &Bench<impl Store>) {
    with_hold(bench);
    bench.time.pass(10 * SECOND);
    bench.post(debit("a", "d", 40));
    assert_eq!(last(bench, 1), [(EntryKind::Debit, -40, 0)]);
    bench.post(debit("a", "e", 60));
    assert_eq!(
        last(bench, 2),
        [(EntryKind::Release, 60, -60), (EntryKind::Debit, -60, 0)]
    );
    let swept = bench.entries("a").remove(3);
    // No request caused it.
    assert_eq!(
        (swept.request, swept.link),
        (None, Some(Link::Hold(request("h"))))
    );
    assert_eq!(sums(bench), (0, 0, 0, 0));
    assert_eq!(bench.hold("a", "h").state, HoldState::Expired);
}

pub(in crate::conformance) fn at_the_deadline_a_hold_has_one_end(bench: &Bench<impl Store>) {
    with_hold(bench);
    bench.time.pass(10 * SECOND);
    let (before, entries) = (bench.account("a"), bench.entries("a"));
    let tasks = (0..20).map(|n| capture("a", &format!("k{n}"), "h", 1)).collect();
    for answer in bench.ask_all(tasks) {
        let outcome = Outcome::Refused(not_open(HoldState::Expired));
        let replayed = false;
        assert_eq!(answer, Ok(Answer::Decided { outcome, replayed }));
    }
    assert_eq!(bench.refuse(release("a", "r", "h")), not_open(HoldState::Expired));
    assert_eq!((bench.account("a"), bench.entries("a")), (before, entries));
    // The sweep and late captures in one batch: still expired, and once.
    let swept = bench.ask_all(vec![
        tidy("a"),
        capture("a", "late", "h", 1),
        tidy("a"),
        release("a", "later", "h"),
    ]);
    assert!(swept.iter().all(Result::is_ok));
    assert_eq!(last(bench, 1), [(EntryKind::Release, 60, -60)]);
    assert_eq!(sums(bench), (100, 100, 0, 0));
}

pub(in crate::conformance) fn tidying_sweeps_expired_holds_in_steps(bench: &Bench<impl Store>) {
    bench.open(journal("a"));
    bench.post(credit("a", "c", 1_000));
    let holds = (0..126).map(|n| hold("a", &format!("h{n}"), 1, 1 + n / 100));
    bench.ask_all(holds.collect());
    bench.time.pass(SECOND);
    assert_eq!(bench.ask(tidy("a")), Ok(Answer::Tidied { more: false }));
    assert_eq!((bench.account("a").held, bench.account("a").pending), (26, 0));
    bench.time.pass(SECOND);
    bench.ask_all((0..150).map(|n| hold("a", &format!("i{n}"), 1, 1)).collect());
    bench.time.pass(SECOND);
    assert_eq!(bench.untidy(), [id("a")]);
    assert_eq!(bench.ask(tidy("a")), Ok(Answer::Tidied { more: true }));
    assert_eq!(bench.ask(tidy("a")), Ok(Answer::Tidied { more: false }));
    assert_eq!((bench.slots("a"), bench.account("a").pending), (vec![1_000], 0));
    assert_eq!(bench.untidy(), []);
    // And as many that a debit needs.
    bench.ask_all((0..300).map(|n| hold("a", &format!("j{n}"), 3, 1)).collect());
    bench.time.pass(SECOND);
    assert_eq!(bench.post(drain("a", "all")).amount, amount(1_000));
    assert_eq!(sums(bench), (0, 0, 0, 0));
}

pub(in crate::conformance) fn a_hold_is_refused_past_the_most_that_may_be_held(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.post(credit("a", "c", MAX_HELD + 10));
    bench.post(hold("a", "h", MAX_HELD - 1, 0));
    let (account, asked) = (id("a"), 2);
    assert_eq!(
        bench.refuse(hold("a", "i", 2, 0)),
        Refusal::BalanceLimit { account, asked }
    );
    bench.post(hold("a", "j", 1, 0));
}

pub(in crate::conformance) fn a_statement_closes_over_holds_captures_and_releases(bench: &Bench<impl Store>) {
    with_hold(bench);
    bench.post(capture_part("a", "k", "h", 10));
    bench.post(hold("a", "i", 20, 5));
    bench.post(release("a", "r", "h"));
    bench.time.pass(5 * SECOND);
    bench.ask(tidy("a")).unwrap();
    let entries = bench.entries("a");
    let sum = |of: fn(&Entry) -> i64| entries.iter().map(of).sum::<i64>();
    assert_eq!(sum(|entry| entry.delta + entry.held_delta), 90);
    assert_eq!(sum(|entry| entry.held_delta), 0);
    let kinds: Vec<_> = entries.iter().map(|entry| entry.kind).collect();
    let expected = [
        EntryKind::Credit,
        EntryKind::Hold,
        EntryKind::Capture,
        EntryKind::Hold,
        EntryKind::Release,
        EntryKind::Release,
    ];
    assert_eq!(kinds, expected);
    let mut balance = 0;
    for entry in &entries {
        balance += entry.delta;
        assert_eq!(entry.balance_after, balance);
    }
    assert_eq!(sums(bench), (90, 90, 0, 0));
}
