//! Answers that get lost, wallets that turn away, and what a caller may believe afterwards.

use std::time::Duration;

use wallet_backend::client::{CallError, Client, Done, Options, Outcome, Patience};
use wallet_backend::command::Receipt;
use wallet_backend::http::auth::{Access, Tokens};

use super::proxy::{Fault, Proxy};
use super::service::{Service, client_of, impatient, patient, quick};
use crate::support::{amount, id, ordinary, request};

const UNAVAILABLE: Fault = Fault::Say(
    "503 Service Unavailable\r\nretry-after: 0",
    r#"{"status": 503, "code": "unavailable", "detail": "not now"}"#,
);
/// Later than anybody waits.
pub(super) const NEXT_YEAR: Fault = Fault::Say(
    "503 Service Unavailable\r\nretry-after: 31536000",
    r#"{"status": 503, "code": "unavailable", "detail": "not this year"}"#,
);
const UNKNOWN: Fault = Fault::Say(
    "504 Gateway Timeout",
    r#"{"status": 504, "code": "outcome_unknown", "detail": "who knows"}"#,
);
pub(super) const ELSEWHERE: Fault = Fault::Say(
    "307 Temporary Redirect\r\nlocation: http://127.0.0.1:9/v1/accounts",
    "",
);
const FOREIGN: Fault = Fault::Say("200 OK\r\ncontent-type: text/html", "<p>welcome");

/// A wallet with 100 on `alice`.
pub(super) async fn funded() -> Service {
    let service = Service::start().await;
    service.wallet.open(ordinary("alice")).await.unwrap();
    let (alice, opening) = (id("alice"), request("opening"));
    let credit = service.wallet.credit(&alice, &opening, amount(100), None);
    credit.await.unwrap();
    service
}

pub(super) async fn balance(service: &Service) -> i64 {
    service.wallet.account(&id("alice")).await.unwrap().balance()
}

/// A debit of 30 under the id `d`.
async fn debit(client: &Client) -> Result<Outcome<Receipt>, CallError> {
    client.debit(&id("alice"), &request("d"), amount(30), None).await
}

/// What is the same in every attempt of one call: all of it.
fn all_the_same(seen: &[String]) -> bool {
    seen.windows(2).all(|pair| pair[0] == pair[1])
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_under_the_same_id_and_money_moves_once() {
    let service = funded().await;
    let faults = [
        Fault::LoseRequest,
        Fault::LoseAnswer,
        Fault::CutAnswer,
        UNKNOWN,
        Fault::LoseAnswer,
        Fault::None,
    ];
    let proxy = Proxy::start(&service.address, faults).await;
    let outcome = debit(&patient(&proxy.address, quick())).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Done { replayed: true, .. }),
        "{outcome:?}"
    );
    assert_eq!(balance(&service).await, 70);
    let seen = proxy.seen();
    assert!(seen.len() == 6 && all_the_same(&seen), "{seen:#?}");
    assert!(seen[0].contains(r#""request_id":"d""#));
}

#[tokio::test]
async fn an_answer_that_stays_away_is_given_up_and_asked_for_again() {
    let service = funded().await;
    let proxy = Proxy::start(&service.address, [Fault::Silence, Fault::None]).await;
    let patience = Patience {
        attempt: Duration::from_millis(300),
        ..quick()
    };
    let outcome = debit(&patient(&proxy.address, patience)).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Done { replayed: true, .. }),
        "{outcome:?}"
    );
    assert_eq!(balance(&service).await, 70);
    assert!(proxy.seen().len() > 1 && all_the_same(&proxy.seen()));
}

#[tokio::test]
async fn a_wallet_that_turns_away_is_asked_until_it_does_not() {
    let service = funded().await;
    let faults = [UNAVAILABLE, UNAVAILABLE, UNAVAILABLE, Fault::None];
    let proxy = Proxy::start(&service.address, faults).await;
    let outcome = debit(&patient(&proxy.address, quick())).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Done { replayed: false, .. }),
        "{outcome:?}"
    );
    assert!(proxy.seen().len() == 4 && all_the_same(&proxy.seen()));
}

#[tokio::test]
async fn what_was_turned_away_to_the_end_was_not_done() {
    let service = funded().await;
    let proxy = Proxy::start(&service.address, [UNAVAILABLE, UNAVAILABLE, NEXT_YEAR]).await;
    let error = debit(&patient(&proxy.address, quick())).await.unwrap_err();
    assert!(matches!(error, CallError::NotDone { attempts: 3, .. }), "{error}");
    assert_eq!(proxy.seen().len(), 3);
    assert_eq!(balance(&service).await, 100);
}

