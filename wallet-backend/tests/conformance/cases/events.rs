//! Events: each entry once, in one order, from any number on.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use wallet_backend::command::LedgerError;
use wallet_backend::store::{Event, EventCursor, Store};

use crate::support::{
    Bench, abandon, capture, credit, debit, drain, hold, id, journal, ordinary, reslot, reversal, slotted,
    tidy, transfer,
};

/// Two accounts that were busy: with records of many entries, of one, and of none.
fn busy(bench: &Bench<impl Store>) {
    bench.open(slotted("a", 4));
    bench.open(journal("b"));
    for number in 0..8 {
        bench.post(credit("a", &format!("c{number}"), 10));
        bench.post(transfer("a", &format!("t{number}"), "b", 3));
    }
    bench.refuse(debit("a", "too-much", 1_000));
    bench.ask(tidy("b")).unwrap();
    bench.post(hold("a", "h", 7, 0));
    bench.post(capture("a", "taken", "h", 4));
    bench.post(reversal("a", "back", "c3"));
    bench.decide(reslot("a", "fewer", 1));
    bench.decide(abandon("b", "never"));
    bench.post(drain("b", "all"));
}

fn all(bench: &Bench<impl Store>) -> Vec<Event> {
    bench.events(0, None, 1_000)
}

pub(in crate::conformance) fn events_are_the_entries_of_all_accounts_in_the_order_in_which_they_were_committed(
    bench: &Bench<impl Store>,
) {
    bench.open(slotted("a", 3));
    bench.open(ordinary("b"));
    bench.post(credit("a", "c", 10));
    bench.post(transfer("a", "t", "b", 8));
    bench.post(credit("b", "d", 1));
    let events: Vec<_> = all(bench)
        .into_iter()
        .map(|Event { number, entry }| {
            let (account, kind) = (entry.account.to_string(), entry.kind.as_str());
            (number, account, kind, entry.slot.get(), entry.delta)
        })
        .collect();
    let (a, b) = (|| "a".to_owned(), || "b".to_owned());
    assert_eq!(
        events,
        [
            (1, a(), "credit", 1, 10),
            (2, a(), "consolidate", 1, -10),
            (3, a(), "consolidate", 0, 10),
            (4, a(), "transfer_out", 0, -8),
            (5, b(), "transfer_in", 0, 8),
            (6, b(), "credit", 0, 1),
        ]
    );
}

pub(in crate::conformance) fn events_of_one_account_have_the_numbers_that_they_have_among_all(
    bench: &Bench<impl Store>,
) {
    busy(bench);
    let all = all(bench);
    for name in ["a", "b"] {
        let own: Vec<Event> = all
            .iter()
            .filter(|event| event.entry.account == id(name))
            .cloned()
            .collect();
        assert!(own.len() > 5, "{name}");
        assert_eq!(bench.events(0, Some(name), 1_000), own, "{name}");
        let mut entries: Vec<_> = own.iter().map(|event| event.entry.clone()).collect();
        entries.sort_by_key(|entry| (entry.slot, entry.version));
        let mut statement = bench.entries(name);
        statement.sort_by_key(|entry| (entry.slot, entry.version));
        assert_eq!(entries, statement, "{name}");
    }
}

pub(in crate::conformance) fn events_go_on_from_any_number_in_pages_of_any_size(bench: &Bench<impl Store>) {
    busy(bench);
    let all = all(bench);
    let numbers: Vec<u64> = all.iter().map(|event| event.number).collect();
    let newest = u64::try_from(all.len()).unwrap();
    assert_eq!(numbers, (1..=newest).collect::<Vec<_>>());
    for after in 0..=newest {
        for limit in [1, 2, 7, 1_000] {
            for name in [None, Some("a"), Some("b")] {
                let wanted = |event: &&Event| {
                    event.number > after && name.is_none_or(|name| event.entry.account == id(name))
                };
                let expected: Vec<Event> = all.iter().filter(wanted).cloned().collect();
                assert_eq!(
                    bench.events(after, name, limit),
                    expected,
                    "{name:?} after {after} by {limit}"
                );
            }
        }
    }
}

pub(in crate::conformance) fn what_is_no_entry_is_no_event(bench: &Bench<impl Store>) {
    bench.open(journal("a"));
    bench.refuse(debit("a", "too-much", 1));
    bench.decide(abandon("a", "never"));
    bench.decide(reslot("a", "more", 3));
    bench.post(credit("a", "pending", 5));
    bench.ask(credit("nobody", "x", 5)).unwrap_err();
    assert_eq!(all(bench), []);
    bench.ask(tidy("a")).unwrap();
    let events = all(bench);
    assert_eq!(events[0].entry.kind.as_str(), "settle");
    assert_eq!(events[0].number, 1);
}

pub(in crate::conformance) fn a_position_ahead_of_the_ledger_is_refused_and_one_at_its_end_waits(
    bench: &Bench<impl Store>,
) {
    bench.open(ordinary("a"));
    bench.post(credit("a", "c", 5));
    for account in [None, Some(&id("a"))] {
        let ahead = bench.block_on(bench.store.events(2.into(), account, 10));
        assert!(
            matches!(ahead, Err(LedgerError::Invalid { field: "after", .. })),
            "{ahead:?}"
        );
    }
    bench.block_on(bench.store.event_after(0)).unwrap();
    let mut wait = pin!(bench.store.event_after(1));
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(wait.as_mut().poll(&mut context), Poll::Pending);
    bench.refuse(debit("a", "too-much", 100));
    assert_eq!(wait.as_mut().poll(&mut context), Poll::Pending);
    bench.post(credit("a", "d", 5));
    assert_eq!(bench.block_on(wait), Ok(()));
    bench.close();
    let ended = bench.block_on(bench.store.event_after(2));
    assert!(matches!(ended, Err(LedgerError::Unavailable { .. })), "{ended:?}");
}

pub(in crate::conformance) fn events_of_an_account_that_is_not_there_are_none(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.post(credit("a", "c", 5));
    let other = id("b");
    let read = bench.store.events(EventCursor::default(), Some(&other), 10);
    assert!(bench.block_on(read).unwrap().is_none());
}
