//! Callers' batches on a disk that fails: an atomic one is on it whole or not at all, and what is said of any of them
//! is true of every command in it.

use std::collections::HashSet;
use std::io::ErrorKind;

use tokio::sync::oneshot::error::TryRecvError;
use wallet_backend::command::{Answer, BatchMode, Batched, LedgerError, RequestView, Task};
use wallet_backend::store::embedded::{Embedded, Options};
use wallet_backend::store::{Job, Store};

use super::disk::{FaultDisk, Op, PowerCut};
use super::trial::{close_and_verify, open, small};
use crate::support::{Bench, credit, ordinary, slotted, together, transfer};

/// Commands of one batch: some pages of log.
const SIZE: usize = 60;
const ROUNDS: usize = 8;

/// The atomic batch of one round: transfers both ways and credits.
fn round(number: usize) -> Vec<Task> {
    let one = |n: usize| {
        let name = format!("round-{number}-command-{n}");
        match n % 3 {
            0 => credit("a", &name, 7),
            1 => transfer("a", &name, "b", 5),
            _ => transfer("b", &name, "a", 2),
        }
    };
    (0..SIZE).map(one).collect()
}

fn applied(store: &Bench<Embedded>, number: usize) -> Result<Batched, LedgerError> {
    let batched = store.batch(BatchMode::Atomic, &round(number));
    if let Ok(batched) = &batched {
        assert!(batched.applied, "{batched:?}");
    }
    batched
}

/// Every request that has an entry.
fn posted(store: &Bench<Embedded>) -> HashSet<String> {
    let entries = ["a", "b"].map(|name| store.entries(name));
    let requests = entries
        .iter()
        .flatten()
        .filter_map(|entry| entry.request.as_ref());
    requests.map(ToString::to_string).collect()
}

/// Every round is there whole or not at all, and all of the first `acknowledged` are.
fn check(disk: &FaultDisk, acknowledged: usize) {
    let store = open(small(disk));
    if store.view("b").is_none() {
        assert_eq!(acknowledged, 0);
        return;
    }
    let posted = posted(&store);
    let there = |task: &&Task| posted.contains(task.request().unwrap().as_str());
    let mut whole = 0;
    for number in 0..ROUNDS {
        match round(number).iter().filter(there).count() {
            0 => assert!(number >= acknowledged, "round {number} is lost"),
            SIZE => whole += 1,
            part => panic!("{part} of {SIZE} commands of round {number}"),
        }
    }
    let credits = i64::try_from(whole * SIZE / 3).unwrap();
    let balance = store.account("a").balance() + store.account("b").balance();
    assert_eq!(balance, credits * 7);
    // All of it can be sent again.
    for number in 0..ROUNDS {
        applied(&store, number).unwrap();
    }
    let credits = i64::try_from(ROUNDS * SIZE / 3).unwrap();
    assert_eq!(
        store.account("a").balance() + store.account("b").balance(),
        credits * 7
    );
    close_and_verify(store, disk);
}

#[test]
fn a_power_cut_at_any_operation_leaves_an_atomic_batch_whole_or_not_at_all() {
    let (mut at, mut tried) = (0, 0);
    loop {
        let disk = FaultDisk::default();
        disk.cut_power_at(at);
        let mut acknowledged = 0;
        if let Ok(store) = Embedded::open(small(&disk)) {
            let store = Bench::new(store);
            for account in [ordinary("a"), slotted("b", 4)] {
                drop(store.ask(Task::Open(account)));
            }
            acknowledged = (0..ROUNDS)
                .take_while(|number| applied(&store, *number).is_ok())
                .count();
            store.close();
        }
        let cuts = [
            PowerCut::LoseAll,
            PowerCut::KeepAll,
            PowerCut::Some(at),
            PowerCut::Some(at + 1_000),
        ];
        for cut in cuts {
            check(&disk.after(cut), acknowledged);
            tried += 1;
        }
        if acknowledged == ROUNDS && disk.operations() <= at {
            break;
        }
        at += 1;
    }
    println!("{at} operations, {tried} power cuts, 0 atomic batches in part");
    assert!(at > 40, "{at} operations are too few to have met everything");
}

/// A disk with an account, and a segment with so much room.
fn with_account(fresh_bytes: u64) -> (FaultDisk, Bench<Embedded>) {
    let disk = FaultDisk::default();
    let store = open(Options {
        fresh_bytes,
        ..small(&disk)
    });
    store.open(ordinary("a"));
    store.open(slotted("b", 4));
    (disk, store)
}

fn credits(name: &str, count: usize) -> Vec<Task> {
    (0..count)
        .map(|n| credit("a", &format!("{name}-{n}"), 1))
        .collect()
}

type Receiver = tokio::sync::oneshot::Receiver<Result<Answer, LedgerError>>;

fn hand_in(store: &Bench<Embedded>, mode: BatchMode, tasks: &[Task]) -> Receiver {
    let (job, answer) = Job::new(together(mode, tasks));
    store.block_on(store.store.run(vec![job]));
    answer
}

