//! `resources`: what is protected, where its requests are found and how they are answered.

use super::super::report::Report;
use super::super::wire::{Fields, Node, Schema};
use super::super::{OnBlock, Resource, ResourceRules};
use super::answer::{answer, on_block};
use super::defaults::{Defaults, error_statuses, on_missing_param, timeout};
use super::routes::{Routes, routes};

const SCHEMA: Schema = Schema {
    what: "a resource",
    known: &[
        "name",
        "match",
        "params",
        "onMissingParam",
        "timeout",
        "abandonAfter",
        "maxJsonBody",
        "errorStatuses",
        "onBlock",
        "fallback",
    ],
    later: &["priority", "upstream", "retry"],
    instead: &[
        ("path", "write it under `match`"),
        ("method", "write it under `match`"),
        ("resource", "write `name`"),
        (
            "paramFlow",
            "rules stand in a list of their own, beside `resources`, and name the resource",
        ),
        (
            "flow",
            "rules stand in a list of their own, beside `resources`, and name the resource",
        ),
        (
            "isolation",
            "rules stand in a list of their own, beside `resources`, and name the resource",
        ),
        (
            "degrade",
            "rules stand in a list of their own, beside `resources`, and name the resource",
        ),
    ],
};

/// How often `timeout` fits into `abandonAfter` where that is not given.
const ABANDON_FACTOR: u32 = 5;

/// The wallet's own limit for all bodies but batches.
const DEFAULT_JSON_BODY: usize = 64 << 10;

/// A body that is read for a parameter stays in memory while the request is judged.
const MAX_JSON_BODY: usize = 16 << 20;

/// A resource without its rules.
pub(super) fn resource(node: &Node, defaults: &Defaults, report: &mut Report) -> Option<ResourceRules> {
    let fields = Fields::new(node, &SCHEMA, report)?;
    let name = fields.must("name", report, Node::name);
    let routes = routes(&fields, defaults, report);
    let on_missing = fields.or(
        "onMissingParam",
        defaults.on_missing_param,
        report,
        on_missing_param,
    );
    let deadline = fields.or("timeout", defaults.timeout, report, timeout);
    let abandon_after = fields.or("abandonAfter", None, report, |node, report| {
        node.duration(None, report).map(Some)
    });
    let max_json_body = fields.or("maxJsonBody", DEFAULT_JSON_BODY, report, |node, report| {
        node.size(MAX_JSON_BODY, report)
    });
    let statuses = fields.or(
        "errorStatuses",
        defaults.error_statuses.clone(),
        report,
        error_statuses,
    );
    let on_block = fields.or("onBlock", OnBlock::Problem, report, on_block);
    let fallback = fields.or("fallback", None, report, |node, report| {
        answer(node, report).map(Some)
    });
    let deadline = deadline?;
    let abandon_after = abandon_after?.unwrap_or(deadline.saturating_mul(ABANDON_FACTOR));
    if abandon_after < deadline {
        let place = fields
            .get("abandonAfter")
            .map_or(fields.place, |node| &node.place);
        return report.refuse(place, "`abandonAfter` is shorter than `timeout`");
    }
    let Routes { params, routes } = routes?;
    Some(ResourceRules {
        resource: Resource::new(name?),
        place: fields.place.clone(),
        params,
        routes,
        on_missing_param: on_missing?,
        timeout: deadline,
        abandon_after,
        max_json_body: max_json_body?,
        error_statuses: statuses?,
        on_block: on_block?,
        fallback: fallback?,
        param_flow: Vec::new(),
        flow: Vec::new(),
        isolation: Vec::new(),
        degrade: Vec::new(),
    })
}
