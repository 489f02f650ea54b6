//! What operations answer: shapes, statuses, replays word for word, refusals that stay.

use std::collections::BTreeSet;

use http::Request;
use serde_json::{Value, json};

use super::support::{Api, Reply};

const CREDIT: &str = "/v1/accounts/alice/credits";
const DEBIT: &str = "/v1/accounts/alice/debits";

#[tokio::test]
async fn an_account_is_opened_once_and_then_given_back() {
    let api = Api::new();
    let body = r#"{"account_id":"alice","currency":"EUR","slots":2,"floor":5}"#;
    let opened = api.post("/v1/accounts", body).await;
    assert_eq!(opened.status, 201);
    assert_eq!(opened.header("content-type"), Some("application/json"));
    let expected = json!({
        "account_id": "alice", "currency": "EUR", "status": "active", "floor": 5,
        "credit": "slot", "debit": "primary",
        "balance": 0, "available": 0, "held": 0, "pending": 0,
        "slots": [{"index": 0, "balance": 0, "version": 0}, {"index": 1, "balance": 0, "version": 0}],
    });
    assert_eq!(opened.json(), expected);
    assert_eq!(api.post("/v1/accounts", body).await.status, 200);
    assert_eq!(api.get("/v1/accounts/alice").await.json(), expected);
}

