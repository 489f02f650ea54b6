//! Lanes and batches: many callers, one writer.
//!
//! Every account has a lane, first in first out. A batch waits for nobody: it is whatever queued while the last one
//! was under way, lanes in turn, so that a hot account delays a cold one by a batch at most. Many are decided while the
//! last batch is on its way to the disk, few once it is there; where batches run side by side, each lane is in one of
//! them at most ([`HandOver`]), and whoever was just answered has a moment to come again. What one caller sends as a batch of its own
//! ([`Batch`](crate::command::Batch)) has a turn like a lane, and goes whole. Everything is bounded ([`Limits`]) and
//! every wait ends ([`ANSWER_WITHIN`]). The combiner owns one named thread with a runtime of its own, so callers may
//! live on any runtime that has its timers on.
//!
//! A caller may go away at any moment: what it sent is decided all the same, and its id tells what became of it.
//! A panic in the store ends the combiner: who is being decided hears `OutcomeUnknown`, everybody else `Unavailable`.

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::oneshot;

use self::guard::{Guard, Observer, Timer};
use self::in_flight::InFlight;
use self::lanes::{Handed, Lanes, Queued};
use crate::account::{AccountId, Hold, RequestId};
use crate::command::{AccountView, Answer, HoldView, LedgerError, PastView, RequestView, Work};
use crate::store::{Cursor, EntryPage, FEW, HandOver, Job, Moment, Store};
use crate::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use crate::sync::{Runtime, sleep, thread, timeout, watch};

mod cuts;
mod events;
mod guard;
mod in_flight;
mod lanes;
mod ticket;

pub use ticket::Ticket;

/// After this long an answer is `OutcomeUnknown`; of a read, `Unavailable`. Far above any healthy batch, and below
/// the deadlines that callers and proxies usually set.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long a request waits whose id is being decided already; then it is `InProgress`.
pub const REPEAT_WITHIN: Duration = Duration::from_secs(2);

/// How much may wait, and what for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Jobs in one lane; beyond it `LaneFull`. Some milliseconds of one account's work, so what is refused would
    /// have waited long anyway.
    pub lane: usize,
    /// Jobs in all lanes; beyond it `StoreFull`. Sixteen full lanes, about 30 MB.
    pub store: usize,
    /// Commands in all of the callers' batches that wait; beyond it `StoreFull`. Four full ones, about 15 MB, so that
    /// they fill no place that a lone command needs. A batch of any size finds room where none waits.
    pub batches: usize,
    /// Decisions in one batch: past this size a sync is no longer what a batch costs.
    pub batch: usize,
    /// Where batches run side by side: how long the next one waits for as many as were answered last. One tick of a
    /// timer, of which a batch that is worth it takes several.
    pub moment: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lane: 4_096,
            store: 65_536,
            batches: 32_768,
            batch: 8_192,
            moment: Duration::from_millis(1),
        }
    }
}

/// What the combiner tells of itself while it works.
#[derive(Clone, Copy, Debug)]
pub enum Observed {
    /// A batch was handed to the store: of so many decisions.
    Batch { jobs: usize },
    /// The last job of a batch was answered: it is durable. Counted from the handing over.
    Committed { took: Duration },
}

/// A store with its queue in front.
pub struct Combiner<S: Store> {
    shared: Arc<Shared<S>>,
    /// Turns true, or closes, when the thread is done.
    done: watch::Receiver<bool>,
}

struct Shared<S> {
    store: S,
    lanes: Arc<Lanes>,
    in_flight: InFlight,
    /// How many decisions wake the thread.
    wake_at: AtomicUsize,
    phase: AtomicU8,
    observer: Arc<OnceLock<Observer>>,
}

// What becomes of a new job. It is taken;
const OPEN: u8 = 0;
// refused, while those before it are finished;
const CLOSING: u8 = 1;
// refused, for the store panicked.
const BROKEN: u8 = 2;

const CLOSED: &str = "the wallet is closed";
const PANICKED: &str = "the store panicked";

