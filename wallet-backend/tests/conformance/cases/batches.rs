//! Batches: each command by itself, or all of them or none.

use wallet_backend::command::{
    AccountView, BatchMode, Decided, LedgerError, MAX_BATCH, Outcome, Refusal, RequestView, Task,
};
use wallet_backend::store::Store;

use crate::support::{
    Bench, SECOND, capture, capture_part, credit, debit, drain, hold, id, journal, ordinary, release, reslot,
    reversal, slotted, tidy, transfer,
};

/// `done`, `replayed`, or why not.
fn short(result: &Result<Decided, LedgerError>) -> String {
    match result {
        Ok(Decided { replayed: true, .. }) => "replayed".to_owned(),
        Ok(Decided { outcome, .. }) => match outcome {
            Outcome::Posted(_) | Outcome::Amended(_) => "done".to_owned(),
            Outcome::Refused(refusal) => refusal.to_string(),
        },
        Err(error) => error.to_string(),
    }
}

/// Sends a batch: whether it was applied, and what became of each command.
fn send(bench: &Bench<impl Store>, mode: BatchMode, tasks: &[Task]) -> (bool, Vec<String>) {
    let batched = bench.batch(mode, tasks).unwrap();
    (batched.applied, batched.results.iter().map(short).collect())
}

/// What can be seen of the accounts, but for what they decided.
fn seen(bench: &Bench<impl Store>, names: &[&str]) -> Vec<(AccountView, usize)> {
    let one = |name: &&str| (bench.account(name), bench.entries(name).len());
    names.iter().map(one).collect()
}

fn aborted(culprit: usize) -> String {
    LedgerError::BatchAborted { culprit }.to_string()
}

pub(in crate::conformance) fn a_batch_decides_each_command_after_those_before_it(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.open(ordinary("b"));
    let (applied, results) = send(
        bench,
        BatchMode::Each,
        &[
            debit("a", "early", 5),
            credit("a", "c", 10),
            transfer("a", "t", "b", 8),
            debit("b", "d", 8),
            debit("nobody", "n", 1),
            credit("a", "c", 10),
            credit("a", "c", 11),
        ],
    );
    assert!(applied);
    assert_eq!(
        results,
        [
            "a has 0 available, 5 was asked for",
            "done",
            "done",
            "done",
            "no account nobody",
            "replayed",
            "request c of a was used for a command with another amount",
        ]
    );
    assert_eq!((bench.slots("a"), bench.slots("b")), (vec![2], vec![0]));
    let again = bench.decide(debit("a", "early", 5));
    assert!(again.1, "a refusal in a batch is kept: {again:?}");
}

pub(in crate::conformance) fn an_empty_batch_is_applied(bench: &Bench<impl Store>) {
    for mode in [BatchMode::Each, BatchMode::Atomic] {
        assert_eq!(send(bench, mode, &[]), (true, Vec::new()));
    }
}

pub(in crate::conformance) fn an_atomic_batch_is_done_whole(bench: &Bench<impl Store>) {
    bench.open(slotted("a", 3));
    bench.open(ordinary("b"));
    let tasks = [
        credit("a", "c1", 10),
        credit("a", "c2", 10),
        debit("a", "d", 15),
        transfer("a", "t", "b", 5),
        hold("b", "h", 4, 0),
        capture_part("b", "k", "h", 1),
        release("b", "l", "h"),
        reversal("a", "r", "t"),
        credit("a", "c1", 10),
    ];
    // What came back is not all there, for one cent was captured.
    let (applied, results) = send(bench, BatchMode::Atomic, &tasks);
    assert!(!applied);
    assert_eq!(results[7], "b has 4 available, 5 was asked for");
    let (applied, results) = send(bench, BatchMode::Atomic, &tasks[..7]);
    assert!(applied);
    assert_eq!(results, ["done"; 7]);
    assert_eq!((bench.account("a").balance(), bench.slots("b")), (0, vec![4]));
    let (applied, results) = send(bench, BatchMode::Atomic, &tasks[..7]);
    assert!(applied);
    assert_eq!(results, ["replayed"; 7]);
}

pub(in crate::conformance) fn an_atomic_batch_that_is_refused_leaves_no_trace(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.open(slotted("b", 4));
    bench.post(credit("a", "c", 10));
    let tasks = [
        debit("a", "d1", 4),
        transfer("a", "t", "b", 3),
        debit("a", "d2", 4),
        credit("b", "c", 1),
    ];
    let before = seen(bench, &["a", "b"]);
    let (applied, results) = send(bench, BatchMode::Atomic, &tasks);
    assert!(!applied);
    let short = "a has 3 available, 4 was asked for".to_owned();
    assert_eq!(results, [aborted(2), aborted(2), short, aborted(2)]);
    assert_eq!(seen(bench, &["a", "b"]), before);
    for task in &tasks {
        let (account, name) = (task.account().as_str(), task.request().unwrap().as_str());
        assert_eq!(
            bench.look_up(account, name),
            Some(RequestView::NotFound),
            "{name}"
        );
    }
    // Nor is the refusal kept.
    bench.post(credit("a", "more", 1));
    assert_eq!(send(bench, BatchMode::Atomic, &tasks).1, ["done"; 4]);
}

