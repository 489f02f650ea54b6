//! Signed webhooks: every event, sent to one address until it has arrived.
//!
//! - **Once at least.** What was delivered and not yet written down as such when the process was killed is sent again,
//!   under the same `X-Event-Id`.
//! - **In order per account.** An account's next event is sent when the one before it was answered by 2xx, or has
//!   become a dead letter.
//! - **Everybody for himself.** An account whose event does not arrive waits ([`Rounds`]); the others go on.
//! - **Alarms.** What a reconciliation finds is sent the same way, beside the entries (`alarms`).
//! - **Never given up in silence.** After the last round an event is a dead letter: kept, counted, logged as an
//!   error, listed by `GET /v1/webhooks/dead-letters`, and sent once more when somebody asks for it.
//!
//! `deliveries` decides, `sender` sends, `kept` keeps; here is the loop between them. How far it has come is
//! written down once a second at most, in `webhooks.json` beside the ledger. Where there is none, it begins at the
//! ledger's first event.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

use self::alarms::Alarms;
use self::deliveries::{DeadLetter, Deliveries, Step};
use self::sender::Sender;
use super::cursor;
use super::events::Ending;
use super::reconciliation;
use super::view::EventJson;
use crate::Wallet;
use crate::account::Timestamp;
use crate::clock::Clock;
use crate::command::LedgerError;
use crate::jobs::reconcile::{Difference, Report};
use crate::store::Event;
use crate::wallet::Events;

mod alarms;
pub(super) mod dead_letters;
mod deliveries;
mod kept;
mod rounds;
mod sender;
mod signature;

pub use kept::{FILE, KeptError};
pub use rounds::Rounds;
pub use sender::{TRY_WITHIN, Target, TargetError};
pub use signature::{MIN_SECRET_BYTES, Secret, SecretError};

/// Tries at once, of as many accounts.
const UNDER_WAY: usize = 16;
/// Events taken in at once.
const PAGE: usize = 256;
/// Events that an account which lags reads at once.
const OWN_PAGE: usize = 64;
/// What was delivered is written down no later than this after.
const KEEP_WITHIN: Duration = Duration::from_secs(1);
/// The clock is looked at again no later than this after, should it have been set.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// What webhooks are set up with.
#[derive(Clone, Debug)]
pub struct WebhookOptions {
    pub target: Target,
    pub secret: Secret,
    /// Where it is kept how far the deliveries have come; `None` for a ledger that is not kept either.
    pub kept: Option<PathBuf>,
    pub rounds: Rounds,
    pub clock: Clock,
}

