//! The state of one resource, and the one step that decides a request. Pure: no IO, no clock, no lock.
//!
//! Every rule's state sits in a [`Slot`] under the rule's id. A [`Binding`] says which slot belongs to which rule of a
//! version of the resource's rules; the newest is kept, an older call makes its own. [`State::admit`] evaluates every
//! enforced rule, and takes from all of them only if none refuses; then the shadow rules, each by itself.

use std::time::Duration;

use smallvec::SmallVec;

use super::breaker::Breaker;
use super::check::{Check, Facts, Hold, Refusal};
use super::isolation::Places;
use super::param_flow::Values;
use super::{BlockKind, Blocked};
use crate::clock::Tick;
use crate::rules::{Mode, ResourceRules, RuleHead, RuleId};
use crate::window::{Wait, Window};

/// How long the state of a removed rule, or of a removed resource, is kept.
pub(super) const KEPT: Duration = Duration::from_secs(60);

/// Everything that is remembered about one resource.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The latest `now` seen: callers read the time before they get the lock, so theirs may be a little older.
    latest: Tick,
    pub(super) in_flight: u32,
    pub(super) pass: u64,
    pub(super) block: [u64; BlockKind::ALL.len()],
    pub(super) exceptions: u64,
    /// Moving average, nanoseconds.
    pub(super) rt: Option<u64>,
    pub(super) param_flow: Slots<Values>,
    pub(super) flow: Slots<Window>,
    pub(super) isolation: Slots<Places>,
    pub(super) degrade: Slots<Breaker>,
    born: u64,
}

/// The states of all rules of one kind, those of removed rules included.
#[derive(Debug)]
pub(super) struct Slots<S>(Vec<Slot<S>>);

#[derive(Debug)]
pub(super) struct Slot<S> {
    id: RuleId,
    /// Unlike the id, never used again: what a permit knows the slot by.
    serial: u64,
    pub(super) state: S,
    /// Requests that this rule was the first to refuse, or would have refused, by its limit.
    pub(super) blocked: u64,
    /// The same, because the parameter it reads was not there.
    pub(super) lacking: u64,
    /// Since when no installed rule has the id.
    parked: Option<Tick>,
}

/// Which slot belongs to each rule, by kind and the rule's index.
#[derive(Debug, Default)]
pub(super) struct Binding {
    param_flow: Vec<usize>,
    flow: Vec<usize>,
    isolation: Vec<usize>,
    degrade: Vec<usize>,
}

/// What an admitted request gives back, and to which slot.
pub(super) type Holds = SmallVec<[(u64, Hold); 2]>;

impl State {
    /// `now`, or the latest time seen if that is later.
    pub(super) fn tick(&mut self, now: Tick) -> Tick {
        self.latest = self.latest.max(now);
        self.latest
    }

    /// Makes `rules` the newest: its ids keep their state, other ids are parked, those parked for 60 s forgotten.
    ///
    /// What is forgotten is returned, since a large table is better dropped without the lock.
    pub(super) fn install(&mut self, rules: &ResourceRules, now: Tick) -> (Binding, Vec<Slot<Values>>) {
        let forgotten = self.param_flow.forget(now);
        self.flow.forget(now);
        self.isolation.forget(now);
        self.degrade.forget(now);
        let binding = self.bind(rules, now);
        self.param_flow.adopt(&rules.param_flow, &binding.param_flow, now);
        self.flow.adopt(&rules.flow, &binding.flow, now);
        self.isolation.adopt(&rules.isolation, &binding.isolation, now);
        self.degrade.adopt(&rules.degrade, &binding.degrade, now);
        (binding, forgotten)
    }

    /// Finds the slot of every rule, and makes those that are missing.
    pub(super) fn bind(&mut self, rules: &ResourceRules, now: Tick) -> Binding {
        Binding {
            param_flow: self.param_flow.bind(&rules.param_flow, &mut self.born, now),
            flow: self.flow.bind(&rules.flow, &mut self.born, now),
            isolation: self.isolation.bind(&rules.isolation, &mut self.born, now),
            degrade: self.degrade.bind(&rules.degrade, &mut self.born, now),
        }
    }

