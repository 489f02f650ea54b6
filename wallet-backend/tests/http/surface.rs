//! The surface as a whole: what exists, what doesn't, and that `/openapi.json` says the same.

use std::collections::{BTreeMap, BTreeSet};

use http::{Method, Request};
use serde_json::Value;
use wallet_backend::Wallet;
use wallet_backend::combiner::Limits;
use wallet_backend::store::any::AnyStore;
use wallet_backend::store::memory::Memory;

use super::support::{Api, Reply};

const METHODS: [Method; 7] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::HEAD,
    Method::OPTIONS,
];

#[tokio::test]
async fn an_unknown_route_is_a_problem() {
    let api = Api::funded().await;
    for path in [
        "/",
        "/v1",
        "/v2/accounts",
        "/v1/accounts/",
        "/v1/accounts/alice/",
        "/v1/accounts/alice/holds/h/capture/",
        "/v1/accounts/alice/holds/h/settle",
        "/v1/reversals/r",
        "/v1/reconciliations",
        "/healthz/",
    ] {
        for reply in [api.get(path).await, api.post(path, "{}").await] {
            assert_eq!(reply.status, 404, "{path}");
            assert_eq!(reply.problem(), ("not_found".to_owned(), None));
        }
    }
}

#[tokio::test]
async fn an_unknown_method_is_a_problem_that_says_which_are_known() {
    let api = Api::funded().await;
    for (method, path, allow) in [
        ("PUT", "/v1/accounts", "GET,HEAD,POST"),
        ("DELETE", "/v1/accounts/alice", "GET,HEAD,PATCH"),
        ("GET", "/v1/accounts/alice/holds", "POST"),
        ("POST", "/v1/accounts/alice/holds/h", "GET,HEAD"),
        ("PUT", "/v1/accounts/alice/holds/h/capture", "POST"),
        ("GET", "/v1/accounts/alice/debits", "POST"),
        ("PUT", "/v1/transfers", "POST"),
        ("POST", "/healthz", "GET,HEAD"),
        ("BREW", "/healthz", "GET,HEAD"),
    ] {
        let reply = api.send(Request::builder().method(method).uri(path), "").await;
        assert_eq!(reply.status, 405, "{method} {path}");
        assert_eq!(reply.header("allow"), Some(allow), "{method} {path}");
        assert_eq!(reply.problem(), ("method_not_allowed".to_owned(), None));
    }
}

/// Path -> documented methods.
fn documented(document: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let paths = document["paths"].as_object().unwrap();
    let methods = |item: &Value| {
        item.as_object()
            .unwrap()
            .keys()
            .map(|key| key.to_uppercase())
            .collect()
    };
    paths
        .iter()
        .map(|(path, item)| (path.clone(), methods(item)))
        .collect()
}

