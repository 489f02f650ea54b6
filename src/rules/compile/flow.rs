//! `flow`: Sentinel's `FlowRule`, grade QPS, `reject`, over all requests of a resource.

use std::time::Duration;

use super::super::report::Report;
use super::super::wire::{Fields, MAX_COUNT, Schema, Word};
use super::super::{FlowRule, ResourceRules};
use super::head::head;

pub(super) const SCHEMA: Schema = Schema {
    what: "a flow rule",
    known: &[
        "id",
        "resource",
        "mode",
        "percent",
        "limitApp",
        "clusterMode",
        "grade",
        "count",
        "statIntervalMs",
        "controlBehavior",
        "strategy",
        "maxQueueingTimeMs",
    ],
    later: &[
        "warmUpPeriodSec",
        "coldFactor",
        "refResource",
        "relationResource",
        "clusterConfig",
        "burstCount",
    ],
    instead: &[
        ("rule", "take the contents out of the dashboard's `rule: {…}`"),
        ("threshold", "write `count`"),
        ("durationInSec", "write `statIntervalMs`"),
        ("statIntervalInMs", "write `statIntervalMs`"),
        ("param", "a rule per value is a `paramFlow` rule"),
        ("paramIdx", "a rule per value is a `paramFlow` rule"),
    ],
};

const GRADES: [Word<()>; 2] = [Word::coded("qps", "1", ()), Word::later("concurrency", "0")];

const BEHAVIORS: [Word<()>; 6] = [
    Word::coded("reject", "0", ()),
    Word::later("warmUp", "1"),
    Word::later("rateLimiter", "2"),
    Word::later("throttle", "2"),
    Word::later("warmUpRateLimiter", "3"),
    Word::later("tokenBucket", "tokenBucket"),
];

const STRATEGIES: [Word<()>; 3] = [
    Word::coded("direct", "0", ()),
    Word::later("relate", "1"),
    Word::later("chain", "2"),
];

const MILLISECOND: Duration = Duration::from_millis(1);

pub(super) fn add(fields: &Fields<'_>, resource: &mut ResourceRules, report: &mut Report) -> Option<()> {
    fields.or("grade", (), report, |node, report| node.word(&GRADES, report));
    fields.or("controlBehavior", (), report, |node, report| {
        node.word(&BEHAVIORS, report)
    });
    fields.or("strategy", (), report, |node, report| {
        node.word(&STRATEGIES, report)
    });
    fields.only("maxQueueingTimeMs", &["0"], report);
    let count = fields.must("count", report, |node, report| {
        node.integer(
            0,
            MAX_COUNT,
            ": for less than one a second, raise `statIntervalMs`",
            report,
        )
    });
    let window = fields.or(
        "statIntervalMs",
        Duration::from_secs(1),
        report,
        |node, report| node.duration(Some(MILLISECOND), report),
    );
    let head = head(fields, &format!("flow:{}:default:qps", resource.resource), report);
    resource.flow.push(FlowRule {
        head: head?,
        count: count?,
        window: window?,
    });
    Some(())
}
