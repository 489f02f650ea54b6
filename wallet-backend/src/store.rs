//! Where the ledger is kept. [`Store`] is the one seam: memory (the model), the embedded log, MySQL and MariaDB.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::oneshot;

use crate::account::{AccountId, Entry, RequestId, SlotIndex, Timestamp};
use crate::command::{AccountView, Answer, HoldView, LedgerError, PastView, RequestView, Work};
use crate::ledger::flow::Currencies;
use crate::ledger::invariants::{Standing, Violation};
use crate::store::duty::{Duty, Turn};

pub mod any;
mod codec;
pub mod duty;
pub mod embedded;
pub mod memory;
#[cfg(feature = "mysql")]
pub mod mysql;
pub mod page;

/// A queued task or batch, and who waits for its answer.
///
/// Answered exactly once. Dropped unanswered (a panic, a stopped store), the caller hears that the outcome is
/// unknown, which is the truth.
pub struct Job {
    pub work: Work,
    reply: Option<oneshot::Sender<Result<Answer, LedgerError>>>,
    /// Falls just before the answer is sent: whatever its owner wants to know about the end of the job.
    guard: Option<Box<dyn Send>>,
}

impl Job {
    /// A job, and the end on which its answer arrives.
    #[must_use]
    pub fn new(work: impl Into<Work>) -> (Self, oneshot::Receiver<Result<Answer, LedgerError>>) {
        let (sender, receiver) = oneshot::channel();
        (Self::with(work.into(), sender, None), receiver)
    }

    pub(crate) fn with(
        work: Work,
        reply: oneshot::Sender<Result<Answer, LedgerError>>,
        guard: Option<Box<dyn Send>>,
    ) -> Self {
        Self {
            work,
            reply: Some(reply),
            guard,
        }
    }

    /// Tells the caller. A caller that has gone away is not an error: the answer is stored.
    pub fn answer(mut self, answer: Result<Answer, LedgerError>) {
        self.finish(answer);
    }

    fn finish(&mut self, answer: Result<Answer, LedgerError>) {
        drop(self.guard.take());
        if let Some(reply) = self.reply.take() {
            drop(reply.send(answer));
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if self.reply.is_some() {
            let reason = "the store stopped before it answered".to_owned();
            self.finish(Err(LedgerError::OutcomeUnknown { reason }));
        }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Job").field(&self.work).finish()
    }
}

/// Which slot the credits of an account with several prefer: the source of [`Context::prefer`].
///
/// [`Context::prefer`]: crate::ledger::decide::Context::prefer
#[derive(Debug)]
pub enum Preference {
    /// Always the same: one process of many, or a test.
    Fixed(u64),
    /// Each in turn: a process that has the account to itself.
    Rotate(AtomicU64),
}

impl Preference {
    /// The next credit's preference.
    pub fn next(&self) -> u64 {
        match self {
            Self::Fixed(number) => *number,
            // Only a spread: any order of increments will do.
            Self::Rotate(counter) => counter.fetch_add(1, Ordering::Relaxed),
        }
    }
}

impl Default for Preference {
    fn default() -> Self {
        Self::Rotate(AtomicU64::new(0))
    }
}

/// A position in an account's statement: the version last seen of each slot; slots not named were not seen at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor(pub Vec<(SlotIndex, u64)>);

/// One page of a statement. Per slot in version order, without gap or repeat across pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPage {
    pub entries: Vec<Entry>,
    /// Where the next page begins; the cursor given where nothing followed.
    pub next: Cursor,
}

/// An entry as it was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Of all entries of the ledger, in the order in which they were committed: the first is 1, and none is left out.
    /// It stays the same for ever.
    pub number: u64,
    pub entry: Entry,
}

/// How far a reader of the events has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventCursor {
    /// The number of the last event seen; 0 before the first.
    pub number: u64,
    /// Where the store may go on reading without looking for it; 0 where that is not known. Of use in this process
    /// only.
    place: u64,
}

