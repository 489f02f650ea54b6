//! `POST /v1/batches`: a status each, all or nothing, and what spoils one operation or the whole body.

use std::fmt::Write as _;

use http::Request;
use serde_json::{Value, json};
use wallet_backend::Wallet;
use wallet_backend::http::MAX_BATCH_BYTES;

use super::support::{Api, Reply};

const BATCHES: &str = "/v1/batches";

/// One of every kind, on an account that has 100: each is done after those before it.
const EVERY: &str = r#"{"operations":[
    {"op":"credit","account_id":"alice","request_id":"c","amount":50,"memo":"in"},
    {"op":"debit","account_id":"alice","request_id":"d","amount":30},
    {"op":"transfer","from":"alice","to":"bob","request_id":"t","amount":20},
    {"op":"hold","account_id":"alice","request_id":"h","amount":40,"expires_in_s":60},
    {"op":"capture","account_id":"alice","hold_id":"h","request_id":"k","amount":10,"final":false},
    {"op":"release","account_id":"alice","hold_id":"h","request_id":"l"},
    {"op":"reversal","account_id":"alice","request_id":"r","reverses":"t"},
    {"op":"debit","account_id":"alice","request_id":"all","amount":"max"}
]}"#;

fn results(reply: &Reply) -> Vec<Value> {
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("application/json"));
    reply.json()["results"].as_array().unwrap().clone()
}

/// Status and, of what was refused, code and field.
fn short(reply: &Reply) -> Vec<(u64, String, String)> {
    let text = |problem: &Value, key: &str| problem[key].as_str().unwrap_or_default().to_owned();
    let one = |result: &Value| {
        let problem = &result["problem"];
        let status = result["status"].as_u64().unwrap();
        assert_eq!(problem.is_null(), result["receipt"].is_object(), "{result}");
        assert!(problem.is_null() || problem["status"] == status, "{result}");
        (status, text(problem, "code"), text(problem, "field"))
    };
    results(reply).iter().map(one).collect()
}

fn refused(status: u64, code: &str, field: &str) -> (u64, String, String) {
    (status, code.to_owned(), field.to_owned())
}

#[tokio::test]
async fn each_operation_is_answered_as_by_its_own_route() {
    let api = Api::funded().await;
    let reply = api.post(BATCHES, EVERY).await;
    assert_eq!(reply.json()["applied"], true);
    assert_eq!(short(&reply), vec![refused(201, "", ""); 8]);
    for result in results(&reply) {
        let receipt = &result["receipt"];
        let id = receipt["request_id"].as_str().unwrap();
        let known = api.get(&format!("/v1/requests/alice/{id}")).await.json();
        assert_eq!(&known["receipt"], receipt);
    }
    assert_eq!(results(&reply)[7]["receipt"]["amount"], 110);
    assert_eq!((api.balance("alice").await, api.balance("bob").await), (0, 0));
    let again = api.post(BATCHES, EVERY).await;
    assert_eq!(short(&again), vec![refused(200, "", ""); 8]);
    let receipts = |reply: &Reply| -> Vec<Value> {
        let results = results(reply);
        results.iter().map(|result| result["receipt"].clone()).collect()
    };
    assert_eq!(receipts(&again), receipts(&reply));
}

