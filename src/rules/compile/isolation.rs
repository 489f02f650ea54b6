//! `isolation`: sentinel-golang's `isolation.Rule`, requests under way at once, without a queue.

use super::super::report::Report;
use super::super::wire::{Fields, MAX_COUNT, Schema};
use super::super::{IsolationRule, ResourceRules};
use super::head::head;

pub(super) const SCHEMA: Schema = Schema {
    what: "an isolation rule",
    known: &[
        "id",
        "resource",
        "mode",
        "percent",
        "limitApp",
        "clusterMode",
        "maxConcurrentRequests",
        "maxQueueingTimeMs",
        "maxQueueLength",
    ],
    later: &["param", "paramIdx", "clusterConfig"],
    instead: &[
        ("rule", "take the contents out of the dashboard's `rule: {…}`"),
        ("threshold", "write `maxConcurrentRequests`"),
        ("count", "write `maxConcurrentRequests`"),
        ("maxConcurrent", "write `maxConcurrentRequests`"),
        (
            "metricType",
            "an isolation rule counts requests under way; leave it out",
        ),
        (
            "grade",
            "an isolation rule counts requests under way; leave it out",
        ),
    ],
};

/// `maxQueueLength` has no effect while nobody queues (`maxQueueingTimeMs: 0`, the only value there is), so it may stand.
pub(super) fn add(fields: &Fields<'_>, resource: &mut ResourceRules, report: &mut Report) -> Option<()> {
    fields.only("maxQueueingTimeMs", &["0"], report);
    fields.or("maxQueueLength", 0, report, |node, report| {
        node.integer(0, MAX_COUNT, "", report)
    });
    let max_concurrent = fields.must("maxConcurrentRequests", report, |node, report| {
        node.integer(0, u64::from(u32::MAX), "", report)
    });
    let head = head(
        fields,
        &format!("isolation:{}:default:concurrency", resource.resource),
        report,
    );
    resource.isolation.push(IsolationRule {
        head: head?,
        max_concurrent: u32::try_from(max_concurrent?).ok()?,
    });
    Some(())
}
