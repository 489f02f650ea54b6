//! Waiting for an answer, and for how long.

use tokio::sync::oneshot;

use super::{ANSWER_WITHIN, REPEAT_WITHIN};
use crate::account::{AccountId, RequestId};
use crate::command::{Answer, LedgerError};
use crate::sync::timeout;

/// The place of a queued task or batch. Dropped, it is decided all the same.
#[derive(Debug)]
pub struct Ticket {
    pub(super) answer: oneshot::Receiver<Result<Answer, LedgerError>>,
    /// The task's id, where it was being decided already.
    pub(super) repeats: Option<(AccountId, RequestId)>,
}

impl Ticket {
    /// Waits for the durable answer.
    ///
    /// # Errors
    /// What the ledger answers; `InProgress` after [`REPEAT_WITHIN`] where the id was being decided already;
    /// `OutcomeUnknown` after [`ANSWER_WITHIN`].
    pub async fn answer(self) -> Result<Answer, LedgerError> {
        let within = if self.repeats.is_some() {
            REPEAT_WITHIN
        } else {
            ANSWER_WITHIN
        };
        match timeout(within, self.answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(unknown("the store stopped before it answered")),
            Err(_) => Err(match self.repeats {
                Some((account, request)) => LedgerError::InProgress { account, request },
                None => unknown("no answer came in time"),
            }),
        }
    }
}

fn unknown(reason: &str) -> LedgerError {
    let reason = reason.to_owned();
    LedgerError::OutcomeUnknown { reason }
}
