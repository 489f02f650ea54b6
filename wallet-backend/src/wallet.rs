//! The public API. [`Wallet`]'s own text is the list of what it promises.

use std::io;
use std::sync::Arc;

use crate::account::{Account, AccountId, Hold, HoldTerm, RequestId};
use crate::clock::Clock;
use crate::combiner::{Combiner, Limits, Observed, Queue};
use crate::command::{
    AccountView, Amendment, Answer, Batch, Batched, Command, DebitAmount, LedgerError, Operation, PastView,
    Remainder, RequestView, Task, answered,
};
use crate::jobs::reconcile::{self, Reconciler};
use crate::jobs::tidy;
use crate::money::Amount;
use crate::store::any::AnyStore;
use crate::store::embedded::{Embedded, OpenError, Options};
use crate::store::memory::Memory;
#[cfg(feature = "mysql")]
use crate::store::mysql;
use crate::store::{Cursor, EntryPage, Moment, Store as _};

mod events;
mod reconciliation;
mod statement;

pub use events::Events;
pub use statement::Statement;

pub use crate::command::Decided;

/// The most entries of one statement page, and accounts of one list.
pub const MAX_PAGE: usize = 1_000;

/// A ledger, ready for use from any number of tasks, threads and runtimes (with timers on). Clones are one wallet.
///
/// What it promises:
/// - **Once.** A request id of an account has one effect, for ever. The same command again is the same outcome, word
///   for word; another command under the id is `RequestReused` and names the first field that differs.
/// - **Whole.** An operation happens with all its legs, or not at all. A refusal changes nothing but its own record.
/// - **Together.** An atomic [`Batch`] happens with all its operations, or not at all, and then nothing of it is kept.
/// - **Kept.** Every answer, reads and replays too, waits until all that it saw is durable in the store.
/// - **Never below.** No slot goes below zero, and what takes money out leaves the floor. `InsufficientFunds` is only
///   ever said with proof: slots, pending credits and expired holds together, at one cut.
/// - **One end.** A hold is captured, released or expired, never two of them, and never for more than it was. Its
///   deadline counts at once, swept or not. Nothing is reversed twice.
/// - **Explained.** The entries of a slot count from 1 without a gap, and each one's `balance_after` is the last
///   one's plus its own `delta`.
/// - **Sure.** `Unavailable` means that nothing happened. `OutcomeUnknown` means: send the same id again, or
///   [`Wallet::abandon`] it. Dropping a call's future takes nothing back.
/// - **Bounded.** Queues, batches and waits have limits ([`Limits`]); a hot account fills its own lane and delays
///   another by a batch at most.
#[derive(Clone, Debug)]
pub struct Wallet {
    combiner: Arc<Combiner<AnyStore>>,
    queue: Queue<AnyStore>,
    reconciler: Reconciler,
}

impl Wallet {
    /// A wallet that keeps nothing beyond the process.
    ///
    /// # Errors
    /// Where the system has no thread left.
    pub fn memory() -> io::Result<Self> {
        Self::over(AnyStore::Memory(Memory::default()), Limits::default())
    }

    /// A wallet that keeps everything in one directory of one machine, without replication. Opening blocks while the
    /// log is read; the directory is this wallet's until [`Wallet::close`].
    ///
    /// # Errors
    /// [`OpenError`]: in use, damaged, of an unknown version, or what the file system says.
    pub fn embedded(options: Options) -> Result<Self, OpenError> {
        let store = AnyStore::Embedded(Embedded::open(options)?);
        Self::over(store, Limits::default()).map_err(|source| {
            let doing = "start the wallet's thread".to_owned();
            OpenError::Io { doing, source }
        })
    }

    /// A wallet that keeps everything in a MySQL or MariaDB database, alone or beside other processes. Opening blocks
    /// while it connects.
    ///
    /// # Errors
    /// [`mysql::OpenError`]: no connection, a schema that does not fit, or what the system says.
    #[cfg(feature = "mysql")]
    pub fn mysql(options: mysql::Options) -> Result<Self, mysql::OpenError> {
        let store = AnyStore::Mysql(mysql::Mysql::open(options)?);
        Self::over(store, Limits::default()).map_err(mysql::OpenError::Thread)
    }

