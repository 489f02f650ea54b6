//! `degrade`: Sentinel's `DegradeRule`, tripped by the share of failures.

use std::time::Duration;

use super::super::report::Report;
use super::super::wire::{Fields, MAX_COUNT, Node, Schema, Word};
use super::super::{DegradeRule, ResourceRules, Trip};
use super::head::head;

pub(super) const SCHEMA: Schema = Schema {
    what: "a degrade rule",
    known: &[
        "id",
        "resource",
        "mode",
        "percent",
        "limitApp",
        "clusterMode",
        "grade",
        "count",
        "timeWindow",
        "minRequestAmount",
        "statIntervalMs",
        "probeNum",
    ],
    later: &[
        "slowRatioThreshold",
        "maxAllowedRtMs",
        "openTimeFactor",
        "openTimeMax",
        "openJitter",
        "rampSec",
        "param",
        "paramIdx",
        "strategy",
        "clusterConfig",
    ],
    instead: &[
        ("rule", "take the contents out of the dashboard's `rule: {…}`"),
        ("threshold", "write `count`"),
        ("retryTimeoutMs", "write `timeWindow`, in seconds"),
        ("statIntervalInMs", "write `statIntervalMs`"),
        ("statInterval", "write `statIntervalMs`"),
        ("minRequest", "write `minRequestAmount`"),
    ],
};

const GRADES: [Word<()>; 3] = [
    Word::later("slowRatio", "0"),
    Word::coded("exceptionRatio", "1", ()),
    Word::later("exceptionCount", "2"),
];

/// A breaker that stays open for longer than a day is a number in the wrong unit.
const MAX_OPEN: Duration = Duration::from_secs(86_400);

/// The window has 10 buckets of at least a millisecond.
const MIN_WINDOW: Duration = Duration::from_millis(10);

pub(super) fn add(fields: &Fields<'_>, resource: &mut ResourceRules, report: &mut Report) -> Option<()> {
    let grade = fields.must("grade", report, |node, report| node.word(&GRADES, report));
    fields.only("probeNum", &["1"], report);
    let ratio = fields.must("count", report, Node::ratio);
    let open_for = fields.must("timeWindow", report, open_for);
    let min_requests = fields.or("minRequestAmount", 5, report, |node, report| {
        node.integer(1, MAX_COUNT, "", report)
    });
    let window = fields.or("statIntervalMs", Duration::from_secs(1), report, window);
    let head = head(
        fields,
        &format!("degrade:{}:default:exceptionRatio", resource.resource),
        report,
    );
    grade?;
    let rule = DegradeRule {
        head: head?,
        trip: Trip::ExceptionRatio(ratio?),
        open_for: open_for?,
        min_requests: min_requests?,
        window: window?,
    };
    if let Some(twin) = resource.degrade.iter().find(|other| is_twin(other, &rule)) {
        return report.refuse(
            fields.place,
            format!(
                "the same as the rule at {} but for its id: one of them is too many",
                twin.head.place
            ),
        );
    }
    resource.degrade.push(rule);
    Some(())
}

fn open_for(node: &Node, report: &mut Report) -> Option<Duration> {
    let span = node.duration(Some(Duration::from_secs(1)), report)?;
    if span > MAX_OPEN {
        return report.refuse(
            &node.place,
            format!(
                "`timeWindow` is in seconds, and {node} is more than a day; is it meant in milliseconds?"
            ),
        );
    }
    Some(span)
}

fn window(node: &Node, report: &mut Report) -> Option<Duration> {
    let span = node.duration(Some(Duration::from_millis(1)), report)?;
    if span < MIN_WINDOW {
        return report.refuse(
            &node.place,
            format!("`statIntervalMs` is at least 10, not {node}"),
        );
    }
    Some(span)
}

/// Whether two breakers would trip, open and close together.
fn is_twin(one: &DegradeRule, other: &DegradeRule) -> bool {
    let key = |rule: &DegradeRule| {
        (
            rule.trip,
            rule.open_for,
            rule.min_requests,
            rule.window,
            rule.head.mode,
            rule.head.percent,
        )
    };
    key(one) == key(other)
}
