//! `paramFlow`: Sentinel's `ParamFlowRule`, grade QPS, with `reject` or `tokenBucket`.

use std::collections::HashMap;
use std::time::Duration;

use super::super::report::Report;
use super::super::wire::{Fields, MAX_COUNT, Node, Schema, Word};
use super::super::{ParamFlowRule, ResourceRules, Shaping};
use super::head::{head, param};
use crate::params::MAX_VALUE_LEN;

pub(super) const SCHEMA: Schema = Schema {
    what: "a paramFlow rule",
    known: &[
        "id",
        "resource",
        "mode",
        "percent",
        "limitApp",
        "clusterMode",
        "param",
        "paramIdx",
        "grade",
        "count",
        "burstCount",
        "durationInSec",
        "controlBehavior",
        "maxQueueingTimeMs",
        "paramFlowItemList",
        "maxKeys",
    ],
    later: &["regex", "clusterConfig"],
    instead: &[
        (
            "paramIndex",
            "write `paramIdx`, or `param` with the parameter's name",
        ),
        ("rule", "take the contents out of the dashboard's `rule: {…}`"),
        ("threshold", "write `count`"),
        ("burst", "write `burstCount`"),
        ("duration", "write `durationInSec`"),
        ("statIntervalMs", "write `durationInSec`"),
    ],
};

const ITEM: Schema = Schema {
    what: "an entry of paramFlowItemList",
    known: &["object", "count", "classType"],
    later: &[],
    instead: &[("value", "write `object`"), ("threshold", "write `count`")],
};

const GRADES: [Word<()>; 2] = [Word::coded("qps", "1", ()), Word::later("concurrency", "0")];

const BEHAVIORS: [Word<Shaping>; 6] = [
    Word::coded("reject", "0", Shaping::Reject),
    Word::new("tokenBucket", Shaping::TokenBucket),
    Word::later("warmUp", "1"),
    Word::later("rateLimiter", "2"),
    Word::later("throttle", "2"),
    Word::later("warmUpRateLimiter", "3"),
];

/// GCRA counts in nanoseconds; a faster rate leaves it too few of them per request.
const MAX_BUCKET_RATE: u64 = 100_000_000;

/// Sentinel's own cap of the values it tracks per rule (`ParamFlowChecker`).
const DEFAULT_MAX_KEYS: u64 = 200_000;

pub(super) fn add(fields: &Fields<'_>, resource: &mut ResourceRules, report: &mut Report) -> Option<()> {
    let param = param(fields, resource, report);
    fields.or("grade", (), report, |node, report| node.word(&GRADES, report));
    fields.only("maxQueueingTimeMs", &["0"], report);
    let shaping = fields.or("controlBehavior", Shaping::Reject, report, |node, report| {
        node.word(&BEHAVIORS, report)
    });
    let count = fields.must("count", report, count);
    let burst = fields.or("burstCount", 0, report, count_of_zero);
    let window = fields.or("durationInSec", SECOND, report, |node, report| {
        node.duration(Some(SECOND), report)
    });
    let items = fields.or("paramFlowItemList", HashMap::new(), report, items);
    let max_keys = fields.or("maxKeys", DEFAULT_MAX_KEYS, report, |node, report| {
        node.integer(1, 10_000_000, "", report)
    });
    let name = resource.params.get(param?)?.as_str();
    let head = head(
        fields,
        &format!("paramFlow:{}:{name}:qps", resource.resource),
        report,
    );
    let rule = ParamFlowRule {
        head: head?,
        param: param?,
        count: count?,
        burst: burst?,
        window: window?,
        shaping: shaping?,
        items: items?,
        max_keys: usize::try_from(max_keys?).ok()?,
    };
    check_bucket(&rule, fields, report)?;
    resource.param_flow.push(rule);
    Some(())
}

const SECOND: Duration = Duration::from_secs(1);

/// A count: whole, because a window holds whole requests.
pub(super) fn count(node: &Node, report: &mut Report) -> Option<u64> {
    node.integer(
        0,
        MAX_COUNT,
        ": for less than one a second, raise `durationInSec`",
        report,
    )
}

fn count_of_zero(node: &Node, report: &mut Report) -> Option<u64> {
    node.integer(0, MAX_COUNT, "", report)
}

/// `classType` is read and has no effect: values are compared by their text as written.
fn items(node: &Node, report: &mut Report) -> Option<HashMap<Box<str>, u64>> {
    let mut items = HashMap::new();
    let mut whole = true;
    for entry in node.list(report)? {
        let Some(fields) = Fields::new(entry, &ITEM, report) else {
            continue;
        };
        let object = fields.must("object", report, object);
        let count = fields.must("count", report, count);
        let (Some(object), Some(count)) = (object, count) else {
            whole = false;
            continue;
        };
        if items.insert(object.into(), count).is_some() {
            report.add(
                &entry.place,
                format!("`{object}` is there twice in paramFlowItemList"),
            );
        }
    }
    whole.then_some(items)
}

/// A value as requests can carry it: not empty, since an empty value is a missing one, nor too long to be kept whole.
fn object<'n>(node: &'n Node, report: &mut Report) -> Option<&'n str> {
    let text = node.text(report)?;
    if text.is_empty() || text.len() > MAX_VALUE_LEN {
        return report.refuse(
            &node.place,
            format!("`object` has 1 to {MAX_VALUE_LEN} bytes: no request has this value"),
        );
    }
    Some(text)
}

/// Refuses what GCRA cannot count: a rate above [`MAX_BUCKET_RATE`] a second, a bucket above `u32::MAX`.
fn check_bucket(rule: &ParamFlowRule, fields: &Fields<'_>, report: &mut Report) -> Option<()> {
    if rule.shaping == Shaping::Reject {
        return Some(());
    }
    let most = rule.items.values().copied().fold(rule.count, u64::max);
    let rate = u128::from(most) * 1_000_000_000 / rule.window.as_nanos().max(1);
    if rate > u128::from(MAX_BUCKET_RATE) {
        let place = fields.get("count").map_or(fields.place, |node| &node.place);
        return report.refuse(
            place,
            format!("a tokenBucket takes at most {MAX_BUCKET_RATE} requests a second"),
        );
    }
    if most.saturating_add(rule.burst) > u64::from(u32::MAX) {
        return report.refuse(
            fields.place,
            format!("a tokenBucket holds at most {} requests", u32::MAX),
        );
    }
    Some(())
}
