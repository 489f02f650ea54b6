//! What may be asked of the ledger, and everything it can answer. Closed sets.
//!
//! Three kinds of answer are kept apart. An [`Outcome`] (posted, or refused for a reason of business) is stored with
//! its request and repeated byte for byte. A [`LedgerError`] is never stored: the same request may succeed later.
//! [`LedgerError::OutcomeUnknown`] says that only sending the same id again can tell.

use crate::account::{Account, AccountId, Entry, EntryKind, Hold, HoldState, Pending, RequestId};

mod batch;
mod operation;
mod outcome;
mod view;

pub(crate) use batch::answered;
pub use batch::{Batch, BatchMode, Batched, MAX_BATCH, Work};
pub use operation::{Amendment, DebitAmount, Operation, Remainder};
pub use outcome::{Decided, Leg, Outcome, Posting, Receipt, ReceiptKind, Refusal};
pub use view::{AccountView, HoldView, PastView, RequestView};

/// The longest memo, in bytes.
pub const MAX_MEMO_BYTES: usize = 256;

/// A request to move money, or to change the account: what is stored and compared when its id comes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The account whose request ids this one belongs to; of a transfer, the source.
    pub account: AccountId,
    pub request: RequestId,
    pub operation: Operation,
}

/// Anything that a store decides and writes, in the order in which it was queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Opens an account. Not filed under a request id: the account id itself makes it idempotent.
    Open(Account),
    Run(Command),
    /// Claims an undecided id as refused, or answers what it became.
    Abandon {
        account: AccountId,
        request: RequestId,
    },
    /// Sweeps expired holds, settles pending credits and consolidates slots. The job's own; never stored.
    Tidy {
        account: AccountId,
    },
}

impl Task {
    /// The account on whose lane the task queues.
    #[must_use]
    pub fn account(&self) -> &AccountId {
        match self {
            Self::Open(account) => &account.id,
            Self::Run(command) => &command.account,
            Self::Abandon { account, .. } | Self::Tidy { account } => account,
        }
    }

    /// What the task does under its request id; `None` for what is no command.
    #[must_use]
    pub fn operation(&self) -> Option<&Operation> {
        match self {
            Self::Run(command) => Some(&command.operation),
            Self::Open(_) | Self::Abandon { .. } | Self::Tidy { .. } => None,
        }
    }

    /// The other account whose rows the task needs: of a transfer, its target, and of the reversal of one, that
    /// target again. `original` is the record of the request that a reversal undoes.
    #[must_use]
    pub fn target<'a>(&'a self, original: Option<&'a RequestRecord>) -> Option<&'a AccountId> {
        let own = self.operation()?;
        let undone = || original?.operation.as_ref();
        own.target().or_else(|| {
            own.reverses()?;
            undone()?.target()
        })
    }

    /// The request id under which the outcome is filed.
    #[must_use]
    pub fn request(&self) -> Option<&RequestId> {
        match self {
            Self::Run(command) => Some(&command.request),
            Self::Abandon { request, .. } => Some(request),
            Self::Open(_) | Self::Tidy { .. } => None,
        }
    }
}

/// What the store answers to one [`Task`] or [`Batch`], once everything the decision saw is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// `created` is false where the same account was opened before.
    Opened { account: AccountView, created: bool },
    /// `replayed`: the id was decided earlier, and this is that outcome.
    Decided { outcome: Outcome, replayed: bool },
    /// `more`: pending rows or expired holds are left for the next task.
    Tidied { more: bool },
    /// Of a [`Batch`].
    Batched(Batched),
}

