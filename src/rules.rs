//! The rules as typed values: what a checked set of rule files says, and nothing that cannot be enforced.
//!
//! `wire` reads YAML and JSON into private structs and turns them into these types, or into errors with a place;
//! `watch` keeps the newest good set published. A [`RuleSet`] never changes: a reload swaps a whole new one in.
//! Field names, units and defaults are Sentinel's (`AbstractRule`, `ParamFlowRule`, `FlowRule`, `DegradeRule`); what
//! differs on purpose is said in the README of `rules/`.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use crate::params::{Extractor, ParamName};
use crate::router::Router;

pub mod compile;
mod folder;
mod report;
pub mod watch;
mod wire;

pub use report::RuleError;
pub use wire::{MAX_FILE_LEN, Source};

/// The name of a protected resource, as the rule files write it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource(Arc<str>);

/// What a rule's state, its metrics and its refusals are filed under. Unique in a [`RuleSet`].
///
/// Derived as `{type}:{resource}:{param|limitApp}:{grade}` where the file gives none, so that a changed count is
/// the same rule.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(Arc<str>);

macro_rules! name_type {
    ($name:ident) => {
        impl $name {
            /// Takes a name that the caller has checked not to be blank.
            #[must_use]
            pub fn new(name: &str) -> Self {
                Self(name.into())
            }

            /// The name as written.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name_type!(Resource);
name_type!(RuleId);

/// Where in the rule files something was written. `line` and `column` count from 1; both are 0 where the file as a
/// whole is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub file: Arc<PathBuf>,
    pub line: u32,
    pub column: u32,
}

impl Place {
    /// A file as a whole.
    #[must_use]
    pub fn whole(file: &Arc<PathBuf>) -> Self {
        Self {
            file: Arc::clone(file),
            line: 0,
            column: 0,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return self.file.display().fmt(f);
        }
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// A whole, checked set of rules. Published behind one `Arc`; a request keeps the one it began with.
#[derive(Debug)]
pub struct RuleSet {
    /// Grows by one with every set that is swapped in; the first is 1.
    pub generation: u64,
    /// Every resource with its rules, in file and line order.
    pub resources: Vec<Arc<ResourceRules>>,
    /// From method and path to an index into `resources`.
    pub router: Router,
    /// What a request that no resource matches meets.
    pub unmatched: Unmatched,
    /// The header that names the caller (`defaults.origin.header`), lower case.
    pub origin_header: http::HeaderName,
    /// The total deadline of a request that no resource matches.
    pub default_timeout: Duration,
    /// The files it was read from, in name order.
    pub files: Vec<Arc<PathBuf>>,
    /// A hash of their contents; equal hashes mean equal sets.
    pub content_hash: u64,
}

/// What happens to a request that matches no resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmatched {
    /// Forwarded without any limit, and counted.
    Pass,
    /// Answered 404 `unmatched`.
    Reject,
}

/// One resource and everything that guards it. Rules of a kind keep their order of writing.
#[derive(Debug)]
pub struct ResourceRules {
    pub resource: Resource,
    pub place: Place,
    /// Parameters by index, as in Sentinel's `paramIdx`. Every route of the resource fills the same list.
    pub params: Vec<ParamName>,
    /// What matches, each with one extractor per parameter (`extractors.len() == params.len()`).
    pub routes: Vec<Route>,
    pub on_missing_param: OnMissingParam,
    /// From admission to the last byte of the answer.
    pub timeout: Duration,
    /// How long a write whose client left, or whose deadline passed, may keep its permit. Default 5 x `timeout`.
    pub abandon_after: Duration,
    /// The longest body that is read for a JSON parameter, in bytes.
    pub max_json_body: usize,
    /// Answers of the upstream that count as failures for the breakers.
    pub error_statuses: Vec<StatusCode>,
    /// Replaces the sidecar's own refusal.
    pub on_block: OnBlock,
    /// Replaces the sidecar's 502 and 504.
    pub fallback: Option<Answer>,
    pub param_flow: Vec<ParamFlowRule>,
    pub flow: Vec<FlowRule>,
    pub isolation: Vec<IsolationRule>,
    pub degrade: Vec<DegradeRule>,
}

/// One entry of a resource's `match` list.
#[derive(Debug)]
pub struct Route {
    /// Upper case; `None` matches every method.
    pub method: Option<http::Method>,
    /// The path template as written, for example `/v1/accounts/{accountId}/debits`.
    pub path: String,
    /// One per parameter of the resource, in its order.
    pub extractors: Vec<Extractor>,
    pub place: Place,
}

/// `POST /v1/accounts/{accountId}/debits`; `*` for every method.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = self.method.as_ref().map_or("*", http::Method::as_str);
        write!(f, "{method} {}", self.path)
    }
}

impl Route {
    /// Whether the body has to be read, up to the resource's `max_json_body`, before admission.
    #[must_use]
    pub fn needs_body(&self) -> bool {
        self.extractors.iter().any(Extractor::needs_body)
    }
}

impl RuleSet {
    /// The resource that a request touches and the route it matched; `path` is normalised.
    #[must_use]
    pub fn find(&self, method: &http::Method, path: &str) -> Option<(&Arc<ResourceRules>, &Route)> {
        let found = self.router.find(method, path)?;
        let resource = self.resources.get(found.resource)?;
        Some((resource, resource.routes.get(found.route)?))
    }

    /// How many rules of every kind there are.
    #[must_use]
    pub fn rule_count(&self) -> usize {
        let of = |r: &ResourceRules| r.param_flow.len() + r.flow.len() + r.isolation.len() + r.degrade.len();
        self.resources.iter().map(|resource| of(resource)).sum()
    }
}

/// What happens to a request that lacks a parameter which a rule needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMissingParam {
    /// 400 `missing_param`.
    Reject,
    /// All such requests count as one value.
    Shared,
    /// The rules on this parameter do not apply. Counted.
    Pass,
}

