//! What a refused client is told, and who hears of it.

use crate::support::{Client, Options, Proxy, Reply, Upstream, settles};

const ONE_A_MINUTE: &str = "
resources:
  - name: pay
    match: { path: '/pay/{id}' }
    params: [ { name: id, from: path } ]
  - name: moved
    match: { method: POST, path: /moved }
    params: [ { name: id, from: json, key: /id } ]
    maxJsonBody: 16
paramFlow:
  - { id: hot, resource: pay, param: id, count: 1, durationInSec: 60 }
  - { id: hot-moved, resource: moved, param: id, count: 1 }
";

async fn started() -> (Upstream, Proxy) {
    let upstream = Upstream::start(|_| Reply::status(201, "made")).await;
    let proxy = Proxy::start(&Options {
        upstream: upstream.url(),
        rules: ONE_A_MINUTE,
        flags: &[],
    });
    (upstream, proxy)
}

#[tokio::test]
async fn a_refusal_is_a_problem_that_says_how_long_to_wait() {
    let (upstream, proxy) = started().await;
    let request = "POST /pay/alice HTTP/1.1\nHost: h\nContent-Length: 0\n\n";
    assert_eq!(Client::once(proxy.address(), request).await.status, 201);
    let refused = Client::once(proxy.address(), request).await;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    assert_eq!(refused.header("x-sluice-block"), Some("param_flow"));
    assert_eq!(
        refused.header("proxy-status"),
        Some("sluice; error=http_request_denied; details=\"param_flow\"")
    );
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((59..=60).contains(&wait), "{wait}");
    let problem = refused.json();
    assert_eq!(problem["type"], "about:blank");
    assert_eq!(problem["title"], "Too Many Requests");
    assert_eq!(
        (&problem["status"], &problem["code"]),
        (&429.into(), &"param_flow".into())
    );
    assert_eq!(
        (&problem["resource"], &problem["rule"]),
        (&"pay".into(), &"hot".into())
    );
    assert!(problem["retry_after_ms"].as_u64().unwrap() <= wait * 1_000);
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn one_account_has_one_window_however_its_path_is_spelled() {
    let (_upstream, proxy) = started().await;
    assert_eq!(
        Client::once(proxy.address(), "GET /pay/alice HTTP/1.1\nHost: h\n\n")
            .await
            .status,
        201
    );
    for path in ["/pay/%61lice", "//pay/./alice", "/x/../pay/alice"] {
        let request = format!("GET {path} HTTP/1.1\nHost: h\n\n");
        assert_eq!(
            Client::once(proxy.address(), &request).await.status,
            429,
            "{path}"
        );
    }
    let ambiguous = Client::once(proxy.address(), "GET /pay/alice%2f HTTP/1.1\nHost: h\n\n").await;
    assert_eq!(
        (ambiguous.status, ambiguous.header("x-sluice-block")),
        (400, Some("bad_request"))
    );
}

#[tokio::test]
async fn a_refused_upload_is_answered_without_a_100_and_without_its_body() {
    let (_upstream, proxy) = started().await;
    Client::once(proxy.address(), "GET /pay/alice HTTP/1.1\nHost: h\n\n").await;
    let mut client = Client::connect(proxy.address()).await;
    client
        .send("POST /pay/alice HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Length: 1000000\n\n")
        .await;
    assert_eq!(client.answer().await.status, 429);
}

#[tokio::test]
async fn a_refused_head_has_no_body() {
    let (_upstream, proxy) = started().await;
    let mut client = Client::connect(proxy.address()).await;
    client.send("HEAD /pay/alice HTTP/1.1\nHost: h\n\n").await;
    assert_eq!(client.answer_to_head().await.status, 201);
    client.send("HEAD /pay/alice HTTP/1.1\nHost: h\n\n").await;
    assert_eq!(client.answer_to_head().await.status, 429);
    client.send("GET /pay/bob HTTP/1.1\nHost: h\n\n").await;
    assert_eq!(client.answer().await.text(), "made");
}

#[tokio::test]
async fn a_body_that_is_too_long_for_its_parameter_is_413() {
    let (upstream, proxy) = started().await;
    let body = r#"{"id":"0123456789"}"#;
    let sized = format!(
        "POST /moved HTTP/1.1\nHost: h\nContent-Length: {}\n\n{body}",
        body.len()
    );
    let chunked = format!(
        "POST /moved HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    for request in [sized, chunked] {
        let answer = Client::once(proxy.address(), &request).await;
        assert_eq!(
            (answer.status, answer.json()["code"].as_str()),
            (413, Some("body_too_large"))
        );
    }
    assert!(upstream.seen().is_empty());
}

#[tokio::test]
async fn a_refusal_is_logged_with_its_account_and_counted() {
    let (_upstream, proxy) = started().await;
    for _ in 0..3 {
        Client::once(
            proxy.address(),
            "GET /pay/alice HTTP/1.1\nHost: h\nX-Request-Id: r-9\n\n",
        )
        .await;
    }
    settles("the access log", || async {
        proxy
            .output()
            .iter()
            .filter(|line| line.contains("param_flow"))
            .count()
            == 2
    })
    .await;
    let line = proxy
        .output()
        .into_iter()
        .find(|line| line.contains("param_flow"))
        .unwrap();
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["params"]["id"], "alice");
    assert_eq!(
        (&line["status"], &line["rule"], &line["request_id"]),
        (&429.into(), &"hot".into(), &"r-9".into())
    );
    let metrics = proxy.metrics().await;
    for series in [
        "sluice_requests_total{resource=\"pay\",code=\"429\"} 2",
        "sluice_requests_total{resource=\"pay\",code=\"201\"} 1",
        "sluice_blocked_total{resource=\"pay\",type=\"param_flow\",rule=\"hot\",mode=\"enforce\"} 2",
        "sluice_keys{rule=\"hot\"} 1",
        "sluice_rules_ok 1",
        "sluice_build_info{version=",
    ] {
        assert!(metrics.contains(series), "{series} is not in\n{metrics}");
    }
}

