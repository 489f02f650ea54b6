//! When an answer may be heard: never before the sync that makes true what it says. And what is said when that sync
//! never comes.

use std::future::Future;
use std::io::ErrorKind;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tokio::sync::oneshot::error::TryRecvError;
use wallet_backend::command::{Answer, LedgerError, Task};
use wallet_backend::store::embedded::{Embedded, Options};
use wallet_backend::store::{Cursor, Job, Store};

use super::disk::{FaultDisk, Op};
use super::trial::{close_and_verify, open, small};
use crate::support::{Bench, abandon, credit, debit, id, ordinary, request, slotted, transfer};

/// A disk with an account that has 100, durably, and a segment that nothing here fills: no other thread writes.
fn with_money() -> (FaultDisk, Bench<Embedded>) {
    with_money_and_room(1 << 20)
}

fn with_money_and_room(fresh_bytes: u64) -> (FaultDisk, Bench<Embedded>) {
    let disk = FaultDisk::default();
    let store = open(Options {
        fresh_bytes,
        ..small(&disk)
    });
    store.open(ordinary("a"));
    store.open(slotted("b", 2));
    store.post(credit("a", "first", 100));
    (disk, store)
}

/// Hands jobs in without waiting for their answers.
fn hand_in(store: &Bench<Embedded>, tasks: Vec<Task>) -> Vec<Receiver> {
    let (jobs, answers) = tasks.into_iter().map(Job::new).unzip();
    store.block_on(store.store.run(jobs));
    answers
}

type Receiver = tokio::sync::oneshot::Receiver<Result<Answer, LedgerError>>;

fn is_pending(future: impl Future) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    matches!(pin!(future).poll(&mut context), Poll::Pending)
}

#[test]
pub(crate) fn nothing_is_heard_before_the_sync_that_makes_it_true() {
    let (disk, store) = with_money();
    let held = disk.hold_syncs();
    let mut answers = hand_in(&store, vec![debit("a", "in-flight", 30)]);
    disk.await_held_sync();
    // The first batch is written and not synced. What follows is decided on top of it.
    answers.extend(hand_in(
        &store,
        vec![
            debit("a", "open", 30),
            debit("a", "in-flight", 30),
            debit("a", "too-much", 500),
            debit("a", "too-much", 500),
            transfer("a", "over", "b", 10),
            abandon("a", "in-flight"),
            credit("nobody", "x", 1),
        ],
    ));
    for (n, answer) in answers.iter_mut().enumerate() {
        assert_eq!(answer.try_recv(), Err(TryRecvError::Empty), "answer {n}");
    }
    let (account, cursor, name) = (id("a"), Cursor::default(), request("in-flight"));
    assert!(store.enter(|| is_pending(store.store.account(&account))));
    assert!(store.enter(|| is_pending(store.store.entries(&account, &cursor, 10))));
    assert!(store.enter(|| is_pending(store.store.request(&account, &name))));
    assert!(store.enter(|| is_pending(store.store.account(&id("nobody")))));
    assert!(store.enter(|| is_pending(store.store.events(1.into(), Some(&account), 10))));
    assert!(store.enter(|| is_pending(store.store.event_after(1))));
    // Of all accounts, the events that are durable need not wait for those that are not.
    assert_eq!(store.events(0, None, 10).len(), 1);
    drop(held);
    for answer in answers {
        let heard = store.block_on(answer).unwrap();
        let missing = matches!(heard, Err(LedgerError::AccountNotFound { .. }));
        assert!(
            missing || matches!(heard, Ok(Answer::Decided { .. })),
            "{heard:?}"
        );
    }
    assert_eq!(store.account("a").balance(), 30);
    assert_eq!(store.events(1, None, 10).len(), 4);
    close_and_verify(store, &disk);
}

#[test]
pub(crate) fn a_batch_is_written_after_the_sync_of_the_one_before() {
    let (disk, store) = with_money();
    // Opening writes the old tail again, several batches to a sync, into a segment that does not count yet.
    let before = disk.overtook();
    for n in 0..20 {
        let held = disk.hold_syncs();
        let mut answers = hand_in(&store, vec![credit("a", &format!("synced-{n}"), 1)]);
        disk.await_held_sync();
        answers.extend(hand_in(&store, vec![credit("a", &format!("open-{n}"), 1)]));
        drop(held);
        for answer in answers {
            drop(store.block_on(answer).unwrap());
        }
    }
    assert_eq!(disk.overtook(), before);
    close_and_verify(store, &disk);
}