#[tokio::test]
async fn an_account_with_other_terms_is_a_conflict_that_names_the_first() {
    let api = Api::funded().await;
    for (body, field) in [
        (r#"{"account_id":"alice","currency":"USD"}"#, "currency"),
        (r#"{"account_id":"alice","currency":"EUR","slots":2}"#, "slots"),
        (
            r#"{"account_id":"alice","currency":"EUR","credit":"upsert"}"#,
            "credit",
        ),
        (
            r#"{"account_id":"alice","currency":"EUR","debit":"hashed"}"#,
            "debit",
        ),
        (r#"{"account_id":"alice","currency":"EUR","floor":1}"#, "floor"),
    ] {
        let reply = api.post("/v1/accounts", body).await;
        assert_eq!(reply.status, 409);
        assert_eq!(
            reply.problem(),
            ("account_exists".to_owned(), Some(field.to_owned()))
        );
    }
}

#[tokio::test]
async fn a_debit_answers_with_its_receipt() {
    let api = Api::funded().await;
    let reply = api
        .post(DEBIT, r#"{"request_id":"d1","amount":40,"memo":"tea"}"#)
        .await;
    assert_eq!(reply.status, 201);
    assert!(!reply.replayed());
    let mut receipt = reply.json();
    let at = receipt["at"].take();
    assert_time(&at);
    assert_eq!(
        receipt,
        json!({
            "request_id": "d1", "account_id": "alice", "type": "debit", "amount": 40, "currency": "EUR",
            "status": "posted", "at": null,
            "entries": [{"account_id": "alice", "slot": 0, "version": 2, "delta": -40, "balance_after": 60}],
        })
    );
}

#[tokio::test]
async fn a_transfer_answers_with_both_legs_and_belongs_to_its_source() {
    let api = Api::funded().await;
    let body = r#"{"request_id":"t1","from":"alice","to":"bob","amount":30}"#;
    let receipt = api.post("/v1/transfers", body).await.json();
    assert_eq!(receipt["type"], "transfer");
    assert_eq!(receipt["account_id"], "alice");
    assert_eq!(
        receipt["entries"],
        json!([
            {"account_id": "alice", "slot": 0, "version": 2, "delta": -30, "balance_after": 70},
            {"account_id": "bob", "slot": 0, "version": 1, "delta": 30, "balance_after": 30},
        ])
    );
    assert_eq!(api.get("/v1/requests/alice/t1").await.json()["status"], "done");
    assert_eq!(api.get("/v1/requests/bob/t1").await.json()["status"], "not_found");
}

#[tokio::test]
async fn a_replay_is_200_with_the_first_body_byte_for_byte() {
    let api = Api::funded().await;
    let body = r#"{"request_id":"d1","amount":40}"#;
    let first = api.post(DEBIT, body).await;
    api.post(CREDIT, r#"{"request_id":"c1","amount":7}"#).await;
    for _ in 0..3 {
        // The same command in another spelling is the same command.
        let again = api
            .post(DEBIT, r#" {"amount": 40, "request_id": "\u00641"} "#)
            .await;
        assert_eq!(again.status, 200);
        assert!(again.replayed());
        assert_eq!(again.body, first.body);
    }
    assert_eq!(api.balance("alice").await, 67);
}

#[tokio::test]
async fn a_refusal_stays_with_its_status_and_body_even_when_the_money_has_come() {
    let api = Api::funded().await;
    let body = r#"{"request_id":"d1","amount":101}"#;
    let first = api.post(DEBIT, body).await;
    assert_eq!(first.status, 422);
    assert_eq!(
        first.problem(),
        ("insufficient_funds".to_owned(), Some("amount".to_owned()))
    );
    assert!(!first.replayed());
    api.post(CREDIT, r#"{"request_id":"c1","amount":500}"#).await;
    let again = api.post(DEBIT, body).await;
    assert_eq!(again.status, 422);
    assert!(again.replayed());
    assert_eq!(again.body, first.body);
    assert_eq!(again.header("content-type"), Some("application/problem+json"));
    assert_eq!(
        api.post(DEBIT, r#"{"request_id":"d2","amount":101}"#)
            .await
            .status,
        201
    );
}

#[tokio::test]
async fn another_command_under_a_used_id_names_the_first_field_that_differs() {
    let api = Api::funded().await;
    api.post(CREDIT, r#"{"request_id":"r","amount":5}"#).await;
    let transfer = r#"{"request_id":"r","from":"alice","to":"bob","amount":5}"#;
    for (path, body, field) in [
        (CREDIT, r#"{"request_id":"r","amount":6}"#, "amount"),
        (CREDIT, r#"{"request_id":"r","amount":5,"memo":"x"}"#, "memo"),
        (DEBIT, r#"{"request_id":"r","amount":5}"#, "type"),
        ("/v1/transfers", transfer, "type"),
    ] {
        let reply = api.post(path, body).await;
        assert_eq!(reply.status, 422);
        assert_eq!(
            reply.problem(),
            ("request_id_reused".to_owned(), Some(field.to_owned()))
        );
        assert!(!reply.replayed());
    }
    assert_eq!(api.balance("alice").await, 105);
}

#[tokio::test]
async fn the_same_id_under_two_accounts_is_two_requests() {
    let api = Api::funded().await;
    for account in ["alice", "bob"] {
        let path = format!("/v1/accounts/{account}/credits");
        let reply = api.post(&path, r#"{"request_id":"same","amount":1}"#).await;
        assert_eq!(reply.status, 201);
    }
}

#[tokio::test]
async fn the_idempotency_key_header_stands_for_the_request_id() {
    let api = Api::funded().await;
    let with_key = |key: &str| {
        Request::post(DEBIT)
            .header("content-type", "application/json")
            .header("idempotency-key", key)
    };
    let first = api.send(with_key("k1"), r#"{"amount":5}"#).await;
    assert_eq!(first.status, 201);
    assert_eq!(first.json()["request_id"], "k1");
    let in_body = api.post(DEBIT, r#"{"request_id":"k1","amount":5}"#).await;
    assert!(in_body.replayed());
    let both = api
        .send(with_key("k1"), r#"{"request_id":"k1","amount":5}"#)
        .await;
    assert!(both.replayed());
    for reply in [
        api.send(with_key("k1"), r#"{"request_id":"k2","amount":5}"#)
            .await,
        api.send(with_key("k 1"), r#"{"amount":5}"#).await,
        api.send(with_key("k1").header("idempotency-key", "k2"), r#"{"amount":5}"#)
            .await,
    ] {
        assert_eq!(reply.status, 400);
        assert_eq!(
            reply.problem(),
            ("invalid_request".to_owned(), Some("request_id".to_owned()))
        );
    }
    assert_eq!(api.balance("alice").await, 95);
}

#[tokio::test]
async fn an_account_that_is_missing_is_a_404_that_is_not_stored() {
    let api = Api::funded().await;
    let carol = r#"{"request_id":"r","from":"alice","to":"carol","amount":5}"#;
    let from_carol = r#"{"request_id":"r","from":"carol","to":"alice","amount":5}"#;
    for (reply, field) in [
        (api.get("/v1/accounts/carol").await, "account_id"),
        (api.get("/v1/accounts/carol/entries").await, "account_id"),
        (
            api.post("/v1/accounts/carol/credits", r#"{"request_id":"r","amount":5}"#)
                .await,
            "account_id",
        ),
        (api.post("/v1/requests/carol/r/abandon", "").await, "account_id"),
        (api.post("/v1/transfers", carol).await, "to"),
        (api.post("/v1/transfers", from_carol).await, "from"),
    ] {
        assert_eq!(reply.status, 404);
        assert_eq!(
            reply.problem(),
            ("account_not_found".to_owned(), Some(field.to_owned()))
        );
    }
    api.post("/v1/accounts", r#"{"account_id":"carol","currency":"EUR"}"#)
        .await;
    assert_eq!(api.post("/v1/transfers", carol).await.status, 201);
}

#[tokio::test]
async fn a_transfer_between_currencies_is_refused_for_good() {
    let api = Api::funded().await;
    api.post("/v1/accounts", r#"{"account_id":"yen","currency":"JPY"}"#)
        .await;
    let body = r#"{"request_id":"r","from":"alice","to":"yen","amount":5}"#;
    let first = api.post("/v1/transfers", body).await;
    assert_eq!(first.status, 422);
    assert_eq!(
        first.problem(),
        ("currency_mismatch".to_owned(), Some("to".to_owned()))
    );
    let again = api.post("/v1/transfers", body).await;
    assert!(again.replayed());
    assert_eq!(again.body, first.body);
}

#[tokio::test]
async fn a_credit_past_the_cap_is_a_balance_limit() {
    let api = Api::new();
    api.post("/v1/accounts", r#"{"account_id":"alice","currency":"EUR"}"#)
        .await;
    let first = api
        .post(CREDIT, r#"{"request_id":"a","amount":4503599627370496}"#)
        .await;
    assert_eq!(first.status, 201);
    let reply = api
        .post(CREDIT, r#"{"request_id":"b","amount":4503599627370496}"#)
        .await;
    assert_eq!(reply.status, 422);
    assert_eq!(reply.code(), "balance_limit");
    assert_eq!(api.balance("alice").await, 4_503_599_627_370_496);
}

#[tokio::test]
async fn a_look_up_is_always_a_200_with_what_is_known() {
    let api = Api::funded().await;
    let done = api.post(DEBIT, r#"{"request_id":"done","amount":5}"#).await;
    let refused = api.post(DEBIT, r#"{"request_id":"refused","amount":5000}"#).await;
    let look_up = async |path: &str| {
        let reply = api.get(path).await;
        assert_eq!(reply.status, 200, "{path}");
        reply.json()
    };
    assert_eq!(
        look_up("/v1/requests/alice/done").await,
        json!({"account_id": "alice", "request_id": "done", "status": "done", "receipt": done.json()})
    );
    assert_eq!(
        look_up("/v1/requests/alice/refused").await,
        json!({"account_id": "alice", "request_id": "refused", "status": "refused", "problem": refused.json()})
    );
    for path in ["/v1/requests/alice/never", "/v1/requests/carol/never"] {
        let view = look_up(path).await;
        assert_eq!(view["status"], "not_found");
        assert_eq!(view.as_object().unwrap().len(), 3);
    }
}

#[tokio::test]
async fn a_request_id_with_signs_is_looked_up_percent_encoded() {
    let api = Api::funded().await;
    api.post(DEBIT, r#"{"request_id":"a/b?c=%#\"","amount":5}"#).await;
    let view = api.get("/v1/requests/alice/a%2Fb%3Fc=%25%23%22").await.json();
    assert_eq!(view["request_id"], "a/b?c=%#\"");
    assert_eq!(view["status"], "done");
}

#[tokio::test]
async fn an_abandoned_id_is_refused_for_ever() {
    let api = Api::funded().await;
    let abandoned = api.post("/v1/requests/alice/r/abandon", "").await;
    assert_eq!(abandoned.status, 200);
    assert_eq!(abandoned.json()["status"], "refused");
    assert_eq!(abandoned.json()["problem"]["code"], "abandoned");
    let late = api.post(DEBIT, r#"{"request_id":"r","amount":5}"#).await;
    assert_eq!(late.status, 422);
    assert_eq!(late.code(), "abandoned");
    assert_eq!(late.json(), abandoned.json()["problem"]);
    assert_eq!(api.get("/v1/requests/alice/r").await.body, abandoned.body);
    assert_eq!(api.balance("alice").await, 100);
}

#[tokio::test]
async fn abandoning_what_was_done_answers_what_it_became() {
    let api = Api::funded().await;
    let done = api.post(DEBIT, r#"{"request_id":"r","amount":5}"#).await;
    for body in ["", "{}"] {
        let view = api.post("/v1/requests/alice/r/abandon", body).await.json();
        assert_eq!(view["status"], "done");
        assert_eq!(view["receipt"], done.json());
    }
    let bare = api.send(Request::post("/v1/requests/alice/r/abandon"), "").await;
    assert_eq!(bare.status, 200);
}

#[tokio::test]
async fn sixty_four_at_once_under_one_id_are_one_debit_and_sixty_three_replays() {
    let api = Api::funded().await;
    let calls = (0..64).map(|_| api.post(DEBIT, r#"{"request_id":"r","amount":3}"#));
    let replies: Vec<Reply> = futures_util::future::join_all(calls).await;
    let bodies: BTreeSet<_> = replies.iter().map(|reply| reply.body.clone()).collect();
    assert_eq!(bodies.len(), 1);
    assert_eq!(replies.iter().filter(|reply| reply.status == 201).count(), 1);
    assert_eq!(
        replies
            .iter()
            .filter(|reply| reply.status == 200 && reply.replayed())
            .count(),
        63
    );
    assert_eq!(api.balance("alice").await, 97);
}

#[tokio::test]
async fn credits_to_a_split_account_are_spread_and_a_debit_collects_them() {
    let api = Api::new();
    api.post(
        "/v1/accounts",
        r#"{"account_id":"alice","currency":"EUR","slots":4}"#,
    )
    .await;
    for number in 0..8 {
        let body = format!(r#"{{"request_id":"c{number}","amount":10}}"#);
        assert_eq!(api.post(CREDIT, &body).await.status, 201);
    }
    let debit = api.post(DEBIT, r#"{"request_id":"all","amount":80}"#).await;
    assert_eq!(debit.status, 201);
    assert_eq!(debit.json()["entries"].as_array().unwrap().len(), 1);
    assert_eq!(api.balance("alice").await, 0);
}

fn assert_time(at: &Value) {
    let text = at.as_str().unwrap();
    assert_eq!(text.len(), "2024-01-01T00:00:00.000000Z".len(), "{text}");
    assert!(
        text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok(),
        "{text}"
    );
}