/// Why webhooks cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error(transparent)]
    Kept(#[from] KeptError),
    #[error("cannot make an HTTP client")]
    Client(#[from] reqwest::Error),
}

/// The deliveries of one ledger. Clones are one.
#[derive(Clone, Debug)]
pub struct Webhooks(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    wallet: Wallet,
    ledger: u64,
    sender: Sender,
    kept: Option<PathBuf>,
    clock: Clock,
    deliveries: Mutex<Deliveries>,
    alarms: Mutex<Alarms>,
    /// Somebody has changed what there is to do.
    asked: Notify,
    delivered: Counter,
    failed: Counter,
}

/// Something that is under way; it has told the deliveries when it is done.
type UnderWay<'a> = Pin<Box<dyn Future<Output = Result<(), LedgerError>> + Send + 'a>>;

impl Webhooks {
    /// Goes on from what was kept. Blocks while that is read.
    ///
    /// # Errors
    /// What was kept cannot be read, is damaged, or belongs to another ledger.
    pub fn new(wallet: Wallet, options: WebhookOptions) -> Result<Self, WebhookError> {
        let ledger = wallet.ledger();
        let standing = match &options.kept {
            Some(path) => kept::load(path, ledger)?,
            None => deliveries::Standing::default(),
        };
        Ok(Self(Arc::new(Shared {
            sender: Sender::new(options.target, options.secret)?,
            wallet,
            ledger,
            kept: options.kept,
            clock: options.clock,
            alarms: Mutex::new(Alarms::new(options.rounds.clone())),
            deliveries: Mutex::new(Deliveries::new(options.rounds, standing)),
            asked: Notify::new(),
            delivered: Counter::default(),
            failed: Counter::default(),
        })))
    }

    /// Delivers, until it is told to end or the ledger ends. What is under way then is finished, and kept.
    pub async fn run(&self, ending: &Ending) {
        let mut events = self.0.wallet.events(self.0.lock().head(), None);
        let mut under_way: FuturesUnordered<UnderWay<'_>> = FuturesUnordered::new();
        let mut keep_at = None;
        let mut reports = self.0.wallet.watch_reconciliation();
        // What was found before is news here.
        reports.mark_changed();
        loop {
            let now = self.0.clock.now();
            let alarm = self.0.alarms().next(now);
            if let Some(difference) = alarm {
                under_way.push(Box::pin(self.0.alarm(difference)));
            }
            while under_way.len() < UNDER_WAY
                && let Some(step) = self.0.lock().next(now)
            {
                under_way.push(Box::pin(self.0.perform(step)));
            }
            let (has_room, wake) = self.0.outlook(now);
            if self.0.lock().has_changed() {
                keep_at = keep_at.or_else(|| Instant::now().checked_add(KEEP_WITHIN));
            }
            let ended = tokio::select! {
                () = ending.come() => break,
                Some(done) = under_way.next() => done,
                read = more(&mut events), if has_room => read.map(|(page, head)| {
                    self.0.lock().take_in(page, head);
                }),
                () = changed(&mut reports) => {
                    self.0.alarms().take_in(&reports.borrow_and_update());
                    Ok(())
                }
                () = sleep(wake) => Ok(()),
                () = self.0.asked.notified() => Ok(()),
                () = until(keep_at) => {
                    keep_at = None;
                    self.0.keep().await;
                    Ok(())
                }
            };
            if let Err(error) = ended {
                tracing::warn!(%error, "webhooks end with their ledger");
                break;
            }
        }
        // Each ends by itself before long.
        while under_way.next().await.is_some() {}
        self.0.keep().await;
    }

    /// Looks again at what there is to do, for a clock that was set.
    pub fn nudge(&self) {
        self.0.asked.notify_one();
    }

    /// Tries that arrived, and tries that did not.
    pub(super) fn counters(&self) -> [(&'static str, Counter); 2] {
        let Shared {
            delivered, failed, ..
        } = &*self.0;
        [("delivered", delivered.clone()), ("failed", failed.clone())]
    }

    /// Dead letters, accounts that wait, and events that are not done with, lagging accounts' apart.
    pub(super) fn gauges(&self) -> (usize, usize, u64) {
        let newest = self.0.wallet.newest_event();
        let deliveries = self.0.lock();
        let behind = newest.saturating_sub(deliveries.done_to());
        (deliveries.dead(), deliveries.waiting(), behind)
    }

    /// At most `limit` dead letters after number `after`.
    fn dead_after(&self, after: u64, limit: usize) -> Vec<(u64, DeadLetter)> {
        self.0.lock().dead_after(after, limit)
    }

    /// Has dead letters sent once more, these or all of them: how many, or the first that is none.
    fn redeliver(&self, numbers: Option<&[u64]>) -> Result<usize, u64> {
        let asked = self.0.lock().ask_again(numbers)?;
        self.nudge();
        Ok(asked)
    }
}

impl Shared {
    /// Whoever panicked with it has left it whole: each of its methods is one step.
    fn lock(&self) -> MutexGuard<'_, Deliveries> {
        self.deliveries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn alarms(&self) -> MutexGuard<'_, Alarms> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a difference.
    async fn alarm(&self, difference: Difference) -> Result<(), LedgerError> {
        let id = reconciliation::event_id(&difference);
        let result = self.post(&id, reconciliation::event(&difference)).await;
        self.alarms().sent(difference.id, result, self.clock.now());
        Ok(())
    }

    /// Whether more events may come in, and how long there is nothing to do.
    fn outlook(&self, now: Timestamp) -> (bool, Duration) {
        let alarm_at = self.alarms().next_at();
        let deliveries = self.lock();
        let next_at = deliveries.next_at().into_iter().chain(alarm_at).min();
        let wait = next_at.map_or(LOOK_AGAIN, |at| {
            let micros = u64::try_from(at.0.saturating_sub(now.0)).unwrap_or(0);
            Duration::from_micros(micros).clamp(Duration::from_millis(1), LOOK_AGAIN)
        });
        (deliveries.has_room(), wait)
    }

    /// # Errors
    /// The ledger ended.
    async fn perform(&self, step: Step) -> Result<(), LedgerError> {
        match step {
            Step::Send(event) => {
                let result = self.attempt(&event).await;
                self.lock().sent(&event, result, self.clock.now());
            }
            Step::Read { account, after } => {
                let mut own = self.wallet.events(after, Some(account.clone()));
                let page = own.read(OWN_PAGE).await?;
                self.lock().read(&account, page, own.number());
            }
            Step::Resend { account, number } => {
                let mut own = self.wallet.events(number.saturating_sub(1), Some(account));
                let page = own.read(1).await?;
                let result = match page.first().filter(|event| event.number == number) {
                    Some(event) => self.attempt(event).await,
                    None => Err("the ledger has no such event of this account".to_owned()),
                };
                self.lock().resent(number, result, self.clock.now());
            }
        }
        Ok(())
    }

    async fn attempt(&self, event: &Event) -> Result<(), String> {
        let id = cursor::encode_event(self.ledger, event.number);
        // Into memory, from plain structs of numbers and strings: nothing in it can fail to be written.
        let body = serde_json::to_string(&EventJson::from(&event.entry)).unwrap_or_default();
        self.post(&id, body).await
    }

    async fn post(&self, id: &str, body: String) -> Result<(), String> {
        let result = self.sender.send(id, body, self.clock.now()).await;
        match &result {
            Ok(()) => self.delivered.inc(),
            Err(reason) => {
                tracing::debug!(id, reason, "an event did not arrive");
                self.failed.inc()
            }
        };
        result
    }

    /// Writes down how far it has come, if that has changed.
    async fn keep(&self) {
        let Some(standing) = self.lock().standing() else {
            return;
        };
        let Some(path) = self.kept.clone() else {
            return;
        };
        let ledger = self.ledger;
        let saved = tokio::task::spawn_blocking(move || kept::save(&path, ledger, &standing)).await;
        let error = match saved {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(error, "how far the webhooks have come could not be written down");
        self.lock().not_kept();
    }
}

/// The next events of all accounts, however long that takes, and where they end.
async fn more(events: &mut Events) -> Result<(Vec<Event>, u64), LedgerError> {
    events.wait().await?;
    let page = events.read(PAGE).await?;
    Ok((page, events.number()))
}

/// Waits for a reconciliation to end; with the ledger gone, for ever.
async fn changed(reports: &mut watch::Receiver<Arc<Report>>) {
    if reports.changed().await.is_err() {
        std::future::pending().await
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
