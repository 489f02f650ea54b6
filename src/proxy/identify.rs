//! From a request to the resource it touches and the values it weighs on. One snapshot of the rules per request.
//!
//! The path is matched normalised; what servers do not agree about is refused. A body is read only if a parameter of
//! the matched route is in it, at most `maxJsonBody` of it, and then sent on as it was.

use std::borrow::Cow;
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

use super::body::RequestBody;
use super::failure::{Answered, Failure, Refusal, Target, UpstreamError, Verdict};
use super::upstream::Routed;
use super::{Proxy, headers};
use crate::admission::Call;
use crate::admission::layer::{AdmissionError, Identified};
use crate::lifecycle::Phase;
use crate::params::{self, ParamValue, RequestParts};
use crate::router;
use crate::rules::{ResourceRules, Route, RuleSet, Unmatched};

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
        match self.find(&rules, &request) {
            Err(refusal) => Identifying::refused(self.target(&rules, None), refusal),
            Ok(Found::Nothing) => self.unmatched(&rules, request),
            Ok(Found::Weighed(matched, weight)) => self.admit(&matched, weight, rules, request),
            Ok(Found::NeedsBody(matched)) => {
                let mut inner = self.inner.clone();
                // The clone stays behind; the one that was polled ready is the one that is called.
                std::mem::swap(&mut inner, &mut self.inner);
                let proxy = Arc::clone(&self.proxy);
                let identify = Self { inner, proxy };
                Identifying::Reading(Box::pin(identify.after_body(matched, rules, request)))
            }
        }
    }
}

/// What a request's head says.
enum Found {
    /// No resource matches.
    Nothing,
    /// A resource, and what the request weighs on.
    Weighed(Matched, Weight),
    /// A resource with a parameter that is in the body.
    NeedsBody(Matched),
}

/// A route that matched.
struct Matched {
    index: usize,
    route: usize,
    resource: Arc<ResourceRules>,
}

/// What a request weighs on.
struct Weight {
    values: Vec<ParamValue>,
    /// See [`Call::request_hash`].
    hash: u64,
}

impl Matched {
    fn route(&self) -> Option<&Route> {
        self.resource.routes.get(self.route)
    }

    /// `path` is normalised; `body` is the whole body if a parameter is in it.
    fn weight(&self, request: &Request<RequestBody>, path: &str, body: Option<&[u8]>) -> Weight {
        let parts = RequestParts {
            path,
            query: request.uri().query(),
            headers: request.headers(),
        };
        let extractors = self.route().map_or(&[][..], |route| &route.extractors);
        Weight {
            values: params::extract(extractors, &parts, body),
            hash: request_hash(request.headers(), path),
        }
    }
}

impl<S: Admitting> Identify<S> {
    /// The route of a request, if it can be read one way only.
    fn find(&self, rules: &RuleSet, request: &Request<RequestBody>) -> Result<Found, Refusal> {
        if self.proxy.lifecycle.phase() >= Phase::Closing {
            return Err(Refusal::Draining);
        }
        if request.method() == Method::CONNECT {
            return Err(Refusal::BadRequest("tunnels are not served".to_owned()));
        }
        headers::check(request).map_err(|reason| Refusal::BadRequest(reason.to_owned()))?;
        let path = normalised(request)?;
        let matched = rules.router.find(request.method(), &path).and_then(|found| {
            let resource = Arc::clone(rules.resources.get(found.resource)?);
            Some(Matched {
                index: found.resource,
                route: found.route,
                resource,
            })
        });
        Ok(match matched {
            None => Found::Nothing,
            Some(matched) if matched.route().is_some_and(Route::needs_body) => Found::NeedsBody(matched),
            Some(matched) => {
                let weight = matched.weight(request, &path, None);
                Found::Weighed(matched, weight)
            }
        })
    }

    fn target(&self, rules: &RuleSet, matched: Option<&Matched>) -> Target {
        Target {
            resource: matched.map(|matched| Arc::clone(&matched.resource)),
            meter: self
                .proxy
                .telemetry
                .metrics
                .meter(rules, matched.map(|matched| matched.index)),
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

    /// Asks admission and, through it, the upstream.
    fn admit(
        &mut self,
        matched: &Matched,
        weight: Weight,
        rules: Arc<RuleSet>,
        request: Request<RequestBody>,
    ) -> Identifying<S::Future> {
        let mut target = self.target(&rules, Some(matched));
        target.values.clone_from(&weight.values);
        let call = Call {
            rules,
            resource: matched.index,
            values: weight.values,
            request_hash: weight.hash,
        };
        let request = Routed {
            request,
            resource: Some(Arc::clone(&matched.resource)),
            timeout: matched.resource.timeout,
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
        matched: Matched,
        rules: Arc<RuleSet>,
        request: Request<RequestBody>,
    ) -> Verdict {
        let (parts, body) = request.into_parts();
        let weighed = match read(body, matched.resource.max_json_body, matched.resource.timeout).await {
            Ok(bytes) => {
                let request = Request::from_parts(parts, RequestBody::whole(bytes.clone()));
                normalised(&request)
                    .map(|path| matched.weight(&request, &path, Some(&bytes)))
                    .map(|weight| (weight, request))
            }
            Err(refusal) => Err(refusal),
        };
        match weighed {
            Ok((weight, request)) => {
                let admitted = self.admit(&matched, weight, rules, request);
                admitted.await.unwrap_or_else(|never| match never {})
            }
            Err(refusal) => Verdict {
                target: self.target(&rules, Some(&matched)),
                result: Err(Failure::Refused(refusal)),
            },
        }
    }
}

/// The path as rules see it. Most paths are normal as they stand, and are not copied.
fn normalised(request: &Request<RequestBody>) -> Result<Cow<'_, str>, Refusal> {
    router::normalise(request.uri().path()).map_err(|ambiguous| Refusal::BadRequest(ambiguous.to_string()))
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
