//! `defaults`: what resources start from, and what a request without one meets.

use std::time::Duration;

use http::{HeaderName, StatusCode};

use super::super::report::Report;
use super::super::wire::{Fields, Node, Schema, Word};
use super::super::{OnMissingParam, Unmatched};

const SCHEMA: Schema = Schema {
    what: "`defaults`",
    known: &[
        "onMissingParam",
        "unmatched",
        "timeout",
        "errorStatuses",
        "origin",
        "trustedProxies",
    ],
    later: &[],
    instead: &[],
};

const ORIGIN: Schema = Schema {
    what: "`origin`",
    known: &["header"],
    later: &[],
    instead: &[],
};

const ON_MISSING: [Word<OnMissingParam>; 3] = [
    Word::new("reject", OnMissingParam::Reject),
    Word::new("shared", OnMissingParam::Shared),
    Word::new("pass", OnMissingParam::Pass),
];

const UNMATCHED: [Word<Unmatched>; 2] = [
    Word::new("pass", Unmatched::Pass),
    Word::new("reject", Unmatched::Reject),
];

/// What `defaults` says, or its own defaults.
#[derive(Debug)]
pub(super) struct Defaults {
    pub(super) on_missing_param: OnMissingParam,
    pub(super) unmatched: Unmatched,
    pub(super) timeout: Duration,
    pub(super) error_statuses: Vec<StatusCode>,
    pub(super) origin_header: HeaderName,
}

impl Defaults {
    fn new() -> Self {
        Self {
            on_missing_param: OnMissingParam::Reject,
            unmatched: Unmatched::Pass,
            timeout: Duration::from_secs(10),
            error_statuses: vec![
                StatusCode::INTERNAL_SERVER_ERROR,
                StatusCode::BAD_GATEWAY,
                StatusCode::SERVICE_UNAVAILABLE,
                StatusCode::GATEWAY_TIMEOUT,
            ],
            origin_header: HeaderName::from_static("x-origin"),
        }
    }
}

/// Reads `defaults`; where something is wrong, it is noted and the own default stands in.
pub(super) fn defaults(node: Option<&Node>, report: &mut Report) -> Defaults {
    let mut defaults = Defaults::new();
    let Some(fields) = node.and_then(|node| Fields::new(node, &SCHEMA, report)) else {
        return defaults;
    };
    no_trusted_proxies(&fields, report);
    if let Some(read) = fields
        .get("onMissingParam")
        .and_then(|node| on_missing_param(node, report))
    {
        defaults.on_missing_param = read;
    }
    if let Some(read) = fields
        .get("unmatched")
        .and_then(|node| node.word(&UNMATCHED, report))
    {
        defaults.unmatched = read;
    }
    if let Some(read) = fields.get("timeout").and_then(|node| timeout(node, report)) {
        defaults.timeout = read;
    }
    if let Some(read) = fields
        .get("errorStatuses")
        .and_then(|node| error_statuses(node, report))
    {
        defaults.error_statuses = read;
    }
    if let Some(read) = fields.get("origin").and_then(|node| origin(node, report)) {
        defaults.origin_header = read;
    }
    defaults
}

pub(super) fn on_missing_param(node: &Node, report: &mut Report) -> Option<OnMissingParam> {
    node.word(&ON_MISSING, report)
}

/// A deadline: up to an hour, because a request holds its permit for as long.
pub(super) fn timeout(node: &Node, report: &mut Report) -> Option<Duration> {
    let span = node.duration(None, report)?;
    if span > Duration::from_secs(3_600) {
        return report.refuse(&node.place, format!("a request has at most an hour, not {node}"));
    }
    Some(span)
}

/// Statuses that count as failures of the upstream.
pub(super) fn error_statuses(node: &Node, report: &mut Report) -> Option<Vec<StatusCode>> {
    node.list(report)?
        .iter()
        .map(|item| error_status(item, report))
        .collect()
}

fn error_status(node: &Node, report: &mut Report) -> Option<StatusCode> {
    let status = node.integer(400, 599, "", report)?;
    if status == 429 {
        return report.refuse(
            &node.place,
            "a 429 is the upstream asking for less, never a failure",
        );
    }
    StatusCode::from_u16(u16::try_from(status).ok()?).ok()
}

/// A header's name, lower case as `HeaderName` keeps it.
pub(super) fn header_name(node: &Node, report: &mut Report) -> Option<HeaderName> {
    let text = node.text(report)?;
    text.parse()
        .ok()
        .or_else(|| report.refuse(&node.place, format!("`{text}` is not a header's name")))
}

fn origin(node: &Node, report: &mut Report) -> Option<HeaderName> {
    Fields::new(node, &ORIGIN, report)?.must("header", report, header_name)
}

fn no_trusted_proxies(fields: &Fields<'_>, report: &mut Report) {
    let Some(node) = fields.get("trustedProxies") else {
        return;
    };
    if node.list(report).is_some_and(|trusted| !trusted.is_empty()) {
        report.add(
            &node.place,
            "`trustedProxies` other than `[]` is not supported by this version",
        );
    }
}
