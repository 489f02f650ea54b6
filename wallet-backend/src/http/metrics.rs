//! What `/metrics` shows: OpenMetrics text. Labels come from closed sets, so the number of series is bounded.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::error::{Code, Problem};
use crate::Wallet;
use crate::combiner::Observed;
use crate::command::{Decided, LedgerError, Operation, Outcome};
use crate::http::reconciliation;
use crate::http::webhooks::Webhooks;

/// The content type of [`Metrics::encode`].
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What an operation was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationType {
    Open,
    Credit,
    Debit,
    Hold,
    Capture,
    Release,
    Transfer,
    Reversal,
    Amend,
    Abandon,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationResult {
    /// Done now, for the first time.
    Done,
    /// Answered from what was stored earlier.
    Replayed,
    /// Refused or failed now.
    Problem(Code),
}

impl OperationType {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Credit => "credit",
            Self::Debit => "debit",
            Self::Hold => "hold",
            Self::Capture => "capture",
            Self::Release => "release",
            Self::Transfer => "transfer",
            Self::Reversal => "reversal",
            Self::Amend => "amend",
            Self::Abandon => "abandon",
        }
    }
}

impl From<&Operation> for OperationType {
    fn from(operation: &Operation) -> Self {
        match operation {
            Operation::Credit { .. } => Self::Credit,
            Operation::Debit { .. } => Self::Debit,
            Operation::Hold { .. } => Self::Hold,
            Operation::Capture { .. } => Self::Capture,
            Operation::Release { .. } => Self::Release,
            Operation::Transfer { .. } => Self::Transfer,
            Operation::Reversal { .. } => Self::Reversal,
            Operation::Amend(_) => Self::Amend,
        }
    }
}

impl From<&Result<Decided, LedgerError>> for OperationResult {
    fn from(result: &Result<Decided, LedgerError>) -> Self {
        match result {
            Ok(Decided { replayed: true, .. }) => Self::Replayed,
            Ok(Decided { outcome, .. }) => match outcome {
                Outcome::Posted(_) | Outcome::Amended(_) => Self::Done,
                Outcome::Refused(refusal) => Self::Problem(Problem::from(refusal).code()),
            },
            Err(error) => Self::Problem(Problem::from(error.clone()).code()),
        }
    }
}

impl OperationResult {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Replayed => "replayed",
            Self::Problem(code) => code.as_str(),
        }
    }
}

type Labels = [(&'static str, &'static str); 2];

/// The metrics of one router.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    operations: Family<Labels, Counter>,
    pending: Gauge,
    queued: Gauge,
    event_streams: Gauge,
    reconciliation: reconciliation::Gauges,
    webhooks: Option<WebhookGauges>,
}

/// How the webhooks are, at a scrape.
#[derive(Debug)]
struct WebhookGauges {
    dead_letters: Gauge,
    waiting: Gauge,
    behind: Gauge,
}

impl WebhookGauges {
    fn of(webhooks: &Webhooks, registry: &mut Registry) -> Self {
        for (result, counter) in webhooks.counters() {
            let labelled = registry.sub_registry_with_label(("result".into(), result.into()));
            labelled.register("wallet_webhook_tries", "Tries to deliver an event", counter);
        }
        let gauges = Self {
            dead_letters: Gauge::default(),
            waiting: Gauge::default(),
            behind: Gauge::default(),
        };
        for (name, help, gauge) in [
            (
                "wallet_webhook_dead_letters",
                "Events that were given up after their last round",
                &gauges.dead_letters,
            ),
            (
                "wallet_webhook_waiting_accounts",
                "Accounts whose next event did not arrive and is tried again later",
                &gauges.waiting,
            ),
            (
                "wallet_webhook_behind",
                "Events since the first that is not done with, those of waiting accounts apart",
                &gauges.behind,
            ),
        ] {
            registry.register(name, help, gauge.clone());
        }
        gauges
    }
}

