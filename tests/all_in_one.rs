//! The sidecar with the bundled wallet behind it.

use serde_json::{Value, json};

use crate::support::proxy::{command, http};
use crate::support::{Options, Proxy};

const RULES: &str = "
resources:
  - name: takeMoney
    match: { method: POST, path: '/v1/accounts/{id}/debits' }
    params: [ { name: id, from: path } ]
paramFlow:
  - { id: hot, resource: takeMoney, param: id, count: 100, durationInSec: 60 }
";

async fn post(proxy: &Proxy, path: &str, body: Value) -> u16 {
    let request = http()
        .post(proxy.url(path))
        .header("content-type", "application/json")
        .body(body.to_string());
    request.send().await.unwrap().status().as_u16()
}

async fn balance(proxy: &Proxy, account: &str) -> Value {
    let response = http()
        .get(proxy.url(&format!("/v1/accounts/{account}")))
        .send()
        .await
        .unwrap();
    let account: Value = response.text().await.unwrap().parse().unwrap();
    account["balance"].clone()
}

#[tokio::test]
async fn a_hot_account_gets_its_hundred_another_is_untouched_and_a_kill_loses_nothing() {
    let all_in_one = Options {
        rules: RULES,
        ..Options::default()
    };
    let proxy = Proxy::start(&all_in_one);
    for account in ["alice", "bob"] {
        assert_eq!(
            post(
                &proxy,
                "/v1/accounts",
                json!({ "account_id": account, "currency": "EUR" })
            )
            .await,
            201
        );
        let credit = json!({ "request_id": "c-1", "amount": 1_000 });
        assert_eq!(
            post(&proxy, &format!("/v1/accounts/{account}/credits"), credit).await,
            201
        );
    }
    let mut load = command();
    load.args([
        "load",
        "--account",
        "alice",
        "--requests",
        "300",
        "--for",
        "300ms",
        "--url",
        &proxy.url(""),
    ]);
    let output = tokio::task::spawn_blocking(move || load.output().unwrap())
        .await
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["by_code"], json!({ "201": 100, "429": 200 }));
    let debit = json!({ "request_id": "d-1", "amount": 7 });
    assert_eq!(post(&proxy, "/v1/accounts/bob/debits", debit).await, 201);

    let folder = proxy.kill();
    let again = Proxy::start_in(folder, &all_in_one);
    assert_eq!(balance(&again, "alice").await, 900);
    assert_eq!(balance(&again, "bob").await, 993);
}

#[tokio::test]
async fn two_sidecars_do_not_share_one_set_of_books() {
    let all_in_one = Options {
        rules: RULES,
        ..Options::default()
    };
    let proxy = Proxy::start(&all_in_one);
    let data = proxy.rule_file("../data");
    let mut second = command();
    second.args([
        "run",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--rules",
    ]);
    second.arg(proxy.rule_file("")).arg("--data").arg(data);
    let output = tokio::task::spawn_blocking(move || second.output().unwrap())
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--data") && said.contains("in use"), "{said}");
}

#[tokio::test]
async fn a_bundled_wallet_with_tokens_asks_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "# ours\nsecret\n").unwrap();
    let proxy = Proxy::start(&Options {
        rules: RULES,
        flags: &["--wallet-token-file", tokens.to_str().unwrap()],
        ..Options::default()
    });
    let open = || {
        http()
            .post(proxy.url("/v1/accounts"))
            .header("content-type", "application/json")
            .body(r#"{"account_id":"alice","currency":"EUR"}"#)
    };
    let refused = open().send().await.unwrap();
    assert_eq!(refused.status().as_u16(), 401);
    let opened = open()
        .header("authorization", "Bearer secret")
        .send()
        .await
        .unwrap();
    assert_eq!(opened.status().as_u16(), 201);
}