#[tokio::test]
async fn a_batch_and_the_single_route_share_their_ids() {
    let api = Api::funded().await;
    let single = api
        .post(
            "/v1/accounts/alice/debits",
            r#"{"request_id":"d","amount":30,"memo":"x"}"#,
        )
        .await;
    let debit = r#"{"op":"debit","account_id":"alice","request_id":"d","amount":30,"memo":"x"}"#;
    let reply = api.post(BATCHES, &format!(r#"{{"operations":[{debit}]}}"#)).await;
    let text = String::from_utf8(reply.body.to_vec()).unwrap();
    let receipt = String::from_utf8(single.body.to_vec()).unwrap();
    assert_eq!(
        text,
        format!(r#"{{"applied":true,"results":[{{"status":200,"receipt":{receipt}}}]}}"#)
    );
}

#[tokio::test]
async fn what_is_wrong_with_one_operation_spoils_no_other() {
    let api = Api::funded().await;
    let body = r#"{"atomic":false,"operations":[
        {"op":"debit","account_id":"alice","request_id":"d1","amount":1},
        {"op":"debit","account_id":"alice","request_id":"d2","amount":0},
        {"op":"debit","account_id":"alice","request_id":"d3","amount":5000},
        {"op":"debit","account_id":"nobody","request_id":"d4","amount":1},
        {"op":"debit","account_id":"alice","request_id":"d1","amount":1},
        {"op":"debit","account_id":"alice","request_id":"d1","amount":2},
        {"op":"capture","account_id":"alice","hold_id":"h","request_id":"k"},
        {"op":"credit","account_id":"alice","request_id":"c1","amount":"max"},
        {"op":"transfer","from":"alice","to":"bob","request_id":"t","amount":1}
    ]}"#;
    assert_eq!(
        short(&api.post(BATCHES, body).await),
        [
            refused(201, "", ""),
            refused(400, "invalid_request", "amount"),
            refused(422, "insufficient_funds", "amount"),
            refused(404, "account_not_found", "account_id"),
            refused(200, "", ""),
            refused(422, "request_id_reused", "amount"),
            refused(404, "hold_not_found", "hold_id"),
            refused(400, "invalid_request", "amount"),
            refused(201, "", ""),
        ]
    );
    assert_eq!(api.balance("alice").await, 98);
}

#[tokio::test]
async fn an_atomic_batch_that_is_refused_says_why_once_and_leaves_no_trace() {
    let api = Api::funded().await;
    let before = api.get("/v1/accounts/alice").await.body;
    let body = r#"{"atomic":true,"operations":[
        {"op":"debit","account_id":"alice","request_id":"d1","amount":60},
        {"op":"debit","account_id":"alice","request_id":"d2","amount":60},
        {"op":"credit","account_id":"bob","request_id":"c","amount":60}
    ]}"#;
    let reply = api.post(BATCHES, body).await;
    assert_eq!(reply.json()["applied"], false);
    let aborted = refused(409, "batch_aborted", "");
    let short_of = refused(422, "insufficient_funds", "amount");
    assert_eq!(short(&reply), [aborted.clone(), short_of, aborted]);
    assert_eq!(api.get("/v1/accounts/alice").await.body, before);
    for id in ["alice/d1", "alice/d2", "bob/c"] {
        let known = api.get(&format!("/v1/requests/{id}")).await.json();
        assert_eq!(known["status"], "not_found", "{id}");
    }
    // The refusal is not kept: with the money there, the same batch is done.
    api.post(
        "/v1/accounts/alice/credits",
        r#"{"request_id":"more","amount":20}"#,
    )
    .await;
    let again = api.post(BATCHES, body).await;
    assert_eq!(again.json()["applied"], true);
    assert_eq!(short(&again), vec![refused(201, "", ""); 3]);
}

#[tokio::test]
async fn an_atomic_batch_with_a_malformed_operation_is_given_up_before_any_is_decided() {
    let api = Api::funded().await;
    let aborted = refused(409, "batch_aborted", "");
    for (operation, field) in [
        (
            r#"{"op":"debit","account_id":"alice","request_id":"e","amount":1.5}"#,
            "amount",
        ),
        (
            r#"{"op":"debit","account_id":"alice","request_id":"e"}"#,
            "amount",
        ),
        (r#"[]"#, ""),
    ] {
        let body = format!(
            r#"{{"atomic":true,"operations":[
                {{"op":"debit","account_id":"alice","request_id":"d","amount":1}},{operation}]}}"#
        );
        let reply = api.post(BATCHES, &body).await;
        assert_eq!(reply.json()["applied"], false);
        assert_eq!(
            short(&reply),
            [aborted.clone(), refused(400, "invalid_request", field)]
        );
    }
    assert_eq!(api.balance("alice").await, 100);
}