    /// A wallet over a store that is open already. Pending credits are settled every [`tidy::EVERY`], and the books are
    /// held against what is written every [`reconcile::EVERY`].
    ///
    /// # Errors
    /// Where the system has no thread left.
    pub fn over(store: AnyStore, limits: Limits) -> io::Result<Self> {
        let reconciler = Reconciler::new(Clock::default(), store.newest_event());
        let ours = reconciler.clone();
        let combiner = Combiner::start(store, limits, async |queue| {
            tokio::join!(tidy::run(queue.clone()), reconcile::run(queue, ours));
        })?;
        let queue = combiner.queue();
        let combiner = Arc::new(combiner);
        Ok(Self {
            combiner,
            queue,
            reconciler,
        })
    }

    /// Opens an account. `true` where it is new; the same terms again give it back as it is.
    ///
    /// # Errors
    /// `AccountExists` with other terms, `Invalid` terms, and those of [`Queue::submit`].
    pub async fn open(&self, account: Account) -> Result<(AccountView, bool), LedgerError> {
        match self.queue.submit(Task::Open(account)).await? {
            Answer::Opened { account, created } => Ok((account, created)),
            Answer::Decided { .. } | Answer::Tidied { .. } | Answer::Batched(_) => Err(misanswered()),
        }
    }

    /// Adds money.
    ///
    /// # Errors
    /// As [`Wallet::run`].
    pub async fn credit(
        &self,
        account: &AccountId,
        request: &RequestId,
        amount: Amount,
        memo: Option<&str>,
    ) -> Result<Decided, LedgerError> {
        let memo = memo.map(Into::into);
        self.run(command(account, request, Operation::Credit { amount, memo }))
            .await
    }

    /// Takes money, never below the floor: an [`Amount`], or all there is.
    ///
    /// # Errors
    /// As [`Wallet::run`].
    pub async fn debit(
        &self,
        account: &AccountId,
        request: &RequestId,
        amount: impl Into<DebitAmount>,
        memo: Option<&str>,
    ) -> Result<Decided, LedgerError> {
        let (amount, memo) = (amount.into(), memo.map(Into::into));
        self.run(command(account, request, Operation::Debit { amount, memo }))
            .await
    }

    /// Sets money aside, until it is captured, released, or `expires_in` is over. `request` is the hold's id.
    ///
    /// # Errors
    /// As [`Wallet::run`].
    pub async fn hold(
        &self,
        account: &AccountId,
        request: &RequestId,
        amount: Amount,
        expires_in: Option<HoldTerm>,
    ) -> Result<Decided, LedgerError> {
        self.run(command(account, request, Operation::Hold { amount, expires_in }))
            .await
    }

    /// Takes money out of a hold; `None` is all that is left of it.
    ///
    /// # Errors
    /// `HoldNotFound`, and as [`Wallet::run`].
    pub async fn capture(
        &self,
        account: &AccountId,
        request: &RequestId,
        hold: &RequestId,
        amount: Option<Amount>,
        remainder: Remainder,
    ) -> Result<Decided, LedgerError> {
        let hold = hold.clone();
        let operation = Operation::Capture {
            hold,
            amount,
            remainder,
        };
        self.run(command(account, request, operation)).await
    }

    /// Gives all that is left of a hold back to its account.
    ///
    /// # Errors
    /// `HoldNotFound`, and as [`Wallet::run`].
    pub async fn release(
        &self,
        account: &AccountId,
        request: &RequestId,
        hold: &RequestId,
    ) -> Result<Decided, LedgerError> {
        let hold = hold.clone();
        self.run(command(account, request, Operation::Release { hold }))
            .await
    }

    /// Undoes what `reverses`, a request of the account, did: wholly, and once.
    ///
    /// # Errors
    /// `NothingToReverse`, and as [`Wallet::run`].
    pub async fn reverse(
        &self,
        account: &AccountId,
        request: &RequestId,
        reverses: &RequestId,
    ) -> Result<Decided, LedgerError> {
        let reverses = reverses.clone();
        self.run(command(account, request, Operation::Reversal { reverses }))
            .await
    }