#[tokio::test]
async fn every_documented_method_exists_and_no_other() {
    let api = Api::funded().await;
    api.post("/v1/accounts/alice/holds", r#"{"request_id":"h","amount":5}"#)
        .await;
    let document = api.get("/openapi.json").await.json();
    for (path, documented) in documented(&document) {
        let path = path
            .replace("{account_id}", "alice")
            .replace("{hold_id}", "h")
            .replace("{request_id}", "opening");
        for method in METHODS {
            let request = Request::builder().method(method.clone()).uri(&path);
            let status = api.send(request, "").await.status;
            let exists = documented.contains(method.as_str())
                || (method == Method::HEAD && documented.contains("GET"));
            assert_eq!(status != 405, exists, "{method} {path}: {status}");
            assert_ne!(status, 404, "{method} {path}");
        }
    }
}

const ACCOUNT: &str = "/v1/accounts/{account_id}";
const CREDIT: &str = "/v1/accounts/{account_id}/credits";
const DEBIT: &str = "/v1/accounts/{account_id}/debits";
const ENTRIES: &str = "/v1/accounts/{account_id}/entries";
const HOLDS: &str = "/v1/accounts/{account_id}/holds";
const HOLD: &str = "/v1/accounts/{account_id}/holds/{hold_id}";
const CAPTURE: &str = "/v1/accounts/{account_id}/holds/{hold_id}/capture";
const RELEASE: &str = "/v1/accounts/{account_id}/holds/{hold_id}/release";
const REQUEST: &str = "/v1/requests/{account_id}/{request_id}";
const ABANDON: &str = "/v1/requests/{account_id}/{request_id}/abandon";

/// Requests on the account `alice`, the hold `h` and the request id `over`, each on what those before it left.
const LIVE: [(&str, &str, &str); 37] = [
    (
        "post",
        "/v1/accounts",
        r#"{"account_id":"alice","currency":"EUR"}"#,
    ),
    ("post", "/v1/accounts", r#"{"account_id":"new","currency":"EUR"}"#),
    (
        "post",
        "/v1/accounts",
        r#"{"account_id":"alice","currency":"USD"}"#,
    ),
    ("post", "/v1/accounts", "{}"),
    ("get", "/v1/accounts", ""),
    ("get", ACCOUNT, ""),
    ("post", CREDIT, r#"{"request_id":"c","amount":50}"#),
    ("post", DEBIT, r#"{"request_id":"five","amount":5}"#),
    ("post", DEBIT, r#"{"request_id":"five","amount":5}"#),
    ("post", DEBIT, r#"{"request_id":"over","amount":5000}"#),
    ("post", DEBIT, r#"{"request_id":"five","amount":6}"#),
    (
        "post",
        "/v1/transfers",
        r#"{"request_id":"t","from":"alice","to":"bob","amount":5}"#,
    ),
    ("get", HOLD, ""),
    (
        "post",
        HOLDS,
        r#"{"request_id":"h","amount":20,"expires_in_s":3600}"#,
    ),
    ("get", HOLD, ""),
    ("post", HOLDS, r#"{"request_id":"h","amount":20}"#),
    (
        "post",
        CAPTURE,
        r#"{"request_id":"part","amount":5,"final":false}"#,
    ),
    ("post", CAPTURE, r#"{"request_id":"much","amount":50}"#),
    ("post", RELEASE, r#"{"request_id":"back"}"#),
    ("post", RELEASE, r#"{"request_id":"late"}"#),
    ("get", HOLD, ""),
    (
        "post",
        "/v1/reversals",
        r#"{"request_id":"r","account_id":"alice","reverses":"five"}"#,
    ),
    (
        "post",
        "/v1/reversals",
        r#"{"request_id":"r","account_id":"alice","reverses":"five"}"#,
    ),
    (
        "post",
        "/v1/reversals",
        r#"{"request_id":"s","account_id":"alice","reverses":"five"}"#,
    ),
    (
        "post",
        "/v1/reversals",
        r#"{"request_id":"u","account_id":"alice","reverses":"never"}"#,
    ),
    (
        "post",
        "/v1/batches",
        r#"{"operations":[{"op":"debit","account_id":"alice","request_id":"b1","amount":1},{"op":"debit"}]}"#,
    ),
    (
        "post",
        "/v1/batches",
        r#"{"atomic":true,"operations":[{"op":"debit","account_id":"alice","request_id":"b2","amount":999}]}"#,
    ),
    ("post", "/v1/batches", "{}"),
    ("patch", ACCOUNT, r#"{"request_id":"p","status":"closed"}"#),
    ("patch", ACCOUNT, r#"{"request_id":"q","floor":5000}"#),
    ("patch", ACCOUNT, r#"{"request_id":"over","slots":4}"#),
    ("patch", ACCOUNT, r#"{"request_id":"slots","slots":4}"#),
    ("get", ENTRIES, ""),
    ("get", REQUEST, ""),
    ("post", ABANDON, ""),
    ("get", "/healthz", ""),
    ("get", "/readyz", ""),
];

#[tokio::test]
async fn live_answers_have_the_documented_statuses_and_shapes() {
    let api = Api::funded().await;
    let document = api.get("/openapi.json").await.json();
    let mut statuses = BTreeSet::new();
    for (method, route, body) in LIVE {
        let path = route
            .replace("{account_id}", "alice")
            .replace("{hold_id}", "h")
            .replace("{request_id}", "over");
        let reply = match method {
            "post" => api.post(&path, body).await,
            "patch" => api.patch(&path, body).await,
            _ => api.get(&path).await,
        };
        check(&document, method, route, &reply);
        statuses.insert(reply.status.as_u16());
    }
    let changed = api.get("/v1/requests/alice/slots").await;
    check(&document, "get", REQUEST, &changed);
    assert_eq!(statuses, BTreeSet::from([200, 201, 400, 404, 409, 422]));
}

#[tokio::test]
async fn what_an_account_had_has_the_documented_shape() {
    let api = Api::funded().await;
    let document = api.get("/openapi.json").await.json();
    let page = api.get("/v1/accounts/alice/entries").await.json();
    for cursor in [
        &page["next"],
        &api.get("/v1/accounts/bob/entries").await.json()["next"],
    ] {
        for name in ["alice", "bob"] {
            let path = format!("/v1/accounts/{name}?cursor={}", cursor.as_str().unwrap());
            check(&document, "get", ACCOUNT, &api.get(&path).await);
        }
    }
}

/// Checks an answer against the schema that the document has for its status.
fn check(document: &Value, method: &str, route: &str, reply: &Reply) {
    let status = reply.status.as_str();
    let response = follow(document, &document["paths"][route][method]["responses"][status]);
    assert!(
        response.is_object(),
        "{method} {route}: {status} is not documented"
    );
    let content_type = reply.header("content-type").unwrap();
    let schema = &response["content"][content_type]["schema"];
    assert!(
        schema.is_object(),
        "{method} {route}: {status} {content_type} is not documented"
    );
    fits(
        document,
        schema,
        &reply.json(),
        &format!("{method} {route} {status}"),
    );
}

fn follow<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(target) => follow(document, document.pointer(&target[1..]).unwrap()),
        None => value,
    }
}

/// The part of JSON Schema that the document uses for answers.
fn fits(document: &Value, schema: &Value, value: &Value, place: &str) {
    let schema = follow(document, schema);
    if let Some(options) = schema["oneOf"].as_array() {
        let option = options.iter().find(|option| {
            let option = follow(document, option);
            let required = option["required"].as_array().into_iter().flatten();
            let has = |key: &Value| value.get(key.as_str().unwrap()).is_some();
            (option["type"] == "null") == value.is_null() && required.into_iter().all(has)
        });
        return fits(document, option.unwrap(), value, place);
    }
    if let Some(listed) = schema["enum"].as_array() {
        assert!(listed.contains(value), "{place}: {value}");
    }
    if let Some(constant) = schema.get("const") {
        assert_eq!(constant, value, "{place}");
    }
    match schema["type"].as_str() {
        Some("object") => {
            let object = value.as_object().unwrap();
            for required in schema["required"].as_array().into_iter().flatten() {
                assert!(
                    object.contains_key(required.as_str().unwrap()),
                    "{place}: {required}"
                );
            }
            for (key, value) in object {
                let property = schema["properties"].get(key);
                let property = property.unwrap_or_else(|| panic!("{place}.{key} is not documented"));
                fits(document, property, value, &format!("{place}.{key}"));
            }
        }
        Some("array") => {
            for item in value.as_array().unwrap() {
                fits(document, &schema["items"], item, place);
            }
        }
        Some("string") => assert!(value.is_string(), "{place}: {value}"),
        Some("integer") => {
            let number = value.as_i64().unwrap();
            let bound = |key: &str, default| schema[key].as_i64().unwrap_or(default);
            assert!(number >= bound("minimum", i64::MIN), "{place}: {value}");
            assert!(number <= bound("maximum", i64::MAX), "{place}: {value}");
        }
        Some("null") => assert!(value.is_null(), "{place}: {value}"),
        _ => {}
    }
}

#[tokio::test]
async fn metrics_count_operations_by_type_and_result() {
    let api = Api::funded().await;
    let debit = r#"{"request_id":"d","amount":5}"#;
    api.post("/v1/accounts/alice/debits", debit).await;
    api.post("/v1/accounts/alice/debits", debit).await;
    api.post("/v1/accounts/alice/debits", r#"{"request_id":"e","amount":5000}"#)
        .await;
    for (path, body) in [
        ("/v1/accounts/alice/holds", r#"{"request_id":"h","amount":5}"#),
        (
            "/v1/accounts/alice/holds/h/capture",
            r#"{"request_id":"i","amount":1,"final":false}"#,
        ),
        ("/v1/accounts/alice/holds/h/release", r#"{"request_id":"k"}"#),
        (
            "/v1/reversals",
            r#"{"request_id":"l","account_id":"alice","reverses":"d"}"#,
        ),
    ] {
        assert_eq!(api.post(path, body).await.status, 201, "{path}");
    }
    api.patch("/v1/accounts/alice", r#"{"request_id":"p","slots":2}"#)
        .await;
    let journal = r#"{"account_id":"j","currency":"EUR","credit":"journal"}"#;
    api.post("/v1/accounts", journal).await;
    api.post("/v1/accounts/j/credits", r#"{"request_id":"c","amount":5}"#)
        .await;
    let reply = api.get("/metrics").await;
    assert!(
        reply
            .header("content-type")
            .unwrap()
            .starts_with("application/openmetrics-text")
    );
    let text = String::from_utf8(reply.body.to_vec()).unwrap();
    for line in [
        r#"wallet_operations_total{type="open",result="done"} 3"#,
        r#"wallet_operations_total{type="credit",result="done"} 2"#,
        r#"wallet_operations_total{type="debit",result="done"} 1"#,
        r#"wallet_operations_total{type="debit",result="replayed"} 1"#,
        r#"wallet_operations_total{type="debit",result="insufficient_funds"} 1"#,
        r#"wallet_operations_total{type="hold",result="done"} 1"#,
        r#"wallet_operations_total{type="capture",result="done"} 1"#,
        r#"wallet_operations_total{type="release",result="done"} 1"#,
        r#"wallet_operations_total{type="reversal",result="done"} 1"#,
        r#"wallet_operations_total{type="amend",result="done"} 1"#,
        "wallet_pending 1",
        "wallet_queued 0",
        "# TYPE wallet_commit_seconds histogram",
        "# TYPE wallet_batch_size histogram",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is not in\n{text}"
        );
    }
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_its_debit_to_be_decided() {
    let api = Api::funded().await;
    let debit = api.post("/v1/accounts/alice/debits", r#"{"request_id":"d","amount":5}"#);
    // Polled once: the command is queued, and from then on nobody waits for it.
    drop(futures_util::FutureExt::now_or_never(debit));
    // The lane keeps its order, so the answer to a later command proves that the first is decided.
    let credit = api
        .post("/v1/accounts/alice/credits", r#"{"request_id":"c","amount":1}"#)
        .await;
    assert_eq!(credit.status, 201);
    assert_eq!(api.balance("alice").await, 96);
}

#[tokio::test]
async fn a_store_that_takes_no_more_answers_503_and_when_to_come_back() {
    let full = Limits {
        store: 0,
        ..Limits::default()
    };
    let wallet = Wallet::over(AnyStore::Memory(Memory::default()), full).unwrap();
    let api = Api::over(wallet);
    let reply = api
        .post("/v1/accounts", r#"{"account_id":"alice","currency":"EUR"}"#)
        .await;
    assert_eq!(reply.status, 503);
    assert_eq!(reply.problem(), ("overloaded".to_owned(), None));
    assert_eq!(reply.header("retry-after"), Some("1"));
}

#[tokio::test]
async fn a_closed_wallet_is_unavailable_and_not_ready() {
    let wallet = Wallet::memory().unwrap();
    let api = Api::over(wallet.clone());
    wallet.close().await;
    let body = r#"{"account_id":"alice","currency":"EUR"}"#;
    for reply in [api.post("/v1/accounts", body).await, api.get("/readyz").await] {
        assert_eq!(reply.status, 503);
        assert_eq!(reply.problem(), ("unavailable".to_owned(), None));
        assert_eq!(reply.header("retry-after"), Some("1"));
    }
    assert_eq!(api.get("/healthz").await.status, 200);
}
