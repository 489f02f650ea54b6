//! `GET /v1/reconciliation`: what was held against what, and what differs. And a difference as an event.

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use serde::Serialize;

use super::view::Shown;
use crate::account::{AccountId, SlotIndex, Timestamp};
use crate::jobs::reconcile::{Difference, Pass, Report, Run, Subject};

/// The type of the event, among those of entries.
pub(super) const EVENT: &str = "reconciliation_difference";

/// The answer.
#[derive(Serialize)]
pub(super) struct ReportJson<'a> {
    /// When the newest run ended; `null` before the first.
    at: Option<Shown<Timestamp>>,
    ok: bool,
    /// Accounts that it looked at.
    checked: u64,
    differences: Vec<DifferenceJson<'a>>,
    /// Differences that are not listed.
    more: u64,
    runs: Vec<RunJson<'a>>,
}

#[derive(Serialize)]
struct RunJson<'a> {
    pass: &'static str,
    at: Shown<Timestamp>,
    took_ms: u64,
    accounts: u64,
    entries: u64,
    /// How many it found; `null` where it broke off.
    differences: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct DifferenceJson<'a> {
    id: String,
    #[serde(flatten)]
    place: PlaceJson<'a>,
}

/// A difference as an event.
#[derive(Serialize)]
pub(super) struct DifferenceEventJson<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    place: PlaceJson<'a>,
}

#[derive(Serialize)]
struct PlaceJson<'a> {
    /// `null` where it is about all accounts of a currency.
    account_id: Option<Shown<&'a AccountId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<&'a str>,
    slot: Option<u8>,
    version: Option<u64>,
    kind: &'static str,
    /// For people: what should be so.
    rule: &'static str,
    expected: i128,
    found: i128,
    since: Shown<Timestamp>,
}

/// The id of a difference as an event.
pub(super) fn event_id(difference: &Difference) -> String {
    format!("reconciliation-{:016x}", difference.id)
}

/// The body of the event.
pub(super) fn event(difference: &Difference) -> String {
    let event = DifferenceEventJson {
        r#type: EVENT,
        place: difference.into(),
    };
    // Into memory, from plain structs of numbers and strings: nothing in it can fail to be written.
    serde_json::to_string(&event).unwrap_or_default()
}

impl<'a> From<&'a Report> for ReportJson<'a> {
    fn from(report: &'a Report) -> Self {
        let newest = report.newest();
        let difference = |difference: &'a Difference| DifferenceJson {
            id: event_id(difference),
            place: difference.into(),
        };
        Self {
            at: newest.map(|run| Shown(run.at)),
            ok: report.is_ok(),
            checked: newest.map_or(0, |run| run.accounts),
            differences: report.differences.iter().map(difference).collect(),
            more: report.more,
            runs: report.runs.iter().flatten().map(RunJson::from).collect(),
        }
    }
}

impl<'a> From<&'a Run> for RunJson<'a> {
    fn from(run: &'a Run) -> Self {
        Self {
            pass: run.pass.as_str(),
            at: Shown(run.at),
            took_ms: u64::try_from(run.took.as_millis()).unwrap_or(u64::MAX),
            accounts: run.accounts,
            entries: run.entries,
            differences: run.outcome.as_ref().ok().copied(),
            error: run.outcome.as_ref().err().map(String::as_str),
        }
    }
}

impl<'a> From<&'a Difference> for PlaceJson<'a> {
    fn from(difference: &'a Difference) -> Self {
        Self {
            account_id: difference.account().map(Shown),
            currency: match &difference.subject {
                Subject::Account(_) => None,
                Subject::Currency(currency) => Some(currency.as_str()),
            },
            slot: difference.slot.map(SlotIndex::get),
            version: difference.version,
            kind: difference.rule.as_str(),
            rule: difference.rule.text(),
            expected: difference.expected,
            found: difference.found,
            since: Shown(difference.since),
        }
    }
}

/// How the books are, at a scrape.
#[derive(Debug)]
pub(super) struct Gauges {
    differences: Gauge,
    /// In the order of [`Pass::ALL`].
    passes: [PassGauges; 3],
}

#[derive(Debug, Default)]
struct PassGauges {
    /// Unix time.
    last: Gauge,
    millis: Gauge,
    failed: Gauge,
}

impl Gauges {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let differences = Gauge::default();
        registry.register(
            "wallet_reconcile_differences",
            "Places in which the books are not what the entries say",
            differences.clone(),
        );
        let passes = Pass::ALL.map(|pass| {
            let gauges = PassGauges::default();
            let labelled = registry.sub_registry_with_label(("pass".into(), pass.as_str().into()));
            labelled.register_with_unit(
                "wallet_reconcile_last_timestamp",
                "When the newest run of this pass ended, in Unix time; 0 before the first",
                Unit::Seconds,
                gauges.last.clone(),
            );
            labelled.register(
                "wallet_reconcile_last_duration_milliseconds",
                "How long the newest run of this pass took",
                gauges.millis.clone(),
            );
            labelled.register(
                "wallet_reconcile_last_failed",
                "1 where the newest run of this pass broke off",
                gauges.failed.clone(),
            );
            gauges
        });
        Self { differences, passes }
    }

    pub(super) fn set(&self, report: &Report) {
        let gauge = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.differences.set(gauge(report.count()));
        for (pass, gauges) in Pass::ALL.into_iter().zip(&self.passes) {
            let Some(run) = report.run(pass) else { continue };
            gauges.last.set(run.at.0 / 1_000_000);
            gauges
                .millis
                .set(i64::try_from(run.took.as_millis()).unwrap_or(i64::MAX));
            gauges.failed.set(i64::from(run.outcome.is_err()));
        }
    }
}

#[cfg(test)]
mod tests;