/// An operation, and the field that its problem names.
#[rustfmt::skip]
const WRONG: [(&str, &str); 34] = [
    (r#"{"account_id":"alice","request_id":"x","amount":1}"#, "op"),
    (r#"{"op":"pay","account_id":"alice","request_id":"x","amount":1}"#, "op"),
    (r#"{"op":"Debit","account_id":"alice","request_id":"x","amount":1}"#, "op"),
    (r#"{"op":null,"account_id":"alice","request_id":"x","amount":1}"#, "op"),
    (r#"{"op":"debit","account_id":"alice","amount":1}"#, "request_id"),
    (r#"{"op":"debit","account_id":"alice","request_id":"a b","amount":1}"#, "request_id"),
    (r#"{"op":"debit","request_id":"x","amount":1}"#, "account_id"),
    (r#"{"op":"debit","account_id":"a/b","request_id":"x","amount":1}"#, "account_id"),
    (r#"{"op":"debit","from":"alice","request_id":"x","amount":1}"#, "from"),
    (r#"{"op":"debit","account_id":"alice","request_id":"x","amount":1,"to":"bob"}"#, "to"),
    (r#"{"op":"debit","account_id":"alice","request_id":"x","amount":1e3}"#, "amount"),
    (r#"{"op":"debit","account_id":"alice","request_id":"x","amount":1,"amount":1}"#, "amount"),
    (r#"{"op":"debit","account_id":"alice","request_id":"x","amount":1,"ammount":1}"#, "ammount"),
    (r#"{"op":"debit","account_id":"alice","request_id":"x","amount":1,"expires_in_s":5}"#, "expires_in_s"),
    (r#"{"op":"debit","account_id":"alice","request_id":"x","amount":1,"memo":5}"#, "memo"),
    (r#"{"op":"hold","account_id":"alice","request_id":"x","amount":"max"}"#, "amount"),
    (r#"{"op":"hold","account_id":"alice","request_id":"x","amount":1,"memo":"x"}"#, "memo"),
    (r#"{"op":"hold","account_id":"alice","request_id":"x","amount":1,"expires_in_s":0}"#, "expires_in_s"),
    (r#"{"op":"capture","account_id":"alice","request_id":"x"}"#, "hold_id"),
    (r#"{"op":"capture","account_id":"alice","request_id":"x","hold_id":"h","final":1}"#, "final"),
    (r#"{"op":"release","account_id":"alice","request_id":"x","hold_id":"h","amount":1}"#, "amount"),
    (r#"{"op":"release","account_id":"alice","request_id":"x","hold_id":"h","final":true}"#, "final"),
    (r#"{"op":"transfer","account_id":"alice","from":"alice","to":"bob","request_id":"x","amount":1}"#, "account_id"),
    (r#"{"op":"transfer","to":"bob","request_id":"x","amount":1}"#, "from"),
    (r#"{"op":"transfer","from":"alice","to":"alice","request_id":"x","amount":1}"#, "to"),
    (r#"{"op":"transfer","from":"alice","to":"bob","request_id":"x","amount":1,"hold_id":"h"}"#, "hold_id"),
    (r#"{"op":"reversal","account_id":"alice","request_id":"x"}"#, "reverses"),
    (r#"{"op":"reversal","account_id":"alice","request_id":"x","reverses":"d","amount":1}"#, "amount"),
    (r#"{"op":"credit","account_id":"alice","request_id":"x","amount":1,"reverses":"d"}"#, "reverses"),
    (r#"{"op":"debit","account_id":"alice","request_id":"x","amount":"\ud800"}"#, "amount"),
    (r#"["debit","x","alice"]"#, ""),
    (r#""debit""#, ""),
    ("null", ""),
    ("{}", "op"),
];

#[tokio::test]
async fn each_way_to_ask_wrongly_names_its_field_in_its_place() {
    let api = Api::funded().await;
    for (operation, field) in WRONG {
        let good = r#"{"op":"credit","account_id":"bob","request_id":"good","amount":1,"memo":null}"#;
        let body = format!(r#"{{"operations":[{operation},{good}]}}"#);
        let short = short(&api.post(BATCHES, &body).await);
        assert_eq!(short[0], refused(400, "invalid_request", field), "{operation}");
        assert!(short[1].0 == 201 || short[1].0 == 200, "{operation}: {short:?}");
    }
    assert_eq!((api.balance("alice").await, api.balance("bob").await), (100, 1));
}

#[tokio::test]
async fn a_body_that_is_no_batch_is_refused_whole() {
    let api = Api::funded().await;
    let operation = r#"{"op":"debit","account_id":"alice","request_id":"d","amount":1}"#;
    for (body, field) in [
        (String::new(), None),
        (format!("[{operation}]"), None),
        ("{}".to_owned(), Some("operations")),
        (r#"{"operations":null}"#.to_owned(), Some("operations")),
        (format!(r#"{{"operations":{operation}}}"#), Some("operations")),
        (
            format!(r#"{{"operations":[{operation}],"atomic":"true"}}"#),
            Some("atomic"),
        ),
        (
            format!(r#"{{"operations":[{operation}],"mode":"each"}}"#),
            Some("mode"),
        ),
        (
            format!(r#"{{"operations":[{operation}],"operations":[]}}"#),
            Some("operations"),
        ),
        (format!(r#"{{"operations":[{operation},]}}"#), Some("operations")),
        (format!(r#"{{"operations":[{operation}]}} {{}}"#), None),
        (
            r#"{"operations":[{"op":"debit","amount":05}]}"#.to_owned(),
            Some("operations"),
        ),
    ] {
        let reply = api.post(BATCHES, &body).await;
        assert_eq!(reply.status, 400, "{body}");
        let expected = ("invalid_request".to_owned(), field.map(str::to_owned));
        assert_eq!(reply.problem(), expected, "{body}");
    }
    assert_eq!(api.balance("alice").await, 100);
}

#[tokio::test]
async fn a_batch_takes_no_idempotency_key() {
    let api = Api::funded().await;
    let request = Request::post(BATCHES)
        .header("content-type", "application/json")
        .header("idempotency-key", "k");
    let reply = api.send(request, r#"{"operations":[]}"#).await;
    assert_eq!(reply.status, 400);
    assert_eq!(
        reply.problem(),
        ("invalid_request".to_owned(), Some("request_id".to_owned()))
    );
}

#[tokio::test]
async fn an_empty_batch_is_applied() {
    let api = Api::funded().await;
    for atomic in ["", r#""atomic":true,"#, r#""atomic":null,"#] {
        let reply = api
            .post(BATCHES, &format!(r#"{{{atomic}"operations":[]}}"#))
            .await;
        assert_eq!(reply.json(), json!({"applied": true, "results": []}));
    }
}

/// A batch of credits of one cent.
fn credits(count: usize) -> String {
    let mut body = r#"{"operations":["#.to_owned();
    for number in 0..count {
        let comma = if number == 0 { "" } else { "," };
        write!(
            body,
            r#"{comma}{{"op":"credit","account_id":"bob","request_id":"{number}","amount":1}}"#
        )
        .unwrap();
    }
    body + "]}"
}

#[tokio::test]
async fn a_batch_has_at_most_8192_operations() {
    let api = Api::funded().await;
    let reply = api.post(BATCHES, &credits(8_193)).await;
    assert_eq!(reply.status, 400);
    assert_eq!(
        reply.problem(),
        ("invalid_request".to_owned(), Some("operations".to_owned()))
    );
    assert_eq!(api.balance("bob").await, 0);
    let reply = api.post(BATCHES, &credits(8_192)).await;
    assert_eq!(short(&reply), vec![refused(201, "", ""); 8_192]);
    assert_eq!(api.balance("bob").await, 8_192);
}

#[tokio::test]
async fn a_batch_has_at_most_4_mib() {
    let api = Api::funded().await;
    let padded = |length: usize| credits(1) + &" ".repeat(length - credits(1).len());
    let fits = padded(MAX_BATCH_BYTES);
    assert_eq!(short(&api.post(BATCHES, &fits).await), [refused(201, "", "")]);
    let reply = api.post(BATCHES, &padded(MAX_BATCH_BYTES + 1)).await;
    assert_eq!(reply.status, 413);
    assert_eq!(reply.problem(), ("body_too_large".to_owned(), None));
}

#[tokio::test]
async fn a_batch_that_nobody_takes_is_refused_whole_and_says_when_to_come_back() {
    let wallet = Wallet::memory().unwrap();
    let api = Api::over(wallet.clone());
    wallet.close().await;
    let reply = api.post(BATCHES, &credits(2)).await;
    assert_eq!(reply.status, 503);
    assert_eq!(reply.problem(), ("unavailable".to_owned(), None));
    assert_eq!(reply.header("retry-after"), Some("1"));
}

#[tokio::test]
async fn the_operations_of_a_batch_are_counted_by_type_and_result() {
    let api = Api::funded().await;
    api.post(BATCHES, EVERY).await;
    api.post(BATCHES, EVERY).await;
    let over = r#"{"op":"debit","account_id":"bob","request_id":"x","amount":1}"#;
    let credit = r#"{"op":"credit","account_id":"alice","request_id":"y","amount":1}"#;
    api.post(
        BATCHES,
        &format!(r#"{{"atomic":true,"operations":[{credit},{over}]}}"#),
    )
    .await;
    let text = String::from_utf8(api.get("/metrics").await.body.to_vec()).unwrap();
    for line in [
        r#"wallet_operations_total{type="debit",result="done"} 2"#,
        r#"wallet_operations_total{type="debit",result="replayed"} 2"#,
        r#"wallet_operations_total{type="debit",result="insufficient_funds"} 1"#,
        r#"wallet_operations_total{type="credit",result="batch_aborted"} 1"#,
        r#"wallet_operations_total{type="reversal",result="done"} 1"#,
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is not in\n{text}"
        );
    }
}
