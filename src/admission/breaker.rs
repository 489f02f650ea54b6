//! The circuit breaker: Sentinel's `ExceptionCircuitBreaker`, with its known faults mended.
//!
//! Closed counts completions in a sliding window of 10 buckets and trips; open refuses for `timeWindow`; then ONE
//! probe is let through and only it decides. A probe that was given back (its client left) makes room for the next at
//! once; one that hangs past its deadline has failed at that moment. Every change of state begins a new epoch, and a
//! completion that was admitted in an older epoch counts for nothing. Closing forgets the window.

use std::time::Duration;

use crate::clock::{Tick, nanos};
use crate::rules::{DegradeRule, RuleHead, Trip};
use crate::window::Wait;

use super::check::{Check, Facts, Hold, Refusal};
use super::{BlockKind, BreakerPhase};

const BUCKETS: u64 = 10;

/// The state of one rule.
#[derive(Debug)]
pub(super) struct Breaker {
    phase: Phase,
    since: Tick,
    /// Grows with every change of phase.
    epoch: u64,
    trips: u64,
    /// How it trips and recovers: from the newest rule of this id.
    terms: Terms,
    window: Completions,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Closed,
    Open,
    /// With the deadline of the probe, if one is under way.
    HalfOpen(Option<Tick>),
}

/// What a [`DegradeRule`] says, in ticks.
#[derive(Clone, Copy, Debug)]
struct Terms {
    trip: Trip,
    open_for: Duration,
    min_requests: u64,
    bucket: u64,
}

/// What a request that a breaker let through needs for its report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    epoch: u64,
    probe: bool,
}

impl Check for DegradeRule {
    type State = Breaker;
    const KIND: BlockKind = BlockKind::Degrade;

    fn head(&self) -> &RuleHead {
        &self.head
    }

    fn fresh(&self) -> Breaker {
        Breaker {
            phase: Phase::Closed,
            since: Tick::ZERO,
            epoch: 0,
            trips: 0,
            terms: Terms::of(self),
            window: Completions::default(),
        }
    }

    /// State and window stay.
    fn adopt(&self, state: &mut Breaker) {
        let terms = Terms::of(self);
        if terms.bucket != state.terms.bucket {
            state.window.rescale(state.terms.bucket, terms.bucket);
        }
        state.terms = terms;
    }

    fn evaluate(&self, state: &mut Breaker, _: &Facts<'_>, now: Tick) -> Result<(), Refusal> {
        state.check(now).map_err(|wait| Refusal {
            kind: Self::KIND,
            wait,
            limit: None,
        })
    }

    fn take(&self, state: &mut Breaker, facts: &Facts<'_>, now: Tick) -> Option<Hold> {
        Some(Hold::Breaker(state.take(now.after(facts.rules.timeout), now)))
    }
}

impl Terms {
    fn of(rule: &DegradeRule) -> Self {
        Self {
            trip: rule.trip,
            open_for: rule.open_for,
            min_requests: rule.min_requests.max(1),
            bucket: nanos(rule.window).div_ceil(BUCKETS).max(1),
        }
    }
}

impl Breaker {
    pub(super) const fn since(&self) -> Tick {
        self.since
    }

    pub(super) const fn trips(&self) -> u64 {
        self.trips
    }

    /// The phase at `now`; an open breaker stays open until a request comes to probe.
    pub(super) fn phase(&mut self, now: Tick) -> BreakerPhase {
        self.settle(now);
        match self.phase {
            Phase::Closed => BreakerPhase::Closed,
            Phase::Open => BreakerPhase::Open,
            Phase::HalfOpen(_) => BreakerPhase::HalfOpen,
        }
    }

    /// Whether a request may pass, be it as the probe. Takes nothing.
    ///
    /// # Errors
    /// The time to wait: exact while open, until the probe's deadline while one is under way.
    fn check(&mut self, now: Tick) -> Result<(), Wait> {
        self.settle(now);
        let until = match self.phase {
            Phase::Closed | Phase::HalfOpen(None) => return Ok(()),
            Phase::Open => self.since.after(self.terms.open_for),
            Phase::HalfOpen(Some(deadline)) => deadline,
        };
        if now >= until {
            Ok(())
        } else {
            Err(Wait::For(until.since(now)))
        }
    }

