//! Entrances for the fuzz targets: bodies to tasks, answers to JSON, without a server around them.
//!
//! Behind the feature `fuzzing`; no part of the API.

use axum::response::IntoResponse as _;
use http::StatusCode;

use super::error::Problem;
use super::view::{AccountJson, ReceiptJson};
use super::wire;
use crate::account::{AccountId, RequestId};
use crate::command::{Batch, Decided, LedgerError, Outcome, Task, Work};

/// A route that reads a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    Open,
    Amend,
    Credit,
    Debit,
    Hold,
    Capture,
    Release,
    Reversal,
    Transfer,
    Abandon,
    Batch,
}

/// What stands around a body: the ids of the path, and the `Idempotency-Key` header.
#[derive(Clone, Debug)]
pub struct Head {
    pub account: AccountId,
    /// The hold, or the request, that the path names.
    pub id: RequestId,
    pub key: Option<RequestId>,
}

impl Route {
    /// Every one.
    pub const ALL: [Self; 11] = [
        Self::Open,
        Self::Amend,
        Self::Credit,
        Self::Debit,
        Self::Hold,
        Self::Capture,
        Self::Release,
        Self::Reversal,
        Self::Transfer,
        Self::Abandon,
        Self::Batch,
    ];

    /// What a request on this route asks for; of a batch without the operations that are none, whose problems come
    /// beside it.
    ///
    /// # Errors
    /// 400 `invalid_request`.
    pub fn read(self, head: Head, body: &[u8]) -> Result<(Work, Vec<Problem>), Problem> {
        let Head { account, id, key } = head;
        let command = match self {
            Self::Open => return wire::open(body).map(|account| alone(Task::Open(account))),
            Self::Abandon => {
                wire::nothing(body)?;
                let request = wire::one_request_id(key, Some(id))?;
                return Ok(alone(Task::Abandon { account, request }));
            }
            Self::Batch => return batch(body),
            Self::Amend => wire::amend(account, key, body),
            Self::Credit => wire::credit(account, key, body),
            Self::Debit => wire::debit(account, key, body),
            Self::Hold => wire::hold(account, key, body),
            Self::Capture => wire::capture((account, id), key, body),
            Self::Release => wire::release((account, id), key, body),
            Self::Reversal => wire::reversal(key, body),
            Self::Transfer => wire::transfer(key, body),
        };
        command.map(|command| alone(Task::Run(command)))
    }
}

fn alone(task: Task) -> (Work, Vec<Problem>) {
    (task.into(), Vec::new())
}

fn batch(body: &[u8]) -> Result<(Work, Vec<Problem>), Problem> {
    let sent = wire::batch(body)?;
    let (mut commands, mut problems) = (Vec::new(), Vec::new());
    for operation in sent.operations {
        match operation {
            Ok(command) => commands.push(command),
            Err(problem) => problems.push(problem),
        }
    }
    Ok((Batch::new(commands, sent.mode)?.into(), problems))
}

/// The status and the body of a problem.
#[must_use]
pub fn refused(problem: &Problem) -> (StatusCode, Vec<u8>) {
    let status = problem.clone().into_response().status();
    (status, serde_json::to_vec(problem).unwrap_or_default())
}

/// The body of what was decided; of a problem, as [`refused`] has it.
#[must_use]
pub fn written(decided: &Result<Decided, LedgerError>) -> Vec<u8> {
    let json = match decided {
        Ok(decided) => match &decided.outcome {
            Outcome::Posted(receipt) => serde_json::to_vec(&ReceiptJson::from(receipt)),
            Outcome::Amended(view) => serde_json::to_vec(&AccountJson::from(view.as_ref())),
            Outcome::Refused(refusal) => serde_json::to_vec(&Problem::from(refusal)),
        },
        Err(error) => serde_json::to_vec(&Problem::from(error.clone())),
    };
    json.unwrap_or_default()
}
