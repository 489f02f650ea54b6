//! A wrong cent, on the wire.

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;
use crate::Wallet;
use crate::http::{HttpOptions, router};
use crate::wallet::fixtures::id;

async fn get(wallet: &Wallet, path: &str) -> String {
    let router = router(wallet.clone(), HttpOptions::default());
    let answer = router.oneshot(Request::get(path).body(Body::empty()).unwrap());
    let answer = answer.await.unwrap();
    assert_eq!(answer.status(), 200);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

async fn asked(wallet: &Wallet) -> Value {
    serde_json::from_str(&get(wallet, "/v1/reconciliation").await).unwrap()
}

#[tokio::test]
async fn a_wrong_cent_is_listed_with_its_place_and_counted() {
    let [(wallet, _), _] = Wallet::with_history().await;
    let expected = json!({"at": null, "ok": true, "checked": 0, "differences": [], "more": 0, "runs": []});
    assert_eq!(asked(&wallet).await, expected);
    wallet.falsify_slot();
    wallet.reconcile(Pass::Everything).await.unwrap();
    let mut told = asked(&wallet).await;
    let since = told["differences"][0]["since"].take();
    assert!(since.as_str().unwrap().ends_with('Z'));
    let difference = told["differences"][0].as_object_mut().unwrap();
    let named = difference.remove("id").unwrap();
    assert!(named.as_str().unwrap().starts_with("reconciliation-"));
    assert_eq!(
        told["differences"],
        json!([{
            "account_id": "a", "slot": 0, "version": 3, "kind": "slot_balance",
            "rule": "the slot's balance is its last entry's", "expected": 300, "found": 301, "since": null,
        }])
    );
    assert_eq!((&told["ok"], &told["checked"]), (&json!(false), &json!(3)));
    let run = &told["runs"][0];
    assert_eq!(
        (&run["pass"], &run["entries"], &run["differences"]),
        (&json!("everything"), &json!(7), &json!(1))
    );
    assert_eq!(told["at"], run["at"]);
    let metrics = get(&wallet, "/metrics").await;
    for line in [
        "wallet_reconcile_differences 1\n",
        "wallet_reconcile_last_failed{pass=\"everything\"} 0\n",
        "wallet_reconcile_last_timestamp_seconds{pass=\"changed\"} 0\n",
    ] {
        assert!(metrics.contains(line), "{line} of {metrics}");
    }
    wallet.close().await;
}

#[tokio::test]
async fn the_total_of_a_currency_is_about_no_account() {
    let [(wallet, _), _] = Wallet::with_history().await;
    wallet.falsify_slot();
    wallet.reconcile(Pass::GeneralLedger).await.unwrap();
    let report = wallet.reconciliation();
    let total = report
        .differences
        .iter()
        .find(|found| found.account() != Some(&id("a")));
    let mut told: Value = serde_json::from_str(&event(total.unwrap())).unwrap();
    told["since"].take();
    assert_eq!(
        told,
        json!({
            "type": "reconciliation_difference", "account_id": null, "currency": "EUR", "slot": null,
            "version": null, "kind": "currency_total", "expected": 900, "found": 901, "since": null,
            "rule": "what came in from outside less what went out is what the accounts have",
        })
    );
    wallet.close().await;
}