#[tokio::test]
async fn where_nobody_listens_nothing_is_done() {
    let service = funded().await;
    let address = service.address.clone();
    drop(service);
    let error = debit(&impatient(&address)).await.unwrap_err();
    assert!(matches!(error, CallError::NotDone { .. }), "{error}");
    let error = debit(&impatient("unix:/nowhere/w.sock")).await.unwrap_err();
    assert!(matches!(error, CallError::NotDone { .. }), "{error}");
}

#[tokio::test]
async fn what_nobody_knows_is_abandoned_and_then_either_was_done_or_never_will_be() {
    for (lost, done) in [(Fault::LoseAnswer, true), (Fault::LoseRequest, false)] {
        let service = funded().await;
        let proxy = Proxy::start(&service.address, [lost.clone(), NEXT_YEAR]).await;
        let error = debit(&patient(&proxy.address, quick())).await.unwrap_err();
        assert!(matches!(error, CallError::Unknown { .. }), "{lost:?}: {error}");

        // Asking is as unsafe a journey as the debit was.
        let proxy = Proxy::start(&service.address, [Fault::LoseAnswer, UNKNOWN, Fault::None]).await;
        let client = patient(&proxy.address, quick());
        match client.abandon(&id("alice"), &request("d")).await.unwrap() {
            Outcome::Done {
                told: Done::Receipt(receipt),
                ..
            } => assert!(done && receipt.amount == amount(30), "{lost:?}"),
            Outcome::Refused(problem) => assert!(!done && problem.code == "abandoned", "{lost:?}"),
            other => panic!("{other:?}"),
        }
        let expected = if done { 70 } else { 100 };
        assert_eq!(balance(&service).await, expected);
        let late = debit(&service.client()).await.unwrap();
        assert_eq!(late.done().is_ok(), done, "{lost:?}");
        assert_eq!(balance(&service).await, expected);
    }
}

#[tokio::test]
async fn nobody_is_sent_elsewhere_and_what_is_no_wallet_is_not_believed() {
    let service = funded().await;
    for fault in [ELSEWHERE, FOREIGN] {
        let proxy = Proxy::start(&service.address, [fault]).await;
        let error = debit(&impatient(&proxy.address)).await.unwrap_err();
        assert!(matches!(error, CallError::Unreadable { .. }), "{error}");
        assert_eq!(proxy.seen().len(), 1);
    }
}

#[tokio::test]
async fn a_refusal_is_an_outcome_and_asked_for_once() {
    let service = funded().await;
    let proxy = Proxy::start(&service.address, [Fault::None]).await;
    let client = client_of(&proxy.address);
    let (alice, much) = (id("alice"), request("much"));
    let refused = client.debit(&alice, &much, amount(500), None).await;
    let problem = refused.unwrap().done().unwrap_err();
    assert_eq!(
        (problem.status, problem.code.as_str()),
        (422, "insufficient_funds")
    );
    assert_eq!(problem.field.as_deref(), Some("amount"));
    assert_eq!(proxy.seen().len(), 1);
}

#[tokio::test]
async fn what_would_be_answered_so_again_is_rejected_at_once() {
    let service = funded().await;
    let proxy = Proxy::start(&service.address, [Fault::None]).await;
    let client = client_of(&proxy.address);
    debit(&client).await.unwrap();
    let (alice, nobody) = (id("alice"), id("nobody"));
    for (rejected, code) in [
        (
            client.debit(&nobody, &request("x"), amount(1), None).await,
            "account_not_found",
        ),
        (
            client.debit(&alice, &request("d"), amount(31), None).await,
            "request_id_reused",
        ),
    ] {
        let error = rejected.unwrap_err();
        let CallError::Rejected(problem) = error else {
            panic!("{error}");
        };
        assert_eq!(problem.code, code);
    }
    assert_eq!(proxy.seen().len(), 3);
}

#[tokio::test]
async fn a_token_is_sent_and_without_it_nothing_is_done() {
    let access = Access::from(Tokens::parse("open-sesame").unwrap());
    let service = Service::at("127.0.0.1:0", access).await;
    let options = Options {
        token: Some("open-sesame".to_owned()),
        ..Options::default()
    };
    let client = Client::new(&service.address, options).unwrap();
    assert!(client.open(&ordinary("alice")).await.unwrap().1);
    let error = service.client().account(&id("alice")).await.unwrap_err();
    let CallError::Rejected(problem) = error else {
        panic!("{error}");
    };
    assert_eq!((problem.status, problem.code.as_str()), (401, "unauthorized"));
}
