//! The only place that reads the time of day. Everything that decides is given a [`Timestamp`].

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::account::Timestamp;

/// Where a store's `now` comes from.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The machine's time of day. Where that steps back, it stands still until it has caught up: a hold that was seen
    /// as expired stays expired. After a restart it may be earlier: nothing in the ledger orders by time.
    #[default]
    System,
    /// Microseconds that a test sets.
    Set(Arc<AtomicI64>),
}

/// The newest time that was given out in this process.
static NEWEST: AtomicI64 = AtomicI64::new(0);

impl Clock {
    /// The time that a test has set; `None` where the machine's counts.
    pub(crate) fn set(&self) -> Option<Timestamp> {
        match self {
            Self::System => None,
            Self::Set(_) => Some(self.now()),
        }
    }

    /// The time now, in microseconds since 1970; 0 on a machine whose clock is before that.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the edge where time enters the ledger")]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let now = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
                // A lone value that nothing else is published with.
                Timestamp(NEWEST.fetch_max(now, Ordering::Relaxed).max(now))
            }
            // A lone value that nothing else is published with.
            Self::Set(micros) => Timestamp(micros.load(Ordering::Relaxed)),
        }
    }
}
