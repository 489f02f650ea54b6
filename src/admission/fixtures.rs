//! Rule sets and calls made by hand, for the tests of admission.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::admission::{Admission, Blocked, Call, Permit};
use crate::clock::Tick;
use crate::params::{ParamName, ParamValue};
use crate::router::Router;
use crate::rules::{
    DegradeRule, FlowRule, IsolationRule, Mode, OnBlock, OnMissingParam, ParamFlowRule, Place, Resource,
    ResourceRules, RuleHead, RuleId, RuleSet, Shaping, Trip, Unmatched,
};

pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) fn ms(millis: u64) -> Tick {
    Tick::from_millis(millis)
}

fn place() -> Place {
    Place {
        file: Arc::new(PathBuf::from("test.yaml")),
        line: 1,
        column: 1,
    }
}

pub(super) fn head(id: &str) -> RuleHead {
    RuleHead {
        id: RuleId::new(id),
        mode: Mode::Enforce,
        percent: 100,
        place: place(),
    }
}

pub(super) fn shadow(id: &str) -> RuleHead {
    RuleHead {
        mode: Mode::Shadow,
        ..head(id)
    }
}

/// A resource with the parameters `accountId` and `currency`, a timeout of 2 s and no rule.
pub(super) fn resource(name: &str) -> ResourceRules {
    ResourceRules {
        resource: Resource::new(name),
        place: place(),
        params: vec![ParamName::new("accountId"), ParamName::new("currency")],
        routes: Vec::new(),
        on_missing_param: OnMissingParam::Reject,
        timeout: 2 * SECOND,
        abandon_after: 10 * SECOND,
        max_json_body: 65_536,
        error_statuses: Vec::new(),
        on_block: OnBlock::Problem,
        fallback: None,
        param_flow: Vec::new(),
        flow: Vec::new(),
        isolation: Vec::new(),
        degrade: Vec::new(),
    }
}

/// Per account, `count` a second, one by one tracked.
pub(super) fn param_flow(id: &str, count: u64) -> ParamFlowRule {
    ParamFlowRule {
        head: head(id),
        param: 0,
        count,
        burst: 0,
        window: SECOND,
        shaping: Shaping::Reject,
        items: [].into(),
        max_keys: 1_000,
    }
}

pub(super) fn flow(id: &str, count: u64) -> FlowRule {
    FlowRule {
        head: head(id),
        count,
        window: SECOND,
    }
}

pub(super) fn isolation(id: &str, max_concurrent: u32) -> IsolationRule {
    IsolationRule {
        head: head(id),
        max_concurrent,
    }
}

/// Opens for 10 s above 50 % failures of at least 4 in a second.
pub(super) fn degrade(id: &str) -> DegradeRule {
    DegradeRule {
        head: head(id),
        trip: Trip::ExceptionRatio(0.5),
        open_for: 10 * SECOND,
        min_requests: 4,
        window: SECOND,
    }
}

pub(super) fn set(resources: Vec<ResourceRules>) -> Arc<RuleSet> {
    Arc::new(RuleSet {
        generation: 1,
        resources: resources.into_iter().map(Arc::new).collect(),
        router: Router::default(),
        unmatched: Unmatched::Pass,
        origin_header: http::HeaderName::from_static("x-origin"),
        default_timeout: 10 * SECOND,
        files: Vec::new(),
        content_hash: 0,
    })
}

pub(super) fn one(value: &str) -> ParamValue {
    ParamValue::One(value.into())
}

pub(super) fn many(values: &[(&str, u32)]) -> ParamValue {
    ParamValue::Many(
        values
            .iter()
            .map(|(value, times)| ((*value).into(), *times))
            .collect(),
    )
}

pub(super) fn call(rules: &Arc<RuleSet>, account: ParamValue) -> Call {
    Call {
        rules: Arc::clone(rules),
        resource: 0,
        values: vec![account, one("EUR")],
        request_hash: 7,
    }
}

/// Admission with a set of one resource installed.
pub(super) struct Bed {
    pub(super) admission: Arc<Admission>,
    pub(super) rules: Arc<RuleSet>,
}

impl Bed {
    pub(super) fn new(rules: ResourceRules) -> Self {
        let mut bed = Self {
            admission: Admission::new(),
            rules: set(Vec::new()),
        };
        bed.reload(vec![rules], ms(0));
        bed
    }

    pub(super) fn reload(&mut self, resources: Vec<ResourceRules>, now: Tick) {
        self.rules = set(resources);
        self.admission.install(&self.rules, now);
    }

    pub(super) fn admit(&self, account: &str, now: Tick) -> Result<Permit, Blocked> {
        self.admission.admit(&call(&self.rules, one(account)), now)
    }

    pub(super) fn admit_value(&self, account: ParamValue, now: Tick) -> Result<Permit, Blocked> {
        self.admission.admit(&call(&self.rules, account), now)
    }

    /// How many of `tries` requests pass and end at once.
    pub(super) fn passes(&self, account: &str, tries: u32, now: Tick) -> u32 {
        (0..tries)
            .map(|_| u32::from(self.admit(account, now).is_ok()))
            .sum()
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.admission.snapshot(ms(0))[0].in_flight
    }
}