impl From<u64> for EventCursor {
    fn from(number: u64) -> Self {
        Self { number, place: 0 }
    }
}

impl EventCursor {
    /// That a ledger of `entries` has come so far.
    fn check(self, entries: u64) -> Result<(), LedgerError> {
        if self.number <= entries {
            return Ok(());
        }
        let reason = format!("is event {}, and this ledger has {entries}", self.number);
        Err(LedgerError::Invalid {
            field: "after",
            reason,
        })
    }
}

/// An account's rows at one cut, to be held against its entries up to there.
#[derive(Clone, Debug)]
pub struct Cut {
    pub standing: Standing,
    /// Entries of all accounts before the cut: the number of the last of them.
    pub entries: u64,
}

/// The books of every currency at one cut, and where to go on from.
#[derive(Clone, Debug, Default)]
pub struct GeneralLedger {
    pub currencies: Currencies,
    /// Records up to the cut that make money or lose it, at most [`GeneralLedger::MOST_BROKEN`].
    pub broken: Vec<Violation>,
    /// Where the store may go on reading; 0 for the beginning. Of use in this process only.
    place: u64,
}

impl GeneralLedger {
    /// More say nothing more.
    pub const MOST_BROKEN: usize = 100;
}

/// Some events in their order, without gap or repeat across pages.
#[derive(Clone, Debug)]
pub struct EventPage {
    pub events: Vec<Event>,
    /// Where the next page begins: behind the last event, or further where nothing else was asked for.
    pub next: EventCursor,
}

/// A moment of an account's past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Once these entries were there, and those that were pending at the time of the newest of them.
    Cursor(Cursor),
    /// Once all was there that happened at this time, which must be over.
    Time(Timestamp),
}

impl Moment {
    /// The answer to a cursor that is ahead of its account.
    pub(crate) fn ahead() -> LedgerError {
        LedgerError::Invalid {
            field: "cursor",
            reason: "names entries that the account has not".to_owned(),
        }
    }

    /// The answer to a time at which more may happen.
    pub(crate) fn not_over() -> LedgerError {
        LedgerError::Invalid {
            field: "at",
            reason: "must be in the past".to_owned(),
        }
    }
}

/// Fewer decisions than these take less time than it takes to wake the thread that makes them.
pub const FEW: usize = 64;

/// When the next jobs of an account's lane may be handed to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOver {
    /// Whenever it takes jobs: it decides them ahead of the answers to those before, in the order in which it gets them.
    Ahead,
    /// Once all that it has of the lane are answered. Several batches may be under way side by side, of which no two
    /// have jobs of one lane: transactions that would wait for each other's rows, and might change places.
    OneBatchAtATime,
}

