//! The wallet over HTTP/1.1 and JSON, version 1: the library API without more.
//!
//! | route | meaning |
//! |---|---|
//! | `POST /v1/accounts` | open: 201, the same again 200, another 409 `account_exists` |
//! | `GET /v1/accounts` | the accounts by id, a page at a time: `?after=&limit=` |
//! | `GET /v1/accounts/{account_id}` | the account and its money at one cut; `?at=` or `?cursor=`: its money then |
//! | `POST /v1/accounts/{account_id}/credits` | add money |
//! | `POST /v1/accounts/{account_id}/debits` | take money, never below the floor |
//! | `GET /v1/accounts/{account_id}/entries` | one page of the statement, `?after=&limit=`; all of it as NDJSON or CSV |
//! | `POST /v1/transfers` | from one account to another, whole or not at all |
//! | `GET /v1/requests/{account_id}/{request_id}` | what became of a request id |
//! | `GET /v1/events` | every entry as it is committed, `?account=&after=`, as server-sent events |
//! | `GET /v1/webhooks/dead-letters`, `POST …/redeliver` | events that did not arrive; sending them once more |
//! | `GET /v1/reconciliation` | whether the books are what the entries say, and where not |
//! | `POST /v1/requests/{account_id}/{request_id}/abandon` | make sure that an undecided id never happens |
//! | `GET /healthz`, `/readyz` | the process answers; the store takes commands. No token needed |
//! | `GET /metrics`, `/openapi.json` | OpenMetrics text; this surface, described |
//!
//! A first success is 201. The same id again is 200 with the same body, byte for byte, and `Idempotent-Replayed: true`;
//! a refusal is repeated with its own status. Everything else is a [`Problem`](error::Problem); its status table is in
//! [`error`]. Nothing is ignored: an unknown field, parameter, route or media type is refused and named.
//!
//! The path of a request: [`auth`] (401 and 403 before anything is read), `routes`, `extract` (path, query, header, body),
//! `wire` (JSON to a command), [`Wallet`], `view` (outcome to JSON). [`serve`] puts the router on a socket; it also
//! runs in process, on any tokio runtime with its timers on, and starts no task.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler as _;

use self::auth::{Access, Guard};
use self::events::Streams;
use self::metrics::Metrics;
use self::routes::Service;
use self::webhooks::Webhooks;
use crate::Wallet;

mod accept;
pub mod auth;
mod batch;
mod cursor;
pub mod error;
mod events;
mod extract;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod metrics;
mod moment;
mod openapi;
mod reconciliation;
mod routes;
pub mod serve;
mod statement;
mod view;
pub mod webhooks;
mod wire;

pub use events::{Ending, KEEP_ALIVE, MAX_STREAMS};
pub use extract::{MAX_BATCH_BYTES, MAX_BODY_BYTES};

/// What a router is set up with.
#[derive(Clone, Debug, Default)]
pub struct HttpOptions {
    /// Who may call, and what for.
    pub access: Access,
    /// Ends the streams that do not end by themselves, so that a server need not wait for them.
    pub ending: Ending,
    /// Whose dead letters are listed, and whose deliveries are counted. Somebody runs them.
    pub webhooks: Option<Webhooks>,
}

/// The routes over a wallet. Dropping a request half-way leaves its command to be decided; its id tells what became
/// of it.
pub fn router(wallet: Wallet, options: HttpOptions) -> Router {
    let routes = routes::routes();
    let guard = |needs| Guard {
        access: options.access.clone(),
        needs,
    };
    let service = Service {
        metrics: Metrics::of(&wallet, options.webhooks.as_ref()),
        openapi: openapi::document(&routes),
        streams: Streams::new(options.ending),
        webhooks: options.webhooks,
        wallet,
    };
    routes
        .into_iter()
        .fold(Router::new(), |router, route| {
            let handler = route.handler.route_layer(guard(route.needs));
            router.route(route.path, handler)
        })
        .fallback(routes::unknown_route.layer(guard(&[])))
        .method_not_allowed_fallback(routes::unknown_method.layer(guard(&[])))
        .with_state(Arc::new(service))
}
