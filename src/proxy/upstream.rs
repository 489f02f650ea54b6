//! Sending a request to the wallet, with deadlines, exactly once.
//!
//! A request goes out on an idle connection of this thread's pool or on a new one. If an idle connection turns out to
//! be closed before the request was written, hyper hands the request back and it goes out on another; nothing else is
//! ever sent again. Deadlines: [`CONNECT`], then the resource's timeout from admission to the last byte. What the
//! request holds travels in `in_flight` until the head of the answer and in `streamed` until the end of its body.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Request};
use tokio::time::{Instant, timeout_at};
use tower::Service;

pub mod destination;
mod held;
mod in_flight;
pub mod pool;
pub(super) mod streamed;

pub use destination::Destination;

use super::body::{Body, RequestBody};
use super::failure::{Answered, UpstreamError};
use super::{Client, Worker, headers};
use crate::admission::Outcome;
use crate::admission::layer::Admitted;
use crate::rules::ResourceRules;
use destination::Link;
use held::Held;
use in_flight::{InFlight, Sent};
use streamed::Streamed;

/// How long a connection to the upstream may take.
pub const CONNECT: Duration = Duration::from_secs(1);

/// How many times its timeout a request that no resource matched may be worked on after its client left.
const ABANDON_FACTOR: u32 = 5;

/// A request on its way inward, with what of its resource concerns forwarding.
#[derive(Debug)]
pub struct Routed {
    pub request: Request<RequestBody>,
    pub resource: Option<Arc<ResourceRules>>,
    /// From admission to the last byte of the answer.
    pub timeout: Duration,
}

/// The innermost service: one upstream exchange per call.
#[derive(Clone, Debug)]
pub struct Forward {
    client: Arc<Client>,
}

impl Forward {
    pub(super) const fn new(client: Arc<Client>) -> Self {
        Self { client }
    }
}

impl Service<Admitted<Routed>> for Forward {
    type Response = Answered;
    type Error = UpstreamError;
    type Future = Pin<Box<dyn Future<Output = Result<Answered, UpstreamError>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), UpstreamError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, admitted: Admitted<Routed>) -> Self::Future {
        let Admitted {
            permit,
            request: routed,
        } = admitted;
        let Routed {
            mut request,
            resource,
            timeout,
        } = routed;
        let proxy = self.client.worker.proxy();
        headers::to_upstream(
            &mut request,
            &self.client.forwarded_for,
            proxy.destination.host(),
            proxy.authorization.as_ref(),
        );
        let now = Instant::now();
        let abandon_after = resource.as_ref().map_or_else(
            || timeout.saturating_mul(ABANDON_FACTOR),
            |resource| resource.abandon_after,
        );
        let held = Held {
            permit,
            resource,
            upload: request.body().upload(),
            write: !request.method().is_safe(),
            deadline: now + timeout,
            abandon_at: now + abandon_after.max(timeout),
            worker: self.client.worker.clone(),
        };
        Box::pin(forward(request, held, now))
    }
}

/// Sends `request` and waits for the head of its answer. Dropped, it gives back what it holds, unless a write is under
/// way: that goes on in the background until the upstream has ended or `abandonAfter`.
async fn forward(
    mut request: Request<RequestBody>,
    mut held: Held,
    started: Instant,
) -> Result<Answered, UpstreamError> {
    let deadline = held.deadline;
    let worker = held.worker.clone();
    loop {
        let link = match worker.link(deadline).await {
            Ok(link) => link,
            Err(error) => {
                held.report(Outcome::Failure);
                return Err(error);
            }
        };
        let idle = link.was_idle();
        let mut in_flight = InFlight::new(link.send(request), held);
        let Ok((sent, back)) = timeout_at(deadline, &mut in_flight).await else {
            // Dropped here: a write that was sent goes on with its permit, everything else is cancelled.
            return Err(if in_flight.late() {
                UpstreamError::Timeout
            } else {
                UpstreamError::ClientLate
            });
        };
        held = back;
        match sent {
            Sent::Answer(response, lease) => {
                let (mut parts, source) = response.into_parts();
                headers::strip_hop_by_hop(&mut parts.headers);
                // The version is each hop's own; hyper lowers it again for an old client.
                parts.version = http::Version::HTTP_11;
                held.head(parts.status);
                let body = Body::streamed(Streamed::new(source, lease, held))
                    .or_hollow(parts.status, &parts.headers);
                let upstream = started.elapsed();
                return Ok(Answered {
                    response: http::Response::from_parts(parts, body),
                    upstream,
                });
            }
            // Each round takes an idle connection out of the pool, so the last one is a new connection.
            Sent::Unsent(again) if idle => request = again,
            Sent::Unsent(_) => {
                held.report(Outcome::Failure);
                return Err(UpstreamError::Unreachable(
                    "it closed a new connection at once".to_owned(),
                ));
            }
            Sent::Failed if held.failed() => return Err(UpstreamError::Reset),
            Sent::Failed => return Err(UpstreamError::ClientBody),
        }
    }
}

impl Worker {
    /// A way to send one request: an idle connection, a new one, or the wallet in this process.
    async fn link(&self, deadline: Instant) -> Result<Link, UpstreamError> {
        let proxy = self.proxy();
        if let Destination::InProcess(router) = &proxy.destination {
            return Ok(Link::InProcess(router.clone()));
        }
        let now = Instant::now();
        if let Some(sender) = self.pool().take(now) {
            return Ok(Link::idle(sender, self.clone()));
        }
        let metrics = &proxy.telemetry.metrics;
        let until = deadline.min(now + CONNECT);
        let connected = timeout_at(until, proxy.destination.connect(self.background())).await;
        match connected {
            Ok(Ok(sender)) => {
                metrics.connects_ok.inc();
                Ok(Link::new(sender, self.clone()))
            }
            Ok(Err(error)) => {
                metrics.connects_failed.inc();
                Err(UpstreamError::Unreachable(error.to_string()))
            }
            Err(_elapsed) => {
                metrics.connects_failed.inc();
                Err(UpstreamError::Unreachable("no connection in time".to_owned()))
            }
        }
    }
}

/// The Host that a request without one gets.
fn host_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("localhost"))
}

/// An axum router cannot fail.
fn never<T>(result: Result<T, Infallible>) -> T {
    result.unwrap_or_else(|never| match never {})
}
