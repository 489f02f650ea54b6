//! Param flow: a window or a bucket per value of a hot parameter (Sentinel `ParamFlowRule`, grade QPS).
//!
//! The values of one request weigh together, all or nothing: each is evaluated, then each is taken. Values with a
//! count of their own (`paramFlowItemList`) are always tracked one by one, so that a flood of others cannot push
//! them into an overflow window with the common count.

use std::borrow::Cow;

use super::BlockKind;
use super::check::{Check, Facts, Hold, Refusal, Weight, is_selected};
use super::keys::{Entry, Key, Room, Table};
use crate::bucket::{Bucket, Refill};
use crate::clock::Tick;
use crate::rules::{OnMissingParam, ParamFlowRule, RuleHead, Shaping};
use crate::window::{Rate, Wait, Window};

/// The state of one rule.
#[derive(Debug)]
pub(super) struct Values {
    used: Used,
    /// Requests that passed because they lack the parameter.
    missing: u64,
}

#[derive(Debug)]
enum Used {
    Windows(Table<Window>),
    Buckets(Table<Bucket>),
}

impl Values {
    pub(super) const fn missing(&self) -> u64 {
        self.missing
    }

    /// Values tracked one by one.
    pub(super) const fn tracked(&self) -> usize {
        match &self.used {
            Used::Windows(table) => table.len(),
            Used::Buckets(table) => table.len(),
        }
    }

    /// How often a value met an overflow window.
    pub(super) const fn overflowed(&self) -> u64 {
        match &self.used {
            Used::Windows(table) => table.overflowed(),
            Used::Buckets(table) => table.overflowed(),
        }
    }
}

impl Check for ParamFlowRule {
    type State = Values;
    const KIND: BlockKind = BlockKind::ParamFlow;

    fn head(&self) -> &RuleHead {
        &self.head
    }

    fn param(&self) -> Option<usize> {
        Some(self.param)
    }

    fn fresh(&self) -> Values {
        let used = match self.shaping {
            Shaping::Reject => Used::Windows(Table::new(self.max_keys)),
            Shaping::TokenBucket => Used::Buckets(Table::new(self.max_keys)),
        };
        Values { used, missing: 0 }
    }

    /// A window and a bucket know different things: changing between them begins anew.
    fn adopt(&self, state: &mut Values) {
        match (self.shaping, &mut state.used) {
            (Shaping::Reject, Used::Windows(table)) => table.fit(self.max_keys),
            (Shaping::TokenBucket, Used::Buckets(table)) => table.fit(self.max_keys),
            (Shaping::Reject, Used::Buckets(_)) | (Shaping::TokenBucket, Used::Windows(_)) => {
                state.used = self.fresh().used;
            }
        }
    }

    fn evaluate(&self, state: &mut Values, facts: &Facts<'_>, now: Tick) -> Result<(), Refusal> {
        let Some(weights) = self.weights(facts) else {
            return match facts.rules.on_missing_param {
                OnMissingParam::Reject => Err(Refusal {
                    kind: BlockKind::MissingParam,
                    wait: Wait::Denied,
                    limit: None,
                }),
                OnMissingParam::Shared | OnMissingParam::Pass => Ok(()),
            };
        };
        match &mut state.used {
            Used::Windows(table) => evaluate(self, table, &weights, now),
            Used::Buckets(table) => evaluate(self, table, &weights, now),
        }
    }

    fn take(&self, state: &mut Values, facts: &Facts<'_>, now: Tick) -> Option<Hold> {
        match (self.weights(facts), &mut state.used) {
            (None, _) => state.missing += 1,
            (Some(weights), Used::Windows(table)) => take(self, table, &weights, now),
            (Some(weights), Used::Buckets(table)) => take(self, table, &weights, now),
        }
        None
    }

    /// Selection is by value.
    fn selects(&self, facts: &Facts<'_>) -> bool {
        let head = &self.head;
        match facts.values.get(self.param).filter(|weights| !weights.is_empty()) {
            None => is_selected(head.percent, &head.id, &facts.request_hash.to_le_bytes()),
            Some(weights) => weights.iter().any(|each| self.selects_value(each)),
        }
    }
}

