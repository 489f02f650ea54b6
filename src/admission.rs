//! Admission: every rule evaluated, then every rule taken, in one step.
//!
//! [`Admission`] owns all state of all rules, filed under the resource's name and the rule's id, so that it outlives
//! every reload. [`Admission::admit`] decides one request under its resource's own mutex: all rules are evaluated in
//! Sentinel's order (open breaker, param flow, flow, isolation, probe) and only then is anything taken. Hence a
//! refused request spends nothing anywhere, and 10 means 10. Nothing here does IO, reads a clock or waits; no status
//! code and no metric is named: [`Blocked`] and [`Admission::snapshot`] carry facts, outer layers turn them into both.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;

use crate::clock::Tick;
use crate::params::{ParamName, ParamValue};
use crate::rules::{Resource, ResourceRules, RuleId, RuleSet};

use check::Facts;
use keys::KeyHasher;
use param_flow::Values;
use state::{Binding, KEPT, Slot, State};

mod breaker;
mod check;
mod flow;
mod isolation;
mod keys;
pub mod layer;
mod param_flow;
mod permit;
mod snapshot;
mod state;

pub use permit::{Outcome, Permit};
pub use snapshot::{BreakerPhase, BreakerSnapshot, ResourceSnapshot, RuleSnapshot};

/// One request as the rules see it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The set that the request began with.
    pub rules: Arc<RuleSet>,
    /// Index into `rules.resources`.
    pub resource: usize,
    /// One per parameter of the resource, in its order.
    pub values: Vec<ParamValue>,
    /// Decides `percent` for rules without a value. Any well-spread number of the request, such as its id's hash.
    pub request_hash: u64,
}

/// Which check refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockKind {
    /// A breaker is open, or half-open with its probe under way.
    Degrade,
    /// A parameter that an enforced rule needs is not there.
    MissingParam,
    ParamFlow,
    Flow,
    Isolation,
}

impl BlockKind {
    /// Every kind, in the order of evaluation.
    pub const ALL: [Self; 5] = [
        Self::Degrade,
        Self::MissingParam,
        Self::ParamFlow,
        Self::Flow,
        Self::Isolation,
    ];

    /// The check's name, as rule files and answers spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Degrade => "degrade",
            Self::MissingParam => "missing_param",
            Self::ParamFlow => "param_flow",
            Self::Flow => "flow",
            Self::Isolation => "isolation",
        }
    }
}

/// A refusal. An answer, not a failure; the request took nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The first check that refused, in the order of evaluation.
    pub kind: BlockKind,
    /// The first rule of that check that refused.
    pub rule: Option<RuleId>,
    /// How long to wait: that of the slowest refusing rule. Exact for windows, buckets and an open breaker (wait that
    /// long, alone, and you pass), an estimate for isolation and a half-open breaker. `None` if waiting does not help
    /// or nobody can say.
    pub retry_after: Option<Duration>,
    /// The request weighs more than the rule could ever admit at once: only a smaller request passes.
    pub never: bool,
    /// What the refusing rule admits per window or at once, burst included; 0 denies everything.
    pub limit: Option<u64>,
    /// The name of the parameter, where the refusing rule reads one.
    pub param: Option<ParamName>,
}

/// The state of all rules of the process. Shared by `Arc`.
#[derive(Debug)]
pub struct Admission {
    hasher: KeyHasher,
    /// Every resource that is installed, or was within the last 60 s.
    resources: Mutex<HashMap<Resource, Arc<Guarded>>>,
    current: ArcSwapOption<Installed>,
}

/// The newest set with the state of each of its resources, by index.
#[derive(Debug)]
struct Installed {
    rules: Arc<RuleSet>,
    states: Vec<Arc<Guarded>>,
}

/// The state of one resource behind its mutex.
#[derive(Debug, Default)]
struct Guarded(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: State,
    /// The newest rules of the resource.
    newest: Option<(Arc<ResourceRules>, Binding)>,
    /// Since when no installed set has the resource.
    removed: Option<Tick>,
}