    /// Changes the account's status, slots, modes or floor, in force when this returns. The outcome is
    /// [`Outcome::Amended`](crate::command::Outcome::Amended).
    ///
    /// # Errors
    /// As [`Wallet::run`].
    pub async fn amend(
        &self,
        account: &AccountId,
        request: &RequestId,
        amendment: Amendment,
    ) -> Result<Decided, LedgerError> {
        self.run(command(account, request, Operation::Amend(amendment)))
            .await
    }

    /// Moves money from one account to another. The request id is one of `from`'s.
    ///
    /// # Errors
    /// As [`Wallet::run`].
    pub async fn transfer(
        &self,
        from: &AccountId,
        request: &RequestId,
        to: &AccountId,
        amount: Amount,
        memo: Option<&str>,
    ) -> Result<Decided, LedgerError> {
        let (to, memo) = (to.clone(), memo.map(Into::into));
        self.run(command(from, request, Operation::Transfer { to, amount, memo }))
            .await
    }

    /// Runs a command. A refusal for a reason of business is an `Ok` outcome. Cancelled, it is decided all the same.
    ///
    /// # Errors
    /// `Invalid`, `AccountNotFound`, `RequestReused`, and those of [`Queue::submit`].
    pub async fn run(&self, command: Command) -> Result<Decided, LedgerError> {
        decided(self.queue.submit(Task::Run(command)).await?)
    }

    /// Runs commands one after the other, with one answer for them all: where it fits, from one durable write. With
    /// [`BatchMode::Atomic`](crate::command::BatchMode::Atomic) all of them are done, or nothing is. Cancelled, it is
    /// decided all the same.
    ///
    /// # Errors
    /// Those of the whole batch: `StoreFull` and `Unavailable`, where nothing of it happened; `OutcomeUnknown`, where
    /// part of it may have; `Invalid`, where an atomic one is more than the log takes at once. Each command's own are
    /// among the results.
    pub async fn batch(&self, batch: Batch) -> Result<Batched, LedgerError> {
        match self.queue.submit(batch).await? {
            Answer::Batched(batched) => Ok(batched),
            Answer::Opened { .. } | Answer::Decided { .. } | Answer::Tidied { .. } => Err(misanswered()),
        }
    }

    /// Claims an undecided id as refused, or says what it became: afterwards the caller is sure.
    ///
    /// # Errors
    /// `AccountNotFound`, which proves nothing, and those of [`Queue::submit`].
    pub async fn abandon(&self, account: &AccountId, request: &RequestId) -> Result<Decided, LedgerError> {
        let (account, request) = (account.clone(), request.clone());
        let answer = self.queue.submit(Task::Abandon { account, request }).await?;
        decided(answer)
    }

    /// The account with its money, at one cut.
    ///
    /// # Errors
    /// `AccountNotFound`, `Unavailable`.
    pub async fn account(&self, id: &AccountId) -> Result<AccountView, LedgerError> {
        self.queue.account(id).await
    }

    /// What the account had at a moment of its past: what [`Wallet::account`] would have said then, and will be said of
    /// that moment for ever. In time about logarithmic in the length of its history.
    ///
    /// # Errors
    /// `AccountNotFound`, `Unavailable`; `Invalid` for a cursor that is ahead of the account, and for a time that is
    /// not over.
    pub async fn past(&self, id: &AccountId, moment: &Moment) -> Result<PastView, LedgerError> {
        self.queue.past(id, moment).await
    }

    /// At most `limit` (1 to [`MAX_PAGE`]) accounts after `after`, ascending by id as bytes. Each is at one cut of its
    /// own; an account that is opened meanwhile shifts no other one.
    ///
    /// # Errors
    /// `Invalid` for another limit, `Unavailable`.
    pub async fn accounts(
        &self,
        after: Option<&AccountId>,
        limit: usize,
    ) -> Result<Vec<AccountView>, LedgerError> {
        check_limit(limit)?;
        self.queue.accounts(after, limit).await
    }

