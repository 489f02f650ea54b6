//! The wire: a body on each route, strictly read, decided and answered.
//!
//! The first byte names the route, the second what stands around the body; the rest is the body. What is read is
//! decided by the model ledger, twice: the second time is a replay of the first, in the same words, and the books hold.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use serde_json::Value;
use wallet_backend::account::{AccountId, RequestId};
use wallet_backend::clock::Clock;
use wallet_backend::command::{Answer, Decided, LedgerError, Task, Work};
use wallet_backend::http::error::Problem;
use wallet_backend::http::fuzzing::{Head, Route, refused, written};
use wallet_backend::store::Preference;
use wallet_backend::store::memory::Memory;

use crate::input::Input;

/// What the ledger has before an input: `alice` with money, a hold and a spent request, `bob` with none, and `carol`
/// with all the other modes.
const BEFORE: [(Route, &str, &str); 8] = [
    (Route::Open, "", r#"{"account_id":"alice","currency":"EUR"}"#),
    (Route::Open, "", r#"{"account_id":"bob","currency":"EUR"}"#),
    (
        Route::Open,
        "",
        r#"{"account_id":"carol","currency":"EUR","slots":3,"credit":"journal","debit":"hashed"}"#,
    ),
    (Route::Credit, "alice", r#"{"request_id":"c","amount":1000}"#),
    (Route::Credit, "carol", r#"{"request_id":"c","amount":1000}"#),
    (Route::Debit, "alice", r#"{"request_id":"d","amount":10}"#),
    (Route::Hold, "alice", r#"{"request_id":"h","amount":100}"#),
    (
        Route::Transfer,
        "alice",
        r#"{"request_id":"t","from":"alice","to":"bob","amount":5}"#,
    ),
];

fn head(account: &str, key: Option<&str>) -> Head {
    let id = |text: &str| RequestId::new(text).expect("it is an id");
    Head {
        account: AccountId::new(if account.is_empty() { "alice" } else { account }).expect("it is an id"),
        id: id("h"),
        key: key.map(id),
    }
}

fn ledger() -> Memory {
    let clock = Clock::Set(Arc::new(AtomicI64::new(1_700_000_000_000_000)));
    let ledger = Memory::new(clock, Preference::Fixed(0));
    for (route, account, body) in BEFORE {
        let (work, _) = route
            .read(head(account, None), body.as_bytes())
            .expect("it is good");
        for task in work.tasks() {
            ledger.decide(task).expect("it is decided");
        }
    }
    ledger
}

/// # Panics
/// Where something is wrong with the wallet.
pub fn check(bytes: &[u8]) {
    let mut input = Input(bytes);
    let (route, around) = (*input.choose(&Route::ALL), input.byte());
    let account = ["alice", "bob", "carol"][usize::from(around >> 2) % 3];
    let key = [None, Some("key"), Some("d"), Some("h")][usize::from(around) % 4];
    match route.read(head(account, key), input.0) {
        Ok((work, problems)) => {
            problems.iter().for_each(refuses);
            if route != Route::Abandon || !input.0.is_empty() {
                let known: Value = serde_json::from_slice(input.0).expect("what was read is JSON");
                assert!(known.is_object());
            }
            understood(&work);
        }
        Err(problem) => refuses(&problem),
    }
}

/// What was not understood is a 400 in JSON, however odd the echo of what was sent.
fn refuses(problem: &Problem) {
    let (status, body) = refused(problem);
    assert_eq!(status, 400);
    let body: Value = serde_json::from_slice(&body).expect("a problem is JSON");
    assert_eq!(body["code"], "invalid_request");
}

/// Decides it twice.
fn understood(work: &Work) {
    let ledger = ledger();
    match work {
        Work::Task(task) => match (ledger.decide(task), ledger.decide(task)) {
            (Ok(Answer::Opened { .. }), Ok(Answer::Opened { created, .. })) => assert!(!created, "{task:?}"),
            (first, second) => {
                let (first, second) = (decided(first), decided(second));
                replays(task, &first, &second);
                assert_eq!(first.is_ok(), second.is_ok(), "{task:?}");
            }
        },
        Work::Batch(batch) => {
            let decide = || ledger.decide_batch(batch).expect("the model goes on");
            let (first, second) = (decide(), decide());
            assert_eq!(first.results.len(), batch.tasks().len());
            assert!(first.applied || !second.applied, "{batch:?}");
            let results = first.results.iter().zip(&second.results).zip(batch.tasks());
            for ((first_result, second_result), task) in results.filter(|_| first.applied) {
                replays(task, first_result, second_result);
            }
        }
    }
    let broken = ledger.verify().expect("the model goes on");
    assert!(broken.is_empty(), "{work:?} broke {broken:?}");
}

fn decided(answer: Result<Answer, LedgerError>) -> Result<Decided, LedgerError> {
    match answer {
        Ok(Answer::Decided { outcome, replayed }) => Ok(Decided { outcome, replayed }),
        Err(error) => Err(error),
        Ok(other) => panic!("a command was answered {other:?}"),
    }
}

/// That the second answer repeats the first where that was a decision, in the same words.
fn replays(task: &Task, first: &Result<Decided, LedgerError>, second: &Result<Decided, LedgerError>) {
    let body = written(first);
    serde_json::from_slice::<Value>(&body).expect("an answer is JSON");
    match (first, second) {
        (Ok(_), second) => {
            assert!(second.as_ref().is_ok_and(|decided| decided.replayed), "{task:?}");
            assert_eq!(body, written(second), "the second answer to {task:?}");
        }
        (Err(error), _) => {
            let never = matches!(
                error,
                LedgerError::Unavailable { .. } | LedgerError::OutcomeUnknown { .. }
            );
            assert!(!never, "{task:?}: {error}");
        }
    }
}
