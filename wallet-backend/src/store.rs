//! Where the ledger is kept. [`Store`] is the one seam: memory (the model), the embedded log, later MySQL.

use std::future::Future;

use tokio::sync::oneshot;

use crate::account::{AccountId, Entry, RequestId, SlotIndex};
use crate::command::{AccountView, Answer, LedgerError, RequestView, Task};

pub mod embedded;
pub mod memory;

/// A queued task and who waits for its answer.
///
/// Answered exactly once. Dropped unanswered (a panic, a stopped store), the caller hears that the outcome is
/// unknown, which is the truth.
#[derive(Debug)]
pub struct Job {
    pub task: Task,
    reply: Option<oneshot::Sender<Result<Answer, LedgerError>>>,
}

impl Job {
    /// A job, and the end on which its answer arrives.
    #[must_use]
    pub fn new(task: Task) -> (Self, oneshot::Receiver<Result<Answer, LedgerError>>) {
        let (sender, receiver) = oneshot::channel();
        (
            Self {
                task,
                reply: Some(sender),
            },
            receiver,
        )
    }

    /// Tells the caller. A caller that has gone away is not an error: the answer is stored.
    pub fn answer(mut self, answer: Result<Answer, LedgerError>) {
        if let Some(reply) = self.reply.take() {
            drop(reply.send(answer));
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(reply) = self.reply.take() {
            let reason = "the store stopped before it answered".to_owned();
            drop(reply.send(Err(LedgerError::OutcomeUnknown { reason })));
        }
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

/// A ledger's storage. Every answer, be it a receipt, a refusal, a replay or a read, waits until all that its
/// decision saw is durable.
pub trait Store: Send + Sync + 'static {
    /// Decides and writes a batch in its order, answering each job once it is durable. Resolves when the store can
    /// take the next batch, which may be before the answers: deciding runs ahead of syncing.
    fn run(&self, batch: Vec<Job>) -> impl Future<Output = ()> + Send;

    /// The account at one cut, or `None`.
    fn account(
        &self,
        id: &AccountId,
    ) -> impl Future<Output = Result<Option<AccountView>, LedgerError>> + Send;

    /// At most `limit` entries after `after`; `None` for an unknown account.
    fn entries(
        &self,
        id: &AccountId,
        after: &Cursor,
        limit: usize,
    ) -> impl Future<Output = Result<Option<EntryPage>, LedgerError>> + Send;

    /// What became of a request id; `InProgress` is the combiner's to say. `None` for an unknown account.
    fn request(
        &self,
        account: &AccountId,
        request: &RequestId,
    ) -> impl Future<Output = Result<Option<RequestView>, LedgerError>> + Send;

    /// Accounts with something to tidy, at most `limit`.
    fn untidy(&self, limit: usize) -> Vec<AccountId>;

    /// `Err` with the reason once the store has stopped for good.
    fn health(&self) -> Result<(), LedgerError>;

    /// Makes everything decided durable and releases the storage.
    fn close(&self) -> impl Future<Output = ()> + Send;
}
