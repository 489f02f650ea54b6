//! The whole path in one process: a scripted wallet behind the real stack, with the clock paused.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use super::body::{Body, RequestBody};
use super::upstream::Destination;
use super::{Proxy, Worker};
use crate::admission::{Admission, BreakerPhase};
use crate::clock::Clock;
use crate::lifecycle::Lifecycle;
use crate::rules::watch::RuleStore;
use crate::rules::{Source, compile};
use crate::tasks::Tasks;
use crate::telemetry::Telemetry;
use crate::telemetry::access::AccessLog;

mod deadlines;
mod identified;
mod leaving;
mod outcomes;

/// A resource for debits (timeout 1 s, abandoned after 5 s, at most one in flight) and one for reads.
const ONE_AT_A_TIME: &str = "
resources:
  - name: debit
    match: { method: POST, path: '/accounts/{id}/debits' }
    params: [ { name: id, from: path } ]
    timeout: 1s
    fallback: { body: { code: DEDUCT_FAILED } }
  - name: read
    match: { method: GET, path: '/accounts/{id}' }
    timeout: 1s
isolation:
  - { id: one, resource: debit, maxConcurrentRequests: 1 }
  - { resource: read, maxConcurrentRequests: 1 }
";

/// The proxy over a scripted wallet.
struct Bench {
    worker: Worker,
}

impl Bench {
    fn new(rules: &str, wallet: Router) -> Self {
        let source = Source {
            path: "rules/a.yaml".into(),
            bytes: rules.as_bytes().to_vec(),
        };
        let set = compile::compile(Path::new("rules"), &[source]).expect("the rules of a test are good");
        let clock = Clock::start();
        let store = RuleStore::new(set);
        let admission = Admission::new();
        admission.install(&store.snapshot(), clock.now());
        let proxy = Proxy {
            store: Arc::new(store),
            admission,
            telemetry: Telemetry::new(AccessLog::off(), clock),
            lifecycle: Lifecycle::default(),
            destination: Destination::InProcess(wallet),
            authorization: None,
            exchanges: Tasks::new(),
        };
        Self {
            worker: Worker::new(Arc::new(proxy)),
        }
    }

    /// One request through the whole path, up to the head of its answer.
    async fn call(&self, request: Request<RequestBody>) -> Response<Body> {
        let peer = SocketAddr::from(([192, 0, 2, 1], 40_000));
        self.worker
            .stack(peer)
            .oneshot(request)
            .await
            .expect("the path does not fail")
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a test's client is a task of its own, to be aborted"
    )]
    /// Starts a request on a task of its own, and hands back the means to hang up.
    fn start(&self, request: Request<RequestBody>) -> tokio::task::JoinHandle<Response<Body>> {
        let stack = self.worker.stack(SocketAddr::from(([192, 0, 2, 1], 40_000)));
        tokio::task::spawn(async move { stack.oneshot(request).await.expect("the path does not fail") })
    }

    /// Requests of a resource that hold a permit.
    fn in_flight(&self, resource: &str) -> u32 {
        self.snapshot(resource).in_flight
    }

    fn snapshot(&self, resource: &str) -> crate::admission::ResourceSnapshot {
        let proxy = self.worker.proxy();
        let all = proxy.admission.snapshot(proxy.telemetry.clock.now());
        all.into_iter()
            .find(|each| each.resource.as_str() == resource)
            .expect("the resource is in the rules")
    }

    fn breaker(&self, resource: &str) -> BreakerPhase {
        self.snapshot(resource).breakers[0].state
    }

    fn abandoned(&self) -> u64 {
        self.worker.proxy().telemetry.metrics.abandoned.get()
    }
}

fn request(method: Method, path: &str, body: &'static str) -> Request<RequestBody> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "wallet")
        .body(RequestBody::whole(Bytes::from_static(body.as_bytes())))
        .unwrap()
}

fn debit() -> Request<RequestBody> {
    request(Method::POST, "/accounts/alice/debits", "{}")
}

fn read() -> Request<RequestBody> {
    request(Method::GET, "/accounts/alice", "")
}

/// A wallet that answers every request 201 after `wait`.
fn slow(wait: Duration) -> Router {
    Router::new().fallback(move || async move {
        tokio::time::sleep(wait).await;
        (StatusCode::CREATED, "done")
    })
}

async fn json(response: Response<Body>) -> Value {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap()
}

/// Lets everything run that can run now; the paused clock stands still.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}
