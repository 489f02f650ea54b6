//! What a request holds while the upstream works on it: its permit, and how long it may.

use std::sync::Arc;

use http::StatusCode;
use tokio::time::Instant;

use crate::admission::{Outcome, Permit};
use crate::proxy::Worker;
use crate::proxy::body::Upload;
use crate::rules::ResourceRules;

/// A request's permit and its limits. Dropped, the permit falls, unreported as [`Outcome::Gone`].
#[derive(Debug)]
pub(in crate::proxy) struct Held {
    /// `None` if no resource matched.
    pub(super) permit: Option<Permit>,
    pub(super) resource: Option<Arc<ResourceRules>>,
    /// How far the client is with its body; `None` if all of it was here.
    pub(super) upload: Option<Arc<Upload>>,
    /// Whether the request may move money.
    pub(super) write: bool,
    /// When the client gets no more of the answer.
    pub(super) deadline: Instant,
    /// When the permit of a write falls although the upstream still works on it.
    pub(super) abandon_at: Instant,
    pub(super) worker: Worker,
}

impl Held {
    /// Tells the breakers how the request ended. The first report counts.
    pub(super) fn report(&mut self, outcome: Outcome) {
        if let Some(permit) = &mut self.permit {
            permit.report(outcome, self.worker.proxy().telemetry.clock.now());
        }
    }

    /// The head of the answer is here: one of the resource's `errorStatuses` is a failure already. Success is known
    /// only with the end of the body.
    pub(super) fn head(&mut self, status: StatusCode) {
        if self
            .resource
            .as_ref()
            .is_some_and(|resource| resource.error_statuses.contains(&status))
        {
            self.report(Outcome::Failure);
        }
    }

    /// The connection broke. Not the upstream's fault if the client's own body did; whether it was.
    pub(super) fn failed(&mut self) -> bool {
        let fault = !self.upload.as_ref().is_some_and(|upload| upload.is_broken());
        self.report(if fault { Outcome::Failure } else { Outcome::Gone });
        fault
    }

    /// The deadline has passed. Not the upstream's fault while the client is still sending; whether it was.
    pub(super) fn late(&mut self) -> bool {
        let fault = !self.is_sending();
        self.report(if fault { Outcome::Failure } else { Outcome::Gone });
        fault
    }

    /// Whether the exchange is finished even if nobody waits for it: a write that the upstream may have the whole of.
    /// Half a write moves nothing, and finishing it would let a client that sends slowly keep its place.
    pub(super) fn goes_on(&self) -> bool {
        self.write && !self.is_sending()
    }

    fn is_sending(&self) -> bool {
        self.upload.as_ref().is_some_and(|upload| upload.is_sending())
    }

    /// The answer has ended well.
    pub(super) fn finish(mut self) {
        self.report(Outcome::Success);
        self.end();
    }

    /// The permit falls, with the response time up to now.
    pub(super) fn end(self) {
        if let Some(permit) = self.permit {
            permit.finish(self.worker.proxy().telemetry.clock.now());
        }
    }

    /// The upstream still works on a write whose time is up: the permit falls, and it is counted that the upstream may
    /// now see more than the cap.
    pub(super) fn abandon(self) {
        self.worker.proxy().telemetry.metrics.abandoned.inc();
    }
}
