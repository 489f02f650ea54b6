//! The past: told of a moment once, it is told so for ever.

use wallet_backend::account::{SlotIndex, Timestamp};
use wallet_backend::command::LedgerError;
use wallet_backend::store::{Cursor, Moment, Store};

use crate::conformance::pasts::{Told, at_every_cursor};
use crate::support::{
    Bench, SECOND, capture_part, credit, debit, hold, id, journal, ordinary, slotted, tidy, transfer,
};

fn past(bench: &Bench<impl Store>, name: &str, at: i64) -> (i64, i64, i64) {
    let past = bench.past(name, &Moment::Time(Timestamp(at))).unwrap();
    (past.balance(), past.held, past.pending)
}

pub(in crate::conformance) fn a_past_balance_is_what_was_read_then(bench: &Bench<impl Store>) {
    let (mut told, names) = (Told::default(), ["s", "j"]);
    bench.open(slotted("s", 3));
    bench.open(journal("j"));
    told.read(bench, &names);
    for task in [
        credit("s", "c1", 50),
        credit("j", "p1", 7),
        hold("s", "h1", 10, 1),
        hold("s", "h2", 10, 9),
        credit("j", "p2", 8),
        debit("j", "d", 3),
        capture_part("s", "k", "h2", 4),
        transfer("s", "t", "j", 5),
        // Collects from every slot.
        debit("s", "all", 20),
    ] {
        bench.post(task);
        told.read(bench, &names);
    }
    // The deadline passes, then the sweep comes; the same with a credit that waits.
    bench.time.pass(SECOND);
    told.read(bench, &names);
    for name in names {
        bench.ask(tidy(name)).unwrap();
        told.read(bench, &names);
    }
    bench.post(credit("j", "p3", 9));
    told.read(bench, &names);
    assert_eq!(told.check(bench), 2 * 14);
}

pub(in crate::conformance) fn before_its_first_entry_an_account_had_nothing(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    let then = bench.time.now().0;
    bench.time.pass(1);
    bench.post(credit("a", "c", 5));
    bench.time.pass(1);
    assert_eq!(past(bench, "a", then), (0, 0, 0));
    assert_eq!(past(bench, "a", then + 1), (5, 0, 0));
    let at_first = bench.past("a", &Moment::Cursor(Cursor::default())).unwrap();
    assert_eq!((at_first.at, at_first.slots, at_first.held), (None, vec![], 0));
}

pub(in crate::conformance) fn at_a_cursor_an_account_has_what_the_statement_up_to_it_adds_up_to(
    bench: &Bench<impl Store>,
) {
    bench.open(slotted("s", 3));
    for n in 0..20 {
        bench.post(credit("s", &format!("c{n}"), 10));
        bench.time.pass(1);
    }
    bench.post(hold("s", "h", 50, 0));
    bench.post(debit("s", "d", 120));
    let pasts = at_every_cursor(bench, "s", 1);
    let entries = bench.entries("s");
    let mut sum = 0;
    for (past, entry) in pasts[1..].iter().zip(&entries) {
        sum += entry.delta + entry.held_delta;
        assert_eq!((past.balance(), past.pending, past.at), (sum, 0, Some(entry.at)));
    }
    assert_eq!(pasts.last().unwrap().held, 50);
    let now = bench.account("s");
    assert_eq!(pasts.last().unwrap().slots, now.slots[..2]);
}

pub(in crate::conformance) fn a_clock_that_is_set_back_changes_nothing_that_was_told(
    bench: &Bench<impl Store>,
) {
    bench.open(slotted("s", 2));
    let start = bench.time.now().0;
    bench.post(credit("s", "c1", 1));
    bench.time.pass(10);
    bench.post(debit("s", "d1", 1));
    bench.time.pass(1);
    let told: Vec<_> = (0..=10).map(|n| past(bench, "s", start + n)).collect();
    bench.time.pass(-6);
    bench.post(credit("s", "c2", 4));
    bench.post(debit("s", "d2", 2));
    bench.time.pass(20);
    bench.post(credit("s", "c3", 8));
    bench.time.pass(1);
    let again: Vec<_> = (0..10).map(|n| past(bench, "s", start + n)).collect();
    assert_eq!(again, told[..10]);
    // What the clock went through twice counts from the end of it.
    assert_eq!(past(bench, "s", start + 10).0, 2);
    assert_eq!(past(bench, "s", start + 25).0, 10);
}

pub(in crate::conformance) fn a_long_past_is_told_of_every_moment(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    let start = bench.time.now().0;
    for n in 0..300_i64 {
        bench.post(credit("a", &format!("c{n}"), 1));
        bench.post(hold("a", &format!("h{n}"), 1, 1));
        bench.time.pass(1);
    }
    for n in 0..300 {
        assert_eq!(past(bench, "a", start + n), (n + 1, n + 1, 0), "at {n}");
    }
}

pub(in crate::conformance) fn a_moment_that_is_not_over_and_a_cursor_that_is_ahead_are_invalid(
    bench: &Bench<impl Store>,
) {
    bench.open(slotted("s", 2));
    bench.post(credit("s", "c", 5));
    let field = |moment: Moment| match bench.past("s", &moment) {
        Err(LedgerError::Invalid { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    let now = bench.time.now().0;
    assert_eq!(field(Moment::Time(Timestamp(now))), "at");
    assert_eq!(field(Moment::Time(Timestamp(i64::MAX))), "at");
    for (slot, version) in [(1, 2), (0, 1), (7, 1)] {
        let cursor = Cursor(vec![(SlotIndex::new(slot).unwrap(), version)]);
        assert_eq!(field(Moment::Cursor(cursor)), "cursor");
    }
    let (nobody, first) = (id("nobody"), Moment::Time(Timestamp(0)));
    assert_eq!(bench.block_on(bench.store.past(&nobody, &first)), Ok(None));
}
