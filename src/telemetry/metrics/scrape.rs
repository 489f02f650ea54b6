//! One scrape: what the counters, admission and the rule store say now, as OpenMetrics text.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::admission::{Admission, BlockKind, BreakerPhase, ResourceSnapshot};
use crate::rules::Mode;
use crate::rules::watch::RuleStore;
use crate::telemetry::Telemetry;

/// Content type of [`Scrape::text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Renders every metric of the process.
pub struct Scrape {
    registry: Registry,
    telemetry: Arc<Telemetry>,
}

impl fmt::Debug for Scrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scrape").finish_non_exhaustive()
    }
}

impl Scrape {
    /// Ties the counters to the two that are asked at each scrape.
    #[must_use]
    pub fn new(telemetry: Arc<Telemetry>, admission: Arc<Admission>, store: Arc<RuleStore>) -> Self {
        let mut registry = Registry::with_prefix("sluice");
        let metrics = &telemetry.metrics;
        registry.register(
            "request_duration_seconds",
            "Arrival of the head to the last byte of the answer",
            metrics.request_duration.clone(),
        );
        registry.register(
            "upstream_duration_seconds",
            "Sending to the head of the upstream's answer",
            metrics.upstream_duration.clone(),
        );
        registry.register(
            "unmatched",
            "Requests that no resource matched",
            metrics.unmatched_total.clone(),
        );
        registry.register(
            "abandoned",
            "Writes whose permit fell at abandonAfter while the upstream still worked",
            metrics.abandoned.clone(),
        );
        registry.register(
            "connections",
            "Client connections that are open",
            metrics.connections.clone(),
        );
        let asked = Asked {
            telemetry: Arc::clone(&telemetry),
            admission,
            store,
        };
        registry.register_collector(Box::new(asked));
        Self { registry, telemetry }
    }

    /// The text of one scrape.
    ///
    /// # Errors
    /// None that is known: writing to a string does not fail.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::with_capacity(8 * 1024);
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }

    /// The counters it renders.
    #[must_use]
    pub const fn telemetry(&self) -> &Arc<Telemetry> {
        &self.telemetry
    }
}

/// What is read at the scrape instead of being counted twice.
#[derive(Debug)]
struct Asked {
    telemetry: Arc<Telemetry>,
    admission: Arc<Admission>,
    store: Arc<RuleStore>,
}

impl Collector for Asked {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let resources = self.admission.snapshot(self.telemetry.clock.now());
        self.requests(&mut encoder)?;
        self.blocked(&mut encoder, &resources)?;
        in_flight(&mut encoder, &resources)?;
        breakers(&mut encoder, &resources)?;
        keys(&mut encoder, &resources)?;
        self.rules(&mut encoder)?;
        self.process(&mut encoder)
    }
}

/// One series of a family: its labels and its value.
type Series<'a> = (Vec<(&'static str, &'a str)>, u64);

fn counters<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    series: impl IntoIterator<Item = Series<'a>>,
) -> Result<(), fmt::Error> {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in series {
        family
            .encode_family(&labels)?
            .encode_counter::<NoLabelSet, u64, f64>(&value, None)?;
    }
    Ok(())
}

