//! What the wallet is asked, whichever way it is reached.

/// Method, path, body.
type Ask<'a> = (&'a str, &'a str, &'a str);

/// Every kind of answer that the wallet has, each on the state that the ones before it left.
pub(super) const TABLE: [Ask<'_>; 50] = [
    (
        "POST",
        "/v1/accounts",
        r#"{"account_id":"alice","currency":"EUR","slots":4}"#,
    ),
    (
        "POST",
        "/v1/accounts",
        r#"{"account_id":"alice","currency":"EUR","slots":4}"#,
    ),
    (
        "POST",
        "/v1/accounts",
        r#"{"account_id":"alice","currency":"USD","slots":4}"#,
    ),
    ("POST", "/v1/accounts", r#"{"account_id":"bob","currency":"EUR"}"#),
    (
        "POST",
        "/v1/accounts",
        r#"{"account_id":"carol","currency":"USD"}"#,
    ),
    (
        "POST",
        "/v1/accounts",
        r#"{"account_id":"no spaces","currency":"EUR"}"#,
    ),
    (
        "POST",
        "/v1/accounts/alice/credits",
        r#"{"request_id":"c1","amount":1000}"#,
    ),
    (
        "POST",
        "/v1/accounts/alice/credits",
        r#"{"request_id":"c1","amount":1000}"#,
    ),
    (
        "POST",
        "/v1/accounts/alice/credits",
        r#"{"request_id":"c1","amount":1001}"#,
    ),
    (
        "POST",
        "/v1/accounts/alice/debits",
        r#"{"request_id":"d1","amount":300,"memo":"rent"}"#,
    ),
    (
        "POST",
        "/v1/accounts/alice/debits",
        r#"{"request_id":"d1","amount":300,"memo":"rent"}"#,
    ),
    (
        "POST",
        "/v1/accounts/alice/debits",
        r#"{"request_id":"d2","amount":5000}"#,
    ),
    (
        "POST",
        "/v1/accounts/alice/debits",
        r#"{"request_id":"d2","amount":5000}"#,
    ),
    (
        "POST",
        "/v1/accounts/nobody/debits",
        r#"{"request_id":"d3","amount":1}"#,
    ),
    (
        "POST",
        "/v1/accounts/alice/debits",
        r#"{"request_id":"d4","amount":0}"#,
    ),
    (
        "POST",
        "/v1/accounts/alice/debits",
        r#"{"request_id":"d4","amount":1.0}"#,
    ),
    (
        "POST",
        "/v1/accounts/alice/debits",
        r#"{"request_id":"d4","amount":1,"amount":2}"#,
    ),
    (
        "POST",
        "/v1/accounts/alice/debits",
        r#"{"request_id":"d4","amont":1}"#,
    ),
    ("POST", "/v1/accounts/alice/debits", "{"),
    (
        "POST",
        "/v1/transfers",
        r#"{"request_id":"t1","from":"alice","to":"bob","amount":200}"#,
    ),
    (
        "POST",
        "/v1/transfers",
        r#"{"request_id":"t1","from":"alice","to":"bob","amount":200}"#,
    ),
    (
        "POST",
        "/v1/transfers",
        r#"{"request_id":"t2","from":"alice","to":"carol","amount":1}"#,
    ),
    (
        "POST",
        "/v1/transfers",
        r#"{"request_id":"t3","from":"alice","to":"alice","amount":1}"#,
    ),
    (
        "POST",
        "/v1/transfers",
        r#"{"request_id":"t4","to":"bob","amount":1}"#,
    ),
    (
        "PATCH",
        "/v1/accounts/alice",
        r#"{"request_id":"p1","slots":2,"floor":1}"#,
    ),
    (
        "PATCH",
        "/v1/accounts/alice",
        r#"{"request_id":"p1","slots":2,"floor":1}"#,
    ),
    (
        "PATCH",
        "/v1/accounts/alice",
        r#"{"request_id":"p2","status":"closed"}"#,
    ),
    (
        "POST",
        "/v1/accounts/alice/holds",
        r#"{"request_id":"h1","amount":100,"expires_in_s":31536000}"#,
    ),
    (
        "POST",
        "/v1/accounts/alice/holds/h1/capture",
        r#"{"request_id":"k1","amount":40,"final":false}"#,
    ),
    (
        "POST",
        "/v1/accounts/alice/holds/h1/capture",
        r#"{"request_id":"k2","amount":61}"#,
    ),
    ("GET", "/v1/accounts/alice/holds/h1", ""),
    (
        "POST",
        "/v1/accounts/alice/holds/h1/release",
        r#"{"request_id":"k3"}"#,
    ),
    (
        "POST",
        "/v1/accounts/alice/holds/h1/release",
        r#"{"request_id":"k4"}"#,
    ),
    ("GET", "/v1/accounts/alice/holds/h2", ""),
    (
        "POST",
        "/v1/reversals",
        r#"{"request_id":"v1","account_id":"alice","reverses":"t1"}"#,
    ),
    (
        "POST",
        "/v1/reversals",
        r#"{"request_id":"v2","account_id":"alice","reverses":"t1"}"#,
    ),
    (
        "POST",
        "/v1/reversals",
        r#"{"request_id":"v3","account_id":"alice","reverses":"never"}"#,
    ),
    (
        "POST",
        "/v1/accounts/alice/debits",
        r#"{"request_id":"d5","amount":"max"}"#,
    ),
    ("GET", "/v1/requests/alice/p1", ""),
    ("GET", "/v1/requests/alice/k3", ""),
    (
        "POST",
        "/v1/batches",
        r#"{"operations":[{"op":"credit","account_id":"alice","request_id":"b1","amount":9},{"op":"hold"}]}"#,
    ),
    (
        "POST",
        "/v1/batches",
        r#"{"atomic":true,"operations":[{"op":"debit","account_id":"alice","request_id":"b2","amount":999}]}"#,
    ),
    ("POST", "/v1/batches", r#"{"operations":{}}"#),
    ("POST", "/v1/requests/alice/x1/abandon", ""),
    ("GET", "/v1/requests/alice/d1", ""),
    ("GET", "/v1/accounts/alice", ""),
    ("GET", "/v1/accounts/alice/entries?limit=1001", ""),
    ("GET", "/v1/accounts/alice/entries?limit=2", ""),
    ("GET", "/v1/nothing/here", ""),
    ("DELETE", "/v1/accounts/alice", ""),
];
