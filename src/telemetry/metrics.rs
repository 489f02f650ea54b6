//! Every metric's name and unit, and the counters a request touches.
//!
//! A request resolves its [`Meter`] once, with its resource; from there on counting is an atomic add, without a label
//! look-up. What admission and the rule store know is read at a scrape (`scrape`), never copied. Labels are bounded:
//! resources and rules come from the rule files, codes are numbers from 100 to 599 or `other`.
//!
//! | metric | unit and meaning |
//! |---|---|
//! | `sluice_requests_total{resource,code}` | answers by final status, refusals included |
//! | `sluice_blocked_total{resource,type,rule,mode}` | refusals; `mode="shadow"`: what would have been refused |
//! | `sluice_in_flight{resource}` | requests that hold a permit |
//! | `sluice_breaker_state{resource,rule}` | 0 closed, 1 half-open, 2 open |
//! | `sluice_rules_reloads_total{result}`, `sluice_rules_ok` | rule loads by `ok`, `failed`; 1 while the files in the folder are in force |
//! | `sluice_keys{rule}`, `sluice_overflow_total{rule}` | values tracked; meetings with a shared overflow window |
//! | `sluice_unmatched_total` | requests that no resource matched |
//! | `sluice_request_duration_seconds` | arrival of the head to the last byte of the answer |
//! | `sluice_upstream_duration_seconds` | sending to the head of the upstream's answer |
//! | `sluice_abandoned_total` | writes whose permit fell at `abandonAfter` while the upstream still worked |
//! | `sluice_upstream_connects_total{result}` | connections to the upstream by `ok`, `failed` |
//! | `sluice_connections` | client connections that are open |
//! | `sluice_access_log_dropped_total` | access log lines that the writer could not keep up with |
//! | `sluice_build_info{version}` | 1 |

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use http::StatusCode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::rules::{Resource, RuleSet};

pub mod scrape;

/// Bucket borders of both histograms, in seconds: from a loopback round trip to the longest usual deadline.
const SECONDS: [f64; 15] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// What the `resource` label says of requests that no resource matched.
pub const UNMATCHED: &str = "(unmatched)";

/// Statuses that have a counter of their own: 100 to 599.
const FIRST_CODE: u16 = 100;
const CODES: usize = 500;

/// The counters of the process.
#[derive(Debug)]
pub struct Metrics {
    meters: ArcSwap<MeterTable>,
    /// Serialises rebuilding the table after a reload.
    rebuild: Mutex<()>,
    unmatched: Arc<Meter>,
    pub request_duration: Histogram,
    pub upstream_duration: Histogram,
    pub unmatched_total: Counter,
    pub abandoned: Counter,
    pub connects_ok: Counter,
    pub connects_failed: Counter,
    pub connections: Gauge,
}

/// The meters of one rule set, by resource index.
#[derive(Debug)]
struct MeterTable {
    generation: u64,
    meters: Vec<Arc<Meter>>,
}

/// The counters of one resource.
#[derive(Debug)]
pub struct Meter {
    resource: Resource,
    /// By status from [`FIRST_CODE`]; the last one counts all others. `codes.len() == CODES + 1`.
    codes: Box<[AtomicU64]>,
    /// Refusals that no rule made, by [`OwnRefusal`].
    refused: [AtomicU64; OwnRefusal::ALL.len()],
}

/// Refusals of the sidecar itself, which admission does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnRefusal {
    BadRequest,
    Unmatched,
    BodyTooLarge,
    Draining,
}

impl OwnRefusal {
    /// Every one, in the order of the counters.
    pub const ALL: [Self; 4] = [
        Self::BadRequest,
        Self::Unmatched,
        Self::BodyTooLarge,
        Self::Draining,
    ];

    /// The `code` of the answer and `type` of the metric.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::Unmatched => "unmatched",
            Self::BodyTooLarge => "body_too_large",
            Self::Draining => "draining",
        }
    }
}

impl Metrics {
    pub(super) fn new() -> Self {
        let histogram = || Histogram::new(SECONDS);
        Self {
            meters: ArcSwap::from_pointee(MeterTable {
                generation: 0,
                meters: Vec::new(),
            }),
            rebuild: Mutex::new(()),
            unmatched: Arc::new(Meter::new(Resource::new(UNMATCHED))),
            request_duration: histogram(),
            upstream_duration: histogram(),
            unmatched_total: Counter::default(),
            abandoned: Counter::default(),
            connects_ok: Counter::default(),
            connects_failed: Counter::default(),
            connections: Gauge::default(),
        }
    }

