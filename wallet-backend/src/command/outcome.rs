//! What a request can become: a receipt, an amended account, a refusal. Stored with the request, and repeated for ever.

use crate::account::{AccountId, Entry, HoldState, RequestId, SlotIndex, Timestamp};
use crate::command::AccountView;
use crate::money::{Amount, Currency};

/// What a request became. Stored, and repeated for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Posted(Receipt),
    /// The account as it became.
    Amended(Box<AccountView>),
    Refused(Refusal),
}

/// What became of a command: its outcome, now or earlier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    pub outcome: Outcome,
    /// It was decided earlier, and this is that outcome.
    pub replayed: bool,
}

/// Proof of what was done: the operation's own legs only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub account: AccountId,
    pub request: RequestId,
    pub kind: ReceiptKind,
    /// What was moved, held, captured or given back.
    pub amount: Amount,
    pub currency: Currency,
    pub posting: Posting,
    pub at: Timestamp,
    /// What takes comes first; a pending leg is absent. Of a transfer both legs, and of its reversal; of a final
    /// capture what was captured and, where something was left, what went back.
    pub legs: Vec<Leg>,
}

/// The operation that a receipt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptKind {
    Credit,
    Debit,
    Hold,
    Capture,
    Release,
    Transfer,
    Reversal,
}

impl ReceiptKind {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::Credit,
        Self::Debit,
        Self::Hold,
        Self::Capture,
        Self::Release,
        Self::Transfer,
        Self::Reversal,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Credit => "credit",
            Self::Debit => "debit",
            Self::Hold => "hold",
            Self::Capture => "capture",
            Self::Release => "release",
            Self::Transfer => "transfer",
            Self::Reversal => "reversal",
        }
    }
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

impl Leg {
    /// Whether it is this entry's.
    #[must_use]
    pub fn is(&self, entry: &Entry) -> bool {
        let Self {
            account,
            slot,
            version,
            delta,
            held_delta,
            balance_after,
        } = self;
        (*slot, *version) == (entry.slot, entry.version)
            && (*delta, *held_delta) == (entry.delta, entry.held_delta)
            && *balance_after == entry.balance_after
            && *account == entry.account
    }
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
    /// Proven: all that could be taken at that moment was `available`. `asked` is 1, the least there can be, for a
    /// debit of all there is, and the floor itself where it cannot be raised to that.
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
    /// `balance` is what is in slots, held and pending.
    #[error("{account} still has {balance}")]
    AccountNotEmpty { account: AccountId, balance: i64 },
    #[error("hold {hold} is {} already", state.as_str())]
    HoldNotOpen { hold: RequestId, state: HoldState },
    #[error("hold {hold} has {rest} left, {asked} was asked for")]
    HoldExceeded { hold: RequestId, asked: i64, rest: i64 },
    /// `by` is the request that did it.
    #[error("{reverses} was reversed by {by}")]
    AlreadyReversed { reverses: RequestId, by: RequestId },
    #[error("{reverses} is no credit, debit, transfer or capture that was done")]
    NotReversible { reverses: RequestId },
    #[error("the request was abandoned before it was decided")]
    Abandoned,
}

impl Refusal {
    /// The `code` with which the API answers it.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InsufficientFunds { .. } => "insufficient_funds",
            Self::AccountFrozen { .. } => "account_frozen",
            Self::AccountClosed { .. } => "account_closed",
            Self::BalanceLimit { .. } => "balance_limit",
            Self::CurrencyMismatch { .. } => "currency_mismatch",
            Self::AccountNotEmpty { .. } => "account_not_empty",
            Self::HoldNotOpen { .. } => "hold_not_open",
            Self::HoldExceeded { .. } => "hold_exceeded",
            Self::AlreadyReversed { .. } => "already_reversed",
            Self::NotReversible { .. } => "not_reversible",
            Self::Abandoned => "abandoned",
        }
    }
}
