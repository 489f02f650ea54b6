//! Time as the deciding code sees it: a tick, taken once per request at the edge and passed in.
//!
//! A [`Tick`] counts nanoseconds from a fixed start, never goes backwards, and is cheap to store in a `u64`.
//! It is read from `tokio::time::Instant`, so a paused test clock moves it.

use std::time::Duration;

use tokio::time::Instant;

/// Nanoseconds since the [`Clock`] that made it was started. 2^64 ns are 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(u64);

impl Tick {
    /// The first tick of a clock.
    pub const ZERO: Self = Self(0);

    /// A tick `nanos` nanoseconds after the clock's start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A tick `millis` milliseconds after the clock's start.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the clock's start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This tick moved on by `by`, saturating at the end of time.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(nanos(by)))
    }
}

/// A duration in whole nanoseconds, saturating at `u64::MAX`.
#[must_use]
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Where ticks come from. Copies share one start, so their ticks compare.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// Starts a clock at now. One per process; ticks of different clocks do not compare.
    #[must_use]
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// The current tick.
    #[must_use]
    pub fn now(&self) -> Tick {
        Tick(nanos(self.start.elapsed()))
    }
}

/// The wall clock's time, RFC 3339 in UTC with microseconds. For people to read: it may jump.
#[must_use]
pub fn wall_time() -> String {
    wall_time_before(Duration::ZERO)
}

/// The wall clock's time `ago` before now, as [`wall_time`] writes it.
#[must_use]
pub fn wall_time_before(ago: Duration) -> String {
    let now = jiff::Timestamp::now();
    format!("{:.6}", now.saturating_sub(ago).unwrap_or(now))
}