impl Admission {
    /// No resources and no state. One per process.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            hasher: KeyHasher::new(),
            resources: Mutex::default(),
            current: ArcSwapOption::empty(),
        })
    }

    /// Prepares the state for a set that is about to be published: same ids keep their state, new ids begin empty,
    /// ids that are gone keep theirs for 60 s. Calls that still carry the older set are decided by it meanwhile.
    pub fn install(&self, rules: &Arc<RuleSet>, now: Tick) {
        // Held to the end, so that of two installations one comes after the other.
        let mut resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
        let mut states = Vec::with_capacity(rules.resources.len());
        for each in &rules.resources {
            let guarded = resources.entry(each.resource.clone()).or_default();
            let forgotten = guarded.lock().install(each, now);
            drop(forgotten);
            states.push(Arc::clone(guarded));
        }
        resources.retain(|_, guarded| {
            states.iter().any(|kept| Arc::ptr_eq(kept, guarded)) || guarded.lock().is_kept(now)
        });
        self.current.store(Some(Arc::new(Installed {
            rules: Arc::clone(rules),
            states,
        })));
    }

    /// Decides one request, and takes from every rule if none refuses. Never waits.
    ///
    /// # Errors
    /// The refusal, if any enforced rule refuses. Nothing was taken then.
    ///
    /// # Panics
    /// If `call.resource` is no index of the call's own set.
    pub fn admit(&self, call: &Call, now: Tick) -> Result<Permit, Blocked> {
        let rules = call.resource_rules();
        let facts = Facts::new(rules, &call.values, call.request_hash, &self.hasher);
        let guarded = self
            .guarded_by_index(call)
            .unwrap_or_else(|| self.guarded(&rules.resource));
        let mut inner = guarded.lock();
        let Inner { state, newest, .. } = &mut *inner;
        let holds = match newest {
            Some((newest, binding)) if Arc::ptr_eq(newest, rules) => state.admit(binding, facts, now),
            Some(_) | None => {
                let binding = state.bind(rules, now);
                state.admit(&binding, facts, now)
            }
        };
        drop(inner);
        Ok(Permit::new(guarded, holds?, now))
    }

    /// What every resource of the newest set did and does, in the set's order. Forgets what was kept long enough.
    #[must_use]
    pub fn snapshot(&self, now: Tick) -> Vec<ResourceSnapshot> {
        let current = self.current.load_full();
        let installed = current
            .iter()
            .flat_map(|each| each.rules.resources.iter().zip(&each.states));
        let snapshots = installed.map(|(rules, guarded)| {
            let (snapshot, forgotten) = snapshot::take(&mut guarded.lock(), rules, now);
            drop(forgotten);
            snapshot
        });
        snapshots.collect()
    }

    /// The state of the call's resource, if the call carries the newest set: no search by name then.
    fn guarded_by_index(&self, call: &Call) -> Option<Arc<Guarded>> {
        let current = self.current.load();
        let installed = current
            .as_ref()
            .filter(|each| Arc::ptr_eq(&each.rules, &call.rules))?;
        installed.states.get(call.resource).map(Arc::clone)
    }

    fn guarded(&self, resource: &Resource) -> Arc<Guarded> {
        let mut resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(resources.entry(resource.clone()).or_default())
    }
}

impl Call {
    /// The resource that the request touches.
    ///
    /// # Panics
    /// If `resource` is no index of `rules.resources`: it comes from that set's own router.
    #[must_use]
    pub fn resource_rules(&self) -> &Arc<ResourceRules> {
        self.rules
            .resources
            .get(self.resource)
            .expect("the index comes from this set's router")
    }
}

impl Guarded {
    /// A panic under the lock leaves a state that is whole: every method is one complete transition.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// See [`State::install`]; drop what it returns without the lock.
    fn install(&mut self, rules: &Arc<ResourceRules>, now: Tick) -> Vec<Slot<Values>> {
        let now = self.state.tick(now);
        let (binding, forgotten) = self.state.install(rules, now);
        self.newest = Some((Arc::clone(rules), binding));
        self.removed = None;
        forgotten
    }

    /// Whether the state of a resource that the newest set lacks must stay.
    fn is_kept(&mut self, now: Tick) -> bool {
        let removed = *self.removed.get_or_insert(now);
        self.state.in_flight > 0 || now.since(removed) < KEPT
    }
}

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;
