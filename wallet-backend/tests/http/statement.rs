//! Statements over HTTP: every entry once, slot by slot in version order, page by page.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::support::Api;

/// Every entry of a statement, read in pages of `limit`.
async fn read_all(api: &Api, account: &str, limit: usize) -> Vec<Value> {
    let (mut entries, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/accounts/{account}/entries?limit={limit}&after={after}");
        let page = api.get(&path).await.json();
        let found = page["entries"].as_array().unwrap();
        assert!(found.len() <= limit);
        after = page["next"].as_str().unwrap().to_owned();
        if found.is_empty() {
            return entries;
        }
        entries.extend(found.iter().cloned());
    }
}

#[tokio::test]
async fn an_entry_tells_what_it_did_and_what_it_belongs_to() {
    let api = Api::funded().await;
    let body = r#"{"request_id":"t1","from":"alice","to":"bob","amount":30}"#;
    api.post("/v1/transfers", body).await;
    let mut page = api.get("/v1/accounts/bob/entries").await.json();
    assert!(page["entries"][0]["at"].take().is_string());
    assert_eq!(
        page["entries"],
        json!([{
            "slot": 0, "version": 1, "type": "transfer_in", "request_id": "t1", "delta": 30,
            "balance_after": 30, "at": null, "link": {"kind": "transfer", "id": "alice"},
        }])
    );
    let alice = api.get("/v1/accounts/alice/entries").await.json();
    assert_eq!(alice["entries"][0]["type"], "credit");
    assert_eq!(alice["entries"][0].get("link"), None);
    assert_eq!(alice["entries"][1]["type"], "transfer_out");
    assert_eq!(
        alice["entries"][1]["link"],
        json!({"kind": "transfer", "id": "bob"})
    );
}

#[tokio::test]
async fn pages_of_any_size_show_every_entry_once_and_chains_that_add_up() {
    let api = Api::new();
    api.post(
        "/v1/accounts",
        r#"{"account_id":"hot","currency":"EUR","slots":3}"#,
    )
    .await;
    for number in 0..20 {
        let (side, amount) = if number % 4 == 3 {
            ("debits", 15)
        } else {
            ("credits", 10)
        };
        let body = format!(r#"{{"request_id":"r{number}","amount":{amount}}}"#);
        let path = format!("/v1/accounts/hot/{side}");
        assert_eq!(api.post(&path, &body).await.status, 201);
    }
    let whole = read_all(&api, "hot", 1000).await;
    let mut slots: BTreeMap<u64, (u64, i64)> = BTreeMap::new();
    for entry in &whole {
        let (version, balance) = slots.entry(entry["slot"].as_u64().unwrap()).or_default();
        *version += 1;
        *balance += entry["delta"].as_i64().unwrap();
        assert_eq!(entry["version"], *version);
        assert_eq!(entry["balance_after"], *balance);
    }
    assert_eq!(
        slots.values().map(|(_, balance)| balance).sum::<i64>(),
        api.balance("hot").await
    );

    let key = |entry: &Value| (entry["slot"].as_u64(), entry["version"].as_u64());
    let mut expected: Vec<_> = whole.iter().map(key).collect();
    expected.sort_unstable();
    for limit in [1, 2, 7] {
        let mut found: Vec<_> = read_all(&api, "hot", limit).await.iter().map(key).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "limit {limit}");
    }
}

#[tokio::test]
async fn the_last_cursor_goes_on_where_new_entries_begin() {
    let api = Api::funded().await;
    let first = api.get("/v1/accounts/alice/entries").await.json();
    let path = format!(
        "/v1/accounts/alice/entries?after={}",
        first["next"].as_str().unwrap()
    );
    let idle = api.get(&path).await.json();
    assert_eq!(idle["entries"], json!([]));
    assert_eq!(idle["next"], first["next"]);
    api.post("/v1/accounts/alice/debits", r#"{"request_id":"d","amount":1}"#)
        .await;
    let more = api.get(&path).await.json();
    assert_eq!(more["entries"].as_array().unwrap().len(), 1);
    assert_eq!(more["entries"][0]["request_id"], "d");
}

#[tokio::test]
async fn a_cursor_of_another_account_is_refused() {
    let api = Api::funded().await;
    let page = api.get("/v1/accounts/alice/entries").await.json();
    let path = format!(
        "/v1/accounts/bob/entries?after={}",
        page["next"].as_str().unwrap()
    );
    let reply = api.get(&path).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.problem().1.as_deref(), Some("after"));
}

#[tokio::test]
async fn a_page_has_100_entries_where_nothing_is_said() {
    let api = Api::funded().await;
    for number in 0..101 {
        let body = format!(r#"{{"request_id":"r{number}","amount":1}}"#);
        api.post("/v1/accounts/bob/credits", &body).await;
    }
    let page = api.get("/v1/accounts/bob/entries").await.json();
    assert_eq!(page["entries"].as_array().unwrap().len(), 100);
}
