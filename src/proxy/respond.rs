//! From a verdict to a response: the only place that picks a status.
//!
//! A refusal never reached the wallet and is safe to repeat; a failure behind the sidecar says whether it is. Both are
//! problems (RFC 9457) with `code` to branch on, unless the resource replaces them (`onBlock`, `fallback`). Whatever
//! the wallet itself answered passes through unchanged.
//!
//! ```json
//! { "type": "about:blank", "title": "Too Many Requests", "status": 429, "code": "param_flow",
//!   "detail": "…", "resource": "deductBalance", "rule": "hot-account", "retry_after_ms": 340 }
//! ```

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use tower::Service;

use super::body::{Body, RequestBody};
use super::failure::{Failure, Refusal, Target, UpstreamError, Verdict};
use crate::rules::{Answer, OnBlock, ResourceRules, RuleId};
use crate::telemetry::metrics::OwnRefusal;

mod problem;

use problem::Problem;

const X_SLUICE_BLOCK: HeaderName = HeaderName::from_static("x-sluice-block");
const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The service around everything that can refuse or fail.
#[derive(Clone, Debug)]
pub(super) struct Respond<S> {
    inner: S,
}

impl<S> Respond<S> {
    pub(super) const fn new(inner: S) -> Self {
        Self { inner }
    }
}

/// A response and what the log and the metrics want to know of how it came about.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) response: Response<Body>,
    pub(super) target: Target,
    pub(super) cause: Cause,
}

/// Who made the response.
#[derive(Debug)]
pub(super) enum Cause {
    /// The wallet, and how long it took to.
    Answered(Duration),
    /// The sidecar refused.
    Refused {
        code: &'static str,
        own: Option<OwnRefusal>,
        rule: Option<RuleId>,
    },
    /// The upstream failed.
    Failed { code: &'static str },
}

impl<S> Service<Request<RequestBody>> for Respond<S>
where
    S: Service<Request<RequestBody>, Response = Verdict, Error = Infallible>,
    S::Future: Unpin,
{
    type Response = Reply;
    type Error = Infallible;
    type Future = Responding<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let head = request.method() == Method::HEAD;
        Responding {
            inner: self.inner.call(request),
            head,
        }
    }
}

/// The future of [`Respond`].
#[derive(Debug)]
pub(super) struct Responding<F> {
    inner: F,
    /// Whether the request is HEAD, whose answer has no body.
    head: bool,
}

impl<F> Future for Responding<F>
where
    F: Future<Output = Result<Verdict, Infallible>> + Unpin,
{
    type Output = Result<Reply, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let head = self.head;
        Pin::new(&mut self.inner)
            .poll(cx)
            .map_ok(|verdict| reply(verdict, head))
    }
}

fn reply(Verdict { target, result }: Verdict, head: bool) -> Reply {
    match result {
        Ok(answered) => Reply {
            response: answered.response,
            target,
            cause: Cause::Answered(answered.upstream),
        },
        Err(failure) => {
            let mut response = respond(&failure, target.resource.as_deref());
            if head {
                without_body(&mut response);
            }
            let cause = match failure {
                Failure::Refused(refusal) => Cause::Refused {
                    code: problem::code(&refusal),
                    own: refusal.own(),
                    rule: refusal.into_rule(),
                },
                Failure::Upstream(error) => Cause::Failed {
                    code: problem::upstream_code(&error),
                },
            };
            Reply {
                response,
                target,
                cause,
            }
        }
    }
}

/// The response to what was refused or failed, as the resource wants it.
fn respond(failure: &Failure, resource: Option<&ResourceRules>) -> Response<Body> {
    let problem = Problem::of(failure, resource);
    let replaced = resource.and_then(|resource| match failure {
        Failure::Refused(_) => on_block(&resource.on_block, problem.code),
        // The client's own doing: nothing behind the sidecar failed.
        Failure::Upstream(UpstreamError::ClientBody | UpstreamError::ClientLate) => None,
        Failure::Upstream(_) => resource.fallback.as_ref(),
    });
    let mut response = body(&problem, replaced);
    let headers = response.headers_mut();
    if let Failure::Refused(_) = failure {
        headers.insert(X_SLUICE_BLOCK, HeaderValue::from_static(problem.code));
    }
    if let Failure::Refused(Refusal::BadRequest(_)) = failure {
        // What else came on the connection may be meant in another way too.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    add_retry_after(headers, &problem);
    if let Ok(value) = HeaderValue::try_from(problem.proxy_status()) {
        headers.insert(PROXY_STATUS, value);
    }
    response
}

fn on_block<'a>(on_block: &'a OnBlock, code: &str) -> Option<&'a Answer> {
    match on_block {
        OnBlock::Problem => None,
        OnBlock::All(answer) => Some(answer),
        OnBlock::ByCode(answers) => answers.get(code),
    }
}

/// Status and body: the problem, or what the resource puts in its place.
fn body(problem: &Problem<'_>, replaced: Option<&Answer>) -> Response<Body> {
    let status = replaced
        .and_then(|answer| answer.status)
        .unwrap_or(problem.status);
    let (content_type, bytes) = match replaced.and_then(|answer| answer.body.as_ref()) {
        Some(json) => (JSON, serde_json::to_vec(json)),
        None => (PROBLEM_JSON, serde_json::to_vec(&problem.wire(status))),
    };
    // Both are plain JSON values, which always serialise.
    let mut response = Response::new(Body::whole(bytes.unwrap_or_default()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// Whole seconds, rounded up and at least 1: who waits that long, waits long enough.
fn add_retry_after(headers: &mut HeaderMap, problem: &Problem<'_>) {
    if let Some(wait) = problem.retry_after {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    }
}

/// The same head with nothing behind it.
fn without_body(response: &mut Response<Body>) {
    use http_body::Body as _;
    if let Some(length) = response.body().size_hint().exact() {
        response
            .headers_mut()
            .insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    *response.body_mut() = Body::empty();
}

/// The standard phrase of a status, or the number's class for the others.
fn title(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or("Refused")
}

#[cfg(test)]
mod tests;
