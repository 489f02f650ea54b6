//! What the sidecar tells about itself: process log, metrics, access log.
//!
//! The process log is tracing as JSON on stderr, filtered by `SLUICE_LOG` (default `info`). Metric names are listed,
//! with their units, in [`metrics`]; the access log's fields in [`access`]. Nothing here decides anything.

use std::sync::Arc;

use tracing_subscriber::EnvFilter;

pub mod access;
pub mod metrics;

use crate::clock::Clock;
use access::AccessLog;
use metrics::Metrics;

/// Everything a request reports to. One per process, shared by `Arc`.
#[derive(Debug)]
pub struct Telemetry {
    pub metrics: Metrics,
    pub access: AccessLog,
    pub clock: Clock,
}

impl Telemetry {
    /// Metrics at zero and the given access log.
    #[must_use]
    pub fn new(access: AccessLog, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            metrics: Metrics::new(),
            access,
            clock,
        })
    }
}

/// Sends tracing to stderr as JSON lines. Does nothing if a subscriber is set already.
pub fn init_log() {
    let filter = EnvFilter::try_from_env("SLUICE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .finish();
    // A second call, as in tests that run several sidecars in one process, keeps the first.
    drop(tracing::subscriber::set_global_default(subscriber));
}
