//! Batches through the client: each result, and what becomes of those that are put off.

use wallet_backend::client::{CallError, Outcome};
use wallet_backend::command::{self, Amendment, BatchMode, Command, Receipt, RequestView, Task};

use super::faults::{NEXT_YEAR, balance, funded};
use super::proxy::{Fault, Proxy};
use super::service::{Service, patient, quick};
use crate::support::{amend, amount, capture, credit, debit, hold, ordinary, release, reversal, transfer};

fn commands(tasks: impl IntoIterator<Item = Task>) -> Vec<Command> {
    let command = |task| match task {
        Task::Run(command) => command,
        other => panic!("{other:?}"),
    };
    tasks.into_iter().map(command).collect()
}

/// What became of one, as single calls tell it.
async fn known(service: &Service, of: &Command) -> Result<Receipt, String> {
    match service.wallet.request(&of.account, &of.request).await.unwrap() {
        RequestView::Decided(command::Outcome::Posted(receipt)) => Ok(receipt),
        RequestView::Decided(command::Outcome::Refused(refusal)) => Err(refusal.to_string()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn each_of_a_batch_ends_as_its_own_call_would_and_again_as_a_replay() {
    let service = funded().await;
    service.wallet.open(ordinary("bob")).await.unwrap();
    let batch = commands([
        credit("alice", "c", 50),
        debit("alice", "d", 20),
        debit("alice", "much", 5_000),
        hold("alice", "h", 30, 60),
        capture("alice", "k", "h", 10),
        hold("alice", "h2", 5, 0),
        release("alice", "r", "h2"),
        transfer("alice", "t", "bob", 40),
        reversal("alice", "u", "t"),
        credit("nobody", "x", 1),
    ]);
    for again in [false, true] {
        let batched = service.client().batch(&batch, BatchMode::Each).await.unwrap();
        assert!(batched.applied);
        let (last, decided) = batched.results.split_last().unwrap();
        assert!(matches!(last, Err(CallError::Rejected(problem)) if problem.code == "account_not_found"));
        for (command, result) in batch.iter().zip(decided) {
            match result.clone().unwrap() {
                Outcome::Done { told, replayed } => {
                    assert_eq!((Ok(told), replayed), (known(&service, command).await, again));
                }
                Outcome::Refused(problem) => {
                    assert_eq!(Err(problem.detail), known(&service, command).await);
                }
            }
        }
    }
    assert_eq!(balance(&service).await, 120);
}

#[tokio::test]
async fn an_atomic_batch_with_a_refusal_does_nothing_and_says_why() {
    let service = funded().await;
    let batch = commands([debit("alice", "a", 60), debit("alice", "b", 60)]);
    let batched = service.client().batch(&batch, BatchMode::Atomic).await.unwrap();
    assert!(!batched.applied);
    assert!(
        matches!(&batched.results[0], Err(CallError::Rejected(problem)) if problem.code == "batch_aborted")
    );
    assert!(
        matches!(&batched.results[1], Ok(Outcome::Refused(problem)) if problem.code == "insufficient_funds")
    );
    let all = service
        .client()
        .batch(&batch[..1], BatchMode::Atomic)
        .await
        .unwrap();
    assert!(all.applied && all.results[0].is_ok());
    assert_eq!(balance(&service).await, 40);
}

#[tokio::test]
async fn a_batch_whose_answer_is_lost_is_sent_again_whole_and_happens_once() {
    for mode in [BatchMode::Each, BatchMode::Atomic] {
        let service = funded().await;
        let faults = [Fault::LoseAnswer, Fault::CutAnswer, Fault::None];
        let proxy = Proxy::start(&service.address, faults).await;
        let batch = commands([credit("alice", "c", 5), debit("alice", "d", 20)]);
        let client = patient(&proxy.address, quick());
        let batched = client.batch(&batch, mode).await.unwrap();
        for result in batched.results {
            assert!(
                matches!(result, Ok(Outcome::Done { replayed: true, .. })),
                "{result:?}"
            );
        }
        assert_eq!(balance(&service).await, 85);
        let seen = proxy.seen();
        assert!(seen.len() == 3 && seen[0] == seen[2]);
    }
}

/// A wallet that puts off the second of two.
const HALF: Fault = Fault::Say(
    "200 OK\r\ncontent-type: application/json",
    r#"{"applied": true, "results": [
        {"status": 422, "problem": {"status": 422, "code": "insufficient_funds", "detail": "d"}},
        {"status": 504, "problem": {"status": 504, "code": "outcome_unknown", "detail": "d"}}
    ]}"#,
);

#[tokio::test]
async fn what_is_put_off_is_sent_again_without_what_was_decided() {
    let service = funded().await;
    let proxy = Proxy::start(&service.address, [HALF, Fault::None]).await;
    let batch = commands([debit("alice", "first", 1), debit("alice", "second", 2)]);
    let client = patient(&proxy.address, quick());
    let batched = client.batch(&batch, BatchMode::Each).await.unwrap();
    assert!(matches!(batched.results[0], Ok(Outcome::Refused(_))));
    assert!(matches!(&batched.results[1], Ok(Outcome::Done { told, .. }) if told.amount == amount(2)));
    let seen = proxy.seen();
    assert!(seen.len() == 2 && !seen[1].contains("first") && seen[1].contains("second"));
    assert_eq!(balance(&service).await, 98);
}

#[tokio::test]
async fn what_is_left_open_to_the_end_may_have_happened_and_what_was_decided_stays_decided() {
    let service = funded().await;
    let proxy = Proxy::start(&service.address, [HALF, NEXT_YEAR]).await;
    let batch = commands([debit("alice", "first", 1), debit("alice", "second", 2)]);
    let client = patient(&proxy.address, quick());
    let batched = client.batch(&batch, BatchMode::Each).await.unwrap();
    assert!(matches!(batched.results[0], Ok(Outcome::Refused(_))));
    assert!(matches!(
        batched.results[1],
        Err(CallError::Unknown { attempts: 2, .. })
    ));
}

#[tokio::test]
async fn an_atomic_batch_that_is_put_off_is_sent_again_whole() {
    let service = funded().await;
    let proxy = Proxy::start(&service.address, [HALF, Fault::None]).await;
    let batch = commands([debit("alice", "first", 1), debit("alice", "second", 2)]);
    let client = patient(&proxy.address, quick());
    let batched = client.batch(&batch, BatchMode::Atomic).await.unwrap();
    assert!(batched.applied && batched.results.iter().all(Result::is_ok));
    assert_eq!(proxy.seen()[0], proxy.seen()[1]);
    assert_eq!(balance(&service).await, 97);
}

#[tokio::test]
async fn a_change_of_an_account_is_no_operation_of_a_batch() {
    let service = funded().await;
    let batch = commands([amend("alice", "m", Amendment::default())]);
    let error = service.client().batch(&batch, BatchMode::Each).await.unwrap_err();
    assert!(
        matches!(
            error,
            CallError::Invalid {
                field: "operations",
                ..
            }
        ),
        "{error}"
    );
    let nothing = service.client().batch(&[], BatchMode::Each).await.unwrap();
    assert!(nothing.applied && nothing.results.is_empty());
}
