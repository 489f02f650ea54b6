//! Leaving in order: not ready, still accepting, finishing, gone.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::lifecycle::{Lifecycle, Phase};
use crate::proxy::Proxy;

/// How long each step of leaving may take.
#[derive(Clone, Copy, Debug)]
pub struct DrainOptions {
    /// How long connections are still accepted. Ends at once when none is open.
    pub accept_grace: Duration,
    /// From the signal to the hard stop.
    pub drain_timeout: Duration,
}

/// Takes the process from [`Phase::Serving`] to [`Phase::Stopping`]. Readiness is gone with the first step. Returns how
/// many connections and exchanges were dropped at the hard stop. A second signal (`now`) stops at once.
pub async fn drain(proxy: &Proxy, options: DrainOptions, now: impl Future<Output = ()>) -> usize {
    let lifecycle = &proxy.lifecycle;
    let left = tokio::select! {
        left = in_steps(proxy, lifecycle, options) => left,
        () = now => proxy.exchanges.running(),
    };
    lifecycle.advance(Phase::Stopping);
    left
}

async fn in_steps(proxy: &Proxy, lifecycle: &Lifecycle, options: DrainOptions) -> usize {
    let begun = Instant::now();
    let hard_stop = begun + options.drain_timeout;
    lifecycle.advance(Phase::Leaving);
    // A time-out here is the usual way on: the grace is over.
    let grace = (begun + options.accept_grace).min(hard_stop);
    drop(timeout_at(grace, proxy.exchanges.idle()).await);
    lifecycle.advance(Phase::Closing);
    match timeout_at(hard_stop, proxy.exchanges.idle()).await {
        Ok(()) => 0,
        Err(_elapsed) => proxy.exchanges.running(),
    }
}
