//! `PATCH /v1/accounts/{id}` and `amount: "max"` over HTTP.

use serde_json::json;

use super::support::Api;

const ALICE: &str = "/v1/accounts/alice";
const DEBIT: &str = "/v1/accounts/alice/debits";

#[tokio::test]
async fn a_change_answers_200_with_the_account_and_is_in_force() {
    let api = Api::funded().await;
    let frozen = api
        .patch(ALICE, r#"{"request_id":"p","status":"debit_frozen","floor":10}"#)
        .await;
    assert_eq!(frozen.status, 200);
    assert!(!frozen.replayed());
    assert_eq!(
        frozen.json(),
        json!({
            "account_id": "alice", "currency": "EUR", "status": "debit_frozen", "floor": 10,
            "credit": "slot", "debit": "primary",
            "balance": 100, "available": 90, "held": 0, "pending": 0,
            "slots": [{"index": 0, "balance": 100, "version": 1}],
        })
    );
    assert_eq!(api.get(ALICE).await.body, frozen.body);
    let debit = api.post(DEBIT, r#"{"request_id":"d","amount":1}"#).await;
    assert_eq!(
        (debit.status.as_u16(), debit.code()),
        (409, "account_frozen".to_owned())
    );
}

#[tokio::test]
async fn a_change_that_is_repeated_answers_the_account_as_it_became_then() {
    let api = Api::funded().await;
    let body = r#"{"request_id":"p","slots":4,"credit":"journal"}"#;
    let first = api.patch(ALICE, body).await;
    assert_eq!(first.json()["slots"].as_array().unwrap().len(), 4);
    api.post(DEBIT, r#"{"request_id":"d","amount":1}"#).await;
    let again = api.patch(ALICE, body).await;
    assert_eq!((again.status.as_u16(), again.replayed()), (200, true));
    assert_eq!(again.body, first.body);
    let other = api.patch(ALICE, r#"{"request_id":"p","slots":5}"#).await;
    assert_eq!(other.status, 422);
    assert_eq!(
        other.problem(),
        ("request_id_reused".to_owned(), Some("slots".to_owned()))
    );
}

#[tokio::test]
async fn a_change_is_looked_up_with_the_account_in_place_of_a_receipt() {
    let api = Api::funded().await;
    let changed = api.patch(ALICE, r#"{"request_id":"p","slots":2}"#).await.json();
    for reply in [
        api.get("/v1/requests/alice/p").await,
        api.post("/v1/requests/alice/p/abandon", "").await,
    ] {
        assert_eq!(reply.status, 200);
        assert_eq!(
            reply.json(),
            json!({"account_id": "alice", "request_id": "p", "status": "done", "account": changed})
        );
    }
}

#[tokio::test]
async fn an_account_with_money_cannot_be_closed_and_a_closed_one_is_final() {
    let api = Api::funded().await;
    let full = api
        .patch(ALICE, r#"{"request_id":"full","status":"closed"}"#)
        .await;
    assert_eq!(full.status, 409);
    assert_eq!(
        full.problem(),
        ("account_not_empty".to_owned(), Some("status".to_owned()))
    );
    api.post(DEBIT, r#"{"request_id":"all","amount":"max"}"#).await;
    let closed = api
        .patch(ALICE, r#"{"request_id":"now","status":"closed"}"#)
        .await;
    assert_eq!(
        (closed.status.as_u16(), &closed.json()["status"]),
        (200, &json!("closed"))
    );
    let opened = api.patch(ALICE, r#"{"request_id":"no","status":"active"}"#).await;
    assert_eq!(opened.status, 409);
    assert_eq!(opened.problem(), ("account_closed".to_owned(), None));
}

#[tokio::test]
async fn a_floor_that_the_account_cannot_carry_is_refused() {
    let api = Api::funded().await;
    let reply = api.patch(ALICE, r#"{"request_id":"p","floor":101}"#).await;
    assert_eq!(
        (reply.status.as_u16(), reply.code()),
        (422, "insufficient_funds".to_owned())
    );
    let reply = api
        .patch("/v1/accounts/nobody", r#"{"request_id":"p","floor":1}"#)
        .await;
    assert_eq!(
        (reply.status.as_u16(), reply.code()),
        (404, "account_not_found".to_owned())
    );
}

#[tokio::test]
async fn max_takes_all_above_the_floor_and_a_replay_repeats_how_much_that_was() {
    let api = Api::funded().await;
    api.patch(ALICE, r#"{"request_id":"p","floor":30}"#).await;
    let body = r#"{"request_id":"all","amount":"max"}"#;
    let first = api.post(DEBIT, body).await;
    assert_eq!(
        (first.status.as_u16(), &first.json()["amount"]),
        (201, &json!(70))
    );
    api.post("/v1/accounts/alice/credits", r#"{"request_id":"c","amount":5}"#)
        .await;
    let again = api.post(DEBIT, body).await;
    assert_eq!((again.status.as_u16(), again.replayed()), (200, true));
    assert_eq!(again.body, first.body);
    assert_eq!(api.balance("alice").await, 35);
    let reused = api.post(DEBIT, r#"{"request_id":"all","amount":70}"#).await;
    assert_eq!(
        reused.problem(),
        ("request_id_reused".to_owned(), Some("amount".to_owned()))
    );
}

#[tokio::test]
async fn max_of_nothing_is_insufficient_funds() {
    let api = Api::funded().await;
    let reply = api
        .post("/v1/accounts/bob/debits", r#"{"request_id":"d","amount":"max"}"#)
        .await;
    assert_eq!(reply.status, 422);
    assert_eq!(
        reply.problem(),
        ("insufficient_funds".to_owned(), Some("amount".to_owned()))
    );
}

#[tokio::test]
async fn the_number_of_slots_changes_while_money_comes_in_and_nothing_is_lost() {
    let api = Api::funded().await;
    let work = (0..200).map(async |number| {
        if number % 20 == 10 {
            let slots = if number % 40 == 10 { 64 } else { 1 };
            let body = format!(r#"{{"request_id":"p{number}","slots":{slots}}}"#);
            return api.patch(ALICE, &body).await.status;
        }
        let body = format!(r#"{{"request_id":"c{number}","amount":1}}"#);
        api.post("/v1/accounts/alice/credits", &body).await.status
    });
    let statuses = futures_util::future::join_all(work).await;
    assert!(statuses.iter().all(|status| status.is_success()), "{statuses:?}");
    assert_eq!(api.balance("alice").await, 290);
    let mut after = String::new();
    let mut credited = 0;
    loop {
        let page = api
            .get(&format!("{ALICE}/entries?limit=7&after={after}"))
            .await
            .json();
        let entries = page["entries"].as_array().unwrap();
        if entries.is_empty() {
            break;
        }
        credited += entries.iter().filter(|entry| entry["type"] == "credit").count();
        page["next"].as_str().unwrap().clone_into(&mut after);
    }
    assert_eq!(credited, 191);
}