impl Metrics {
    /// Listens to the wallet's batches. A wallet has one listener: of several routers over one wallet the first
    /// shows commits and batches.
    pub(super) fn of(wallet: &Wallet, webhooks: Option<&Webhooks>) -> Self {
        let mut registry = Registry::default();
        let operations = Family::<Labels, Counter>::default();
        registry.register(
            "wallet_operations",
            "Operations that reached the wallet, by type and result: done, replayed, or a problem's code",
            operations.clone(),
        );
        // 100 us to 3 s: from a sync on flash to a disk in trouble.
        let commit = Histogram::new(exponential_buckets(0.0001, 2.0, 16));
        registry.register(
            "wallet_commit_seconds",
            "Seconds from handing a batch to the store until its last answer is durable",
            commit.clone(),
        );
        let batch = Histogram::new(exponential_buckets(1.0, 2.0, 13));
        registry.register("wallet_batch_size", "Commands in a batch", batch.clone());
        let pending = Gauge::default();
        registry.register(
            "wallet_pending",
            "Credits that were accepted and have not reached a slot yet",
            pending.clone(),
        );
        let queued = Gauge::default();
        registry.register("wallet_queued", "Commands that wait for a batch", queued.clone());
        let event_streams = Gauge::default();
        registry.register(
            "wallet_event_streams",
            "Clients that are being sent events",
            event_streams.clone(),
        );
        wallet.observe(move |observed| match observed {
            Observed::Batch { jobs } => {
                batch.observe(u32::try_from(jobs).unwrap_or(u32::MAX).into());
            }
            Observed::Committed { took } => commit.observe(took.as_secs_f64()),
        });
        Self {
            operations,
            pending,
            queued,
            event_streams,
            reconciliation: reconciliation::Gauges::register(&mut registry),
            webhooks: webhooks.map(|webhooks| WebhookGauges::of(webhooks, &mut registry)),
            registry,
        }
    }

    /// Counts many at once. There are few kinds of them.
    pub(super) fn count_all(&self, operations: impl Iterator<Item = (OperationType, OperationResult)>) {
        let mut counts: Vec<((OperationType, OperationResult), u64)> = Vec::new();
        for operation in operations {
            match counts.iter_mut().find(|(known, _)| *known == operation) {
                Some((_, count)) => *count = count.saturating_add(1),
                None => counts.push((operation, 1)),
            }
        }
        for ((operation, result), count) in counts {
            self.operations
                .get_or_create(&[("type", operation.as_str()), ("result", result.as_str())])
                .inc_by(count);
        }
    }

    pub(super) fn count(&self, operation: OperationType, result: OperationResult) {
        self.operations
            .get_or_create(&[("type", operation.as_str()), ("result", result.as_str())])
            .inc();
    }

    /// The text of a scrape. What could not be counted stays as it was.
    pub(super) fn encode(
        &self,
        wallet: &Wallet,
        pending: Option<u64>,
        event_streams: usize,
        webhooks: Option<&Webhooks>,
    ) -> String {
        let gauge = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        if let Some(pending) = pending {
            self.pending.set(gauge(pending));
        }
        let of = |count: usize| gauge(u64::try_from(count).unwrap_or(u64::MAX));
        self.queued.set(of(wallet.queued()));
        self.event_streams.set(of(event_streams));
        self.reconciliation.set(&wallet.reconciliation());
        if let Some((gauges, webhooks)) = self.webhooks.as_ref().zip(webhooks) {
            let (dead, waiting, behind) = webhooks.gauges();
            gauges.dead_letters.set(of(dead));
            gauges.waiting.set(of(waiting));
            gauges.behind.set(gauge(behind));
        }
        let mut text = String::new();
        match prometheus_client::encoding::text::encode(&mut text, &self.registry) {
            Ok(()) => text,
            // Writing to a String cannot fail; should an encoder ever, an empty scrape shows as a gap.
            Err(_) => String::new(),
        }
    }
}