    /// The one step: all rules are evaluated, then all are taken, or nothing is.
    pub(super) fn admit(
        &mut self,
        binding: &Binding,
        mut facts: Facts<'_>,
        now: Tick,
    ) -> Result<Holds, Blocked> {
        let now = self.tick(now);
        let rules = facts.rules;
        (facts.in_flight, facts.rt) = (self.in_flight, self.rt);

        let mut refusals = Refusals::default();
        self.degrade
            .evaluate(&rules.degrade, &binding.degrade, &facts, now, &mut refusals);
        self.param_flow
            .evaluate(&rules.param_flow, &binding.param_flow, &facts, now, &mut refusals);
        self.flow
            .evaluate(&rules.flow, &binding.flow, &facts, now, &mut refusals);
        self.isolation
            .evaluate(&rules.isolation, &binding.isolation, &facts, now, &mut refusals);
        if let Some((first, worst)) = refusals.found {
            self.count(&first);
            return Err(first.blocked(rules, worst));
        }

        let mut holds = Holds::new();
        self.param_flow
            .take(&rules.param_flow, &binding.param_flow, &facts, now, &mut holds);
        self.flow
            .take(&rules.flow, &binding.flow, &facts, now, &mut holds);
        self.isolation
            .take(&rules.isolation, &binding.isolation, &facts, now, &mut holds);
        self.degrade
            .take(&rules.degrade, &binding.degrade, &facts, now, &mut holds);
        self.in_flight = self.in_flight.saturating_add(1);
        self.pass += 1;

        self.param_flow
            .shadow(&rules.param_flow, &binding.param_flow, &facts, now, &mut holds);
        self.flow
            .shadow(&rules.flow, &binding.flow, &facts, now, &mut holds);
        self.isolation
            .shadow(&rules.isolation, &binding.isolation, &facts, now, &mut holds);
        self.degrade
            .shadow(&rules.degrade, &binding.degrade, &facts, now, &mut holds);
        Ok(holds)
    }

    fn count(&mut self, first: &Named<'_>) {
        if let Some(blocks) = BlockKind::ALL.iter().position(|kind| *kind == first.kind) {
            self.block
                .get_mut(blocks)
                .into_iter()
                .for_each(|blocks| *blocks += 1);
        }
        match first.kind {
            BlockKind::Degrade => self.degrade.at(first.slot).count(first.kind),
            BlockKind::ParamFlow | BlockKind::MissingParam => {
                self.param_flow.at(first.slot).count(first.kind)
            }
            BlockKind::Flow => self.flow.at(first.slot).count(first.kind),
            BlockKind::Isolation => self.isolation.at(first.slot).count(first.kind),
        }
    }
}

/// The first refusing rule in the order of evaluation, and the worst wait of all that refuse.
#[derive(Debug, Default)]
struct Refusals<'r> {
    found: Option<(Named<'r>, Wait)>,
}

/// The refusal that the answer names: the worst of the first kind that refuses.
#[derive(Debug)]
struct Named<'r> {
    kind: BlockKind,
    head: &'r RuleHead,
    param: Option<usize>,
    slot: usize,
    wait: Wait,
    limit: Option<u64>,
}

impl<'r> Refusals<'r> {
    fn add(&mut self, next: Named<'r>) {
        let wait = next.wait;
        self.found = Some(match self.found.take() {
            None => (next, wait),
            Some((first, worst)) if next.kind == first.kind && wait > first.wait => (next, worst.max(wait)),
            Some((first, worst)) => (first, worst.max(wait)),
        });
    }
}

impl Named<'_> {
    fn blocked(self, rules: &ResourceRules, worst: Wait) -> Blocked {
        Blocked {
            kind: self.kind,
            rule: Some(self.head.id.clone()),
            retry_after: match worst {
                Wait::For(wait) => Some(wait),
                Wait::Denied | Wait::TooHeavy => None,
            },
            never: self.wait == Wait::TooHeavy,
            limit: self.limit,
            param: self.param.and_then(|param| rules.params.get(param)).cloned(),
        }
    }
}

impl<S> Default for Slots<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S> Slots<S> {
    /// Each rule's slot, by the rule's index.
    fn bind<R: Check<State = S>>(&mut self, rules: &[R], born: &mut u64, now: Tick) -> Vec<usize> {
        rules
            .iter()
            .map(|rule| self.find_or_make(rule, born, now))
            .collect()
    }

    fn find_or_make<R: Check<State = S>>(&mut self, rule: &R, born: &mut u64, now: Tick) -> usize {
        let id = &rule.head().id;
        if let Some(found) = self.0.iter().position(|slot| slot.id == *id) {
            return found;
        }
        *born += 1;
        self.0.push(Slot {
            id: id.clone(),
            serial: *born,
            state: rule.fresh(),
            blocked: 0,
            lacking: 0,
            parked: Some(now),
        });
        self.0.len() - 1
    }