/// A replacement for the sidecar's own answer. What is `None` stays as it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub status: Option<StatusCode>,
    /// Sent as `application/json`.
    pub body: Option<serde_json::Value>,
}

/// `onBlock`: one answer for every code, or answers by code (`param_flow`, `isolation`, …).
#[derive(Clone, Debug, PartialEq)]
pub enum OnBlock {
    Problem,
    All(Answer),
    ByCode(HashMap<String, Answer>),
}

/// What every rule has.
#[derive(Clone, Debug)]
pub struct RuleHead {
    pub id: RuleId,
    pub mode: Mode,
    /// The share of values (or of requests, where the rule has no value) that the rule applies to, 0 to 100.
    pub percent: u8,
    pub place: Place,
}

/// Whether a rule refuses, or only counts what it would have refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Enforce,
    Shadow,
}

/// A limit per value of one parameter (Sentinel `ParamFlowRule`, grade QPS).
#[derive(Clone, Debug)]
pub struct ParamFlowRule {
    pub head: RuleHead,
    /// Index into [`ResourceRules::params`].
    pub param: usize,
    /// Takes per window and value, without the burst. 0 denies.
    pub count: u64,
    /// Added to `count` for every value, exception items included; a count of 0 denies all the same.
    pub burst: u64,
    pub window: Duration,
    pub shaping: Shaping,
    /// `paramFlowItemList`: values with a count of their own, by their text.
    pub items: HashMap<Box<str>, u64>,
    /// The most values that are tracked one by one; later ones share overflow windows.
    pub max_keys: usize,
}

/// How a rate is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shaping {
    /// A sliding window: never more than count + burst in any window.
    Reject,
    /// GCRA: a bucket of count + burst, refilled evenly at count per window.
    TokenBucket,
}

/// A limit over all requests of a resource (Sentinel `FlowRule`, grade QPS, `reject`).
#[derive(Clone, Debug)]
pub struct FlowRule {
    pub head: RuleHead,
    /// Takes per window. 0 denies.
    pub count: u64,
    /// `statIntervalMs`.
    pub window: Duration,
}

/// The most requests of a resource that may be under way at once (sentinel-golang `isolation.Rule`).
#[derive(Clone, Debug)]
pub struct IsolationRule {
    pub head: RuleHead,
    /// 0 denies.
    pub max_concurrent: u32,
}

/// A circuit breaker (Sentinel `DegradeRule`).
#[derive(Clone, Debug)]
pub struct DegradeRule {
    pub head: RuleHead,
    pub trip: Trip,
    /// `timeWindow`: how long it stays open before a probe.
    pub open_for: Duration,
    /// `minRequestAmount`: completed requests in the window below which it never trips.
    pub min_requests: u64,
    /// `statIntervalMs`: the sliding window, in 10 buckets.
    pub window: Duration,
}

/// What trips a breaker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trip {
    /// The share of failures is above this; at 1.0, when all failed.
    ExceptionRatio(f64),
}