    /// A hold as it is now, however long ago it ended.
    ///
    /// # Errors
    /// `AccountNotFound`, `HoldNotFound`, `Unavailable`.
    pub async fn look_up_hold(&self, account: &AccountId, hold: &RequestId) -> Result<Hold, LedgerError> {
        self.queue.hold(account, hold).await
    }

    /// One page of the statement: at most `limit` (1 to [`MAX_PAGE`]) entries after `after`.
    ///
    /// # Errors
    /// `Invalid` for another limit, `AccountNotFound`, `Unavailable`.
    pub async fn entries(
        &self,
        id: &AccountId,
        after: &Cursor,
        limit: usize,
    ) -> Result<EntryPage, LedgerError> {
        check_limit(limit)?;
        self.queue.entries(id, after, limit).await
    }

    /// All entries after `after` that are there now, to be read page by page.
    ///
    /// # Errors
    /// `AccountNotFound`, `Unavailable`.
    pub async fn statement(&self, id: &AccountId, after: Cursor) -> Result<Statement, LedgerError> {
        Statement::begin(self.queue.clone(), id, after).await
    }

    /// The events after number `after` (0: all), of all accounts or of one. Each committed entry is one of them, once,
    /// and is heard of when it is durable.
    #[must_use]
    pub fn events(&self, after: u64, account: Option<AccountId>) -> Events {
        Events::new(self.queue.clone(), after, account)
    }

    /// The number of the newest event; 0 before the first.
    #[must_use]
    pub fn newest_event(&self) -> u64 {
        self.queue.newest_event()
    }

    /// A number that tells this ledger from every other, for positions in its events.
    #[must_use]
    pub fn ledger(&self) -> u64 {
        self.queue.ledger()
    }

    /// What is known of a request id. `NotFound` is not yet decided HERE: only the same id may be sent again.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn request(
        &self,
        account: &AccountId,
        request: &RequestId,
    ) -> Result<RequestView, LedgerError> {
        self.queue.request(account, request).await
    }

    /// Does now what is done every [`tidy::EVERY`] anyway; says how many accounts it went through.
    ///
    /// # Errors
    /// `Unavailable`, `OutcomeUnknown`.
    pub async fn tidy_once(&self) -> Result<usize, LedgerError> {
        tidy::once(&self.queue).await
    }

    /// Sets who is told of batches and commits. The first one stands; says whether this is it.
    pub fn observe(&self, observer: impl Fn(Observed) + Send + Sync + 'static) -> bool {
        self.queue.observe(observer)
    }

    /// Credits that were accepted and have not reached a slot yet, over all accounts: rows, not money.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn pending(&self) -> Result<u64, LedgerError> {
        self.queue.pending().await
    }

    /// Commands that wait for a batch.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.queued()
    }

    /// `Err` with the reason once nothing more can be decided.
    ///
    /// # Errors
    /// `Unavailable`.
    pub fn health(&self) -> Result<(), LedgerError> {
        self.queue.health()
    }

    /// Takes no more commands, finishes those it has, makes everything durable and gives the storage free. For every
    /// clone. Without it the same happens behind the back of whoever drops the last one.
    pub async fn close(&self) {
        self.combiner.close().await;
    }
}

fn check_limit(limit: usize) -> Result<(), LedgerError> {
    if (1..=MAX_PAGE).contains(&limit) {
        return Ok(());
    }
    let reason = format!("must be 1 to {MAX_PAGE}");
    Err(LedgerError::Invalid {
        field: "limit",
        reason,
    })
}

fn command(account: &AccountId, request: &RequestId, operation: Operation) -> Command {
    Command {
        account: account.clone(),
        request: request.clone(),
        operation,
    }
}

fn decided(answer: Answer) -> Result<Decided, LedgerError> {
    answered(answer).ok_or_else(misanswered)
}

/// A store that answers another task than it was given: what it did is anybody's guess.
fn misanswered() -> LedgerError {
    let reason = "the store answered another task".to_owned();
    LedgerError::OutcomeUnknown { reason }
}

#[cfg(test)]
pub(crate) mod fixtures;
