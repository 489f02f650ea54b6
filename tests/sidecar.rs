//! One wallet, reached three ways: in process, over TCP, over a Unix socket. And what the shipped rules make of it.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use self::table::TABLE;
use crate::shipped::{AN_HOUR, COUNT, DURATION, shipped};
use crate::support::proxy::http;
use crate::support::{Options, Proxy, settles};
use crate::wallet::Wallet;

mod table;

/// What is the same whichever way it came: status, the fields that a client acts on, the body with its times masked.
async fn answers(proxy: &Proxy) -> Vec<String> {
    let client = http();
    let mut answers = Vec::new();
    for (method, path, body) in TABLE {
        let method = method.parse().unwrap();
        let mut request = client.request(method, proxy.url(path));
        if !body.is_empty() {
            request = request.header("content-type", "application/json").body(body);
        }
        let response = request.send().await.unwrap();
        let field = |name: &str| {
            response
                .headers()
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        let names = [
            "content-type",
            "idempotent-replayed",
            "retry-after",
            "x-sluice-block",
            "allow",
        ];
        let fields: Vec<_> = names
            .iter()
            .filter_map(|name| Some(format!("{name}: {}", field(name)?)))
            .collect();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        answers.push(format!(
            "{path} {body}\n{status} {} {}",
            fields.join(", "),
            masked(&text)
        ));
    }
    answers
}

/// JSON with its times taken out; anything else as it is.
fn masked(body: &str) -> String {
    fn mask(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for name in ["at", "expires_at"] {
                    if let Some(time) = fields.get_mut(name) {
                        *time = Value::Null;
                    }
                }
                fields.values_mut().for_each(mask);
            }
            Value::Array(values) => values.iter_mut().for_each(mask),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    match serde_json::from_str(body) {
        Ok(mut value) => {
            mask(&mut value);
            value.to_string()
        }
        Err(_) => body.to_owned(),
    }
}

fn in_front_of(upstream: &str, folder: TempDir) -> Proxy {
    let options = Options {
        upstream: upstream.to_owned(),
        flags: &["--access-log", "off"],
        ..Options::default()
    };
    Proxy::start_in(folder, &options)
}

fn unix(folder: &Path) -> String {
    format!("unix:{}", folder.join("wallet.sock").display())
}

#[tokio::test]
async fn a_wallet_answers_the_same_in_process_over_tcp_and_over_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let tcp = Wallet::start("127.0.0.1:0", &folder.path().join("tcp"));
    let socket = Wallet::start(&unix(folder.path()), &folder.path().join("unix"));
    let in_process = answers(&in_front_of("", shipped(&[]))).await;
    let over_tcp = answers(&in_front_of(&tcp.address, shipped(&[]))).await;
    let over_unix = answers(&in_front_of(&socket.address, shipped(&[]))).await;
    for ((first, second), third) in in_process.iter().zip(&over_tcp).zip(&over_unix) {
        assert_eq!(first, second);
        assert_eq!(second, third);
    }
    for status in [200, 201, 400, 404, 409, 422] {
        let there = in_process
            .iter()
            .any(|answer| answer.contains(&format!("\n{status} ")));
        assert!(there, "no {status} in {in_process:#?}");
    }
}