impl<S: Store> Combiner<S> {
    /// Starts the thread. `job` runs beside the batches on it, until the combiner ends: the place for work on a
    /// timer. It gets a [`Queue`] to work through.
    ///
    /// # Errors
    /// Where the system has no thread left.
    pub fn start<J, F>(store: S, limits: Limits, job: J) -> io::Result<Self>
    where
        J: FnOnce(Queue<S>) -> F + Send + 'static,
        F: Future<Output = ()>,
    {
        let shared = Arc::new(Shared {
            lanes: Arc::new(Lanes::new(limits, store.handing_over())),
            store,
            in_flight: InFlight::default(),
            wake_at: AtomicUsize::new(1),
            phase: AtomicU8::new(OPEN),
            observer: Arc::default(),
        });
        let runtime = Runtime::new()?;
        let (finished, done) = watch::channel(false);
        let queue = Queue(Arc::clone(&shared));
        thread::Builder::new()
            .name("wallet-ledger".to_owned())
            .spawn(move || {
                let shared = Arc::clone(&queue.0);
                let work = || runtime.block_on(shared.work(job(queue)));
                if catch_unwind(AssertUnwindSafe(work)).is_err() {
                    shared.break_off();
                }
                // Before whoever closes hears of it, so that the storage is free to be opened again.
                drop(shared);
                finished.send_replace(true);
            })?;
        Ok(Self { shared, done })
    }

    /// The queue, without the power to close it.
    #[must_use]
    pub fn queue(&self) -> Queue<S> {
        Queue(Arc::clone(&self.shared))
    }

    /// Takes no more jobs, finishes those it has, then closes the store. Dropped half-way, it all happens anyway.
    pub async fn close(&self) {
        self.shared.stop();
        let mut done = self.done.clone();
        // An error is a thread that has gone: done too.
        drop(done.wait_for(|done| *done).await);
    }
}

/// Without [`Combiner::close`], the same happens behind the caller's back.
impl<S: Store> Drop for Combiner<S> {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

/// A handle on a combiner's queue and store.
pub struct Queue<S>(Arc<Shared<S>>);

impl<S: fmt::Debug + Store> fmt::Debug for Combiner<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}

impl<S: fmt::Debug> fmt::Debug for Queue<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<S> Clone for Queue<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Store> Queue<S> {
    /// Queues a task, or the caller's own batch, and waits for its durable answer. Cancelled, it is decided all the
    /// same.
    ///
    /// # Errors
    /// What the ledger answers; `LaneFull`, `StoreFull` or `Unavailable` where the task was not taken; `InProgress`
    /// after [`REPEAT_WITHIN`] where a task's id was being decided already; `OutcomeUnknown` after [`ANSWER_WITHIN`].
    pub async fn submit(&self, work: impl Into<Work>) -> Result<Answer, LedgerError> {
        self.enqueue(work)?.answer().await
    }

    /// The same without waiting: several of one caller may share a batch.
    ///
    /// # Errors
    /// `LaneFull`, `StoreFull` or `Unavailable` where the task was not taken.
    pub fn enqueue(&self, work: impl Into<Work>) -> Result<Ticket, LedgerError> {
        self.0.check_open()?;
        let work = work.into();
        let claims = self.0.in_flight.claim(&work);
        let repeats = match &work {
            Work::Task(task) if claims.repeated => {
                let request = task.request().cloned();
                request.map(|request| (task.account().clone(), request))
            }
            // A batch is decided as a whole, and then knows its repetitions.
            Work::Task(_) | Work::Batch(_) => None,
        };
        let (reply, answer) = oneshot::channel();
        // A batch of nothing adds nothing to what is queued.
        let empty = work.weight() == 0;
        let has_turn = self.0.lanes.push(Queued { work, reply, claims })?;
        // Who makes the lanes empty sets this to one before: what is pushed after that finds one.
        let enough = || empty || self.0.lanes.queued() >= self.0.wake_at.load(Ordering::Acquire);
        if has_turn && enough() {
            self.0.lanes.wake.notify_one();
        }
        Ok(Ticket { answer, repeats })
    }

