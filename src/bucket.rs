//! The token bucket: governor's GCRA, with the one arrival time of a value kept by us. Pure: `now` is an argument.
//!
//! A [`Bucket`] is a state store of governor's for one value, 16 bytes in our own bounded table. A bucket of
//! count + burst tokens is refilled evenly at count per window, so up to twice the count pass in the first window
//! after idleness. Deciding works on a copy; what it would become is stored only when the request is admitted.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{NotKeyed, RateLimiter, StateStore};
use governor::{NotUntil, Quota};

use crate::clock::{Tick, nanos};
use crate::window::Wait;

/// The most that a full bucket may be worth in time: keeps every sum of governor's below 2^64 ns.
const FULL_AT_MOST: u64 = 1 << 61;

/// How a bucket is refilled and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refill {
    /// `None` denies.
    quota: Option<Quota>,
    /// Nanoseconds per token, at least 1.
    interval: u64,
    capacity: u32,
}

/// The tokens of one value. Default: full.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bucket {
    /// When it is full again, in nanoseconds: GCRA's theoretical arrival time.
    full_at: u64,
    /// The interval that `full_at` was computed with.
    interval: u64,
}

impl Refill {
    /// A bucket of `count + burst`, refilled at `count` per `window`; a count of 0 denies, burst or not.
    #[must_use]
    pub fn new(count: u64, burst: u64, window: Duration) -> Self {
        let interval = nanos(window).checked_div(count).unwrap_or(0).max(1);
        let capacity = count.saturating_add(burst).min(FULL_AT_MOST / interval).max(1);
        let capacity =
            NonZeroU32::new(u32::try_from(capacity).unwrap_or(u32::MAX)).unwrap_or(NonZeroU32::MIN);
        let quota = (count > 0)
            .then(|| Quota::with_period(Duration::from_nanos(interval)))
            .flatten();
        Self {
            quota: quota.map(|quota| quota.allow_burst(capacity)),
            interval,
            capacity: if count > 0 { capacity.get() } else { 0 },
        }
    }

    /// The most that passes at once.
    #[must_use]
    pub const fn limit(self) -> u32 {
        self.capacity
    }
}

impl Bucket {
    /// Whether `weight` tokens are there at `now`. Takes nothing.
    ///
    /// # Errors
    /// The exact time to wait, if waiting helps.
    pub fn check(self, refill: Refill, weight: u32, now: Tick) -> Result<(), Wait> {
        self.after(refill, weight, now).map(drop)
    }

    /// Takes what [`check`](Self::check) has just allowed.
    pub fn take(&mut self, refill: Refill, weight: u32, now: Tick) {
        if let Ok(next) = self.after(refill, weight, now) {
            *self = next;
        }
    }

    /// Whether the bucket is full at `now`, so that forgetting it loses nothing.
    #[must_use]
    pub const fn is_idle(self, now: Tick) -> bool {
        self.full_at <= now.as_nanos()
    }

    /// What the bucket becomes if `weight` tokens are taken: governor decides.
    fn after(self, refill: Refill, weight: u32, now: Tick) -> Result<Self, Wait> {
        let Some(quota) = refill.quota else {
            return Err(Wait::Denied);
        };
        let Some(weight) = NonZeroU32::new(weight) else {
            return Ok(self);
        };
        let full_at = Arrival(Cell::new(self.carried(refill, now)));
        // Governor measures from what its clock says first; ours begins at 0, so its times are ticks.
        let limiter: RateLimiter<_, _, _, NoOpMiddleware<Nanos>> =
            RateLimiter::new(quota, full_at, Hand(Cell::new(0)));
        limiter.clock().0.set(now.as_nanos());
        match limiter.check_n(weight) {
            Err(_) => Err(Wait::TooHeavy),
            Ok(Err(not_until)) => Err(Wait::For(wait(&not_until, now))),
            Ok(Ok(())) => Ok(Self {
                full_at: limiter.into_state_store().0.get(),
                interval: refill.interval,
            }),
        }
    }

    /// `full_at`, carried over to another interval after a reload: what was used stays used, up to the capacity.
    fn carried(self, refill: Refill, now: Tick) -> u64 {
        let missing = self.full_at.saturating_sub(now.as_nanos());
        if missing == 0 || self.interval == refill.interval || self.interval == 0 {
            return self.full_at;
        }
        let used = missing.div_ceil(self.interval).min(u64::from(refill.capacity));
        now.as_nanos()
            .saturating_add(used.saturating_mul(refill.interval))
    }
}

fn wait(not_until: &NotUntil<Nanos>, now: Tick) -> Duration {
    not_until.wait_time_from(Nanos::from(now.as_nanos()))
}

/// One value's arrival time, in the place where governor keeps it.
#[derive(Debug)]
struct Arrival(Cell<u64>);

impl StateStore for Arrival {
    type Key = NotKeyed;

    fn measure_and_replace<T, F, E>(&self, _: &NotKeyed, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let (answer, next) = decide(Some(Nanos::from(self.0.get())))?;
        self.0.set(next.as_u64());
        Ok(answer)
    }
}

/// A clock that shows what it is set to.
#[derive(Debug)]
struct Hand(Cell<u64>);

impl Clock for Hand {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::from(self.0.get())
    }
}

#[cfg(test)]
mod tests;
