//! `/api/resources`: what each resource did since the start, and does now.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::Shared;
use crate::admission::{BreakerPhase, BreakerSnapshot, ResourceSnapshot};
use crate::clock::{Tick, wall_time_before};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceView {
    name: String,
    pass: u64,
    /// By code; codes that never refused are left out.
    block: BTreeMap<&'static str, u64>,
    exceptions: u64,
    rt_ms: Option<f64>,
    in_flight: u32,
    queued: u32,
    breakers: Vec<BreakerView>,
    keys: BTreeMap<String, usize>,
}

#[derive(Debug, Serialize)]
struct BreakerView {
    id: String,
    state: &'static str,
    since: String,
}

pub(super) async fn list(State(shared): State<Shared>) -> Json<Vec<ResourceView>> {
    let now = shared.proxy.telemetry.clock.now();
    let resources = shared.proxy.admission.snapshot(now);
    Json(
        resources
            .iter()
            .map(|each| ResourceView::new(each, now))
            .collect(),
    )
}

impl ResourceView {
    fn new(resource: &ResourceSnapshot, now: Tick) -> Self {
        Self {
            name: resource.resource.to_string(),
            pass: resource.pass,
            block: resource
                .block
                .iter()
                .filter(|(_, count)| *count > 0)
                .map(|(kind, count)| (kind.name(), *count))
                .collect(),
            exceptions: resource.exceptions,
            rt_ms: resource.rt.map(|rt| rt.as_secs_f64() * 1e3),
            in_flight: resource.in_flight,
            // Nothing waits: every rule of this version decides at once.
            queued: 0,
            breakers: resource
                .breakers
                .iter()
                .map(|breaker| BreakerView::new(breaker, now))
                .collect(),
            keys: resource
                .rules
                .iter()
                .filter(|rule| rule.keys > 0)
                .map(|rule| (rule.id.to_string(), rule.keys))
                .collect(),
        }
    }
}

impl BreakerView {
    fn new(breaker: &BreakerSnapshot, now: Tick) -> Self {
        Self {
            id: breaker.id.to_string(),
            state: match breaker.state {
                BreakerPhase::Closed => "closed",
                BreakerPhase::HalfOpen => "half_open",
                BreakerPhase::Open => "open",
            },
            since: wall_time_before(now.since(breaker.since)),
        }
    }
}
