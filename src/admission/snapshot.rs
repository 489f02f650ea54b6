//! What admission tells the admin API and the metrics.

use std::time::Duration;

use crate::clock::Tick;
use crate::rules::{Mode, Resource, RuleId};

use super::BlockKind;

/// One resource. Counts are totals since the start of the process.
#[derive(Clone, Debug)]
pub struct ResourceSnapshot {
    pub resource: Resource,
    /// Admitted requests.
    pub pass: u64,
    /// Refused requests by check, every check listed, in the order of [`BlockKind::ALL`].
    pub block: [(BlockKind, u64); 5],
    /// Outcomes reported as failures.
    pub exceptions: u64,
    /// Moving average of the response time (admission to the last byte), the newest request weighing 1/16.
    pub rt: Option<Duration>,
    /// Requests that hold a permit now.
    pub in_flight: u32,
    /// The breakers in the set's order.
    pub breakers: Vec<BreakerSnapshot>,
    /// Every rule in the order of evaluation.
    pub rules: Vec<RuleSnapshot>,
}

/// One rule.
#[derive(Clone, Debug)]
pub struct RuleSnapshot {
    pub id: RuleId,
    pub kind: BlockKind,
    pub mode: Mode,
    /// Requests it refused as the first, or, in shadow mode, would have refused.
    pub blocked: u64,
    /// Requests without the rule's parameter to which it therefore did not apply (`onMissingParam: pass`).
    pub missing: u64,
    /// Values tracked one by one. 0 for rules without a value.
    pub keys: usize,
    /// How often a value met a shared overflow window because `maxKeys` were tracked.
    pub overflow: u64,
}

/// One breaker.
#[derive(Clone, Debug)]
pub struct BreakerSnapshot {
    pub id: RuleId,
    pub mode: Mode,
    pub state: BreakerPhase,
    /// When it took that state.
    pub since: Tick,
    /// How often it went from closed or half-open to open.
    pub trips: u64,
}

/// The state of a breaker. Open means refusing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerPhase {
    Closed,
    HalfOpen,
    Open,
}
