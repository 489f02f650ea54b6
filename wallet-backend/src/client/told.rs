//! What the wallet tells, as types.

use crate::account::{AccountId, CreditMode, DebitMode, Entry, Slot, Status};
use crate::command::{PastView, Receipt};
use crate::money::Currency;

use super::error::{CallError, Problem};

/// What a request id became, for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// `replayed`: an earlier attempt did it, and this is what was answered then.
    Done { told: T, replayed: bool },
    /// Refused for a reason of business. The id is used up.
    Refused(Problem),
}

/// What was done under a request id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// Money was moved, held or given back.
    Receipt(Receipt),
    /// The account was changed; this is what it became.
    Account(AccountState),
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batched {
    /// `false` for an atomic batch of which something was refused: then nothing of it was done, and every id that was
    /// free is free. Nothing is kept of such a refusal, so an earlier attempt whose answer was lost may still arrive and
    /// be done whole: [`Client::abandon`](super::Client::abandon) of one of its ids rules that out.
    pub applied: bool,
    /// One for each command, in their order, as its own call would have ended.
    pub results: Vec<Result<Outcome<Receipt>, CallError>>,
}

/// What is known of a request id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestState {
    /// Not decided here YET: only the same id again, or [`Client::abandon`](super::Client::abandon), is safe.
    NotFound,
    InProgress,
    Decided(Outcome<Done>),
}

/// An account with its money, at one cut. Amounts are minor units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountState {
    pub id: AccountId,
    pub currency: Currency,
    pub status: Status,
    pub floor: i64,
    pub credit: CreditMode,
    pub debit: DebitMode,
    /// Slots + held + pending.
    pub balance: i64,
    /// Balance - held - floor, not under 0.
    pub available: i64,
    pub held: i64,
    pub pending: i64,
    /// Ascending.
    pub slots: Vec<Slot>,
}

/// Accounts in the order of their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountPage {
    pub accounts: Vec<AccountState>,
    /// Goes into `after`. Opaque.
    pub next: String,
}

/// A page of a statement: per slot in version order, without gap or repeat across pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementPage {
    pub entries: Vec<Entry>,
    /// Goes into `after`, or says of which moment [`Client::past`](super::Client::past) is asked. Opaque.
    pub next: String,
}

/// What an account had at a moment of its past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    pub view: PastView,
    /// Its place in the statement: what comes after it is later. Opaque.
    pub cursor: String,
}

impl<T> Outcome<T> {
    /// What was done.
    ///
    /// # Errors
    /// The refusal.
    pub fn done(self) -> Result<T, Problem> {
        match self {
            Self::Done { told, .. } => Ok(told),
            Self::Refused(problem) => Err(problem),
        }
    }

    pub(super) fn and_then<U, E>(self, read: impl FnOnce(T) -> Result<U, E>) -> Result<Outcome<U>, E> {
        Ok(match self {
            Self::Done { told, replayed } => Outcome::Done {
                told: read(told)?,
                replayed,
            },
            Self::Refused(problem) => Outcome::Refused(problem),
        })
    }
}
