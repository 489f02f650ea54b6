//! The resource's timeout, from admission to the last byte.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_late_read_is_504_and_cancelled() {
    let bench = Bench::new(ONE_AT_A_TIME, slow(Duration::from_hours(1)));
    let response = bench.call(read()).await;
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(json(response).await["code"], "upstream_timeout");
    assert_eq!(bench.in_flight("read"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_late_write_is_504_with_the_fallback_and_keeps_its_permit() {
    let bench = Bench::new(ONE_AT_A_TIME, slow(Duration::from_secs(2)));
    let response = bench.call(debit()).await;
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(
        json(response).await,
        serde_json::json!({ "code": "DEDUCT_FAILED" })
    );
    assert_eq!(bench.in_flight("debit"), 1);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(bench.in_flight("debit"), 0);
    assert_eq!(bench.abandoned(), 0);
}

/// A body whose first chunk comes at once and whose second never does.
fn endless() -> Router {
    Router::new().fallback(|| async {
        let chunks = futures_util::stream::unfold(0, |number| async move {
            if number == 1 {
                std::future::pending::<()>().await;
            }
            Some((Ok::<_, std::io::Error>("chunk"), number + 1))
        });
        axum::body::Body::from_stream(chunks)
    })
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_end_in_time_breaks_off() {
    let bench = Bench::new(ONE_AT_A_TIME, endless());
    let mut body = bench.call(read()).await.into_body();
    assert!(body.frame().await.unwrap().is_ok());
    assert!(body.frame().await.unwrap().is_err());
    assert_eq!(bench.in_flight("read"), 0);
    assert_eq!(bench.snapshot("read").exceptions, 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_frees_its_permit_at_the_deadline_and_the_upstream_is_not_blamed() {
    let wallet = Router::new().fallback(|| async {
        let chunks = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>("chunk"));
        axum::body::Body::from_stream(chunks)
    });
    let bench = Bench::new(ONE_AT_A_TIME, wallet);
    let mut body = bench.call(read()).await.into_body();
    assert!(body.frame().await.unwrap().is_ok());
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(bench.in_flight("read"), 0);
    assert_eq!(bench.snapshot("read").exceptions, 0);
    assert!(body.frame().await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_slow_upload_is_not_held_against_the_upstream_and_frees_its_place_at_the_deadline() {
    let wallet = Router::new().fallback(|body: Bytes| async move { body });
    let bench = Bench::new(ONE_AT_A_TIME, wallet);
    let never = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
    let body = RequestBody::local(axum::body::Body::from_stream(never));
    let response = bench.call(debit().map(|_| body)).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(json(response).await["code"], "bad_request");
    assert_eq!(bench.snapshot("debit").exceptions, 0);
    assert_eq!(bench.in_flight("debit"), 0);
}