    /// The account at one cut.
    ///
    /// # Errors
    /// `AccountNotFound`; `Unavailable` where the store does not answer.
    pub async fn account(&self, id: &AccountId) -> Result<AccountView, LedgerError> {
        let view = self.read(self.0.store.account(id)).await?;
        view.ok_or_else(|| not_found(id))
    }

    /// What the account had at a moment of its past.
    ///
    /// # Errors
    /// As [`Queue::account`]; `Invalid` for a cursor that is ahead of the account and a time that is not over.
    pub async fn past(&self, id: &AccountId, moment: &Moment) -> Result<PastView, LedgerError> {
        let view = self.read(self.0.store.past(id, moment)).await?;
        view.ok_or_else(|| not_found(id))
    }

    /// At most `limit` accounts after `after`, ascending by id, each at one cut of its own.
    ///
    /// # Errors
    /// `Unavailable` where the store does not answer.
    pub async fn accounts(
        &self,
        after: Option<&AccountId>,
        limit: usize,
    ) -> Result<Vec<AccountView>, LedgerError> {
        self.read(self.0.store.accounts(after, limit)).await
    }

    /// At most `limit` entries after `after`.
    ///
    /// # Errors
    /// As [`Queue::account`].
    pub async fn entries(
        &self,
        id: &AccountId,
        after: &Cursor,
        limit: usize,
    ) -> Result<EntryPage, LedgerError> {
        let page = self.read(self.0.store.entries(id, after, limit)).await?;
        page.ok_or_else(|| not_found(id))
    }

    /// What is known of a request id; of an unknown account's, nothing.
    ///
    /// # Errors
    /// `Unavailable` where the store does not answer.
    pub async fn request(
        &self,
        account: &AccountId,
        request: &RequestId,
    ) -> Result<RequestView, LedgerError> {
        // Asked first: an id that is decided in between is found by the read.
        let in_flight = self.0.in_flight.contains(account, request);
        let found = self.read(self.0.store.request(account, request)).await?;
        Ok(match found {
            None | Some(RequestView::NotFound) if in_flight => RequestView::InProgress,
            None => RequestView::NotFound,
            Some(view) => view,
        })
    }

    /// A hold as it is now.
    ///
    /// # Errors
    /// As [`Queue::account`]; `HoldNotFound`.
    pub async fn hold(&self, account: &AccountId, hold: &RequestId) -> Result<Hold, LedgerError> {
        match self.read(self.0.store.hold(account, hold)).await? {
            Some(HoldView::Found(hold)) => Ok(hold),
            Some(HoldView::NotFound) => Err(LedgerError::HoldNotFound {
                account: account.clone(),
                hold: hold.clone(),
            }),
            None => Err(not_found(account)),
        }
    }

    /// Accounts with something to tidy, at most `limit`.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn untidy(&self, limit: usize) -> Result<Vec<AccountId>, LedgerError> {
        self.read(self.0.store.untidy(limit)).await
    }

    /// Pending credits of all accounts: rows, not money.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn pending(&self) -> Result<u64, LedgerError> {
        self.read(self.0.store.pending()).await
    }

    /// Decisions that wait for a batch.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.0.lanes.queued()
    }

    /// `Err` with the reason once nothing more can be decided.
    ///
    /// # Errors
    /// `Unavailable`.
    pub fn health(&self) -> Result<(), LedgerError> {
        self.0.check_open()?;
        self.0.store.health()
    }

    /// Sets who is told of batches; the first one stands. Called on the threads that write and answer: it must be
    /// quick. Says whether this was the first.
    pub fn observe(&self, observer: impl Fn(Observed) + Send + Sync + 'static) -> bool {
        self.0.observer.set(Box::new(observer)).is_ok()
    }

    async fn read<T>(&self, read: impl Future<Output = Result<T, LedgerError>>) -> Result<T, LedgerError> {
        if self.0.phase() == BROKEN {
            return Err(unavailable(PANICKED));
        }
        match timeout(ANSWER_WITHIN, read).await {
            Ok(read) => read,
            Err(_) => Err(unavailable("the store did not answer in time")),
        }
    }
}

