//! What every kind of rule can do: be evaluated, take, and say what is to be given back.

use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::BlockKind;
use super::breaker::Ticket;
use super::keys::{Key, KeyHasher};
use crate::clock::Tick;
use crate::params::ParamValue;
use crate::rules::{ResourceRules, RuleHead, RuleId};
use crate::window::Wait;

/// A kind of rule with its state. `evaluate` takes nothing; `take` follows only an `evaluate` that passed, under the
/// same lock and at the same `now`.
pub(super) trait Check {
    /// What is kept per rule id, across reloads.
    type State;
    const KIND: BlockKind;

    fn head(&self) -> &RuleHead;

    /// Index of the parameter that the rule reads.
    fn param(&self) -> Option<usize> {
        None
    }

    /// The state of a rule that has seen no request.
    fn fresh(&self) -> Self::State;

    /// Fits the state to this rule, when it is installed as the newest with its id. What was used stays used.
    fn adopt(&self, state: &mut Self::State);

    fn evaluate(&self, state: &mut Self::State, facts: &Facts<'_>, now: Tick) -> Result<(), Refusal>;

    /// Takes, and returns what the permit must give back, if anything.
    fn take(&self, state: &mut Self::State, facts: &Facts<'_>, now: Tick) -> Option<Hold>;

    /// Whether `percent` selects this request. Rules with a value select by value instead.
    fn selects(&self, facts: &Facts<'_>) -> bool {
        let head = self.head();
        is_selected(head.percent, &head.id, &facts.request_hash.to_le_bytes())
    }
}

/// Why one rule refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) kind: BlockKind,
    pub(super) wait: Wait,
    pub(super) limit: Option<u64>,
}

/// What an admitted request gives back to one rule.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hold {
    Breaker(Ticket),
    /// A place among those that a shadow isolation rule would have let in.
    Place,
}

/// One request as the rules of its resource see it.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) rules: &'a ResourceRules,
    /// By parameter; one that no rule reads is empty.
    pub(super) values: SmallVec<[Weighed<'a>; 2]>,
    pub(super) request_hash: u64,
    /// Requests of the resource under way.
    pub(super) in_flight: u32,
    /// The resource's average response time in nanoseconds, if any request has ended.
    pub(super) rt: Option<u64>,
}

/// The values of one parameter. Empty: missing.
pub(super) type Weighed<'a> = SmallVec<[Weight<'a>; 1]>;

/// One value and how much the request weighs on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight<'a> {
    pub(super) key: Key,
    pub(super) text: &'a str,
    pub(super) weight: u32,
}

impl<'a> Facts<'a> {
    /// Hashes the values that rules of the resource read.
    pub(super) fn new(
        rules: &'a ResourceRules,
        values: &'a [ParamValue],
        request_hash: u64,
        hasher: &KeyHasher,
    ) -> Self {
        let is_read = |param| rules.param_flow.iter().any(|rule| rule.param == param);
        let weigh = |(param, value)| {
            if is_read(param) {
                weighed(value, hasher)
            } else {
                Weighed::new()
            }
        };
        let values = values.iter().enumerate().map(weigh).collect();
        Self {
            rules,
            values,
            request_hash,
            in_flight: 0,
            rt: None,
        }
    }
}

fn weighed<'a>(value: &'a ParamValue, hasher: &KeyHasher) -> Weighed<'a> {
    let weight = |text: &'a str, weight| Weight {
        key: hasher.key(text),
        text,
        weight,
    };
    match value {
        ParamValue::Missing => Weighed::new(),
        ParamValue::One(text) => SmallVec::from_buf([weight(text, 1)]),
        ParamValue::Many(values) => values.iter().map(|(text, times)| weight(text, *times)).collect(),
    }
}

/// Whether a rule with this `percent` applies to what `bytes` stand for. The same on every machine and at every time.
pub(super) fn is_selected(percent: u8, id: &RuleId, bytes: &[u8]) -> bool {
    percent >= 100
        || xxh3_64_with_seed(bytes, xxh3_64_with_seed(id.as_str().as_bytes(), 0)) % 100 < percent.into()
}
