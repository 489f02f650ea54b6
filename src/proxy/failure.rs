//! What can stand in the way of an answer, and what the layers hand each other.
//!
//! A [`Refusal`] is the sidecar's own decision: the wallet never saw the request. An [`UpstreamError`] happened behind
//! the sidecar. Neither names a status: `respond` does.

use std::sync::Arc;
use std::time::Duration;

use http::Response;

use super::body::Body;
use crate::admission::Blocked;
use crate::params::ParamValue;
use crate::rules::{Resource, ResourceRules};
use crate::telemetry::metrics::Meter;

/// A decision not to forward.
#[derive(Debug)]
pub enum Refusal {
    /// A rule refused.
    Blocked(Blocked),
    /// The request cannot be read one way only; the text says why.
    BadRequest(String),
    /// No resource matches, and the rules refuse that.
    Unmatched,
    /// A body that must be read for a parameter is longer than `maxJsonBody`, in bytes.
    BodyTooLarge { limit: usize },
    /// The process is about to exit.
    Draining,
}

/// What went wrong behind the sidecar.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The request was never sent.
    #[error("the upstream cannot be reached: {0}")]
    Unreachable(String),
    /// The connection broke after the request had been sent, at least in part, or what came back is no answer.
    #[error("the upstream broke off before it answered")]
    Reset,
    /// The answer did not come within the resource's timeout.
    #[error("the upstream did not answer in time")]
    Timeout,
    /// The client's own body broke off on its way to the upstream.
    #[error("the request body broke off")]
    ClientBody,
    /// The client was still sending its body when the resource's timeout was over.
    #[error("the request body did not arrive in time")]
    ClientLate,
}

/// Why there is no answer from the wallet.
#[derive(Debug)]
pub enum Failure {
    Refused(Refusal),
    Upstream(UpstreamError),
}

/// What `identify` found out about a request.
#[derive(Debug)]
pub struct Target {
    /// `None` if no resource matched.
    pub resource: Option<Arc<ResourceRules>>,
    pub meter: Arc<Meter>,
    /// One per parameter of the resource.
    pub values: Vec<ParamValue>,
}

impl Target {
    /// The name of the resource, if one matched.
    #[must_use]
    pub fn name(&self) -> Option<&Resource> {
        self.resource.as_ref().map(|rules| &rules.resource)
    }
}

/// The wallet's answer.
#[derive(Debug)]
pub struct Answered {
    pub response: Response<Body>,
    /// From sending to the head of the answer.
    pub upstream: Duration,
}

/// A request's end as everything inside of `respond` sees it.
#[derive(Debug)]
pub struct Verdict {
    pub target: Target,
    pub result: Result<Answered, Failure>,
}
