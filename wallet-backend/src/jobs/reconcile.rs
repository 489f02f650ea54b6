//! Holds what the store has in memory against what it has written, for as long as it runs.
//!
//! Every [`EVERY`] the entries since the last time, and the accounts that have them; every [`EVERYTHING_EVERY`] every
//! account from its first entry on; every [`GENERAL_LEDGER_EVERY`] that and the books of every currency: what came in
//! from outside less what went out is what the accounts have in slots, held and pending. The first run of a process
//! looks at everything.
//!
//! **Never a false alarm**: rows and entries are compared at one cut, each account's own, with deciding going on
//! meanwhile. Rows are read with the number of the newest entry that they have seen, and the entries are read up to
//! that; totals are brought to one place of the log ([`Store::general_ledger`]). Deciding is held up for the rows of
//! one account at a time, and nothing is kept in memory but a page of entries and the accounts of one piece.
//!
//! **Nothing is mended here.** A [`Difference`] is logged, counted, listed, and sent to whoever listens, until a run
//! that would find it again does not.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use self::prove::Prover;
use self::report::Found;
use crate::account::Timestamp;
use crate::clock::Clock;
use crate::combiner::Queue;
use crate::command::LedgerError;
use crate::store::duty::Duty;
use crate::store::{EventCursor, GeneralLedger, Store};

mod prove;
mod report;

pub use report::{Difference, MOST_DIFFERENCES, Pass, Report, Run, Subject};

/// How often what has changed is looked at.
pub const EVERY: Duration = Duration::from_secs(5 * 60);
const HALF: Duration = Duration::from_secs(EVERY.as_secs() / 2);
/// How often every account is.
pub const EVERYTHING_EVERY: Duration = Duration::from_secs(60 * 60);
/// How often the general ledger is.
pub const GENERAL_LEDGER_EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// Differences of one run that are logged one by one.
const LOGGED: usize = 20;

/// What reconciling has found, and where it goes on. Clones are one.
#[derive(Clone, Debug)]
pub struct Reconciler(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    clock: Clock,
    /// One run at a time.
    turn: Semaphore,
    progress: Mutex<Progress>,
    report: watch::Sender<Arc<Report>>,
}

/// What is proven already.
#[derive(Clone, Debug)]
struct Progress {
    seen: EventCursor,
    books: GeneralLedger,
}

/// Runs what is due every [`EVERY`], until dropped. Of several processes on one ledger one does it, and reports; another
/// once that is gone.
pub async fn run<S: Store>(queue: Queue<S>, reconciler: Reconciler) -> Infallible {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is now, when whoever starts the store has better use for the machine.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        // What goes wrong is in the report, and tried again with the next tick.
        drop(reconciler.in_turn(&queue).await);
    }
}

/// What to do now.
fn due(report: &Report, now: Timestamp) -> Pass {
    let over = |pass: Pass, every: Duration| {
        let last = report.run(pass).filter(|run| run.outcome.is_ok())?;
        let since = u64::try_from(now.0.saturating_sub(last.at.0)).unwrap_or(0);
        // Half a round early is better than one late: a tick is never quite on time.
        Some(Duration::from_micros(since).saturating_add(HALF) >= every)
    };
    let general = over(Pass::GeneralLedger, GENERAL_LEDGER_EVERY).unwrap_or(true);
    // The general ledger looks at every account too.
    let lately = over(Pass::GeneralLedger, EVERYTHING_EVERY).unwrap_or(true);
    let everything = over(Pass::Everything, EVERYTHING_EVERY).unwrap_or(true);
    match (general, lately && everything) {
        (true, _) => Pass::GeneralLedger,
        (false, true) => Pass::Everything,
        (false, false) => Pass::Changed,
    }
}

impl Reconciler {
    /// Nothing is known yet; [`Pass::Changed`] begins after event `newest`.
    #[must_use]
    pub fn new(clock: Clock, newest: u64) -> Self {
        let progress = Progress {
            seen: newest.into(),
            books: GeneralLedger::default(),
        };
        Self(Arc::new(Shared {
            clock,
            turn: Semaphore::new(1),
            progress: Mutex::new(progress),
            report: watch::Sender::default(),
        }))
    }

    /// What is known now.
    #[must_use]
    pub fn report(&self) -> Arc<Report> {
        Arc::clone(&self.0.report.borrow())
    }

    /// Hears of every run that ends.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<Report>> {
        self.0.report.subscribe()
    }

    /// Runs what is due, where it is this process' turn.
    ///
    /// # Errors
    /// As [`Reconciler::once`].
    pub async fn in_turn<S: Store>(&self, queue: &Queue<S>) -> Result<Option<Run>, LedgerError> {
        match queue.claim(Duty::Reconcile).await {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(None),
            Err(error) => {
                tracing::warn!(%error, "whose turn it is to reconcile is not known");
                return Err(error);
            }
        }
        let pass = due(&self.report(), self.0.clock.now());
        self.once(queue, pass).await.map(Some)
    }

    /// Runs a pass now, after one that is under way. Dropped half-way it has found nothing.
    ///
    /// # Errors
    /// What kept it from its end; the report says so too, and has what was found until then.
    pub async fn once<S: Store>(&self, queue: &Queue<S>, pass: Pass) -> Result<Run, LedgerError> {
        // Never closed.
        let _turn = self.0.turn.acquire().await;
        let started = Instant::now();
        let mut prover = Prover {
            queue,
            now: self.0.clock.now(),
            found: Found::default(),
        };
        let ended = self.prove(&mut prover, pass).await;
        let found = prover.found;
        let run = Run {
            pass,
            at: self.0.clock.now(),
            took: started.elapsed(),
            accounts: found.accounts,
            entries: found.entries,
            outcome: match &ended {
                Ok(()) => Ok(found.count()),
                Err(error) => Err(error.to_string()),
            },
        };
        self.publish(run.clone(), found);
        ended.map(|()| run)
    }

    async fn prove<S: Store>(&self, prover: &mut Prover<'_, S>, pass: Pass) -> Result<(), LedgerError> {
        let mut progress = self.progress().clone();
        match pass {
            Pass::Changed => progress.seen = prover.changed(progress.seen).await?,
            Pass::Everything | Pass::GeneralLedger => {
                // All that is there now is looked at below.
                let newest = prover.queue.newest_event().into();
                prover.everything().await?;
                progress.seen = newest;
                if pass == Pass::GeneralLedger {
                    progress.books = prover.general_ledger(progress.books).await?;
                }
            }
        }
        *self.progress() = progress;
        Ok(())
    }

    fn publish(&self, run: Run, found: Found) {
        let pass = run.pass.as_str();
        match &run.outcome {
            Ok(differences) => tracing::info!(
                pass,
                accounts = run.accounts,
                entries = run.entries,
                differences,
                took_ms = u64::try_from(run.took.as_millis()).unwrap_or(u64::MAX),
                "reconciled"
            ),
            Err(error) => tracing::warn!(pass, error, "a reconciliation broke off"),
        }
        let (report, news) = self.0.report.borrow().after(run, found);
        for difference in news.iter().take(LOGGED) {
            tracing::error!(id = difference.id, "the books differ: {difference}");
        }
        if let Some(more) = news.len().checked_sub(LOGGED).filter(|more| *more > 0) {
            tracing::error!(more, "the books differ elsewhere too");
        }
        self.0.report.send_replace(Arc::new(report));
    }

    /// Whoever panicked with it has left it whole: it is replaced in one step.
    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.0.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
