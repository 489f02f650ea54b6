//! The outermost layer: counts every answer, times it to its last byte, and writes the access log.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use serde_json::{Map, Value};
use tower::Service;

use super::Client;
use super::body::{Body, RequestBody};
use super::failure::Target;
use super::respond::{Cause, Reply};
use crate::clock::Tick;
use crate::params::ParamValue;
use crate::telemetry::access::{Line, MOST_VALUES, Pick, clipped};

/// The service around everything.
#[derive(Clone, Debug)]
pub(super) struct Observe<S> {
    inner: S,
    client: Arc<Client>,
}

impl<S> Observe<S> {
    pub(super) const fn new(inner: S, client: Arc<Client>) -> Self {
        Self { inner, client }
    }
}

/// What of a request is needed after it went on.
#[derive(Debug)]
struct Seen {
    method: Method,
    uri: Uri,
    request_id: Option<HeaderValue>,
    arrived: Tick,
}

impl<S> Service<Request<RequestBody>> for Observe<S>
where
    S: Service<Request<RequestBody>, Response = Reply, Error = Infallible>,
    S::Future: Unpin,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Observing<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let seen = Seen {
            method: request.method().clone(),
            uri: request.uri().clone(),
            request_id: request.headers().get("x-request-id").cloned(),
            arrived: self.client.telemetry().clock.now(),
        };
        Observing {
            inner: self.inner.call(request),
            client: Arc::clone(&self.client),
            seen: Some(seen),
        }
    }
}

/// The future of the whole path.
#[derive(Debug)]
pub(super) struct Observing<F> {
    inner: F,
    client: Arc<Client>,
    seen: Option<Seen>,
}

impl<F> Future for Observing<F>
where
    F: Future<Output = Result<Reply, Infallible>> + Unpin,
{
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Poll::Ready(Ok(reply)) = Pin::new(&mut self.inner).poll(cx) else {
            return Poll::Pending;
        };
        let seen = self.seen.take().expect("not polled after it was ready");
        let Reply {
            response,
            target,
            cause,
        } = reply;
        let status = response.status();
        target.meter.answered(status);
        if let Cause::Refused { own: Some(own), .. } = &cause {
            target.meter.refused(*own);
        }
        if let Cause::Answered(took) = &cause {
            self.client
                .telemetry()
                .metrics
                .upstream_duration
                .observe(took.as_secs_f64());
        }
        let record = self.record(seen, status, &target, cause);
        Poll::Ready(Ok(response.map(|body| body.watched(Box::new(record)))))
    }
}

impl<F> Observing<F> {
    fn record(&self, seen: Seen, status: StatusCode, target: &Target, cause: Cause) -> Record {
        let pick = match cause {
            Cause::Answered(_) => self.client.telemetry().access.pick_pass(),
            Cause::Refused { .. } | Cause::Failed { .. } => self
                .client
                .telemetry()
                .access
                .pick_refusal(self.client.telemetry().clock.now()),
        };
        let arrived = seen.arrived;
        let entry = (pick != Pick::Skip).then(|| Entry {
            seen,
            status,
            resource: target.name().map(|name| name.as_str().to_owned()),
            params: params(target),
            cause,
            sample: if let Pick::Sample(n) = pick { Some(n) } else { None },
        });
        Record {
            client: Arc::clone(&self.client),
            arrived,
            entry,
        }
    }
}

/// Parameters by name; a value that occurs several times is listed once, and of many the first few.
fn params(target: &Target) -> Map<String, Value> {
    let names = target.resource.iter().flat_map(|resource| &resource.params);
    names
        .zip(&target.values)
        .filter_map(|(name, value)| {
            let value = match value {
                ParamValue::Missing => return None,
                ParamValue::One(one) => Value::from(clipped(one)),
                ParamValue::Many(many) => {
                    let first = many.iter().take(MOST_VALUES);
                    first.map(|(each, _)| Value::from(clipped(each))).collect()
                }
            };
            Some((name.as_str().to_owned(), value))
        })
        .collect()
}

/// One request until its last byte has left. Dropped then, with the body, it reports.
#[derive(Debug)]
pub(super) struct Record {
    client: Arc<Client>,
    arrived: Tick,
    entry: Option<Entry>,
}

/// What the access log will say.
#[derive(Debug)]
struct Entry {
    seen: Seen,
    status: StatusCode,
    resource: Option<String>,
    params: Map<String, Value>,
    cause: Cause,
    sample: Option<u32>,
}

impl Drop for Record {
    fn drop(&mut self) {
        let took = self.client.telemetry().clock.now().since(self.arrived);
        self.client
            .telemetry()
            .metrics
            .request_duration
            .observe(took.as_secs_f64());
        if let Some(entry) = self.entry.take() {
            entry.write(&self.client, took);
        }
    }
}

impl Entry {
    fn write(self, client: &Client, took: Duration) {
        let (code, rule, upstream) = match &self.cause {
            Cause::Answered(took) => (None, None, Some(*took)),
            Cause::Refused { code, rule, .. } => (Some(*code), rule.as_ref(), None),
            Cause::Failed { code } => (Some(*code), None, None),
        };
        let request_id = self.seen.request_id.as_ref().and_then(|id| id.to_str().ok());
        let request_id = request_id.map(clipped);
        client.telemetry().access.write(&Line {
            method: &clipped(self.seen.method.as_str()),
            path: &clipped(self.seen.uri.path()),
            resource: self.resource.as_deref(),
            params: self.params,
            status: self.status.as_u16(),
            code,
            rule: rule.map(crate::rules::RuleId::as_str),
            duration_ms: millis(took),
            upstream_ms: upstream.map(millis),
            client: Some(&client.text),
            request_id: request_id.as_deref(),
            sample: self.sample,
        });
    }
}

/// Milliseconds to the microsecond.
fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