    /// Gives the newest rules their slots, and parks the others.
    fn adopt<R: Check<State = S>>(&mut self, rules: &[R], bound: &[usize], now: Tick) {
        for (index, slot) in self.0.iter_mut().enumerate() {
            match rules.iter().zip(bound).find(|(_, slot)| **slot == index) {
                Some((rule, _)) => {
                    slot.parked = None;
                    rule.adopt(&mut slot.state);
                }
                None => slot.parked = slot.parked.or(Some(now)),
            }
        }
    }

    fn forget(&mut self, now: Tick) -> Vec<Slot<S>> {
        self.0
            .extract_if(.., |slot| {
                slot.parked.is_some_and(|since| now.since(since) >= KEPT)
            })
            .collect()
    }

    fn evaluate<'r, R: Check<State = S>>(
        &mut self,
        rules: &'r [R],
        bound: &[usize],
        facts: &Facts<'_>,
        now: Tick,
        refusals: &mut Refusals<'r>,
    ) {
        for (rule, slot) in selected(rules, bound, Mode::Enforce, facts) {
            let refusal = rule.evaluate(&mut self.at(slot).state, facts, now);
            if let Err(Refusal { kind, wait, limit }) = refusal {
                refusals.add(Named {
                    kind,
                    head: rule.head(),
                    param: rule.param(),
                    slot,
                    wait,
                    limit,
                });
            }
        }
    }

    fn take<R: Check<State = S>>(
        &mut self,
        rules: &[R],
        bound: &[usize],
        facts: &Facts<'_>,
        now: Tick,
        holds: &mut Holds,
    ) {
        for (rule, slot) in selected(rules, bound, Mode::Enforce, facts) {
            self.at(slot).take(rule, facts, now, holds);
        }
    }

    /// A shadow rule takes what it would itself admit of what the enforced rules have admitted.
    fn shadow<R: Check<State = S>>(
        &mut self,
        rules: &[R],
        bound: &[usize],
        facts: &Facts<'_>,
        now: Tick,
        holds: &mut Holds,
    ) {
        for (rule, slot) in selected(rules, bound, Mode::Shadow, facts) {
            let slot = self.at(slot);
            match rule.evaluate(&mut slot.state, facts, now) {
                Ok(()) => slot.take(rule, facts, now, holds),
                Err(refusal) => slot.count(refusal.kind),
            }
        }
    }

    /// The state that a permit holds something of, if it is still remembered.
    pub(super) fn held(&mut self, serial: u64) -> Option<&mut S> {
        self.0
            .iter_mut()
            .find(|slot| slot.serial == serial)
            .map(|slot| &mut slot.state)
    }

    /// Every rule with its slot.
    pub(super) fn bound<'a, R: Check<State = S>>(
        &'a mut self,
        rules: &'a [R],
    ) -> impl Iterator<Item = (&'a RuleHead, &'a mut Slot<S>)> {
        let mut slots: Vec<&mut Slot<S>> = self.0.iter_mut().collect();
        rules.iter().filter_map(move |rule| {
            let found = slots.iter().position(|slot| slot.id == rule.head().id)?;
            Some((rule.head(), slots.swap_remove(found)))
        })
    }

    fn at(&mut self, slot: usize) -> &mut Slot<S> {
        self.0
            .get_mut(slot)
            .expect("slots are bound and used under one lock")
    }
}

impl<S> Slot<S> {
    /// Counts a refusal of this rule.
    fn count(&mut self, kind: BlockKind) {
        match kind {
            BlockKind::MissingParam => self.lacking += 1,
            BlockKind::Degrade | BlockKind::ParamFlow | BlockKind::Flow | BlockKind::Isolation => {
                self.blocked += 1
            }
        }
    }

    fn take<R: Check<State = S>>(&mut self, rule: &R, facts: &Facts<'_>, now: Tick, holds: &mut Holds) {
        if let Some(hold) = rule.take(&mut self.state, facts, now) {
            holds.push((self.serial, hold));
        }
    }
}

fn selected<'r, R: Check>(
    rules: &'r [R],
    bound: &[usize],
    mode: Mode,
    facts: &Facts<'_>,
) -> impl Iterator<Item = (&'r R, usize)> {
    let pairs = rules.iter().zip(bound.iter().copied());
    pairs.filter(move |(rule, _)| rule.head().mode == mode && rule.selects(facts))
}