pub(in crate::conformance) fn a_replay_in_an_atomic_batch_counts_as_what_it_repeats(
    bench: &Bench<impl Store>,
) {
    bench.open(ordinary("a"));
    bench.post(credit("a", "c", 10));
    bench.refuse(debit("a", "no", 11));
    let done = [credit("a", "c", 10), debit("a", "d", 1)];
    assert_eq!(
        send(bench, BatchMode::Atomic, &done),
        (true, vec!["replayed".into(), "done".into()])
    );
    bench.post(credit("a", "more", 100));
    let refused = [debit("a", "e", 1), debit("a", "no", 11)];
    let batched = bench.batch(BatchMode::Atomic, &refused).unwrap();
    assert!(!batched.applied);
    assert_eq!(batched.results[0], Err(LedgerError::BatchAborted { culprit: 1 }));
    let Ok(Decided {
        outcome: Outcome::Refused(refusal),
        replayed: true,
    }) = &batched.results[1]
    else {
        panic!("{batched:?}");
    };
    assert_eq!(
        *refusal,
        Refusal::InsufficientFunds {
            account: id("a"),
            asked: 11,
            available: 10
        }
    );
    assert_eq!(bench.slots("a"), [109]);
}

pub(in crate::conformance) fn what_is_never_stored_gives_an_atomic_batch_up_too(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    for (culprit, error) in [
        (debit("nobody", "n", 1), "no account nobody"),
        (transfer("a", "t", "a", 1), "to must be another account"),
        (release("a", "l", "h"), "a has no hold h"),
        (reversal("a", "r", "x"), "a has no request x to reverse"),
        (
            credit("a", "c", 11),
            "request c of a was used for a command with another amount",
        ),
    ] {
        let (applied, results) = send(bench, BatchMode::Atomic, &[credit("a", "c", 10), culprit]);
        assert!(!applied);
        assert_eq!(results, [aborted(1), error.to_owned()]);
    }
    assert_eq!(bench.entries("a"), []);
}

pub(in crate::conformance) fn an_atomic_batch_knows_what_it_did_itself(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.post(credit("a", "c", 100));
    let twice = [
        debit("a", "d", 10),
        reversal("a", "r1", "d"),
        reversal("a", "r2", "d"),
    ];
    let (_, results) = send(bench, BatchMode::Atomic, &twice);
    assert_eq!(results[2], "d was reversed by r1");
    let late = [
        hold("a", "h", 10, 0),
        capture("a", "k", "h", 3),
        release("a", "l", "h"),
    ];
    let (_, results) = send(bench, BatchMode::Atomic, &late);
    assert_eq!(results[2], "hold h is captured already");
    let undone = [
        hold("a", "h", 10, 0),
        capture("a", "k", "h", 3),
        reversal("a", "r", "k"),
        drain("a", "all"),
    ];
    assert_eq!(send(bench, BatchMode::Atomic, &undone).1, ["done"; 4]);
    assert_eq!(bench.slots("a"), [0]);
}

pub(in crate::conformance) fn an_atomic_batch_takes_back_what_it_settled_swept_and_moved(
    bench: &Bench<impl Store>,
) {
    bench.open(journal("j"));
    bench.open(slotted("s", 4));
    for n in 0..5 {
        bench.post(credit("j", &format!("c{n}"), 10));
        bench.post(credit("s", &format!("c{n}"), 10));
    }
    bench.post(hold("j", "h", 5, 1));
    bench.post(hold("s", "h", 5, 0));
    bench.time.pass(2 * SECOND);
    let before = seen(bench, &["j", "s"]);
    let holds = (bench.hold("j", "h"), bench.hold("s", "h"));
    let tasks = [
        debit("j", "d", 50),
        credit("j", "more", 7),
        reslot("s", "slots", 9),
        capture_part("s", "k", "h", 2),
        debit("s", "d", 44),
        release("s", "l", "h"),
        transfer("s", "t", "j", 1),
        debit("s", "over", 5),
    ];
    let (applied, results) = send(bench, BatchMode::Atomic, &tasks);
    assert!(!applied);
    assert_eq!(results[7], "s has 3 available, 5 was asked for");
    assert_eq!(seen(bench, &["j", "s"]), before);
    assert_eq!((bench.hold("j", "h"), bench.hold("s", "h")), holds);
    // What it took back is all there to be had again.
    bench.ask(tidy("j")).unwrap();
    assert_eq!(send(bench, BatchMode::Atomic, &tasks[..7]).1, ["done"; 7]);
    bench.post(debit("j", "rest", 8));
    assert_eq!(bench.slots("j"), [0]);
    assert_eq!(bench.account("s").slots.len(), 9);
}

pub(in crate::conformance) fn a_batch_has_at_most_8192_commands(bench: &Bench<impl Store>) {
    bench.open(slotted("a", 8));
    let tasks: Vec<Task> = (0..MAX_BATCH).map(|n| credit("a", &format!("c{n}"), 1)).collect();
    let (applied, results) = send(bench, BatchMode::Each, &tasks);
    assert!(applied);
    assert!(results.len() == MAX_BATCH && results.iter().all(|result| result == "done"));
    assert_eq!(bench.account("a").balance(), 8_192);
    assert_eq!(
        bench
            .look_up("a", "c8191")
            .map(|view| matches!(view, RequestView::Decided(_))),
        Some(true)
    );
    assert_eq!(bench.look_up("a", "c8192"), Some(RequestView::NotFound));
}
