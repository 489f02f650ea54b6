//! THE PATH: every layer a request walks through, outermost first.
//!
//! `server` calls this service once per request of a connection. Each layer is a tower service of its own; what they
//! hand each other are plain types, so nothing is looked up in request extensions.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower::layer::layer_fn;
use tower::{Service, ServiceBuilder};

use super::Client;
use super::body::{Body, RequestBody};
use super::identify::Identify;
use super::observe::{Observe, Observing};
use super::respond::Respond;
use super::upstream::Forward;
use crate::admission::layer::{AdmissionLayer, AdmissionService};

/// The whole path of one client connection.
#[derive(Clone, Debug)]
pub struct Stack {
    path: Observe<Inside>,
}

/// Everything inside the outermost layer.
type Inside = Respond<Identify<AdmissionService<Forward>>>;

/// One request on the path. Dropping it is what a client that leaves does: see `upstream`.
pub struct Answering(Observing<<Inside as Service<Request<RequestBody>>>::Future>);

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answering").finish_non_exhaustive()
    }
}

impl Future for Answering {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

/// Builds the path for one connection.
pub(super) fn build(client: &Arc<Client>) -> Stack {
    let proxy = client.worker.proxy();
    let path = ServiceBuilder::new()
        // Outermost, so that it sees every answer, refusals included; counts it now and times it to its last byte.
        .layer(layer_fn(|inner| Observe::new(inner, Arc::clone(client))))
        // The only place that picks a status: everything further in speaks of refusals and failures.
        .layer(layer_fn(Respond::new))
        // One snapshot of the rules per request: finds its resource and reads its parameters, from a bounded body too.
        .layer(layer_fn(|inner| Identify::new(inner, Arc::clone(proxy))))
        // Every rule evaluated, then every rule taken, in one step. The permit travels inward with the request.
        .layer(AdmissionLayer::new(
            Arc::clone(&proxy.admission),
            proxy.telemetry.clock,
        ))
        // Sends, with deadlines, and keeps the permit: in the exchange, then in the body of the answer (`body`), until
        // the last byte leaves or the client goes, and beyond that for a write which the upstream still works on.
        .service(Forward::new(Arc::clone(client)));
    Stack { path }
}

impl Service<Request<RequestBody>> for Stack {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.path.poll_ready(cx)
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        Answering(self.path.call(request))
    }
}