    /// The meter of a resource of `rules` by its index, or of what no resource matched.
    #[must_use]
    pub fn meter(&self, rules: &RuleSet, resource: Option<usize>) -> Arc<Meter> {
        let Some(index) = resource else {
            return Arc::clone(&self.unmatched);
        };
        let table = self.meters.load();
        if table.generation == rules.generation
            && let Some(found) = table.meters.get(index)
        {
            return Arc::clone(found);
        }
        drop(table);
        self.rebuilt(rules, index)
    }

    /// A reload came: keeps the meters of resources that are still there and forgets the others, so that renaming
    /// for ever does not grow the table. A request that still holds an older set counts into a meter by name.
    fn rebuilt(&self, rules: &RuleSet, index: usize) -> Arc<Meter> {
        let _one_at_a_time = self.rebuild.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.meters.load_full();
        let known: HashMap<&Resource, &Arc<Meter>> =
            old.meters.iter().map(|meter| (&meter.resource, meter)).collect();
        let meters: Vec<_> = rules
            .resources
            .iter()
            .map(|each| {
                known.get(&each.resource).map_or_else(
                    || Arc::new(Meter::new(each.resource.clone())),
                    |known| Arc::clone(known),
                )
            })
            .collect();
        let found = meters
            .get(index)
            .map_or_else(|| Arc::clone(&self.unmatched), Arc::clone);
        if rules.generation > old.generation {
            self.meters.store(Arc::new(MeterTable {
                generation: rules.generation,
                meters,
            }));
        }
        found
    }

    /// Every meter in force, that of unmatched requests last.
    fn all(&self) -> Vec<Arc<Meter>> {
        let mut all = self.meters.load().meters.clone();
        all.push(Arc::clone(&self.unmatched));
        all
    }
}

impl Meter {
    fn new(resource: Resource) -> Self {
        Self {
            resource,
            codes: std::iter::repeat_with(AtomicU64::default)
                .take(CODES + 1)
                .collect(),
            refused: Default::default(),
        }
    }

    /// The resource it counts for.
    #[must_use]
    pub const fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Counts an answer. Relaxed: counters order nothing.
    pub fn answered(&self, status: StatusCode) {
        let index = usize::from(status.as_u16().saturating_sub(FIRST_CODE)).min(CODES);
        if let Some(counter) = self.codes.get(index) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a refusal that no rule made.
    pub fn refused(&self, refusal: OwnRefusal) {
        if let Some((counter, _)) = self
            .refused
            .iter()
            .zip(OwnRefusal::ALL)
            .find(|(_, each)| *each == refusal)
        {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Statuses that were answered at least once, with how often. The text is the number, or `other`.
    fn by_code(&self) -> impl Iterator<Item = (String, u64)> {
        self.codes.iter().zip(FIRST_CODE..).filter_map(|(counter, code)| {
            let count = counter.load(Ordering::Relaxed);
            let named = usize::from(code - FIRST_CODE) < CODES;
            (count > 0).then(|| {
                (
                    if named {
                        code.to_string()
                    } else {
                        "other".to_owned()
                    },
                    count,
                )
            })
        })
    }

    fn by_refusal(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.refused
            .iter()
            .zip(OwnRefusal::ALL)
            .map(|(counter, refusal)| (refusal.code(), counter.load(Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_beyond_599_are_other() {
        let meter = Meter::new(Resource::new("r"));
        for code in [200, 200, 503, 600, 999] {
            meter.answered(StatusCode::from_u16(code).unwrap());
        }
        let counted: Vec<_> = meter.by_code().collect();
        let row = |code: &str, count| (code.to_owned(), count);
        assert_eq!(counted, [row("200", 2), row("503", 1), row("other", 2)]);
    }

    #[test]
    fn refusals_are_counted_by_code() {
        let meter = Meter::new(Resource::new("r"));
        meter.refused(OwnRefusal::BodyTooLarge);
        assert_eq!(meter.by_refusal().collect::<Vec<_>>(), [("body_too_large", 1)]);
    }
}
