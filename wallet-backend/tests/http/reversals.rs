//! Reversals over HTTP: whole, once, and what can't be undone.

use serde_json::json;

use super::support::{Api, Reply};

const REVERSALS: &str = "/v1/reversals";

async fn reverse(api: &Api, request: &str, reverses: &str) -> Reply {
    let body = format!(r#"{{"request_id":"{request}","account_id":"alice","reverses":"{reverses}"}}"#);
    api.post(REVERSALS, &body).await
}

#[tokio::test]
async fn a_debit_is_given_back_once() {
    let api = Api::funded().await;
    api.post("/v1/accounts/alice/debits", r#"{"request_id":"d","amount":30}"#)
        .await;
    let first = reverse(&api, "r", "d").await;
    assert_eq!(first.status, 201);
    let mut receipt = first.json();
    receipt.as_object_mut().unwrap().remove("at").unwrap();
    assert_eq!(
        receipt,
        json!({
            "request_id": "r", "account_id": "alice", "type": "reversal", "amount": 30, "currency": "EUR",
            "status": "posted",
            "entries": [{"account_id": "alice", "slot": 0, "version": 3, "delta": 30, "balance_after": 100}],
        })
    );
    let again = reverse(&api, "r", "d").await;
    assert_eq!((again.status.as_u16(), again.replayed()), (200, true));
    assert_eq!(again.body, first.body);
    let other = reverse(&api, "r2", "d").await;
    assert_eq!(other.status, 422);
    assert_eq!(
        other.problem(),
        ("already_reversed".to_owned(), Some("reverses".to_owned()))
    );
    assert_eq!(api.balance("alice").await, 100);
    let entries = api.get("/v1/accounts/alice/entries").await.json();
    assert_eq!(
        entries["entries"][2]["link"],
        json!({"kind": "reversed", "id": "d"})
    );
}

#[tokio::test]
async fn a_transfer_goes_back_from_its_target_with_both_legs() {
    let api = Api::funded().await;
    let transfer = r#"{"request_id":"t","from":"alice","to":"bob","amount":30}"#;
    api.post("/v1/transfers", transfer).await;
    let reply = reverse(&api, "r", "t").await;
    assert_eq!(reply.status, 201);
    assert_eq!(
        reply.json()["entries"],
        json!([
            {"account_id": "bob", "slot": 0, "version": 2, "delta": -30, "balance_after": 0},
            {"account_id": "alice", "slot": 0, "version": 3, "delta": 30, "balance_after": 100},
        ])
    );
}

#[tokio::test]
async fn what_is_spent_cannot_be_taken_back_and_the_refusal_stays() {
    let api = Api::funded().await;
    api.post(
        "/v1/accounts/alice/debits",
        r#"{"request_id":"d","amount":"max"}"#,
    )
    .await;
    let first = reverse(&api, "r", "opening").await;
    assert_eq!(first.status, 422);
    assert_eq!(first.code(), "insufficient_funds");
    api.post("/v1/accounts/alice/credits", r#"{"request_id":"c","amount":500}"#)
        .await;
    let again = reverse(&api, "r", "opening").await;
    assert!(again.replayed());
    assert_eq!(again.body, first.body);
}

#[tokio::test]
async fn a_hold_a_release_a_refusal_and_a_reversal_cannot_be_undone() {
    let api = Api::funded().await;
    let holds = "/v1/accounts/alice/holds";
    api.post(holds, r#"{"request_id":"h","amount":10}"#).await;
    api.post(&format!("{holds}/h/release"), r#"{"request_id":"back"}"#)
        .await;
    api.post(
        "/v1/accounts/alice/debits",
        r#"{"request_id":"no","amount":5000}"#,
    )
    .await;
    api.post("/v1/accounts/alice/debits", r#"{"request_id":"d","amount":1}"#)
        .await;
    reverse(&api, "undone", "d").await;
    for of in ["h", "back", "no", "undone"] {
        let reply = reverse(&api, &format!("of-{of}"), of).await;
        assert_eq!(reply.status, 422, "{of}");
        assert_eq!(
            reply.problem(),
            ("not_reversible".to_owned(), Some("reverses".to_owned()))
        );
    }
}

#[tokio::test]
async fn what_was_never_done_is_a_404_that_is_not_stored() {
    let api = Api::funded().await;
    let reply = reverse(&api, "r", "d").await;
    assert_eq!(reply.status, 404);
    assert_eq!(
        reply.problem(),
        ("not_found_to_reverse".to_owned(), Some("reverses".to_owned()))
    );
    api.post("/v1/accounts/alice/debits", r#"{"request_id":"d","amount":1}"#)
        .await;
    assert_eq!(reverse(&api, "r", "d").await.status, 201);
}

#[tokio::test]
async fn sixty_four_ids_at_once_reverse_a_debit_once() {
    let api = Api::funded().await;
    api.post("/v1/accounts/alice/debits", r#"{"request_id":"d","amount":30}"#)
        .await;
    let ids: Vec<_> = (0..64).map(|number| format!("r{number}")).collect();
    let replies = futures_util::future::join_all(ids.iter().map(|id| reverse(&api, id, "d"))).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 201).count(), 1);
    let late = replies.iter().filter(|reply| reply.code() == "already_reversed");
    assert_eq!(late.count(), 63);
    assert_eq!(api.balance("alice").await, 100);
}