fn gauges<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    series: impl IntoIterator<Item = Series<'a>>,
) -> Result<(), fmt::Error> {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in series {
        family.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}

impl Asked {
    fn requests(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let meters = self.telemetry.metrics.all();
        let rows: Vec<_> = meters
            .iter()
            .flat_map(|meter| meter.by_code().map(move |(code, count)| (meter, code, count)))
            .collect();
        let series = rows.iter().map(|(meter, code, count)| {
            (
                vec![("resource", meter.resource().as_str()), ("code", code.as_str())],
                *count,
            )
        });
        counters(
            encoder,
            "requests",
            "Answers by final status, refusals included",
            series,
        )
    }

    fn blocked(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        resources: &[ResourceSnapshot],
    ) -> Result<(), fmt::Error> {
        let labels = |resource, kind, rule, mode| {
            vec![
                ("resource", resource),
                ("type", kind),
                ("rule", rule),
                ("mode", mode),
            ]
        };
        let by_rule = resources.iter().flat_map(|each| {
            each.rules.iter().flat_map(move |rule| {
                let mode = match rule.mode {
                    Mode::Enforce => "enforce",
                    Mode::Shadow => "shadow",
                };
                let series = move |kind: BlockKind, count| {
                    (
                        labels(each.resource.as_str(), kind.name(), rule.id.as_str(), mode),
                        count,
                    )
                };
                let lacking = (rule.lacking > 0).then(|| series(BlockKind::MissingParam, rule.lacking));
                std::iter::once(series(rule.kind, rule.blocked)).chain(lacking)
            })
        });
        let meters = self.telemetry.metrics.all();
        let own = meters.iter().flat_map(|meter| {
            meter
                .by_refusal()
                .map(move |(code, count)| (labels(meter.resource().as_str(), code, "", "enforce"), count))
        });
        counters(encoder, "blocked", "Refusals by rule", by_rule.chain(own))
    }

    fn rules(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let reloads = self.store.reloads();
        let results = [("ok", reloads.ok), ("failed", reloads.failed)];
        let series = results.map(|(result, count)| (vec![("result", result)], count));
        counters(encoder, "rules_reloads", "Rule loads, the first included", series)?;
        let ok = u64::from(self.store.status().ok);
        let mut gauge = encoder.encode_descriptor(
            "rules_ok",
            "1 while the rule files in the folder are in force",
            None,
            MetricType::Gauge,
        )?;
        gauge.encode_gauge(&ok)
    }

    fn process(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let metrics = &self.telemetry.metrics;
        let connects = [
            ("ok", metrics.connects_ok.get()),
            ("failed", metrics.connects_failed.get()),
        ];
        let series = connects.map(|(result, count)| (vec![("result", result)], count));
        counters(
            encoder,
            "upstream_connects",
            "Connections to the upstream",
            series,
        )?;
        let dropped = self.telemetry.access.dropped();
        let mut counter = encoder.encode_descriptor(
            "access_log_dropped",
            "Access log lines that the writer could not keep up with",
            None,
            MetricType::Counter,
        )?;
        counter.encode_counter::<NoLabelSet, u64, f64>(&dropped, None)?;
        let version = vec![("version", env!("CARGO_PKG_VERSION"))];
        gauges(encoder, "build_info", "The version that runs", [(version, 1)])
    }
}

fn in_flight(encoder: &mut DescriptorEncoder<'_>, resources: &[ResourceSnapshot]) -> Result<(), fmt::Error> {
    let series = resources.iter().map(|each| {
        (
            vec![("resource", each.resource.as_str())],
            u64::from(each.in_flight),
        )
    });
    gauges(encoder, "in_flight", "Requests that hold a permit", series)
}

fn breakers(encoder: &mut DescriptorEncoder<'_>, resources: &[ResourceSnapshot]) -> Result<(), fmt::Error> {
    let series = resources.iter().flat_map(|each| {
        each.breakers.iter().map(move |breaker| {
            let state = match breaker.state {
                BreakerPhase::Closed => 0,
                BreakerPhase::HalfOpen => 1,
                BreakerPhase::Open => 2,
            };
            (
                vec![
                    ("resource", each.resource.as_str()),
                    ("rule", breaker.id.as_str()),
                ],
                state,
            )
        })
    });
    gauges(encoder, "breaker_state", "0 closed, 1 half-open, 2 open", series)
}

fn keys(encoder: &mut DescriptorEncoder<'_>, resources: &[ResourceSnapshot]) -> Result<(), fmt::Error> {
    // Only rules on a parameter track values.
    let rules = || {
        resources
            .iter()
            .flat_map(|each| &each.rules)
            .filter(|rule| rule.kind == BlockKind::ParamFlow)
    };
    let tracked = rules().map(|rule| {
        (
            vec![("rule", rule.id.as_str())],
            u64::try_from(rule.keys).unwrap_or(u64::MAX),
        )
    });
    gauges(encoder, "keys", "Values tracked one by one", tracked)?;
    let overflow = rules().map(|rule| (vec![("rule", rule.id.as_str())], rule.overflow));
    counters(
        encoder,
        "overflow",
        "Meetings with a shared overflow window",
        overflow,
    )
}