    /// Lets a request through that [`check`](Self::check) has just allowed.
    fn take(&mut self, deadline: Tick, now: Tick) -> Ticket {
        let probe = !matches!(self.phase, Phase::Closed);
        if probe {
            self.enter(Phase::HalfOpen(Some(deadline)), now);
        }
        Ticket {
            epoch: self.epoch,
            probe,
        }
    }

    /// A request ended, in failure or not.
    pub(super) fn complete(&mut self, ticket: Ticket, failed: bool, now: Tick) {
        self.settle(now);
        if ticket.epoch != self.epoch {
            return;
        }
        match (self.phase, failed) {
            (Phase::HalfOpen(_), true) => self.open(now),
            (Phase::HalfOpen(_), false) => {
                self.enter(Phase::Closed, now);
                self.window = Completions::default();
            }
            (Phase::Closed, _) => {
                let terms = self.terms;
                let (total, failures) = self.window.record(now.as_nanos() / terms.bucket, failed);
                if total >= terms.min_requests && terms.trip.is_met(total, failures) {
                    self.open(now);
                }
            }
            (Phase::Open, _) => {}
        }
    }

    /// A request ended without an outcome. If it was the probe, the next request may be it.
    pub(super) fn give_back(&mut self, ticket: Ticket, now: Tick) {
        self.settle(now);
        if ticket.probe && ticket.epoch == self.epoch {
            self.phase = Phase::HalfOpen(None);
        }
    }

    /// A probe past its deadline has failed when the deadline passed.
    fn settle(&mut self, now: Tick) {
        if let Phase::HalfOpen(Some(deadline)) = self.phase
            && now >= deadline
        {
            self.open(deadline);
        }
    }

    fn open(&mut self, at: Tick) {
        self.enter(Phase::Open, at);
        self.trips += 1;
    }

    fn enter(&mut self, phase: Phase, at: Tick) {
        self.phase = phase;
        self.since = at;
        self.epoch += 1;
    }
}

impl Trip {
    /// `>` as in Sentinel, except that a ratio of 1.0 is met when all failed.
    fn is_met(self, total: u64, failures: u64) -> bool {
        let Self::ExceptionRatio(most) = self;
        // Exact below 2^53 completions in a window.
        let ratio = failures as f64 / total as f64;
        ratio > most || (most >= 1.0 && failures == total)
    }
}

/// Completions in the last 10 buckets.
#[derive(Clone, Copy, Debug, Default)]
struct Completions([Bucket; 10]);

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// Counted from the start of the clock.
    index: u64,
    total: u64,
    failures: u64,
}

impl Completions {
    /// Counts one completion, and sums up the window that ends with its bucket.
    fn record(&mut self, index: u64, failed: bool) -> (u64, u64) {
        self.add(Bucket {
            index,
            total: 1,
            failures: u64::from(failed),
        });
        let live = self
            .0
            .iter()
            .filter(|bucket| bucket.index.saturating_add(BUCKETS) > index);
        live.fold((0, 0), |(total, failures), bucket| {
            (total + bucket.total, failures + bucket.failures)
        })
    }

    fn add(&mut self, more: Bucket) {
        let place = usize::try_from(more.index % BUCKETS).unwrap_or(0);
        let Some(bucket) = self.0.get_mut(place) else {
            return;
        };
        if bucket.index < more.index {
            *bucket = more;
        } else if bucket.index == more.index {
            bucket.total += more.total;
            bucket.failures += more.failures;
        }
    }

    /// Moves what was counted into buckets of another length, as if made at the start of the old ones.
    fn rescale(&mut self, old: u64, new: u64) {
        let mut buckets = std::mem::take(self).0;
        buckets.sort_by_key(|bucket| bucket.index);
        for bucket in buckets.iter().filter(|bucket| bucket.total > 0) {
            self.add(Bucket {
                index: bucket.index.saturating_mul(old) / new,
                ..*bucket
            });
        }
    }
}

#[cfg(test)]
mod tests;