/// A ledger's storage. Every answer, be it a receipt, a refusal, a replay or a read, waits until all that its
/// decision saw is durable.
pub trait Store: Send + Sync + 'static {
    /// Decides and writes jobs in their order, answering each once it is durable. An atomic [`Batch`] is one write,
    /// whole or not at all. Resolves when the store can take the next jobs, which may be before the answers: deciding
    /// runs ahead of syncing.
    ///
    /// [`Batch`]: crate::command::Batch
    fn run(&self, jobs: Vec<Job>) -> impl Future<Output = ()> + Send;

    /// Always the same.
    fn handing_over(&self) -> HandOver {
        HandOver::Ahead
    }

    /// Resolves once all that was decided before is durable, or never will be: then deciding has nothing left to run
    /// ahead of. Asked of a store to which jobs are handed [`HandOver::Ahead`].
    fn settled(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// The account at one cut, or `None`. What has expired by then is not held any more.
    fn account(
        &self,
        id: &AccountId,
    ) -> impl Future<Output = Result<Option<AccountView>, LedgerError>> + Send;

    /// What the account had at a moment of its past; `None` for an unknown account. `Invalid` for a cursor that is
    /// ahead of it, and for a time that is not over.
    fn past(
        &self,
        id: &AccountId,
        moment: &Moment,
    ) -> impl Future<Output = Result<Option<PastView>, LedgerError>> + Send;

    /// At most `limit` accounts after `after`, ascending by id as bytes, each at one cut of its own.
    fn accounts(
        &self,
        after: Option<&AccountId>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<AccountView>, LedgerError>> + Send;

    /// At most `limit` entries after `after`; `None` for an unknown account.
    fn entries(
        &self,
        id: &AccountId,
        after: &Cursor,
        limit: usize,
    ) -> impl Future<Output = Result<Option<EntryPage>, LedgerError>> + Send;

    /// What became of a request id; `InProgress` is the combiner's to say. `None` for an unknown account. A receipt
    /// that was pending is shown as it has become: [`Outcome::settled_by`] the entry of which [`Entry::settles`]
    /// names the request.
    ///
    /// [`Outcome::settled_by`]: crate::command::Outcome::settled_by
    fn request(
        &self,
        account: &AccountId,
        request: &RequestId,
    ) -> impl Future<Output = Result<Option<RequestView>, LedgerError>> + Send;

    /// A hold as it is now, however long ago it ended. `None` for an unknown account.
    fn hold(
        &self,
        account: &AccountId,
        hold: &RequestId,
    ) -> impl Future<Output = Result<Option<HoldView>, LedgerError>> + Send;

    /// Tells this ledger from every other.
    fn id(&self) -> u64;

    /// At most `limit` events after `after`, of one account or of all. `None` for an unknown account. A page may be
    /// empty and more may follow nevertheless: that is so while `next` is not the newest.
    ///
    /// # Errors
    /// `Invalid` where `after` is ahead of the ledger.
    fn events(
        &self,
        after: EventCursor,
        account: Option<&AccountId>,
        limit: usize,
    ) -> impl Future<Output = Result<Option<EventPage>, LedgerError>> + Send;

    /// Resolves once there is an event, of whichever account, with a number above `number`.
    ///
    /// # Errors
    /// `Unavailable` once the store ends.
    fn event_after(&self, number: u64) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// The number of the newest event that this process knows of; 0 before the first. Where several processes write, it
    /// may be a second behind; what [`Store::events`] has told of is known.
    fn newest_event(&self) -> u64;

    /// What the rows of these accounts say, each at one cut of its own, once that is durable. Unknown ones are left out.
    fn cuts(&self, ids: &[AccountId]) -> impl Future<Output = Result<Vec<Cut>, LedgerError>> + Send;

    /// The books of every currency at one cut: those of `opening`, and what has happened since. `opening` is an earlier
    /// answer of this store in this process, or the default, which is before everything. Takes time in what happened
    /// since and in the accounts, and holds up deciding for a few accounts at a time.
    fn general_ledger(
        &self,
        opening: GeneralLedger,
    ) -> impl Future<Output = Result<GeneralLedger, LedgerError>> + Send;

    /// Accounts with something to tidy, expired holds too, at most `limit`. Takes turns: none is passed over for ever.
    fn untidy(&self, limit: usize) -> impl Future<Output = Result<Vec<AccountId>, LedgerError>> + Send;

    /// Pending credits of all accounts: rows, not money.
    fn pending(&self) -> impl Future<Output = Result<u64, LedgerError>> + Send;

    /// Takes the turn for a duty, or keeps it; `None` while another process has it. A store that only one process has
    /// open gives it whenever it is asked.
    fn claim(&self, duty: Duty) -> impl Future<Output = Result<Option<Turn>, LedgerError>> + Send {
        std::future::ready(Ok(Some(Turn { duty, fence: 0 })))
    }

    /// `Err` with the reason once the store has stopped for good.
    fn health(&self) -> Result<(), LedgerError>;

    /// Makes everything decided durable and releases the storage.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// Random, from the same source as the standard library's hash keys: it only has to differ between ledgers.
fn new_id() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
