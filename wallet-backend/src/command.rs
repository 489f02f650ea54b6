//! What may be asked of the ledger, and everything it can answer. Closed sets.
//!
//! Three kinds of answer are kept apart. An [`Outcome`] (posted, or refused for a reason of business) is stored with
//! its request and repeated byte for byte. A [`LedgerError`] is never stored: the same request may succeed later.
//! [`LedgerError::OutcomeUnknown`] says that only sending the same id again can tell.

use crate::account::{Account, AccountId, Entry, EntryKind, Pending, RequestId, Slot, SlotIndex, Timestamp};
use crate::money::{Amount, Currency};

/// The longest memo, in bytes.
pub const MAX_MEMO_BYTES: usize = 256;

/// A request to move money: what is stored and compared when its id comes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The account whose request ids this one belongs to; of a transfer, the source.
    pub account: AccountId,
    pub request: RequestId,
    pub operation: Operation,
}

/// What a [`Command`] does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    Credit {
        amount: Amount,
        memo: Option<Box<str>>,
    },
    Debit {
        amount: Amount,
        memo: Option<Box<str>>,
    },
    /// `to` is never the command's own account.
    Transfer {
        to: AccountId,
        amount: Amount,
        memo: Option<Box<str>>,
    },
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
    /// Settles pending credits and consolidates slots. The job's own; never stored.
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

    /// The other account whose rows the task needs: of a transfer, the target.
    #[must_use]
    pub fn target(&self) -> Option<&AccountId> {
        match self {
            Self::Run(command) => command.operation.target(),
            Self::Open(_) | Self::Abandon { .. } | Self::Tidy { .. } => None,
        }
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

impl Operation {
    /// Of a transfer, the account that it goes to.
    #[must_use]
    pub const fn target(&self) -> Option<&AccountId> {
        match self {
            Self::Transfer { to, .. } => Some(to),
            Self::Credit { .. } | Self::Debit { .. } => None,
        }
    }

    /// What it moves.
    #[must_use]
    pub const fn amount(&self) -> Amount {
        match self {
            Self::Credit { amount, .. } | Self::Debit { amount, .. } | Self::Transfer { amount, .. } => {
                *amount
            }
        }
    }

    /// The note that came with it, at most [`MAX_MEMO_BYTES`] long.
    #[must_use]
    pub fn memo(&self) -> Option<&str> {
        match self {
            Self::Credit { memo, .. } | Self::Debit { memo, .. } | Self::Transfer { memo, .. } => {
                memo.as_deref()
            }
        }
    }

    /// What its receipt is for.
    #[must_use]
    pub const fn kind(&self) -> ReceiptKind {
        match self {
            Self::Credit { .. } => ReceiptKind::Credit,
            Self::Debit { .. } => ReceiptKind::Debit,
            Self::Transfer { .. } => ReceiptKind::Transfer,
        }
    }
}

/// What a request became. Stored, and repeated for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Posted(Receipt),
    Refused(Refusal),
}

/// Proof of what was done: the operation's own legs only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub account: AccountId,
    pub request: RequestId,
    pub kind: ReceiptKind,
    pub amount: Amount,
    pub currency: Currency,
    pub posting: Posting,
    pub at: Timestamp,
    /// Both legs of a transfer, source first; a pending leg is absent.
    pub legs: Vec<Leg>,
}

/// The operation that a receipt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptKind {
    Credit,
    Debit,
    Transfer,
}

/// Whether every leg has reached a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posting {
    Posted,
    /// A credit waits in the pending rows; the money is the account's already.
    Pending,
}

/// One entry of a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leg {
    pub account: AccountId,
    pub slot: SlotIndex,
    pub version: u64,
    pub delta: i64,
    pub held_delta: i64,
    /// The slot's balance after, in minor units.
    pub balance_after: i64,
}

