use super::*;
use crate::admission::{BlockKind, Blocked};
use crate::proxy::failure::{Refusal, UpstreamError};
use http_body_util::BodyExt;

fn blocked(kind: BlockKind, retry_after: Option<Duration>) -> Failure {
    Failure::Refused(Refusal::Blocked(Blocked {
        kind,
        rule: Some(RuleId::new("hot-account")),
        retry_after,
        never: false,
        limit: Some(100),
        param: None,
    }))
}

async fn json(response: Response<Body>) -> serde_json::Value {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn every_code_has_its_status() {
    let refused = |refusal| Failure::Refused(refusal);
    let table = [
        (blocked(BlockKind::ParamFlow, None), "param_flow", 429),
        (blocked(BlockKind::Flow, None), "flow", 429),
        (blocked(BlockKind::Isolation, None), "isolation", 503),
        (blocked(BlockKind::Degrade, None), "degrade", 503),
        (blocked(BlockKind::MissingParam, None), "missing_param", 400),
        (refused(Refusal::BadRequest("why".to_owned())), "bad_request", 400),
        (refused(Refusal::Unmatched), "unmatched", 404),
        (refused(Refusal::BodyTooLarge { limit: 1 }), "body_too_large", 413),
        (refused(Refusal::Draining), "draining", 503),
        (
            Failure::Upstream(UpstreamError::Unreachable(String::new())),
            "upstream_unreachable",
            502,
        ),
        (Failure::Upstream(UpstreamError::Reset), "upstream_reset", 502),
        (Failure::Upstream(UpstreamError::Timeout), "upstream_timeout", 504),
    ];
    for (failure, code, status) in table {
        let problem = Problem::of(&failure, None);
        assert_eq!((problem.code, problem.status.as_u16()), (code, status));
        let marked = respond(&failure, None).headers().get("x-sluice-block").cloned();
        assert_eq!(marked.is_some(), matches!(failure, Failure::Refused(_)), "{code}");
    }
}

#[tokio::test]
async fn a_refusal_says_how_long_to_wait_rounded_up() {
    let response = respond(
        &blocked(BlockKind::ParamFlow, Some(Duration::from_micros(1_000_100))),
        None,
    );
    assert_eq!(response.headers()["retry-after"], "2");
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    assert_eq!(
        response.headers()["proxy-status"],
        "sluice; error=http_request_denied; details=\"param_flow\""
    );
    let body = json(response).await;
    assert_eq!(body["retry_after_ms"], 1001);
    assert_eq!(body["rule"], "hot-account");
}

#[test]
fn retry_after_is_at_least_one_second() {
    let response = respond(&blocked(BlockKind::Isolation, Some(Duration::ZERO)), None);
    assert_eq!(response.headers()["retry-after"], "1");
}

#[test]
fn what_can_never_pass_names_no_time_to_wait() {
    let failure = Failure::Refused(Refusal::Blocked(Blocked {
        kind: BlockKind::ParamFlow,
        rule: None,
        retry_after: Some(Duration::from_secs(1)),
        never: true,
        limit: Some(100),
        param: None,
    }));
    assert!(!respond(&failure, None).headers().contains_key("retry-after"));
}

#[test]
fn a_head_request_gets_the_length_but_no_body() {
    use http_body::Body as _;
    let mut response = respond(&blocked(BlockKind::Flow, None), None);
    without_body(&mut response);
    assert!(response.body().is_end_stream());
    assert_ne!(response.headers()["content-length"], "0");
}

#[tokio::test]
async fn on_block_replaces_status_and_body_of_its_code_only() {
    let answer = Answer {
        status: Some(StatusCode::IM_A_TEAPOT),
        body: Some(serde_json::json!({ "code": "BUSY" })),
    };
    let by_code = OnBlock::ByCode([("flow".to_owned(), answer.clone())].into());
    assert!(on_block(&by_code, "isolation").is_none());
    let failure = blocked(BlockKind::Flow, None);
    let problem = Problem::of(&failure, None);
    let response = body(&problem, on_block(&by_code, "flow"));
    assert_eq!(response.status(), StatusCode::IM_A_TEAPOT);
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(json(response).await, serde_json::json!({ "code": "BUSY" }));
}
