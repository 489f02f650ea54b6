//! What an account had at a moment of its past, over HTTP.

use serde_json::{Value, json};
use wallet_backend::Wallet;
use wallet_backend::combiner::Limits;
use wallet_backend::store::Preference;
use wallet_backend::store::any::AnyStore;
use wallet_backend::store::memory::Memory;

use super::support::Api;
use crate::support::Time;

/// An account in 2 slots, at a time that a test sets: from 1 s on, a credit of 100, a hold of 30, and 5 s later a
/// debit of 60.
async fn moved() -> (Api, Time) {
    let time = Time::default();
    let store = Memory::new(time.clock(), Preference::Fixed(0));
    let api = Api::over(Wallet::over(AnyStore::Memory(store), Limits::default()).unwrap());
    let alice = r#"{"account_id":"alice","currency":"EUR","slots":2}"#;
    for (path, body, passes) in [
        ("/v1/accounts", alice, 0),
        (
            "/v1/accounts/alice/credits",
            r#"{"request_id":"c","amount":100}"#,
            1,
        ),
        (
            "/v1/accounts/alice/holds",
            r#"{"request_id":"h","amount":30,"expires_in_s":9}"#,
            5_000_000,
        ),
        (
            "/v1/accounts/alice/debits",
            r#"{"request_id":"d","amount":60}"#,
            1,
        ),
    ] {
        assert_eq!(api.post(path, body).await.status, 201, "{path}");
        time.pass(passes);
    }
    (api, time)
}

async fn past(api: &Api, query: &str) -> Value {
    let reply = api.get(&format!("/v1/accounts/alice?{query}")).await;
    assert_eq!(reply.status, 200, "{query}: {reply:?}");
    reply.json()
}

#[tokio::test]
async fn at_a_time_an_account_is_told_with_what_it_had_then() {
    let (api, _) = moved().await;
    let mut then = past(&api, "at=1970-01-01T00:00:01.000001Z").await;
    assert!(then["cursor"].take().is_string());
    assert_eq!(
        then,
        json!({
            "account_id": "alice", "currency": "EUR", "at": "1970-01-01T00:00:01.000001Z", "cursor": null,
            "balance": 100, "held": 30, "pending": 0,
            "slots": [
                {"index": 0, "balance": 70, "version": 2},
                {"index": 1, "balance": 0, "version": 2},
            ],
        })
    );
    let before = past(&api, "at=1970-01-01T00:00:00.5Z").await;
    assert_eq!((&before["balance"], &before["slots"]), (&json!(0), &json!([])));
    let last = past(&api, "at=1970-01-01T00:00:06.000001Z").await;
    assert_eq!(last["balance"], 40);
}

#[tokio::test]
async fn the_cursor_of_a_past_parts_the_statement_into_before_and_after() {
    let (api, _) = moved().await;
    let then = past(&api, "at=1970-01-01T00:00:06Z").await;
    let cursor = then["cursor"].as_str().unwrap();
    let after = api
        .get(&format!("/v1/accounts/alice/entries?after={cursor}"))
        .await;
    let kinds: Vec<Value> = after.json()["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["type"].clone())
        .collect();
    assert_eq!(kinds, ["debit"]);
    let mut again = past(&api, &format!("cursor={cursor}")).await;
    assert_eq!(again["at"], "1970-01-01T00:00:01.000001Z");
    again["at"] = then["at"].clone();
    assert_eq!(again, then);
}

#[tokio::test]
async fn the_next_of_a_page_tells_what_there_was_after_it() {
    let (api, _) = moved().await;
    let page = api.get("/v1/accounts/alice/entries?limit=1").await.json();
    let then = past(&api, &format!("cursor={}", page["next"].as_str().unwrap())).await;
    assert_eq!(then["balance"], page["entries"][0]["delta"]);
    assert_eq!(then["at"], page["entries"][0]["at"]);
}

#[tokio::test]
async fn a_moment_that_is_none_is_refused_with_its_parameter() {
    let (api, time) = moved().await;
    let now = format!(
        "at=1970-01-01T00:00:0{}.{:06}Z",
        time.now().0 / 1_000_000,
        time.now().0 % 1_000_000
    );
    let list = api.get("/v1/accounts").await.json();
    let of_the_list = format!("cursor={}", list["next"].as_str().unwrap());
    for (query, field) in [
        ("at=", "at"),
        ("at=yesterday", "at"),
        ("at=1", "at"),
        ("at=2999-01-01T00:00:00Z", "at"),
        (now.as_str(), "at"),
        ("cursor=", "cursor"),
        ("cursor=00", "cursor"),
        (of_the_list.as_str(), "cursor"),
        ("at=1970-01-01T00:00:01Z&cursor=00", "cursor"),
        ("at=1970-01-01T00:00:01Z&at=1970-01-01T00:00:01Z", "at"),
        ("before=1970-01-01T00:00:01Z", "before"),
    ] {
        let reply = api.get(&format!("/v1/accounts/alice?{query}")).await;
        assert_eq!(reply.status, 400, "{query}");
        let expected = ("invalid_request".to_owned(), Some(field.to_owned()));
        assert_eq!(reply.problem(), expected, "{query}");
    }
    let nobody = api.get("/v1/accounts/nobody?at=1970-01-01T00:00:01Z").await;
    assert_eq!(nobody.problem().0, "account_not_found");
}
