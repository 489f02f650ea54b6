//! The admin listener: health, metrics, and what the rules say and do. On a thread of its own, so that it answers
//! whatever the workers are busy with.
//!
//! `/healthz` and `/readyz` need no token; everything else does if tokens are configured. The status listener serves
//! healthz, readyz and metrics only. Readiness is about this process, never about the upstream: a failing wallet must
//! not take the whole fleet of sidecars out of rotation.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

mod resources;
mod rules;

use crate::config::Tokens;
use crate::lifecycle::{Lifecycle, Phase};
use crate::proxy::Proxy;
use crate::rules::watch::RulesStatus;
use crate::telemetry::metrics::scrape::{CONTENT_TYPE, Scrape};

/// What the admin routes read.
#[derive(Clone, Debug)]
struct Shared {
    proxy: Arc<Proxy>,
    scrape: Arc<Scrape>,
}

/// The thread that serves admin and status.
#[derive(Debug)]
pub struct Admin {
    address: SocketAddr,
    status: Option<SocketAddr>,
    thread: JoinHandle<()>,
}

/// A problem of the admin API, in the wallet's and the sidecar's shape.
#[derive(Debug, Serialize)]
struct Problem {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    code: &'static str,
    detail: &'static str,
}

impl Admin {
    /// Binds both listeners and starts serving.
    ///
    /// # Errors
    /// The address that cannot be bound, with why.
    pub fn start(
        proxy: &Arc<Proxy>,
        admin: SocketAddr,
        status: Option<SocketAddr>,
        tokens: Option<Tokens>,
    ) -> Result<Self, (SocketAddr, io::Error)> {
        let at = |address| move |error| (address, error);
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(at(admin))?;
        let admin_listener = bind(admin).map_err(at(admin))?;
        let status_listener = match status {
            Some(address) => Some(bind(address).map_err(at(address))?),
            None => None,
        };
        let shared = Shared {
            scrape: Arc::new(Scrape::new(
                Arc::clone(&proxy.telemetry),
                Arc::clone(&proxy.admission),
                Arc::clone(&proxy.store),
            )),
            proxy: Arc::clone(proxy),
        };
        let address = admin_listener.local_addr().map_err(at(admin))?;
        let status = match &status_listener {
            Some(listener) => Some(listener.local_addr().map_err(at(admin))?),
            None => None,
        };
        let lifecycle = proxy.lifecycle.clone();
        let admin_routes = admin_routes(tokens).with_state(shared.clone());
        let status_routes = probes().merge(metrics_route()).with_state(shared);
        let thread = std::thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || {
                let status = status_listener.map(|listener| (listener, status_routes));
                serve(&runtime, (admin_listener, admin_routes), status, &lifecycle);
            })
            .map_err(at(admin))?;
        Ok(Self {
            address,
            status,
            thread,
        })
    }

    /// Where admin listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where status listens, if it does.
    #[must_use]
    pub const fn status(&self) -> Option<SocketAddr> {
        self.status
    }

    /// Waits for the thread, which ends with [`Phase::Stopping`].
    pub fn join(self) {
        if self.thread.join().is_err() {
            tracing::error!("the admin thread panicked");
        }
    }
}

fn bind(address: SocketAddr) -> io::Result<StdListener> {
    let listener = StdListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves until the process stops: `/readyz` has to answer for as long as the drain takes.
fn serve(
    runtime: &Runtime,
    (admin, routes): (StdListener, Router),
    status: Option<(StdListener, Router)>,
    lifecycle: &Lifecycle,
) {
    let status = async {
        match status {
            Some((listener, routes)) => listen(listener, routes).await,
            None => std::future::pending().await,
        }
    };
    runtime.block_on(async {
        tokio::select! {
            () = lifecycle.reached(Phase::Stopping) => {}
            () = listen(admin, routes) => {}
            () = status => {}
        }
    });
}

/// Serves one listener. axum's accept loop goes on whatever single connections do, so this ends only by an error.
async fn listen(listener: StdListener, routes: Router) {
    let served = match TcpListener::from_std(listener) {
        Ok(listener) => axum::serve(listener, routes).await,
        Err(error) => Err(error),
    };
    if let Err(error) = served {
        tracing::error!(%error, "the admin listener stopped");
    }
}

fn probes() -> Router<Shared> {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .fallback(not_found)
}

fn metrics_route() -> Router<Shared> {
    Router::new().route("/metrics", get(metrics))
}

fn admin_routes(tokens: Option<Tokens>) -> Router<Shared> {
    let guarded = metrics_route()
        .route("/api/rules", get(rules::list))
        .route("/api/resources", get(resources::list));
    let guarded = match tokens {
        Some(tokens) => guarded.route_layer(middleware::from_fn_with_state(Arc::new(tokens), authorize)),
        None => guarded,
    };
    probes().merge(guarded)
}

/// `/readyz`: 200 while rules are loaded and the process is not leaving.
#[derive(Serialize)]
struct Readiness<'a> {
    ready: bool,
    rules: &'a RulesStatus,
}

async fn readyz(State(shared): State<Shared>) -> Response {
    let ready = shared.proxy.lifecycle.phase() == Phase::Serving;
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let rules = shared.proxy.store.status();
    (status, Json(Readiness { ready, rules: &rules })).into_response()
}

async fn metrics(State(shared): State<Shared>) -> Response {
    match shared.scrape.text() {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "the metrics could not be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn not_found() -> Response {
    problem(StatusCode::NOT_FOUND, "not_found", "no such admin route")
}

async fn authorize(State(tokens): State<Arc<Tokens>>, request: Request, next: Next) -> Response {
    let token = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Bearer"))
        .map(|(_, token)| token.trim());
    if token.is_some_and(|token| tokens.contain(token)) {
        next.run(request).await
    } else {
        problem(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "send Authorization: Bearer with a token of --admin-token-file",
        )
    }
}

fn problem(status: StatusCode, code: &'static str, detail: &'static str) -> Response {
    let body = Problem {
        r#type: "about:blank",
        title: status.canonical_reason().unwrap_or_default(),
        status: status.as_u16(),
        code,
        detail,
    };
    (
        status,
        [(header::CONTENT_TYPE, "application/problem+json")],
        Json(body),
    )
        .into_response()
}
