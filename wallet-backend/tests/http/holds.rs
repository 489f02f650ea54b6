//! Holds over HTTP: placed, captured, released, expired, looked at.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use wallet_backend::Wallet;
use wallet_backend::clock::Clock;
use wallet_backend::combiner::Limits;
use wallet_backend::store::Preference;
use wallet_backend::store::any::AnyStore;
use wallet_backend::store::memory::Memory;

use super::support::{Api, Reply};

const HOLDS: &str = "/v1/accounts/alice/holds";
const HOLD: &str = "/v1/accounts/alice/holds/h";
const CAPTURE: &str = "/v1/accounts/alice/holds/h/capture";
const RELEASE: &str = "/v1/accounts/alice/holds/h/release";

/// An account with 100, 60 of it in the hold `h`.
async fn held() -> Api {
    let api = Api::funded().await;
    let placed = api.post(HOLDS, r#"{"request_id":"h","amount":60}"#).await;
    assert_eq!(placed.status, 201);
    api
}

/// A receipt without its time.
fn receipt(reply: &Reply) -> Value {
    assert_eq!(reply.status, 201, "{reply:?}");
    let mut receipt = reply.json();
    receipt.as_object_mut().unwrap().remove("at").unwrap();
    receipt
}

/// balance, available, held, pending.
async fn money(api: &Api) -> [i64; 4] {
    let account = api.get("/v1/accounts/alice").await.json();
    ["balance", "available", "held", "pending"].map(|field| account[field].as_i64().unwrap())
}

#[tokio::test]
async fn a_hold_moves_money_out_of_the_slot_and_stays_in_the_balance() {
    let api = Api::funded().await;
    let placed = api.post(HOLDS, r#"{"request_id":"h","amount":60}"#).await;
    assert_eq!(
        receipt(&placed),
        json!({
            "request_id": "h", "account_id": "alice", "type": "hold", "amount": 60, "currency": "EUR",
            "status": "posted",
            "entries": [{"account_id": "alice", "slot": 0, "version": 2, "delta": -60, "held_delta": 60,
                "balance_after": 40}],
        })
    );
    assert_eq!(money(&api).await, [100, 40, 60, 0]);
    assert_eq!(
        api.get(HOLD).await.json(),
        json!({"hold_id": "h", "amount": 60, "captured": 0, "released": 0, "status": "open", "expires_at": null})
    );
}

#[tokio::test]
async fn a_capture_takes_the_rest_and_is_final_unless_it_says_otherwise() {
    let api = held().await;
    let part = r#"{"request_id":"part","amount":10,"final":false}"#;
    let part = receipt(&api.post(CAPTURE, part).await);
    assert_eq!((&part["type"], &part["amount"]), (&json!("capture"), &json!(10)));
    assert_eq!(
        part["entries"],
        json!([{"account_id": "alice", "slot": 0, "version": 3, "delta": 0, "held_delta": -10, "balance_after": 40}])
    );
    assert_eq!(api.get(HOLD).await.json()["status"], "open");
    let last = receipt(&api.post(CAPTURE, r#"{"request_id":"last"}"#).await);
    assert_eq!(last["amount"], 50);
    assert_eq!(
        api.get(HOLD).await.json(),
        json!({"hold_id": "h", "amount": 60, "captured": 60, "released": 0, "status": "captured", "expires_at": null})
    );
    assert_eq!(money(&api).await, [40, 40, 0, 0]);
}

#[tokio::test]
async fn a_final_capture_of_a_part_gives_the_rest_back_under_the_same_receipt() {
    let api = held().await;
    let part = receipt(&api.post(CAPTURE, r#"{"request_id":"part","amount":10}"#).await);
    assert_eq!(part["amount"], 10);
    assert_eq!(
        part["entries"],
        json!([
            {"account_id": "alice", "slot": 0, "version": 3, "delta": 0, "held_delta": -10, "balance_after": 40},
            {"account_id": "alice", "slot": 0, "version": 4, "delta": 50, "held_delta": -50, "balance_after": 90},
        ])
    );
    assert_eq!(
        api.get(HOLD).await.json(),
        json!({"hold_id": "h", "amount": 60, "captured": 10, "released": 50, "status": "captured", "expires_at": null})
    );
    assert_eq!(money(&api).await, [90, 90, 0, 0]);
}

#[tokio::test]
async fn a_release_gives_all_back_and_names_what_that_was() {
    let api = held().await;
    let released = receipt(&api.post(RELEASE, r#"{"request_id":"back"}"#).await);
    assert_eq!(
        (&released["type"], &released["amount"]),
        (&json!("release"), &json!(60))
    );
    assert_eq!(
        released["entries"],
        json!([{"account_id": "alice", "slot": 0, "version": 3, "delta": 60, "held_delta": -60, "balance_after": 100}])
    );
    assert_eq!(api.get(HOLD).await.json()["status"], "released");
    assert_eq!(money(&api).await, [100, 100, 0, 0]);
}

#[tokio::test]
async fn the_statement_links_each_entry_of_a_hold_to_it() {
    let api = held().await;
    api.post(CAPTURE, r#"{"request_id":"part","amount":10}"#).await;
    let entries = api.get("/v1/accounts/alice/entries").await.json();
    let entries = entries["entries"].as_array().unwrap();
    let seen: Vec<_> = entries
        .iter()
        .map(|entry| (entry["type"].as_str().unwrap(), entry["link"].clone()))
        .collect();
    let to_hold = json!({"kind": "hold", "id": "h"});
    assert_eq!(
        seen,
        [
            ("credit", Value::Null),
            ("hold", Value::Null),
            ("capture", to_hold.clone()),
            ("release", to_hold)
        ]
    );
}

#[tokio::test]
async fn what_ended_is_refused_for_good_and_what_is_left_is_the_limit() {
    let api = held().await;
    let problem = |reply: &Reply| (reply.status.as_u16(), reply.problem());
    let refused = |status: u16, code: &str, field: &str| (status, (code.to_owned(), Some(field.to_owned())));
    let over = r#"{"request_id":"over","amount":61}"#;
    let first = api.post(CAPTURE, over).await;
    assert_eq!(problem(&first), refused(422, "hold_exceeded", "amount"));
    api.post(RELEASE, r#"{"request_id":"back"}"#).await;
    for (path, body) in [
        (CAPTURE, r#"{"request_id":"capture"}"#),
        (RELEASE, r#"{"request_id":"release"}"#),
    ] {
        let late = api.post(path, body).await;
        assert_eq!(problem(&late), refused(422, "hold_not_open", "hold_id"));
        let again = api.post(path, body).await;
        assert!(again.replayed());
        assert_eq!(again.body, late.body);
    }
    let again = api.post(CAPTURE, over).await;
    assert!(again.replayed());
    assert_eq!(again.body, first.body);
}

#[tokio::test]
async fn a_hold_that_is_not_there_is_a_404_that_is_not_stored() {
    let api = Api::funded().await;
    let problem = |reply: Reply| (reply.status.as_u16(), reply.problem());
    let missing = (404, ("hold_not_found".to_owned(), Some("hold_id".to_owned())));
    assert_eq!(problem(api.get(HOLD).await), missing);
    for path in [CAPTURE, RELEASE] {
        assert_eq!(
            problem(api.post(path, r#"{"request_id":"early"}"#).await),
            missing
        );
    }
    api.post(HOLDS, r#"{"request_id":"h","amount":60}"#).await;
    assert_eq!(api.post(CAPTURE, r#"{"request_id":"early"}"#).await.status, 201);
    let nobody = (
        404,
        ("account_not_found".to_owned(), Some("account_id".to_owned())),
    );
    for reply in [
        api.get("/v1/accounts/nobody/holds/h").await,
        api.post("/v1/accounts/nobody/holds", r#"{"request_id":"h","amount":1}"#)
            .await,
        api.post("/v1/accounts/nobody/holds/h/capture", r#"{"request_id":"c"}"#)
            .await,
    ] {
        assert_eq!(problem(reply), nobody);
    }
}

#[tokio::test]
async fn a_hold_past_its_deadline_is_expired_at_once_and_its_money_can_be_spent() {
    let micros = Arc::new(AtomicI64::new(1_700_000_000_000_000));
    let store = Memory::new(Clock::Set(Arc::clone(&micros)), Preference::default());
    let api = Api::over(Wallet::over(AnyStore::Memory(store), Limits::default()).unwrap());
    let open = r#"{"account_id":"alice","currency":"EUR"}"#;
    assert_eq!(api.post("/v1/accounts", open).await.status, 201);
    let credit = r#"{"request_id":"c","amount":100}"#;
    assert_eq!(api.post("/v1/accounts/alice/credits", credit).await.status, 201);
    let placed = r#"{"request_id":"h","amount":60,"expires_in_s":5}"#;
    assert_eq!(api.post(HOLDS, placed).await.status, 201);
    assert_eq!(
        api.get(HOLD).await.json()["expires_at"],
        "2023-11-14T22:13:25.000000Z"
    );
    micros.fetch_add(4_999_999, Ordering::Relaxed);
    assert_eq!(api.get(HOLD).await.json()["status"], "open");
    assert_eq!(money(&api).await, [100, 40, 60, 0]);
    micros.fetch_add(1, Ordering::Relaxed);
    let expired = api.get(HOLD).await.json();
    assert_eq!(
        (&expired["status"], &expired["released"]),
        (&json!("expired"), &json!(60))
    );
    assert_eq!(money(&api).await, [100, 100, 0, 60]);
    let late = api.post(CAPTURE, r#"{"request_id":"late"}"#).await;
    assert_eq!(late.code(), "hold_not_open");
    let debit = api
        .post("/v1/accounts/alice/debits", r#"{"request_id":"d","amount":100}"#)
        .await;
    assert_eq!(debit.status, 201);
    assert_eq!(money(&api).await, [0, 0, 0, 0]);
}

#[tokio::test]
async fn a_hold_id_with_signs_is_percent_encoded_in_its_path() {
    let api = Api::funded().await;
    api.post(HOLDS, r#"{"request_id":"a/b?c","amount":5}"#).await;
    let hold = api.get("/v1/accounts/alice/holds/a%2Fb%3Fc").await.json();
    assert_eq!(hold["hold_id"], "a/b?c");
    let released = api
        .post(
            "/v1/accounts/alice/holds/a%2Fb%3Fc/release",
            r#"{"request_id":"r"}"#,
        )
        .await;
    assert_eq!(released.status, 201);
}

#[tokio::test]
async fn sixty_four_captures_at_once_take_a_hold_once() {
    let api = held().await;
    let bodies: Vec<_> = (0..64)
        .map(|number| format!(r#"{{"request_id":"c{number}"}}"#))
        .collect();
    let replies = futures_util::future::join_all(bodies.iter().map(|body| api.post(CAPTURE, body))).await;
    let done = replies.iter().filter(|reply| reply.status == 201).count();
    assert_eq!(done, 1);
    let late = replies.iter().filter(|reply| reply.code() == "hold_not_open");
    assert_eq!(late.count(), 63);
    assert_eq!(money(&api).await, [40, 40, 0, 0]);
}
