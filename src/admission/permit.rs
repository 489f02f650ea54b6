//! The permit: what an admitted request holds, and gives back on every way out.

use std::sync::Arc;

use super::Guarded;
use super::check::Hold;
use super::state::{Holds, State};
use crate::clock::{Tick, nanos};

/// How a request ended, as the breakers count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An answer that is no failure (4xx included).
    Success,
    /// Connect failure, reset, deadline, or one of the resource's `errorStatuses`.
    Failure,
    /// The client left before there was an outcome: counts for nothing, and a probe is given back.
    Gone,
}

/// The right to be in flight. Keep it until the last byte of the answer has left, then [`finish`](Permit::finish) or
/// drop it, from any thread; dropping never panics. Unreported, it falls as [`Outcome::Gone`].
#[derive(Debug)]
#[must_use = "dropping the permit ends the request for every rule"]
pub struct Permit {
    resource: Arc<Guarded>,
    holds: Holds,
    admitted: Tick,
    finished: Option<Tick>,
    is_reported: bool,
}

impl Permit {
    pub(super) const fn new(resource: Arc<Guarded>, holds: Holds, admitted: Tick) -> Self {
        Self {
            resource,
            holds,
            admitted,
            finished: None,
            is_reported: false,
        }
    }

    /// When the request was admitted.
    #[must_use]
    pub const fn admitted_at(&self) -> Tick {
        self.admitted
    }

    /// Tells the breakers the outcome, as soon as it is known. The first report counts, later ones change nothing.
    pub fn report(&mut self, outcome: Outcome, now: Tick) {
        if std::mem::replace(&mut self.is_reported, true) {
            return;
        }
        self.resource.lock().state.report(&self.holds, outcome, now);
    }

    /// The last byte has left at `now`, or the deadline passed: records the response time and gives the permit back.
    pub fn finish(mut self, now: Tick) {
        self.finished = Some(now);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut inner = self.resource.lock();
        if !self.is_reported {
            // Dropping knows no time; the latest that the state has seen will do.
            let now = self.finished.unwrap_or(Tick::ZERO);
            inner.state.report(&self.holds, Outcome::Gone, now);
        }
        if let Some(finished) = self.finished {
            inner.state.record_rt(nanos(finished.since(self.admitted)));
        }
        inner.state.release(&self.holds);
    }
}

impl State {
    fn report(&mut self, holds: &Holds, outcome: Outcome, now: Tick) {
        let now = self.tick(now);
        self.exceptions += u64::from(outcome == Outcome::Failure);
        for (serial, hold) in holds {
            let Hold::Breaker(ticket) = *hold else { continue };
            let Some(breaker) = self.degrade.held(*serial) else {
                continue;
            };
            match outcome {
                Outcome::Success => breaker.complete(ticket, false, now),
                Outcome::Failure => breaker.complete(ticket, true, now),
                Outcome::Gone => breaker.give_back(ticket, now),
            }
        }
    }

    fn release(&mut self, holds: &Holds) {
        self.in_flight = self.in_flight.saturating_sub(1);
        for (serial, hold) in holds {
            match hold {
                Hold::Place => self
                    .isolation
                    .held(*serial)
                    .into_iter()
                    .for_each(|places| places.give_back()),
                Hold::Breaker(_) => {}
            }
        }
    }

    fn record_rt(&mut self, rt: u64) {
        self.rt = Some(self.rt.map_or(rt, |mean| mean - mean / 16 + rt / 16));
    }
}
