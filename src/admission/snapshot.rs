//! What admission tells the admin API and the metrics.

use std::sync::Arc;
use std::time::Duration;

use super::check::Check;
use super::param_flow::Values;
use super::state::{Slot, Slots};
use super::{BlockKind, Inner};
use crate::clock::Tick;
use crate::rules::{Mode, Resource, ResourceRules, RuleId};

/// One resource. Counts are totals since the start of the process.
#[derive(Clone, Debug)]
pub struct ResourceSnapshot {
    pub resource: Resource,
    /// Admitted requests.
    pub pass: u64,
    /// Refused requests by check, every check listed, in the order of [`BlockKind::ALL`].
    pub block: [(BlockKind, u64); BlockKind::ALL.len()],
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
    /// Requests it refused as the first, or, in shadow mode, would have refused, by its limit.
    pub blocked: u64,
    /// The same, because the parameter it reads was not there.
    pub lacking: u64,
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

/// Looks at one resource, whose newest rules are `rules`, and forgets what has been parked for long enough: drop that
/// without the lock.
pub(super) fn take(
    inner: &mut Inner,
    rules: &Arc<ResourceRules>,
    now: Tick,
) -> (ResourceSnapshot, Vec<Slot<Values>>) {
    // Installing again changes nothing else. Not if newer rules are about to be published.
    let is_newest = inner
        .newest
        .as_ref()
        .is_some_and(|(newest, _)| Arc::ptr_eq(newest, rules));
    let forgotten = if is_newest {
        inner.install(rules, now)
    } else {
        Vec::new()
    };
    let state = &mut inner.state;
    let now = state.tick(now);
    let mut block = BlockKind::ALL.map(|kind| (kind, 0));
    block
        .iter_mut()
        .zip(state.block)
        .for_each(|((_, to), from)| *to = from);
    let breakers = state
        .degrade
        .bound(&rules.degrade)
        .map(|(head, slot)| BreakerSnapshot {
            id: head.id.clone(),
            mode: head.mode,
            state: slot.state.phase(now),
            since: slot.state.since(),
            trips: slot.state.trips(),
        });
    let breakers = breakers.collect();
    let mut of_rules = plain(&mut state.degrade, &rules.degrade);
    of_rules.extend(
        state
            .param_flow
            .bound(&rules.param_flow)
            .map(|(head, slot)| RuleSnapshot {
                id: head.id.clone(),
                kind: BlockKind::ParamFlow,
                mode: head.mode,
                blocked: slot.blocked,
                lacking: slot.lacking,
                missing: slot.state.missing(),
                keys: slot.state.tracked(),
                overflow: slot.state.overflowed(),
            }),
    );
    of_rules.extend(plain(&mut state.flow, &rules.flow));
    of_rules.extend(plain(&mut state.isolation, &rules.isolation));
    let snapshot = ResourceSnapshot {
        resource: rules.resource.clone(),
        pass: state.pass,
        block,
        exceptions: state.exceptions,
        rt: state.rt.map(Duration::from_nanos),
        in_flight: state.in_flight,
        breakers,
        rules: of_rules,
    };
    (snapshot, forgotten)
}

/// Rules without a value.
fn plain<R: Check>(slots: &mut Slots<R::State>, rules: &[R]) -> Vec<RuleSnapshot> {
    let plain = slots.bound(rules).map(|(head, slot)| RuleSnapshot {
        id: head.id.clone(),
        kind: R::KIND,
        mode: head.mode,
        blocked: slot.blocked,
        lacking: slot.lacking,
        missing: 0,
        keys: 0,
        overflow: 0,
    });
    plain.collect()
}
