//! Work on a timer that one process at a time does, where several have one ledger open.

use std::time::Duration;

/// Such work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    Tidy,
    Reconcile,
    Webhooks,
}

impl Duty {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tidy => "tidy",
            Self::Reconcile => "reconcile",
            Self::Webhooks => "webhooks",
        }
    }

    /// For how long a turn lasts that is not taken again: then another process may take it. Longer than the work is
    /// left alone between two of its steps.
    #[must_use]
    pub const fn lease(self) -> Duration {
        match self {
            Self::Tidy | Self::Webhooks => Duration::from_secs(15),
            Self::Reconcile => Duration::from_secs(15 * 60),
        }
    }
}

/// Says that a process may do its duty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    pub duty: Duty,
    /// How often the duty has changed hands: whoever writes something down for it under an older turn is refused.
    pub fence: u64,
}