/// Posts JSON; status and `code`.
async fn post(proxy: &Proxy, path: &str, body: &str) -> (u16, String) {
    let request = http()
        .post(proxy.url(path))
        .header("content-type", "application/json");
    let response = request.body(body.to_owned()).send().await.unwrap();
    let status = response.status().as_u16();
    let refused = response.headers().contains_key("x-sluice-block");
    let waits = response
        .headers()
        .get("retry-after")
        .map(|value| value.to_str().unwrap().to_owned());
    if refused {
        assert!(waits.unwrap().parse::<u64>().unwrap() >= 1);
    }
    let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

async fn open_with(proxy: &Proxy, account: &str, amount: u64) {
    let body = format!(r#"{{"account_id":"{account}","currency":"EUR"}}"#);
    assert_eq!(post(proxy, "/v1/accounts", &body).await.0, 201);
    if amount > 0 {
        let body = format!(r#"{{"request_id":"first","amount":{amount}}}"#);
        assert_eq!(
            post(proxy, &format!("/v1/accounts/{account}/credits"), &body)
                .await
                .0,
            201
        );
    }
}

async fn debit(proxy: &Proxy, account: &str, request: &str, amount: u64) -> (u16, String) {
    let body = format!(r#"{{"request_id":"{request}","amount":{amount}}}"#);
    post(proxy, &format!("/v1/accounts/{account}/debits"), &body).await
}

async fn breaker(proxy: &Proxy) -> Value {
    proxy.resource("takeMoney").await["breakers"][0]["state"].clone()
}

/// Stops the wallet, watches the breaker open, starts the wallet again, watches one probe close it.
async fn wallet_goes_and_comes(listen: &str) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let wallet = Wallet::start(listen, &data);
    let again = wallet.address.trim_start_matches("http://").to_owned();
    let rules = shipped(&[
        ("    timeWindow: 10\n", "    timeWindow: 1\n"),
        ("    statIntervalMs: 1000\n", "    statIntervalMs: 60000\n"),
    ]);
    let proxy = in_front_of(&wallet.address, rules);
    open_with(&proxy, "alice", 1_000).await;
    assert_eq!(debit(&proxy, "alice", "before", 1).await.0, 201);
    drop(wallet);
    // 20 answers are needed, of which more than 0.3 are failures: the one before was good.
    for number in 1..20 {
        let answer = debit(&proxy, "alice", &format!("down-{number}"), 1).await;
        assert_eq!(answer, (502, "upstream_unreachable".to_owned()), "{number}");
    }
    let refused = debit(&proxy, "alice", "open", 1).await;
    assert_eq!(refused, (503, "degrade".to_owned()));
    assert_eq!(breaker(&proxy).await, "open");

    let wallet = Wallet::start(&again, &data);
    settles("the probe", || async {
        let answer = debit(&proxy, "alice", "probe", 1).await;
        assert!(
            answer.0 == 201 || answer == (503, "degrade".to_owned()),
            "{answer:?}"
        );
        answer.0 == 201
    })
    .await;
    assert_eq!(breaker(&proxy).await, "closed");
    // What was answered with 502 or 503 has not happened, and may now.
    assert_eq!(debit(&proxy, "alice", "down-1", 1).await.0, 201);
    let account = http().get(proxy.url("/v1/accounts/alice")).send().await.unwrap();
    let account: Value = serde_json::from_str(&account.text().await.unwrap()).unwrap();
    assert_eq!(account["balance"], 997);
    drop(wallet);
}

#[tokio::test]
async fn a_wallet_on_tcp_that_is_stopped_opens_the_breaker_and_one_probe_closes_it() {
    wallet_goes_and_comes("127.0.0.1:0").await;
}

#[tokio::test]
async fn a_wallet_on_a_unix_socket_that_is_stopped_opens_the_breaker_and_one_probe_closes_it() {
    let folder = tempfile::tempdir().unwrap();
    wallet_goes_and_comes(&unix(folder.path())).await;
}

#[tokio::test]
async fn every_way_to_take_money_counts_on_the_one_window_of_its_account() {
    let proxy = in_front_of("", shipped(&[(COUNT, "    count: 6\n"), (DURATION, AN_HOUR)]));
    open_with(&proxy, "alice", 1_000).await;
    open_with(&proxy, "bob", 1_000).await;
    let transfer = |from: &str, to: &str, request: &str| {
        format!(r#"{{"request_id":"{request}","from":"{from}","to":"{to}","amount":1}}"#)
    };
    let hold = |request: &str| format!(r#"{{"request_id":"{request}","amount":1}}"#);
    let reversal =
        |request: &str| format!(r#"{{"request_id":"{request}","account_id":"alice","reverses":"d1"}}"#);
    let batch = r#"{"operations":[{"op":"debit","account_id":"alice","request_id":"b1","amount":1},
        {"op":"transfer","from":"alice","to":"bob","request_id":"b2","amount":1}]}"#;
    let holds = "/v1/accounts/alice/holds";
    assert_eq!(debit(&proxy, "alice", "d1", 1).await.0, 201);
    for (path, body) in [
        ("/v1/transfers", transfer("alice", "bob", "t1")),
        (holds, hold("h1")),
        ("/v1/reversals", reversal("r1")),
    ] {
        assert_eq!(post(&proxy, path, &body).await.0, 201, "{path}");
    }
    // Two operations weigh two.
    assert_eq!(post(&proxy, "/v1/batches", batch).await.0, 200);
    let refused = (429, "param_flow".to_owned());
    assert_eq!(debit(&proxy, "alice", "d2", 1).await, refused);
    for (path, body) in [
        ("/v1/transfers", transfer("alice", "bob", "t2")),
        (holds, hold("h2")),
        ("/v1/reversals", reversal("r2")),
        ("/v1/batches", batch.to_owned()),
    ] {
        assert_eq!(post(&proxy, path, &body).await, refused, "{path}");
    }
    // To be paid is not to take; and another account has a window of its own.
    assert_eq!(
        post(&proxy, "/v1/transfers", &transfer("bob", "alice", "t3"))
            .await
            .0,
        201
    );
    assert_eq!(debit(&proxy, "bob", "d3", 1).await.0, 201);
}

#[tokio::test]
async fn an_account_at_its_limit_still_settles_what_it_holds_and_is_changed_and_read() {
    let proxy = in_front_of("", shipped(&[(COUNT, "    count: 2\n"), (DURATION, AN_HOUR)]));
    open_with(&proxy, "alice", 1_000).await;
    let holds = "/v1/accounts/alice/holds";
    for hold in ["h1", "h2"] {
        let body = format!(r#"{{"request_id":"{hold}","amount":10}}"#);
        assert_eq!(post(&proxy, holds, &body).await.0, 201);
    }
    let refused = (429, "param_flow".to_owned());
    assert_eq!(debit(&proxy, "alice", "d", 1).await, refused);
    for (path, body, status) in [
        (
            "/v1/accounts/alice/holds/h1/capture",
            r#"{"request_id":"c"}"#,
            201,
        ),
        (
            "/v1/accounts/alice/holds/h2/release",
            r#"{"request_id":"r"}"#,
            201,
        ),
        ("/v1/requests/alice/d/abandon", "{}", 200),
    ] {
        assert_eq!(post(&proxy, path, body).await.0, status, "{path}");
    }
    assert_eq!(proxy.resource("settle").await["pass"], 3);
    let floor = http().patch(proxy.url("/v1/accounts/alice"));
    let floor = floor
        .header("content-type", "application/json")
        .body(r#"{"request_id":"p","floor":1}"#);
    assert_eq!(floor.send().await.unwrap().status().as_u16(), 200);
    // Opening was the first.
    assert_eq!(proxy.resource("manageAccount").await["pass"], 2);
    let hold = http().get(proxy.url("/v1/accounts/alice/holds/h1")).send().await;
    assert_eq!(hold.unwrap().status().as_u16(), 200);
    assert_eq!(proxy.resource("readAccount").await["pass"], 1);
}

#[tokio::test]
async fn what_the_wallet_refuses_never_opens_the_breaker() {
    let proxy = in_front_of("", shipped(&[]));
    open_with(&proxy, "poor", 0).await;
    for number in 0..30 {
        let answer = debit(&proxy, "poor", &format!("d{number}"), 1).await;
        assert_eq!(answer, (422, "insufficient_funds".to_owned()));
        let answer = debit(&proxy, "nobody", &format!("d{number}"), 1).await;
        assert_eq!(answer, (404, "account_not_found".to_owned()));
    }
    assert_eq!(breaker(&proxy).await, "closed");
    assert_eq!(proxy.resource("takeMoney").await["exceptions"], 0);
}
