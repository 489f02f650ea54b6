//! From a request to the resource it touches and the values it weighs on. One snapshot of the rules per request.
//!
//! The path is matched normalised; what servers do not agree about is refused. A body is read only if a parameter of
//! the matched route is in it, at most `maxJsonBody` of it, and then sent on as it was.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderMap, Method, Request};
use http_body::Body as _;
use http_body_util::BodyExt;
use tower::Service;
use xxhash_rust::xxh3::xxh3_64;

use super::Proxy;
use super::body::RequestBody;
use super::failure::{Answered, Failure, Refusal, Target, UpstreamError, Verdict};
use super::upstream::Routed;
use crate::admission::Call;
use crate::admission::layer::{AdmissionError, Identified};
use crate::lifecycle::Phase;
use crate::params::{self, RequestParts};
use crate::router;
use crate::rules::{ResourceRules, RuleSet, Unmatched};

/// The service around admission.
#[derive(Clone, Debug)]
pub(super) struct Identify<S> {
    inner: S,
    proxy: Arc<Proxy>,
}

impl<S> Identify<S> {
    pub(super) const fn new(inner: S, proxy: Arc<Proxy>) -> Self {
        Self { inner, proxy }
    }
}

/// What the service inside must be: admission over the upstream.
pub(super) trait Admitting:
    Service<
        Identified<Routed>,
        Response = Answered,
        Error = AdmissionError<UpstreamError>,
        Future: Future<Output = Result<Answered, AdmissionError<UpstreamError>>> + Send + Unpin,
    > + Clone
    + Send
    + 'static
{
}

impl<S> Admitting for S where
    S: Service<
            Identified<Routed>,
            Response = Answered,
            Error = AdmissionError<UpstreamError>,
            Future: Future<Output = Result<Answered, AdmissionError<UpstreamError>>> + Send + Unpin,
        > + Clone
        + Send
        + 'static
{
}

impl<S: Admitting> Service<Request<RequestBody>> for Identify<S> {
    type Response = Verdict;
    type Error = Infallible;
    type Future = Identifying<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // An inner service that failed to get ready fails the call as well, where there is a request to answer.
        self.inner.poll_ready(cx).map(|_| Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let rules = self.proxy.store.snapshot();
        let found = match self.find(&rules, &request) {
            Ok(found) => found,
            Err(refusal) => return Identifying::refused(self.target(&rules, None), refusal),
        };
        let Some(found) = found else {
            return self.unmatched(&rules, request);
        };
        if found.needs_body() {
            let mut inner = self.inner.clone();
            // The clone stays behind; the one that was polled ready is the one that is called.
            std::mem::swap(&mut inner, &mut self.inner);
            let identify = Self {
                inner,
                proxy: Arc::clone(&self.proxy),
            };
            return Identifying::Reading(Box::pin(identify.after_body(found, rules, request)));
        }
        self.matched(&found, rules, request, None)
    }
}

/// A route that matched.
struct Found {
    index: usize,
    route: usize,
    resource: Arc<ResourceRules>,
    path: String,
}

impl Found {
    fn extractors(&self) -> &[params::Extractor] {
        self.resource
            .routes
            .get(self.route)
            .map_or(&[], |route| &route.extractors)
    }

    fn needs_body(&self) -> bool {
        self.extractors().iter().any(params::Extractor::needs_body)
    }
}

impl<S: Admitting> Identify<S> {
    /// The route of a request, if it can be read one way only.
    fn find(&self, rules: &RuleSet, request: &Request<RequestBody>) -> Result<Option<Found>, Refusal> {
        if self.proxy.lifecycle.phase() >= Phase::Closing {
            return Err(Refusal::Draining);
        }
        if request.method() == Method::CONNECT {
            return Err(Refusal::BadRequest("tunnels are not served".to_owned()));
        }
        let path = router::normalise(request.uri().path())
            .map_err(|ambiguous| Refusal::BadRequest(ambiguous.to_string()))?;
        let found = rules.router.find(request.method(), &path).and_then(|found| {
            let resource = Arc::clone(rules.resources.get(found.resource)?);
            Some(Found {
                index: found.resource,
                route: found.route,
                resource,
                path: path.into_owned(),
            })
        });
        Ok(found)
    }

    fn target(&self, rules: &RuleSet, found: Option<&Found>) -> Target {
        Target {
            resource: found.map(|found| Arc::clone(&found.resource)),
            meter: self
                .proxy
                .telemetry
                .metrics
                .meter(rules, found.map(|found| found.index)),
            values: Vec::new(),
        }
    }