impl<S: Store> Shared<S> {
    /// The thread's work: batches until closed, and `job` beside them.
    async fn work(&self, job: impl Future<Output = ()>) {
        // A job that ends by itself must not end the batches.
        let for_ever = async {
            job.await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.drive() => {}
            () = for_ever => {}
        }
    }

    async fn drive(&self) {
        // How many the last batch had.
        let mut last = 0;
        loop {
            let batch = self.lanes.batch();
            if !batch.is_empty() {
                last = self.run(batch).await;
                // While a batch is on its way to the disk no other can be durable before it, and deciding many together
                // saves waking this thread for each. Otherwise each lane gathers by itself.
                if self.lanes.hand_over == HandOver::Ahead {
                    self.gather(FEW, self.store.settled()).await;
                }
                // A store that never waits would keep the job beside it from its turn.
                tokio::task::yield_now().await;
            } else if self.phase() != OPEN && self.lanes.close_if_empty(CLOSED) {
                break;
            } else {
                // Whoever makes a turn, or ends the last that is under way, wakes this afterwards.
                self.lanes.wake.notified().await;
                // Callers that have their answers come again one after the other: the first of them alone is no batch.
                if self.lanes.hand_over == HandOver::OneBatchAtATime {
                    self.gather(last, sleep(self.lanes.limits.moment)).await;
                }
            }
        }
        self.store.close().await;
    }

    /// Waits for so many decisions to be queued, or for something else, whichever comes first.
    async fn gather(&self, enough: usize, or: impl Future<Output = ()>) {
        self.wake_at.store(enough.max(1), Ordering::Release);
        let there = async {
            while self.lanes.queued() < enough && self.phase() == OPEN {
                self.lanes.wake.notified().await;
            }
        };
        tokio::select! {
            () = or => {}
            () = there => {}
        }
        self.wake_at.store(1, Ordering::Release);
    }

    /// Hands a batch over. Says how many decisions it has.
    async fn run(&self, batch: Vec<Handed>) -> usize {
        let jobs = batch.iter().map(|handed| handed.job.work.weight()).sum();
        if let Some(observer) = self.observer.get() {
            observer(Observed::Batch { jobs });
        }
        let timer = Arc::new(Timer::start(&self.observer));
        let with_guard = |Handed { job, lease }| {
            let Queued { work, reply, claims } = job;
            let guard = Guard::new(claims, lease, Arc::clone(&timer));
            Job::with(work, reply, Some(Box::new(guard)))
        };
        let batch = batch.into_iter().map(with_guard).collect();
        drop(timer);
        self.store.run(batch).await;
        jobs
    }

    fn phase(&self) -> u8 {
        self.phase.load(Ordering::Acquire)
    }

    fn check_open(&self) -> Result<(), LedgerError> {
        match self.phase() {
            OPEN => Ok(()),
            CLOSING => Err(unavailable(CLOSED)),
            _ => Err(unavailable(PANICKED)),
        }
    }

    /// From here on jobs are refused; those in the lanes are finished.
    fn stop(&self) {
        // Fails where it was called before, or the store is broken: both stay.
        let (release, relaxed) = (Ordering::Release, Ordering::Relaxed);
        if self
            .phase
            .compare_exchange(OPEN, CLOSING, release, relaxed)
            .is_ok()
        {
            self.lanes.wake.notify_one();
        }
    }

    /// After a panic: nothing of what waited was begun.
    fn break_off(&self) {
        tracing::error!("{PANICKED}; nothing more is decided");
        self.phase.store(BROKEN, Ordering::Release);
        for queued in self.lanes.abort(PANICKED) {
            drop(queued.claims);
            drop(queued.reply.send(Err(unavailable(PANICKED))));
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for Shared<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("store", &self.store)
            .field("queued", &self.lanes.queued())
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

fn not_found(account: &AccountId) -> LedgerError {
    let account = account.clone();
    let field = "account_id";
    LedgerError::AccountNotFound { account, field }
}

fn unavailable(reason: &str) -> LedgerError {
    let reason = reason.to_owned();
    LedgerError::Unavailable { reason }
}
