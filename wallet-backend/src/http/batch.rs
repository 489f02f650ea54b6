//! `POST /v1/batches`: many operations, one answer, with a status each.

use serde::Serialize;
use serde::ser::Serializer;

use super::error::Problem;
use super::metrics::{Metrics, OperationResult, OperationType};
use super::view::{AccountJson, ReceiptJson};
use super::wire::SentBatch;
use crate::Wallet;
use crate::command::{Batch, BatchMode, Batched, Decided, LedgerError, Outcome};

/// The body of the answer.
#[derive(Serialize)]
pub(super) struct BatchJson {
    /// `false`: of an atomic batch something was refused, and nothing of it was done.
    applied: bool,
    results: Results,
}

/// One for each operation, in their order.
struct Results(Vec<Result<Decided, Problem>>);

#[derive(Serialize)]
struct ResultJson<'a> {
    /// What the single route would have answered.
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<ReceiptJson<'a>>,
    /// In place of a receipt, of an operation that changed the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<AccountJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

/// Runs a batch and counts its operations. One that is no command has its 400 in its place; an atomic batch with such
/// a one is refused for it before anything is decided.
///
/// # Errors
/// Those of the batch as a whole.
pub(super) async fn run(
    wallet: &Wallet,
    metrics: &Metrics,
    sent: SentBatch,
) -> Result<BatchJson, LedgerError> {
    let SentBatch { mode, operations } = sent;
    if mode == BatchMode::Atomic
        && let Some(culprit) = operations.iter().position(Result::is_err)
    {
        let results = operations.into_iter().enumerate();
        let results = results.map(|(place, operation)| match operation {
            Err(problem) if place == culprit => Err(problem),
            Ok(_) | Err(_) => Err(LedgerError::BatchAborted { culprit }.into()),
        });
        return Ok(BatchJson {
            applied: false,
            results: Results(results.collect()),
        });
    }
    let kinds: Vec<_> = operations
        .iter()
        .flatten()
        .map(|command| OperationType::from(&command.operation))
        .collect();
    let mut commands = Vec::with_capacity(operations.len());
    let places: Vec<Option<Problem>> = operations
        .into_iter()
        .map(|operation| operation.map(|command| commands.push(command)).err())
        .collect();
    let Batched { applied, results } = match wallet.batch(Batch::new(commands, mode)?).await {
        Ok(batched) => batched,
        Err(error) => {
            let result = OperationResult::Problem(Problem::from(error.clone()).code());
            metrics.count_all(kinds.into_iter().map(|kind| (kind, result)));
            return Err(error);
        }
    };
    let counted = results.iter().map(OperationResult::from);
    metrics.count_all(kinds.into_iter().zip(counted));
    let mut results = results.into_iter().map(|result| result.map_err(Problem::from));
    let in_place = places.into_iter().filter_map(|place| match place {
        Some(problem) => Some(Err(problem)),
        None => results.next(),
    });
    Ok(BatchJson {
        applied,
        results: Results(in_place.collect()),
    })
}

impl Serialize for Results {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(ResultJson::from))
    }
}

impl<'a> From<&'a Result<Decided, Problem>> for ResultJson<'a> {
    fn from(result: &'a Result<Decided, Problem>) -> Self {
        let json = |status| ResultJson {
            status,
            receipt: None,
            account: None,
            problem: None,
        };
        let refused = |problem: Problem| {
            let status = problem.code().status().as_u16();
            ResultJson {
                problem: Some(problem),
                ..json(status)
            }
        };
        match result {
            Ok(decided) => match &decided.outcome {
                Outcome::Posted(receipt) => ResultJson {
                    receipt: Some(receipt.into()),
                    ..json(if decided.replayed { 200 } else { 201 })
                },
                Outcome::Amended(view) => ResultJson {
                    account: Some(view.as_ref().into()),
                    ..json(200)
                },
                Outcome::Refused(refusal) => refused(refusal.into()),
            },
            Err(problem) => refused(problem.clone()),
        }
    }
}