impl From<&Entry> for Leg {
    fn from(entry: &Entry) -> Self {
        Self {
            account: entry.account.clone(),
            slot: entry.slot,
            version: entry.version,
            delta: entry.delta,
            held_delta: entry.held_delta,
            balance_after: entry.balance_after,
        }
    }
}

impl Outcome {
    /// What a look-up shows once the pending credit has reached a slot by `leg`. A replay goes on repeating the
    /// outcome as it was stored.
    #[must_use]
    pub fn settled_by(mut self, leg: Leg) -> Self {
        if let Self::Posted(receipt) = &mut self
            && receipt.posting == Posting::Pending
        {
            receipt.posting = Posting::Posted;
            receipt.legs.push(leg);
        }
        self
    }
}

/// A refusal for a reason of business. Sticky: the same id answers it again even when the reason is gone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{account} has {available} available, {asked} was asked for")]
    InsufficientFunds {
        account: AccountId,
        asked: i64,
        available: i64,
    },
    #[error("{account} is frozen for this operation")]
    AccountFrozen { account: AccountId },
    #[error("{account} is closed")]
    AccountClosed { account: AccountId },
    #[error("{account} cannot take {asked} more")]
    BalanceLimit { account: AccountId, asked: i64 },
    #[error("{from} and {to} are different currencies")]
    CurrencyMismatch { from: Currency, to: Currency },
    #[error("the request was abandoned before it was decided")]
    Abandoned,
}

/// What the store answers to one [`Task`], once everything the decision saw is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// `created` is false where the same account was opened before.
    Opened { account: AccountView, created: bool },
    /// `replayed`: the id was decided earlier, and this is that outcome.
    Decided { outcome: Outcome, replayed: bool },
    /// `more`: pending rows are left, which the next task settles.
    Tidied { more: bool },
}

/// An answer that is not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// Nobody could run this: the types of its fields allow it, the ledger does not.
    #[error("{field} {reason}")]
    Invalid { field: &'static str, reason: String },
    #[error("no account {account}")]
    AccountNotFound { account: AccountId, field: &'static str },
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
    /// Provably nothing happened.
    #[error("unavailable: {reason}")]
    Unavailable { reason: String },
    /// Send the same id again.
    #[error("the outcome is unknown: {reason}")]
    OutcomeUnknown { reason: String },
}

/// An account with its money, at one cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountView {
    pub account: Account,
    /// Every slot row, ascending; at least `account.slots` of them.
    pub slots: Vec<Slot>,
    /// Minor units in unexpired holds.
    pub held: i64,
    /// Minor units accepted and not yet in a slot.
    pub pending: i64,
}

impl AccountView {
    /// Slots + held + pending, in minor units.
    #[must_use]
    pub fn balance(&self) -> i64 {
        self.slots
            .iter()
            .map(|slot| slot.balance)
            .fold(self.held.saturating_add(self.pending), i64::saturating_add)
    }

    /// Balance - held - floor, not under 0. The status does not enter into it.
    #[must_use]
    pub fn available(&self) -> i64 {
        self.balance()
            .saturating_sub(self.held)
            .saturating_sub(self.account.floor)
            .max(0)
    }
}

/// What is known of a request id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestView {
    /// Not decided here YET: only sending the same id again is safe.
    NotFound,
    InProgress,
    Decided(Outcome),
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
}

impl Changes {
    /// The accounts whose rows change, each once: at most two, the task's own and a transfer's target.
    #[must_use]
    pub fn accounts(&self) -> Vec<&AccountId> {
        let mut ids: Vec<&AccountId> = Vec::with_capacity(2);
        let opened = self.account.iter().map(|account| &account.id);
        let entered = self.entries.iter().map(|entry| &entry.account);
        let added = self.pending_added.iter().map(|(account, _)| account);
        // What settles has an entry, so it is named already.
        for id in opened.chain(entered).chain(added) {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids
    }
}

impl EntryKind {
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
        }
    }
}
