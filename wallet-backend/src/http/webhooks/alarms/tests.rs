//! That a wrong cent reaches whoever listens, once it can.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;
use crate::Wallet;
use crate::clock::Clock;
use crate::http::Ending;
use crate::http::reconciliation::event_id;
use crate::http::webhooks::{Secret, WebhookOptions, Webhooks};
use crate::jobs::reconcile::Pass;

const SECRET: &str = "a secret that both sides know";

fn rounds() -> Rounds {
    Rounds {
        within: vec![Duration::from_secs(1)],
        first: Duration::from_secs(10),
        longest: Duration::from_secs(10),
        count: 2,
    }
}

/// Reports of a ledger with two wrong cents, and of the same ledger once that is over.
async fn reports() -> (Report, Report) {
    let [(wallet, _), _] = Wallet::with_history().await;
    let before = (*wallet.reconciliation()).clone();
    wallet.falsify_slot();
    wallet.reconcile(Pass::GeneralLedger).await.unwrap();
    let found = (*wallet.reconciliation()).clone();
    assert_eq!(found.differences.len(), 2);
    wallet.close().await;
    (found, before)
}

#[tokio::test]
async fn each_difference_is_sent_until_it_arrives_and_then_no_more_while_it_is_listed() {
    let (found, over) = reports().await;
    let [first, second] = &found.differences[..] else {
        panic!("two were made");
    };
    let mut alarms = Alarms::new(rounds());
    let second_of = |seconds: i64| Timestamp(seconds * 1_000_000);
    alarms.take_in(&found);
    assert_eq!(alarms.next(second_of(1)).as_ref(), Some(first));
    assert_eq!(alarms.next(second_of(1)), None, "one is under way");
    alarms.sent(first.id, Err("refused".to_owned()), second_of(1));
    // It waits; the other one does not.
    assert_eq!(alarms.next(second_of(1)).as_ref(), Some(second));
    alarms.sent(second.id, Ok(()), second_of(1));
    assert_eq!(alarms.next(second_of(1)), None);
    alarms.take_in(&found);
    assert_eq!(alarms.next(second_of(3)).as_ref(), Some(first));
    alarms.sent(first.id, Ok(()), second_of(3));
    alarms.take_in(&found);
    assert_eq!((alarms.next(second_of(99)), alarms.next_at()), (None, None));
    // Over, and there again: that is news.
    alarms.take_in(&over);
    alarms.take_in(&found);
    assert_eq!(alarms.next(second_of(99)).as_ref(), Some(first));
}

#[tokio::test]
async fn a_difference_that_never_arrives_is_given_up_after_its_rounds() {
    let (mut found, _) = reports().await;
    found.differences.truncate(1);
    let mut alarms = Alarms::new(rounds());
    alarms.take_in(&found);
    let (mut now, mut tries) = (Timestamp(0), 0);
    while let Some(difference) = alarms.next(now) {
        tries += 1;
        alarms.sent(difference.id, Err("refused".to_owned()), now);
        now = alarms.next_at().unwrap_or(now);
    }
    assert_eq!((tries, alarms.next_at()), (4, None));
}

#[tokio::test]
async fn a_wrong_cent_arrives_signed_under_its_id_although_the_first_try_is_refused() {
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let receiver = move |headers: HeaderMap, body: Bytes| async move {
        let header = |name: &str| headers[name].to_str().unwrap().to_owned();
        let text = String::from_utf8(body.to_vec()).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        if json["type"] != "reconciliation_difference" {
            return StatusCode::OK;
        }
        let (id, signature) = (header("x-event-id"), header("x-signature"));
        arrived.send((id, signature, text)).unwrap();
        StatusCode::SERVICE_UNAVAILABLE
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = format!("http://{}/", listener.local_addr().unwrap());
    let server = axum::serve(listener, Router::new().route("/", post(receiver)));
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move { server.await });
    let [(wallet, _), _] = Wallet::with_history().await;
    let options = WebhookOptions {
        target: target.parse().unwrap(),
        secret: Secret::parse(SECRET).unwrap(),
        kept: None,
        rounds: Rounds {
            within: vec![Duration::from_millis(1)],
            ..rounds()
        },
        clock: Clock::default(),
    };
    let webhooks = Webhooks::new(wallet.clone(), options).unwrap();
    let ending = Ending::default();
    let told = async {
        wallet.falsify_slot();
        wallet.reconcile(Pass::Everything).await.unwrap();
        let told = [arrivals.recv().await.unwrap(), arrivals.recv().await.unwrap()];
        ending.end();
        told
    };
    let ((), [first, again]) = tokio::join!(webhooks.run(&ending), told);
    let report = wallet.reconciliation();
    let (id, signature, body) = first;
    assert_eq!(id, event_id(&report.differences[0]));
    assert_eq!((again.0, &again.2), (id, &body));
    let seconds = signature.split_once(',').unwrap().0.strip_prefix("t=").unwrap();
    let at = Duration::from_secs(seconds.parse().unwrap());
    assert_eq!(Secret::parse(SECRET).unwrap().sign(at, &body), signature);
    let body: Value = serde_json::from_str(&body).unwrap();
    let place = ["account_id", "slot", "version", "expected", "found"].map(|field| body[field].to_string());
    assert_eq!(place, ["\"a\"", "0", "3", "300", "301"]);
    serving.shutdown().await;
    wallet.close().await;
}
