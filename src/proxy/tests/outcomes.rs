//! What the breakers are told.

use super::*;

const WITH_BREAKER: &str = "
resources:
  - name: debit
    match: { method: POST, path: '/accounts/{id}/debits' }
    timeout: 1s
degrade:
  - { id: brk, resource: debit, grade: exceptionRatio, count: 0.5, timeWindow: 10, minRequestAmount: 4, statIntervalMs: 60000 }
";

/// A wallet that answers with the status that the header `want` names.
fn obedient() -> Router {
    Router::new().fallback(|headers: http::HeaderMap| async move {
        let want = headers["want"].to_str().unwrap().parse().unwrap();
        StatusCode::from_u16(want).unwrap()
    })
}

async fn ask(bench: &Bench, want: &'static str) -> StatusCode {
    let mut request = debit();
    request
        .headers_mut()
        .insert("want", http::HeaderValue::from_static(want));
    bench.call(request).await.status()
}

#[tokio::test(start_paused = true)]
async fn statuses_that_the_wallet_chose_pass_unchanged_and_only_error_statuses_trip() {
    let bench = Bench::new(WITH_BREAKER, obedient());
    for want in ["404", "409", "422", "429", "400", "501"] {
        assert_eq!(ask(&bench, want).await.as_str(), want);
    }
    assert_eq!(bench.breaker("debit"), BreakerPhase::Closed);
    assert_eq!(bench.snapshot("debit").exceptions, 0);
}

#[tokio::test(start_paused = true)]
async fn a_failing_wallet_opens_the_breaker_and_one_good_probe_closes_it() {
    let bench = Bench::new(WITH_BREAKER, obedient());
    for _ in 0..4 {
        assert_eq!(ask(&bench, "503").await, StatusCode::SERVICE_UNAVAILABLE);
    }
    assert_eq!(bench.breaker("debit"), BreakerPhase::Open);
    let refused = bench.call(debit()).await;
    assert_eq!(refused.headers()["x-sluice-block"], "degrade");
    assert_eq!(refused.headers()["retry-after"], "10");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(ask(&bench, "201").await, StatusCode::CREATED);
    assert_eq!(bench.breaker("debit"), BreakerPhase::Closed);
}

#[tokio::test(start_paused = true)]
async fn late_answers_open_the_breaker() {
    let bench = Bench::new(WITH_BREAKER, slow(Duration::from_secs(2)));
    for _ in 0..4 {
        assert_eq!(bench.call(debit()).await.status(), StatusCode::GATEWAY_TIMEOUT);
    }
    assert_eq!(bench.breaker("debit"), BreakerPhase::Open);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_a_failure_although_its_status_was_good() {
    let wallet = Router::new().fallback(|| async {
        let broken = futures_util::stream::iter([Ok("begin"), Err(std::io::Error::other("gone"))]);
        axum::body::Body::from_stream(broken)
    });
    let bench = Bench::new(WITH_BREAKER, wallet);
    let response = bench.call(debit()).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.into_body().collect().await.is_err());
    assert_eq!(bench.snapshot("debit").exceptions, 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_left_counts_for_nothing_until_the_write_really_failed() {
    let wallet = Router::new().fallback(|| async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        StatusCode::SERVICE_UNAVAILABLE
    });
    let bench = Bench::new(WITH_BREAKER, wallet);
    let client = bench.start(debit());
    settle().await;
    client.abort();
    settle().await;
    assert_eq!(bench.snapshot("debit").exceptions, 0);
    bench.worker.proxy().exchanges.idle().await;
    assert_eq!(bench.snapshot("debit").exceptions, 1);
}
