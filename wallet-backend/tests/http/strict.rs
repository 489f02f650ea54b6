//! What is not understood is refused, and the answer names the field. Nothing of it reaches the wallet.

use http::{Method, Request};
use proptest::prelude::*;

use self::rows::{DEBIT, OPEN, PATCHES, ROWS};
use super::support::{Api, Reply};

mod rows;

#[tokio::test]
async fn every_malformed_request_is_a_400_that_names_the_field_and_moves_nothing() {
    let api = Api::funded().await;
    let placed = api
        .post("/v1/accounts/alice/holds", r#"{"request_id":"h","amount":40}"#)
        .await;
    assert_eq!(placed.status, 201);
    let before = api.get("/v1/accounts/alice").await.body;
    let posts = ROWS.iter().map(|row| (Method::POST, row));
    let patches = PATCHES.iter().map(|row| (Method::PATCH, row));
    for (method, row) in posts.chain(patches) {
        let request = Request::builder().method(method).uri(row.path);
        let request = request.header("content-type", "application/json");
        let reply = api.send(request, row.body).await;
        assert_eq!(reply.status, 400, "{}: {reply:?}", row.name);
        let (code, field) = reply.problem();
        assert_eq!(code, "invalid_request", "{}", row.name);
        assert_eq!(field.as_deref(), row.field, "{}: {reply:?}", row.name);
    }
    assert_eq!(api.get("/v1/accounts/alice").await.body, before);
    assert_eq!(api.get("/v1/accounts/x").await.status, 404);
    let request = api.get("/v1/requests/alice/r").await.json();
    assert_eq!(request["status"], "not_found");
}

#[tokio::test]
async fn null_is_the_same_as_absent() {
    let api = Api::funded().await;
    let opened = api
        .post(
            OPEN,
            r#"{"account_id":"n","currency":"EUR","slots":null,"credit":null,"debit":null,"floor":null}"#,
        )
        .await;
    assert_eq!(opened.status, 201);
    assert_eq!(opened.json()["slots"].as_array().unwrap().len(), 1);
    let debited = api
        .post(DEBIT, r#"{"request_id":"r","amount":1,"memo":null}"#)
        .await;
    assert_eq!(debited.status, 201);
    let again = api.post(DEBIT, r#"{"request_id":"r","amount":1}"#).await;
    assert!(again.replayed());
}

#[tokio::test]
async fn a_refusal_quotes_a_long_value_only_in_part() {
    let api = Api::funded().await;
    let long = "x".repeat(25_000);
    for body in [
        format!(r#"{{"request_id":"r","amount":"{long}"}}"#),
        format!(r#"{{"request_id":"r","{long}":1}}"#),
        format!(r#"{{"request_id":"r","amount":1,"{long}":1,"{long}":1}}"#),
    ] {
        let reply = api.post(DEBIT, &body).await;
        assert_eq!(reply.status, 400);
        assert!(reply.body.len() < 1_000, "{}", reply.body.len());
    }
}

#[tokio::test]
async fn nesting_a_thousand_deep_is_refused_by_name() {
    let api = Api::funded().await;
    let deep = "[".repeat(30_000);
    let body = format!(r#"{{"request_id":"r","amount":{deep}"#);
    assert_refused(&api.post(DEBIT, &body).await, "amount");
    let body = format!(r#"{{"request_id":"r","amount":1,"deep":{deep}"#);
    assert_refused(&api.post(DEBIT, &body).await, "deep");
}

#[tokio::test]
async fn bytes_that_are_no_utf_8_are_refused_by_name() {
    let api = Api::funded().await;
    let mut body = br#"{"request_id":"r","amount":1,"memo":""#.to_vec();
    body.extend([0xc3, 0x28, b'"', b'}']);
    let request = Request::post(DEBIT).header("content-type", "application/json");
    assert_refused(&api.send(request, body).await, "memo");
}

#[tokio::test]
async fn a_memo_has_at_most_256_bytes() {
    let api = Api::funded().await;
    let body = |memo: String| format!(r#"{{"request_id":"r","amount":1,"memo":"{memo}"}}"#);
    assert_refused(&api.post(DEBIT, &body("x".repeat(257))).await, "memo");
    assert_refused(&api.post(DEBIT, &body("ä".repeat(129))).await, "memo");
    assert_eq!(api.post(DEBIT, &body("ä".repeat(128))).await.status, 201);
}

#[tokio::test]
async fn the_largest_amount_is_exact() {
    let api = Api::funded().await;
    let body = r#"{"account_id":"vault","currency":"EUR","floor":9007199254740991}"#;
    let opened = api.post(OPEN, body).await;
    assert_eq!(opened.json()["floor"], 9_007_199_254_740_991_i64);
    let refused = api
        .post(DEBIT, r#"{"request_id":"r","amount":9007199254740991}"#)
        .await;
    assert_eq!(refused.code(), "insufficient_funds");
    assert!(
        refused.json()["detail"]
            .as_str()
            .unwrap()
            .contains("9007199254740991")
    );
}

#[tokio::test]
async fn a_body_has_at_most_64_kib() {
    let api = Api::funded().await;
    let fits = format!(r#"{{"request_id":"r","amount":1{}}}"#, " ".repeat(64 * 1024 - 29));
    assert_eq!(fits.len(), 64 * 1024);
    assert_eq!(api.post(DEBIT, &fits).await.status, 201);
    let reply = api.post(DEBIT, &format!("{fits} ")).await;
    assert_eq!(reply.status, 413);
    assert_eq!(reply.problem(), ("body_too_large".to_owned(), None));
}

#[tokio::test]
async fn only_json_in_utf_8_is_read() {
    let api = Api::funded().await;
    let body = r#"{"request_id":"r","amount":1}"#;
    for (content_type, status) in [
        (None, 415),
        (Some("text/plain"), 415),
        (Some("application/x-www-form-urlencoded"), 415),
        (Some("application/json; charset=latin1"), 415),
        (Some("application/jsonx"), 415),
        (Some("application/json"), 201),
        (Some("Application/JSON; charset=\"UTF-8\""), 200),
    ] {
        let mut request = Request::post(DEBIT);
        if let Some(value) = content_type {
            request = request.header("content-type", value);
        }
        let reply = api.send(request, body).await;
        assert_eq!(reply.status, status, "{content_type:?}");
        if status == 415 {
            assert_eq!(reply.problem(), ("unsupported_media_type".to_owned(), None));
        }
    }
    let compressed = Request::post(DEBIT)
        .header("content-type", "application/json")
        .header("content-encoding", "gzip");
    assert_eq!(api.send(compressed, body).await.status, 415);
}

#[tokio::test]
async fn a_second_content_type_or_coding_is_not_passed_over() {
    let api = Api::funded().await;
    for (name, first, second) in [
        ("content-type", "application/json", "text/plain"),
        ("content-encoding", "identity", "gzip"),
    ] {
        let mut request = Request::post(DEBIT);
        if name != "content-type" {
            request = request.header("content-type", "application/json");
        }
        let request = request.header(name, first).header(name, second);
        let reply = api.send(request, r#"{"request_id":"r","amount":1}"#).await;
        assert_eq!(reply.status, 415, "{name}");
    }
}

#[tokio::test]
async fn a_statement_takes_a_limit_from_1_to_1000_and_its_own_cursors() {
    let api = Api::funded().await;
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=-1", "limit"),
        ("limit=%2B1", "limit"),
        ("limit=1.0", "limit"),
        ("limit=ten", "limit"),
        ("limit=", "limit"),
        ("limit=1&limit=2", "limit"),
        ("after=abc", "after"),
        ("after=0", "after"),
        ("before=1", "before"),
    ] {
        let reply = api.get(&format!("/v1/accounts/alice/entries?{query}")).await;
        assert_refused(&reply, field);
    }
    for query in ["", "?limit=1", "?limit=1000", "?after=", "?after=&limit=100"] {
        let reply = api.get(&format!("/v1/accounts/alice/entries{query}")).await;
        assert_eq!(reply.status, 200, "{query}");
    }
}

#[tokio::test]
async fn a_parameter_that_a_route_does_not_have_is_named() {
    let api = Api::funded().await;
    assert_refused(&api.get("/v1/accounts/alice?before=1").await, "before");
    assert_refused(&api.get("/v1/requests/alice/r?x").await, "x");
}

/// A valid body with one byte replaced, removed or doubled.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let whole = r#"{"request_id":"r\u0031","amount":40,"memo":"\u00e4 t\"ea"}"#.as_bytes();
    (0..whole.len(), any::<u8>(), 0..3_u8).prop_map(move |(place, byte, how)| {
        let mut body = whole.to_vec();
        match how {
            0 => body[place] = byte,
            1 => drop(body.remove(place)),
            _ => body.insert(place, body[place]),
        }
        body
    })
}

proptest! {
    #[test]
    fn a_damaged_body_is_a_debit_or_a_400_and_never_anything_else(body in damaged()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let api = Api::funded().await;
            let request = Request::post(DEBIT).header("content-type", "application/json");
            let reply = api.send(request, body).await;
            let balance = api.balance("alice").await;
            match reply.status.as_u16() {
                201 => assert_eq!(balance, 100 - reply.json()["amount"].as_i64().unwrap()),
                422 => assert_eq!(reply.code(), "insufficient_funds"),
                400 => assert_eq!((reply.problem().0.as_str(), balance), ("invalid_request", 100)),
                other => panic!("{other}"),
            }
        });
    }
}

fn assert_refused(reply: &Reply, field: &str) {
    assert_eq!(reply.status, 400, "{reply:?}");
    assert_eq!(
        reply.problem(),
        ("invalid_request".to_owned(), Some(field.to_owned())),
        "{reply:?}"
    );
}
