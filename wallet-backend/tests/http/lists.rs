//! The list of accounts over HTTP.

use serde_json::{Value, json};
use wallet_backend::Wallet;
use wallet_backend::store::embedded::Options;

use super::support::Api;
use crate::support::ordinary;

fn ids(page: &Value) -> Vec<&str> {
    let accounts = page["accounts"].as_array().unwrap().iter();
    accounts
        .map(|account| account["account_id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn accounts_are_listed_as_they_are_read_one_by_one_and_next_leads_on() {
    let api = Api::funded().await;
    let page = api.get("/v1/accounts?limit=1").await.json();
    let alice = api.get("/v1/accounts/alice").await.json();
    assert_eq!(page["accounts"], json!([alice]));
    let rest = api
        .get(&format!("/v1/accounts?after={}", page["next"].as_str().unwrap()))
        .await
        .json();
    assert_eq!(ids(&rest), ["bob"]);
    let path = format!("/v1/accounts?after={}", rest["next"].as_str().unwrap());
    let end = api.get(&path).await.json();
    assert_eq!(end, json!({"accounts": [], "next": rest["next"]}));
}

#[tokio::test]
async fn the_end_of_an_empty_list_goes_on_where_accounts_begin() {
    let api = Api::new();
    let empty = api.get("/v1/accounts").await.json();
    assert_eq!(empty["accounts"], json!([]));
    api.post("/v1/accounts", r#"{"account_id":"a","currency":"EUR"}"#)
        .await;
    let path = format!("/v1/accounts?after={}", empty["next"].as_str().unwrap());
    assert_eq!(ids(&api.get(&path).await.json()), ["a"]);
}

#[tokio::test]
async fn what_is_no_place_in_the_list_and_no_limit_is_refused() {
    let api = Api::funded().await;
    let entries = api.get("/v1/accounts/alice/entries").await.json();
    let foreign = format!("after={}", entries["next"].as_str().unwrap());
    for (query, field) in [
        ("after=alice", "after"),
        (foreign.as_str(), "after"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("page=2", "page"),
    ] {
        let reply = api.get(&format!("/v1/accounts?{query}")).await;
        assert_eq!(
            reply.problem(),
            ("invalid_request".to_owned(), Some(field.to_owned()))
        );
    }
}

#[tokio::test]
async fn the_list_is_whole_when_a_store_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["c", "a", "b"];
    let wallet = Wallet::embedded(Options::at(dir.path())).unwrap();
    for name in names {
        wallet.open(ordinary(name)).await.unwrap();
    }
    wallet.close().await;
    // Once from the log, once from the checkpoint that closing wrote.
    for _ in 0..2 {
        let wallet = Wallet::embedded(Options::at(dir.path())).unwrap();
        let page = Api::over(wallet.clone()).get("/v1/accounts").await.json();
        assert_eq!(ids(&page), ["a", "b", "c"]);
        wallet.close().await;
    }
}