#[test]
fn a_batch_is_answered_once_and_only_when_all_of_it_is_durable() {
    let (disk, store) = with_account(1 << 20);
    let held = disk.hold_syncs();
    let mut answers = vec![hand_in(&store, BatchMode::Each, &credits("in-flight", 50))];
    disk.await_held_sync();
    answers.push(hand_in(&store, BatchMode::Each, &credits("in-flight", 50)));
    answers.push(hand_in(&store, BatchMode::Atomic, &credits("open", 50)));
    for answer in &mut answers {
        assert_eq!(answer.try_recv(), Err(TryRecvError::Empty));
    }
    let before = disk.operations();
    drop(held);
    for (answer, replays) in answers.into_iter().zip([0, 50, 0]) {
        let Ok(Answer::Batched(batched)) = store.block_on(answer).unwrap() else {
            panic!("no batch");
        };
        let replayed = |result: &&Result<_, _>| {
            let decided: &wallet_backend::command::Decided = Result::as_ref(*result).unwrap();
            decided.replayed
        };
        assert_eq!(batched.results.iter().filter(replayed).count(), replays);
    }
    // The one that was under way was synced; what came after it took one write and one sync.
    assert_eq!(disk.operations() - before, 3);
    close_and_verify(store, &disk);
}

#[test]
fn a_failed_sync_says_what_is_true_of_each_batch() {
    let (disk, store) = with_account(1 << 20);
    let held = disk.hold_syncs();
    let in_flight = hand_in(&store, BatchMode::Each, &credits("in-flight", 50));
    disk.await_held_sync();
    let open_each = hand_in(&store, BatchMode::Each, &credits("each", 50));
    let open_atomic = hand_in(&store, BatchMode::Atomic, &credits("atomic", 50));
    let replay = hand_in(&store, BatchMode::Atomic, &credits("in-flight", 50));
    disk.fail(Op::Sync, 0, ErrorKind::Other, 1);
    drop(held);
    // Written and not synced, or a repetition of that: unknown. Never written: nothing happened.
    for (answer, unknown) in [
        (in_flight, true),
        (open_each, false),
        (open_atomic, false),
        (replay, true),
    ] {
        match store.block_on(answer).unwrap() {
            Err(LedgerError::OutcomeUnknown { .. }) => assert!(unknown),
            Err(LedgerError::Unavailable { .. }) => assert!(!unknown),
            other => panic!("{other:?}"),
        }
    }
}

/// The front of the batch is on its way to the disk while the rest waits for a segment.
#[test]
fn a_batch_of_which_only_the_front_was_written_is_unknown_when_the_store_stops() {
    let (disk, store) = with_account(64 << 10);
    let held = disk.hold_syncs();
    let (job, answer) = Job::new(together(BatchMode::Each, &credits("long", 1_500)));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(store.store.run(vec![job]));
        });
        disk.await_held_sync();
        // Whichever thread's comes first, the segment's or the log's.
        disk.fail(Op::Sync, 0, ErrorKind::Other, u64::MAX);
        drop(held);
        running.join().unwrap();
    });
    let answer = store.block_on(answer).unwrap();
    assert!(
        matches!(answer, Err(LedgerError::OutcomeUnknown { .. })),
        "{answer:?}"
    );
}

#[test]
pub(crate) fn an_atomic_batch_that_no_segment_holds_is_invalid_and_does_nothing() {
    let (disk, store) = with_account(64 << 10);
    let tasks = credits("much", 2_000);
    let refused = store.batch(BatchMode::Atomic, &tasks);
    assert!(
        matches!(
            refused,
            Err(LedgerError::Invalid {
                field: "operations",
                ..
            })
        ),
        "{refused:?}"
    );
    assert_eq!(store.account("a").balance(), 0);
    assert_eq!(store.look_up("a", "much-0"), Some(RequestView::NotFound));
    // One after the other they go over as many segments as it takes.
    let batched = store.batch(BatchMode::Each, &tasks).unwrap();
    assert!(batched.applied && batched.results.iter().all(Result::is_ok));
    assert_eq!(store.account("a").balance(), 2_000);
    close_and_verify(store, &disk);
}

#[test]
fn without_room_on_the_disk_a_batch_is_done_as_far_as_there_was_and_an_atomic_one_not_at_all() {
    let (disk, store) = with_account(64 << 10);
    disk.fail(Op::Create, 0, ErrorKind::StorageFull, u64::MAX);
    let tasks = credits("each", 1_500);
    let batched = store.batch(BatchMode::Each, &tasks).unwrap();
    let done = batched.results.iter().filter(|result| result.is_ok()).count();
    let unavailable = |result: &Result<_, _>| matches!(result, Err(LedgerError::Unavailable { .. }));
    assert!(done > 0 && done < 1_500);
    assert!(batched.results[..done].iter().all(Result::is_ok));
    assert!(batched.results[done..].iter().all(unavailable));
    assert_eq!(store.account("a").balance(), i64::try_from(done).unwrap());
    let atomic = store.batch(BatchMode::Atomic, &credits("atomic", 300));
    assert!(
        matches!(atomic, Err(LedgerError::Unavailable { .. })),
        "{atomic:?}"
    );
    assert_eq!(store.look_up("a", "atomic-0"), Some(RequestView::NotFound));
    disk.heal();
    while store.batch(BatchMode::Atomic, &credits("atomic", 300)).is_err() {
        std::thread::yield_now();
    }
    // The batch again is replays, and the rest of it.
    let batched = store.batch(BatchMode::Each, &tasks).unwrap();
    assert!(batched.results.iter().all(Result::is_ok));
    assert_eq!(store.account("a").balance(), 1_800);
    close_and_verify(store, &disk);
}