    fn unmatched(&mut self, rules: &RuleSet, request: Request<RequestBody>) -> Identifying<S::Future> {
        self.proxy.telemetry.metrics.unmatched_total.inc();
        let target = self.target(rules, None);
        match rules.unmatched {
            Unmatched::Reject => Identifying::refused(target, Refusal::Unmatched),
            Unmatched::Pass => {
                let request = Routed {
                    request,
                    resource: None,
                    timeout: rules.default_timeout,
                };
                let future = self.inner.call(Identified { call: None, request });
                Identifying::Inner {
                    future,
                    target: Some(target),
                }
            }
        }
    }

    /// Reads the parameters and asks admission. `body` is the whole body if a parameter is in it.
    fn matched(
        &mut self,
        found: &Found,
        rules: Arc<RuleSet>,
        request: Request<RequestBody>,
        body: Option<&[u8]>,
    ) -> Identifying<S::Future> {
        let parts = RequestParts {
            path: &found.path,
            query: request.uri().query(),
            headers: request.headers(),
        };
        let values = params::extract(found.extractors(), &parts, body);
        let mut target = self.target(&rules, Some(found));
        target.values.clone_from(&values);
        let call = Call {
            request_hash: request_hash(request.headers(), &found.path),
            rules,
            resource: found.index,
            values,
        };
        let timeout = found.resource.timeout;
        let resource = Some(Arc::clone(&found.resource));
        let request = Routed {
            request,
            resource,
            timeout,
        };
        let future = self.inner.call(Identified {
            call: Some(call),
            request,
        });
        Identifying::Inner {
            future,
            target: Some(target),
        }
    }

    /// Reads the body first. Dropping it leaves nothing behind: nothing was taken yet.
    async fn after_body(
        mut self,
        found: Found,
        rules: Arc<RuleSet>,
        request: Request<RequestBody>,
    ) -> Verdict {
        let (parts, body) = request.into_parts();
        let bytes = match read(body, found.resource.max_json_body, found.resource.timeout).await {
            Ok(bytes) => bytes,
            Err(refusal) => {
                let target = self.target(&rules, Some(&found));
                return Verdict {
                    target,
                    result: Err(Failure::Refused(refusal)),
                };
            }
        };
        let request = Request::from_parts(parts, RequestBody::whole(bytes.clone()));
        self.matched(&found, rules, request, Some(&bytes))
            .await
            .unwrap_or_else(|never| match never {})
    }
}

/// The whole body, at most `limit` bytes of it, within `timeout`.
async fn read(body: RequestBody, limit: usize, timeout: Duration) -> Result<bytes::Bytes, Refusal> {
    if body.size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX) {
        return Err(Refusal::BodyTooLarge { limit });
    }
    let collected = tokio::time::timeout(timeout, http_body_util::Limited::new(body, limit).collect())
        .await
        .map_err(|_| Refusal::BadRequest("the request body did not arrive in time".to_owned()))?;
    match collected {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(Refusal::BodyTooLarge { limit }),
        Err(_) => Err(Refusal::BadRequest("the request body broke off".to_owned())),
    }
}

/// A well-spread number of the request: of its id if it has one, else of what it touches.
fn request_hash(headers: &HeaderMap, path: &str) -> u64 {
    let id = headers
        .get("x-request-id")
        .or_else(|| headers.get("idempotency-key"));
    id.map_or_else(|| xxh3_64(path.as_bytes()), |id| xxh3_64(id.as_bytes()))
}

/// The future of [`Identify`].
pub(super) enum Identifying<F> {
    /// Decided at once.
    Decided(Option<Box<Verdict>>),
    /// With admission and the upstream.
    Inner { future: F, target: Option<Target> },
    /// A body has to be read first.
    Reading(Pin<Box<dyn Future<Output = Verdict> + Send>>),
}

impl<F> Identifying<F> {
    fn refused(target: Target, refusal: Refusal) -> Self {
        Self::Decided(Some(Box::new(Verdict {
            target,
            result: Err(Failure::Refused(refusal)),
        })))
    }
}

impl<F> Future for Identifying<F>
where
    F: Future<Output = Result<Answered, AdmissionError<UpstreamError>>> + Unpin,
{
    type Output = Result<Verdict, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Decided(verdict) => {
                Poll::Ready(Ok(*verdict.take().expect("not polled after it was ready")))
            }
            Self::Reading(future) => future.as_mut().poll(cx).map(Ok),
            Self::Inner { future, target } => Pin::new(future).poll(cx).map(|result| {
                let target = target.take().expect("not polled after it was ready");
                let result = result.map_err(|error| match error {
                    AdmissionError::Blocked(blocked) => Failure::Refused(Refusal::Blocked(blocked)),
                    AdmissionError::Inner(error) => Failure::Upstream(error),
                });
                Ok(Verdict { target, result })
            }),
        }
    }
}