/// Closing on a client that is still sending resets the connection, and a reset can overtake the answer.
#[tokio::test]
async fn a_refused_upload_that_is_already_on_its_way_sees_its_refusal() {
    let (_upstream, proxy) = started().await;
    Client::once(proxy.address(), "GET /pay/alice HTTP/1.1\nHost: h\n\n").await;
    let body = "x".repeat(8 * 1024 * 1024);
    for _ in 0..10 {
        let mut client = Client::connect(proxy.address()).await;
        let request = format!(
            "POST /pay/alice HTTP/1.1\nHost: h\nContent-Length: {}\n\n{body}",
            body.len()
        );
        client.send(&request).await;
        assert_eq!(client.answer().await.status, 429);
    }
}

#[tokio::test]
async fn a_request_without_its_account_is_counted_apart_from_those_beyond_the_limit() {
    let (_upstream, proxy) = started().await;
    let request = "POST /moved HTTP/1.1\nHost: h\nContent-Length: 2\n\n{}";
    let answer = Client::once(proxy.address(), request).await;
    assert_eq!(
        (answer.status, answer.json()["code"].as_str()),
        (400, Some("missing_param"))
    );
    let metrics = proxy.metrics().await;
    let series = |kind: &str| {
        format!(
            "sluice_blocked_total{{resource=\"moved\",type=\"{kind}\",rule=\"hot-moved\",mode=\"enforce\"}}"
        )
    };
    for (kind, count) in [("missing_param", 1), ("param_flow", 0)] {
        let expected = format!("{} {count}\n", series(kind));
        assert!(metrics.contains(&expected), "{expected} is not in\n{metrics}");
    }
}

/// The queue of the log holds so many lines, which bounds its memory only if a line is bounded too.
#[tokio::test]
async fn a_client_cannot_make_a_long_line_of_the_access_log() {
    let (_upstream, proxy) = started().await;
    let long = "x".repeat(20_000);
    let id = "y".repeat(5_000);
    let request = format!("GET /pay/{long}?{long} HTTP/1.1\nHost: h\nX-Request-Id: {id}\n\n");
    for _ in 0..2 {
        Client::once(proxy.address(), &request).await;
    }
    let refusal = || {
        proxy
            .output()
            .into_iter()
            .find(|line| line.contains("param_flow"))
    };
    settles("the access log", || async { refusal().is_some() }).await;
    let line = refusal().unwrap();
    assert!(line.len() < 4_096, "{} bytes", line.len());
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert!(line["params"]["id"].as_str().unwrap().starts_with("xxxx"));
}
