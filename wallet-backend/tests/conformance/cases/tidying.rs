//! Tidying: settling, bringing together, evening out.

use wallet_backend::account::{Account, EntryKind, SlotCount};
use wallet_backend::command::Answer;
use wallet_backend::store::Store;

use crate::support::{Bench, credit, hashed, id, journal, slotted, tidy};

pub(in crate::conformance) fn tidying_settles_and_brings_slots_together(bench: &Bench<impl Store>) {
    bench.open(slotted("a", 4));
    bench.post(credit("a", "c", 5));
    assert_eq!(bench.untidy(), [id("a")]);
    assert_eq!(bench.ask(tidy("a")), Ok(Answer::Tidied { more: false }));
    assert_eq!(bench.slots("a"), [5, 0, 0, 0]);
    assert_eq!(bench.untidy(), []);
    // The job's own moves belong to no request.
    let entries = bench.entries("a");
    let mut moves = entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Consolidate);
    assert!(moves.all(|entry| entry.request.is_none()));
}

pub(in crate::conformance) fn tidying_evens_out_hashed_slots(bench: &Bench<impl Store>) {
    bench.open(hashed("a", 4));
    bench.post(credit("a", "c", 42));
    bench.ask(tidy("a")).unwrap();
    assert_eq!(bench.slots("a"), [12, 10, 10, 10]);
    assert_eq!(bench.untidy(), []);
}

pub(in crate::conformance) fn tidying_twice_changes_nothing_the_second_time(bench: &Bench<impl Store>) {
    bench.open(hashed("a", 8));
    bench.open(Account {
        slots: SlotCount::new(8).unwrap(),
        ..journal("b")
    });
    for name in ["a", "b"] {
        bench.post(credit(name, "c", 1_003));
        bench.ask(tidy(name)).unwrap();
        let (before, entries) = (bench.account(name), bench.entries(name));
        bench.ask(tidy(name)).unwrap();
        assert_eq!((bench.account(name), bench.entries(name)), (before, entries));
    }
}

pub(in crate::conformance) fn tidying_settles_the_oldest_rows_first_a_step_at_a_time(
    bench: &Bench<impl Store>,
) {
    bench.open(journal("a"));
    bench.ask_all((0..251).map(|n| credit("a", &format!("c{n}"), 1)).collect());
    assert_eq!(bench.ask(tidy("a")), Ok(Answer::Tidied { more: true }));
    assert_eq!((bench.slots("a"), bench.account("a").pending), (vec![250], 1));
    assert_eq!(bench.ask(tidy("a")), Ok(Answer::Tidied { more: false }));
    assert_eq!(bench.slots("a"), [251]);
}