impl ParamFlowRule {
    /// What the request weighs on; `None` if the parameter is missing and that is no value of its own.
    fn weights<'f, 'a>(&self, facts: &'f Facts<'a>) -> Option<Cow<'f, [Weight<'a>]>> {
        match facts.values.get(self.param).filter(|weights| !weights.is_empty()) {
            Some(weights) if self.head.percent >= 100 => Some(Cow::Borrowed(weights)),
            Some(weights) => Some(Cow::Owned(
                weights
                    .iter()
                    .filter(|each| self.selects_value(each))
                    .copied()
                    .collect(),
            )),
            None if facts.rules.on_missing_param == OnMissingParam::Shared => {
                Some(Cow::Borrowed(&[Weight {
                    key: Key::MISSING,
                    text: "",
                    weight: 1,
                }]))
            }
            None => None,
        }
    }

    fn selects_value(&self, each: &Weight<'_>) -> bool {
        is_selected(self.head.percent, &self.head.id, each.text.as_bytes())
    }

    /// The count of a value of its own, if it has one.
    fn item(&self, each: &Weight<'_>) -> Option<u64> {
        if self.items.is_empty() || each.key == Key::MISSING {
            return None;
        }
        self.items.get(each.text).copied()
    }
}

/// What a table keeps per value.
trait Meter: Clone + Default {
    type Terms: Copy;

    fn terms(rule: &ParamFlowRule, count: u64) -> Self::Terms;
    fn limit(terms: Self::Terms) -> u32;
    fn check(&mut self, terms: Self::Terms, weight: u32, now: Tick) -> Result<(), Wait>;
    fn take(&mut self, terms: Self::Terms, weight: u32, now: Tick);
    fn is_idle(&self, terms: Self::Terms, now: Tick) -> bool;
}

impl Meter for Window {
    type Terms = Rate;

    fn terms(rule: &ParamFlowRule, count: u64) -> Rate {
        Rate::new(count, rule.burst, rule.window)
    }

    fn limit(rate: Rate) -> u32 {
        rate.limit()
    }

    fn check(&mut self, rate: Rate, weight: u32, now: Tick) -> Result<(), Wait> {
        self.check(rate, weight, now)
    }

    fn take(&mut self, rate: Rate, weight: u32, now: Tick) {
        self.take(rate, weight, now);
    }

    fn is_idle(&self, rate: Rate, now: Tick) -> bool {
        self.is_idle(rate, now)
    }
}

impl Meter for Bucket {
    type Terms = Refill;

    fn terms(rule: &ParamFlowRule, count: u64) -> Refill {
        Refill::new(count, rule.burst, rule.window)
    }

    fn limit(refill: Refill) -> u32 {
        refill.limit()
    }

    fn check(&mut self, refill: Refill, weight: u32, now: Tick) -> Result<(), Wait> {
        Self::check(*self, refill, weight, now)
    }

    fn take(&mut self, refill: Refill, weight: u32, now: Tick) {
        self.take(refill, weight, now);
    }

    fn is_idle(&self, _: Refill, now: Tick) -> bool {
        Self::is_idle(*self, now)
    }
}

/// Evaluates every value. The longest wait of those that refuse is the refusal's.
fn evaluate<M: Meter>(
    rule: &ParamFlowRule,
    table: &mut Table<M>,
    weights: &[Weight<'_>],
    now: Tick,
) -> Result<(), Refusal> {
    let common = M::terms(rule, rule.count);
    table.make_room(weights.iter().map(|each| each.key), rule.max_keys, |used| {
        used.is_idle(common, now)
    });
    let (mut worst, mut is_shared): (Option<(Wait, u32)>, bool) = (None, false);
    for each in weights {
        let item = rule.item(each);
        let terms = item.map_or(common, |count| M::terms(rule, count));
        let room = item.map_or(Room::Within(rule.max_keys), |_| Room::Reserved);
        let checked = match table.place(each.key, room) {
            Entry::Own(used) => used.check(terms, each.weight, now),
            Entry::Shared(shared) => {
                is_shared = true;
                shared.asked = shared.asked.saturating_add(each.weight);
                shared.used.check(terms, shared.asked, now)
            }
        };
        if let Err(wait) = checked {
            worst = worst.max(Some((wait, M::limit(terms))));
        }
    }
    if is_shared {
        for each in weights {
            if let Entry::Shared(shared) = table.placed(each.key) {
                shared.asked = 0;
            }
        }
    }
    match worst {
        None => Ok(()),
        Some((wait, limit)) => Err(Refusal {
            kind: BlockKind::ParamFlow,
            wait,
            limit: Some(limit.into()),
        }),
    }
}

/// Takes every value that [`evaluate`] has placed.
fn take<M: Meter>(rule: &ParamFlowRule, table: &mut Table<M>, weights: &[Weight<'_>], now: Tick) {
    let common = M::terms(rule, rule.count);
    for each in weights {
        let terms = rule.item(each).map_or(common, |count| M::terms(rule, count));
        match table.placed(each.key) {
            Entry::Own(used) => used.take(terms, each.weight, now),
            Entry::Shared(shared) => shared.used.take(terms, each.weight, now),
        }
    }
}