#[test]
fn a_read_of_what_is_durable_does_not_wait() {
    let (disk, store) = with_money();
    let held = disk.hold_syncs();
    assert_eq!(store.account("a").balance(), 100);
    assert!(store.decide(credit("a", "first", 100)).1);
    drop(held);
}

#[test]
pub(crate) fn a_failed_sync_says_what_is_true_of_each_job_and_stops_the_store() {
    let (disk, store) = with_money();
    let held = disk.hold_syncs();
    let mut answers = hand_in(&store, vec![debit("a", "in-flight", 30)]);
    disk.await_held_sync();
    answers.extend(hand_in(
        &store,
        vec![debit("a", "open", 30), debit("a", "in-flight", 30)],
    ));
    disk.fail(Op::Sync, 0, ErrorKind::Other, 1);
    drop(held);
    let heard: Vec<_> = answers
        .into_iter()
        .map(|answer| store.block_on(answer).unwrap())
        .collect();
    // Written and not synced: unknown. Never written: nothing happened. A replay of what is unknown: unknown.
    assert!(
        matches!(heard[0], Err(LedgerError::OutcomeUnknown { .. })),
        "{:?}",
        heard[0]
    );
    assert!(
        matches!(heard[1], Err(LedgerError::Unavailable { .. })),
        "{:?}",
        heard[1]
    );
    assert!(
        matches!(heard[2], Err(LedgerError::OutcomeUnknown { .. })),
        "{:?}",
        heard[2]
    );
    let later = store.ask(debit("a", "later", 1));
    assert!(matches!(later, Err(LedgerError::Unavailable { .. })), "{later:?}");
    assert!(store.store.health().is_err());
    assert!(store.block_on(store.store.account(&id("a"))).is_err());
    drop(store);
    // The same ids again, after a restart, are decided once.
    let store = open(small(&disk.copy()));
    store.decide(debit("a", "in-flight", 30));
    store.decide(debit("a", "open", 30));
    assert_eq!(store.account("a").balance(), 40);
}

#[test]
fn a_failed_write_stops_the_store_even_if_the_disk_recovers() {
    let (disk, store) = with_money();
    disk.fail(Op::Write, 0, ErrorKind::Other, 1);
    let first = store.ask(debit("a", "d", 30));
    assert!(
        matches!(first, Err(LedgerError::OutcomeUnknown { .. })),
        "{first:?}"
    );
    disk.heal();
    let second = store.ask(debit("a", "d", 30));
    assert!(
        matches!(second, Err(LedgerError::Unavailable { .. })),
        "{second:?}"
    );
    assert!(store.store.health().is_err());
}

#[test]
fn a_full_disk_is_unavailable_until_there_is_room_and_loses_nothing() {
    let (disk, store) = with_money_and_room(64 << 10);
    disk.fail(Op::Create, 0, ErrorKind::StorageFull, u64::MAX);
    let (mut posted, mut refused) = (100, None);
    for n in 0..200 {
        match store.ask(credit("a", &format!("c{n}"), 1)) {
            Ok(_) => posted += 1,
            Err(LedgerError::Unavailable { reason }) => {
                refused = Some((n, reason));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    let (n, reason) = refused.expect("a segment is used up after some operations");
    assert!(reason.contains("no room"), "{reason}");
    assert_eq!(store.account("a").balance(), posted);
    assert!(store.decide(credit("a", "first", 100)).1, "replays need no room");
    store.store.health().unwrap();
    disk.heal();
    // The preparer tries again by itself, every millisecond here.
    let name = format!("c{n}");
    while store.ask(credit("a", &name, 1)).is_err() {
        std::thread::yield_now();
    }
    assert_eq!(store.account("a").balance(), posted + 1);
    close_and_verify(store, &disk);
}

#[test]
fn a_checkpoint_that_cannot_be_written_costs_nothing_but_itself() {
    let (disk, store) = with_money();
    disk.fail(Op::Rename, 0, ErrorKind::StorageFull, u64::MAX);
    for n in 0..60 {
        store.post(credit("a", &format!("c{n}"), 1));
    }
    disk.heal();
    for n in 60..120 {
        store.post(credit("a", &format!("c{n}"), 1));
    }
    let left = disk.copy();
    close_and_verify(store, &disk);
    assert!(disk.files().iter().any(|name| name.starts_with("state/")));
    let store = open(small(&left));
    assert_eq!(store.account("a").balance(), 220);
    for n in 0..120 {
        assert!(store.decide(credit("a", &format!("c{n}"), 1)).1, "c{n}");
    }
    close_and_verify(store, &left);
}
