//! `/api/rules`: the rules in force, with every default filled in, and where each was written.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::Shared;
use crate::rules::{
    DegradeRule, FlowRule, IsolationRule, Mode, OnMissingParam, ParamFlowRule, Place, ResourceRules,
    RuleHead, RuleSet, Shaping, Trip, Unmatched,
};

pub(super) async fn list(State(shared): State<Shared>) -> Json<Value> {
    Json(view(&shared.proxy.store.snapshot()))
}

fn view(set: &RuleSet) -> Value {
    json!({
        "generation": set.generation,
        "files": set.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
        "unmatched": match set.unmatched { Unmatched::Pass => "pass", Unmatched::Reject => "reject" },
        "originHeader": set.origin_header.as_str(),
        "timeoutMs": set.default_timeout.as_millis(),
        "resources": set.resources.iter().map(|each| resource(each)).collect::<Vec<_>>(),
    })
}

fn resource(resource: &ResourceRules) -> Value {
    let params: Vec<_> = resource.params.iter().map(|name| name.as_str()).collect();
    let param_flow = resource
        .param_flow
        .iter()
        .map(|rule| self::param_flow(rule, resource));
    let rules: Vec<_> = param_flow
        .chain(resource.flow.iter().map(flow))
        .chain(resource.isolation.iter().map(isolation))
        .chain(resource.degrade.iter().map(degrade))
        .collect();
    json!({
        "name": resource.resource.as_str(),
        "file": file(&resource.place),
        "line": resource.place.line,
        "match": resource.routes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "params": params,
        "onMissingParam": match resource.on_missing_param {
            OnMissingParam::Reject => "reject",
            OnMissingParam::Shared => "shared",
            OnMissingParam::Pass => "pass",
        },
        "timeoutMs": resource.timeout.as_millis(),
        "abandonAfterMs": resource.abandon_after.as_millis(),
        "maxJsonBody": resource.max_json_body,
        "errorStatuses": resource.error_statuses.iter().map(|status| status.as_u16()).collect::<Vec<_>>(),
        "rules": rules,
    })
}

/// What every rule has, with `fields` of its own.
fn rule(kind: &str, head: &RuleHead, fields: Value) -> Value {
    let mut rule = json!({
        "type": kind,
        "id": head.id.as_str(),
        "mode": match head.mode { Mode::Enforce => "enforce", Mode::Shadow => "shadow" },
        "percent": head.percent,
        "file": file(&head.place),
        "line": head.place.line,
    });
    if let (Some(rule), Value::Object(fields)) = (rule.as_object_mut(), fields) {
        rule.extend(fields);
    }
    rule
}

fn param_flow(each: &ParamFlowRule, resource: &ResourceRules) -> Value {
    let items: Vec<_> = each
        .items
        .iter()
        .map(|(object, count)| json!({ "object": object, "count": count }))
        .collect();
    let fields = json!({
        "param": resource.params.get(each.param).map(|name| name.as_str()),
        "grade": "qps",
        "count": each.count,
        "burstCount": each.burst,
        "durationInSec": each.window.as_secs_f64(),
        "controlBehavior": match each.shaping { Shaping::Reject => "reject", Shaping::TokenBucket => "tokenBucket" },
        "maxKeys": each.max_keys,
        "paramFlowItemList": items,
    });
    rule("param_flow", &each.head, fields)
}

fn flow(each: &FlowRule) -> Value {
    let fields = json!({ "grade": "qps", "count": each.count, "statIntervalMs": each.window.as_millis(), "controlBehavior": "reject" });
    rule("flow", &each.head, fields)
}

fn isolation(each: &IsolationRule) -> Value {
    rule(
        "isolation",
        &each.head,
        json!({ "maxConcurrentRequests": each.max_concurrent }),
    )
}

fn degrade(each: &DegradeRule) -> Value {
    let (grade, count) = match each.trip {
        Trip::ExceptionRatio(ratio) => ("exceptionRatio", ratio),
    };
    let fields = json!({
        "grade": grade,
        "count": count,
        "timeWindow": each.open_for.as_secs_f64(),
        "minRequestAmount": each.min_requests,
        "statIntervalMs": each.window.as_millis(),
    });
    rule("degrade", &each.head, fields)
}

fn file(place: &Place) -> String {
    place.file.display().to_string()
}
