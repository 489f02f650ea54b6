//! What the tests share: the real binary on free ports, a scripted wallet, and a client that speaks raw HTTP.

use std::future::Future;
use std::time::Duration;

pub(crate) mod client;
pub(crate) mod proxy;
pub(crate) mod upstream;

pub(crate) use client::Client;
pub(crate) use proxy::{Options, Proxy};
pub(crate) use upstream::{Reply, Upstream};

/// Longer than anything takes that works; what hits it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Awaits `what`, or fails naming it.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .unwrap_or_else(|_| panic!("{what} did not happen in time"))
}

/// Asks again until `holds`. Only for the state of the other process, which offers nothing to await.
pub(crate) async fn settles<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    soon(what, async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
