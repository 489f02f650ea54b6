//! From a request to its resource and its parameters.

use super::*;

const BY_BODY: &str = "
resources:
  - name: transfer
    match: { method: POST, path: /transfers }
    params: [ { name: from, from: json, key: /from } ]
    maxJsonBody: 64
    timeout: 1s
    onBlock: { status: 429, body: { code: BUSY } }
paramFlow:
  - { id: per-account, resource: transfer, param: from, count: 1 }
";

fn echo() -> Router {
    Router::new().fallback(|body: Bytes| async move { body })
}

#[tokio::test(start_paused = true)]
async fn a_parameter_from_the_body_limits_and_the_body_arrives_as_it_was() {
    let bench = Bench::new(BY_BODY, echo());
    let text = r#"{ "from": "alice" }"#;
    let first = bench.call(request(Method::POST, "/transfers", text)).await;
    assert_eq!(first.status(), StatusCode::OK);
    assert_eq!(first.into_body().collect().await.unwrap().to_bytes(), text);
    let second = bench.call(request(Method::POST, "/transfers", text)).await;
    assert_eq!(second.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(second.headers()["x-sluice-block"], "param_flow");
    assert_eq!(second.headers()["retry-after"], "1");
    assert_eq!(json(second).await, serde_json::json!({ "code": "BUSY" }));
    let other = bench
        .call(request(Method::POST, "/transfers", r#"{ "from": "bob" }"#))
        .await;
    assert_eq!(other.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_limit_is_413_with_a_length_and_without() {
    let text = r#"{ "from": "alice", "memo": "0123456789012345678901234567890123456789" }"#;
    let stream = || {
        let chunks = text
            .as_bytes()
            .chunks(16)
            .map(|chunk| Ok::<_, std::io::Error>(Bytes::from_static(chunk)));
        RequestBody::local(axum::body::Body::from_stream(futures_util::stream::iter(chunks)))
    };
    for body in [RequestBody::whole(Bytes::from_static(text.as_bytes())), stream()] {
        let bench = Bench::new(
            &BY_BODY.replace("    onBlock: { status: 429, body: { code: BUSY } }\n", ""),
            echo(),
        );
        let response = bench
            .call(request(Method::POST, "/transfers", "").map(|_| body))
            .await;
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(json(response).await["code"], "body_too_large");
        assert_eq!(bench.snapshot("transfer").pass, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn ambiguous_paths_and_tunnels_are_400() {
    let bench = Bench::new(ONE_AT_A_TIME, echo());
    for path in [
        "/accounts/a%2fb/debits",
        "/accounts/a%5cb/debits",
        "/accounts/%00/debits",
    ] {
        let response = bench.call(request(Method::POST, path, "")).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{path}");
        assert_eq!(response.headers()["x-sluice-block"], "bad_request");
    }
    let tunnel = Request::builder()
        .method(Method::CONNECT)
        .uri("bank:443")
        .body(RequestBody::empty())
        .unwrap();
    assert_eq!(bench.call(tunnel).await.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn a_path_is_matched_normalised_and_forwarded_raw() {
    let wallet = Router::new().fallback(|uri: http::Uri| async move { uri.to_string() });
    let bench = Bench::new(ONE_AT_A_TIME, wallet);
    let response = bench
        .call(request(Method::GET, "//accounts/./%61lice?x=%2f", ""))
        .await;
    assert_eq!(bench.snapshot("read").pass, 1);
    assert_eq!(
        response.into_body().collect().await.unwrap().to_bytes(),
        "//accounts/./%61lice?x=%2f"
    );
}

#[tokio::test(start_paused = true)]
async fn what_no_resource_matches_passes_or_is_404_as_the_rules_say() {
    let passing = Bench::new(ONE_AT_A_TIME, echo());
    assert_eq!(
        passing.call(request(Method::GET, "/other", "")).await.status(),
        StatusCode::OK
    );
    let refusing = Bench::new(
        &format!("defaults: {{ unmatched: reject }}\n{ONE_AT_A_TIME}"),
        echo(),
    );
    let response = refusing.call(request(Method::GET, "/other", "")).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    assert_eq!(json(response).await["code"], "unmatched");
    assert_eq!(refusing.worker.proxy().telemetry.metrics.unmatched_total.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_closing_process_refuses_with_draining() {
    let bench = Bench::new(ONE_AT_A_TIME, echo());
    bench
        .worker
        .proxy()
        .lifecycle
        .advance(crate::lifecycle::Phase::Closing);
    let response = bench.call(debit()).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(json(response).await["code"], "draining");
}