/// An answer that is not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// Nobody could run this: the types of its fields allow it, the ledger does not.
    #[error("{field} {reason}")]
    Invalid { field: &'static str, reason: String },
    #[error("no account {account}")]
    AccountNotFound { account: AccountId, field: &'static str },
    #[error("{account} has no hold {hold}")]
    HoldNotFound { account: AccountId, hold: RequestId },
    #[error("{account} has no request {reverses} to reverse")]
    NothingToReverse { account: AccountId, reverses: RequestId },
    #[error("account {account} exists with another {field}")]
    AccountExists { account: AccountId, field: &'static str },
    /// `field`: the first field in which the two commands differ.
    #[error("request {request} of {account} was used for a command with another {field}")]
    RequestReused {
        account: AccountId,
        request: RequestId,
        field: &'static str,
    },
    #[error("request {request} of {account} is still being decided")]
    InProgress { account: AccountId, request: RequestId },
    #[error("the queue of {account} is full")]
    LaneFull { account: AccountId },
    #[error("the store's queue is full")]
    StoreFull,
    /// An atomic batch was given up for its command number `culprit`, counted from 0: nothing of it was done.
    #[error("nothing of the batch was done, for its operation number {culprit}, counted from 0, was refused")]
    BatchAborted { culprit: usize },
    /// Provably nothing happened.
    #[error("unavailable: {reason}")]
    Unavailable { reason: String },
    /// Send the same id again.
    #[error("the outcome is unknown: {reason}")]
    OutcomeUnknown { reason: String },
}

/// What was decided for a request, as it is stored: enough to compare a later command field by field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    pub account: AccountId,
    pub request: RequestId,
    /// `None` for an abandoned id, whose command was never seen.
    pub operation: Option<Operation>,
    pub outcome: Outcome,
}

/// Everything that one decided task changes. Stores apply it and write it; replaying it decides nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub request: Option<RequestRecord>,
    /// An account row opened or replaced.
    pub account: Option<Account>,
    /// In the order in which they happened; versions of a slot rise by one.
    pub entries: Vec<Entry>,
    pub pending_added: Vec<(AccountId, Pending)>,
    /// Numbers of pending rows that have become entries here.
    pub pending_settled: Vec<(AccountId, u64)>,
    /// Holds placed or changed here, each once and as it became. One that has ended is gone from the rows.
    pub holds: Vec<(AccountId, Hold)>,
}

impl Changes {
    /// The accounts whose rows change, each once: at most two, the task's own and a transfer's target.
    pub fn accounts(&self) -> impl Iterator<Item = &AccountId> {
        let opened = self.account.iter().map(|account| &account.id);
        let entered = self.entries.iter().map(|entry| &entry.account);
        let added = self.pending_added.iter().map(|(account, _)| account);
        // What settles or is held has an entry, so it is named already.
        let mut all = opened.chain(entered).chain(added);
        let first = all.next();
        let second = first.and_then(|first| all.find(|id| *id != first));
        first.into_iter().chain(second)
    }

    /// Holds that ended here, by account. A store keeps them for look-ups and late captures.
    pub fn ended_holds(&self) -> impl Iterator<Item = (&AccountId, &Hold)> {
        let all = self.holds.iter().map(|(account, hold)| (account, hold));
        all.filter(|(_, hold)| hold.state != HoldState::Open)
    }

    /// One of them.
    #[must_use]
    pub fn ended_hold(&self, account: &AccountId, hold: &RequestId) -> Option<&Hold> {
        let mut ended = self.ended_holds();
        ended
            .find(|(of, found)| *of == account && found.id == *hold)
            .map(|(_, found)| found)
    }

    /// The request that was reversed here: its account, its id, and the reversal's. A store keeps it, so that nothing
    /// is reversed twice.
    #[must_use]
    pub fn reversal(&self) -> Option<(&AccountId, &RequestId, &RequestId)> {
        let record = self.request.as_ref()?;
        let reverses = record.operation.as_ref()?.reverses()?;
        match record.outcome {
            Outcome::Posted(_) => Some((&record.account, reverses, &record.request)),
            Outcome::Amended(_) | Outcome::Refused(_) => None,
        }
    }
}

impl EntryKind {
    /// Every one.
    pub const ALL: [Self; 10] = [
        Self::Credit,
        Self::Debit,
        Self::TransferIn,
        Self::TransferOut,
        Self::Consolidate,
        Self::Settle,
        Self::Hold,
        Self::Capture,
        Self::Release,
        Self::Reversal,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Credit => "credit",
            Self::Debit => "debit",
            Self::TransferIn => "transfer_in",
            Self::TransferOut => "transfer_out",
            Self::Consolidate => "consolidate",
            Self::Settle => "settle",
            Self::Hold => "hold",
            Self::Capture => "capture",
            Self::Release => "release",
            Self::Reversal => "reversal",
        }
    }
}
