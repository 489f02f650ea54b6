//! The decision: a task and the rows it needs in, changes and an answer out. The same code for every store.
//!
//! Order of checks: fields, request id, account, status, operation, funds. A refusal of business is an outcome: its
//! only change is its own record. A missing account, hold or original, a reused id or a field out of range changes
//! nothing at all.
//!
//! ```text
//! prior record -> replay, or the first differing field    no record -> execute -> record + entries + pending + holds
//! ```

use self::execute::{Stop, execute};
use crate::account::{Account, AccountId, DebitMode, Hold, RequestId, Status, Timestamp};
use crate::command::{
    Answer, Changes, Command, LedgerError, MAX_MEMO_BYTES, Operation, Outcome, Posting, Refusal,
    RequestRecord, Task,
};
use crate::ledger::draft::Draft;
use crate::ledger::invariants::Violation;
use crate::ledger::rows::AccountRows;
use crate::ledger::slots::plan_tidy;
use crate::money::MAX_AMOUNT;
use crate::mutants::{Mutant, is_on};

mod amend;
mod execute;
mod holds;
mod reversals;

/// What a decision depends on beside rows and task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    pub now: Timestamp,
    /// Which slot a credit prefers, modulo the slots that there are. Any number is right; a spread one is fast.
    pub prefer: u64,
}

/// The rows that a task needs, as they are before it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows<'a> {
    /// What is filed under the task's own (account, request id).
    pub prior: Option<&'a RequestRecord>,
    /// The rows of [`Task::account`].
    pub own: Option<&'a AccountRows>,
    /// The rows of [`Task::target`].
    pub target: Option<&'a AccountRows>,
    /// Of a capture or a release, how its hold ended, where it has ended. An open one is among `own`.
    pub ended: Option<&'a Hold>,
    /// Of a reversal, what is filed under the request that it undoes.
    pub original: Option<&'a RequestRecord>,
    /// The request that reversed the original already.
    pub reversed_by: Option<&'a RequestId>,
}

/// What to write, and what to answer once it is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Empty for a replay and for a job that found nothing to do.
    pub changes: Changes,
    pub reply: Reply,
}

/// What to say to whoever asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The outcome that is in the changes, where the request is filed.
    Filed,
    Ready(Answer),
    /// Nothing yet: these changes come first, whole in themselves; once they are applied the task is decided again.
    /// Each time there are fewer pending rows and expired holds, so it ends.
    Again,
}

impl Reply {
    /// The answer to give once `changes`, those of the same decision, are durable; `None` for [`Reply::Again`].
    #[must_use]
    pub fn answer(self, changes: &Changes) -> Option<Answer> {
        match self {
            Self::Filed => changes.request.clone().map(filed),
            Self::Ready(answer) => Some(answer),
            Self::Again => None,
        }
    }
}

impl Decision {
    fn ready(changes: Changes, answer: Answer) -> Self {
        let reply = Reply::Ready(answer);
        Self { changes, reply }
    }

    /// The same as [`Reply::answer`], out of the changes: for who has written them.
    #[must_use]
    pub fn take_answer(&mut self) -> Option<Answer> {
        match std::mem::replace(&mut self.reply, Reply::Again) {
            Reply::Filed => self.changes.request.take().map(filed),
            Reply::Ready(answer) => Some(answer),
            Reply::Again => None,
        }
    }
}

fn filed(record: RequestRecord) -> Answer {
    Answer::Decided {
        outcome: record.outcome,
        replayed: false,
    }
}

/// Decides one task.
///
/// # Errors
/// A [`LedgerError`] that is never stored: `Invalid`, `AccountNotFound`, `AccountExists`, `RequestReused`, and
/// `Unavailable` where the rows contradict themselves.
pub fn decide(task: &Task, rows: Rows<'_>, context: Context) -> Result<Decision, LedgerError> {
    match task {
        Task::Open(account) => open(account, rows.own, context.now),
        Task::Run(command) => run(command, rows, context),
        Task::Abandon { account, request } => abandon(account, request, rows),
        Task::Tidy { account } => {
            let own = rows.own.ok_or_else(|| not_found(account, "account_id"))?;
            tidy(own, context)
        }
    }
}

fn open(account: &Account, own: Option<&AccountRows>, now: Timestamp) -> Result<Decision, LedgerError> {
    check_account(account)?;
    if let Some(own) = own {
        if let Some(field) = first_other_term(own.account(), account) {
            let account = account.id.clone();
            return Err(LedgerError::AccountExists { account, field });
        }
        let answer = Answer::Opened {
            account: own.view(now),
            created: false,
        };
        return Ok(Decision::ready(Changes::default(), answer));
    }
    let changes = Changes {
        account: Some(account.clone()),
        ..Changes::default()
    };
    let answer = Answer::Opened {
        account: AccountRows::open(account.clone()).view(now),
        created: true,
    };
    Ok(Decision::ready(changes, answer))
}

fn check_account(account: &Account) -> Result<(), LedgerError> {
    check_floor(account.floor)?;
    if account.debit == DebitMode::Hashed && account.floor != 0 {
        return Err(invalid("floor", NO_FLOOR));
    }
    if account.status != Status::Active {
        return Err(invalid("status", "must be active when an account is opened"));
    }
    Ok(())
}

/// Two hashed debits at once would each see the whole sum, so their account can have no floor.
const NO_FLOOR: &str = "must be 0 where debits are hashed";

fn check_floor(floor: i64) -> Result<(), LedgerError> {
    if (0..=MAX_AMOUNT).contains(&floor) {
        Ok(())
    } else {
        Err(invalid("floor", format!("must be 0 to {MAX_AMOUNT}")))
    }
}

/// The status is not compared: it is not among what an account is opened with.
fn first_other_term(old: &Account, new: &Account) -> Option<&'static str> {
    let same = [
        ("currency", old.currency == new.currency),
        ("slots", old.slots == new.slots),
        ("credit", old.credit == new.credit),
        ("debit", old.debit == new.debit),
        ("floor", old.floor == new.floor),
    ];
    same.into_iter().find(|(_, same)| !same).map(|(field, _)| field)
}

fn run(command: &Command, rows: Rows<'_>, context: Context) -> Result<Decision, LedgerError> {
    check_command(command)?;
    if let Some(prior) = rows.prior
        && !forgotten(prior, context.now)
    {
        return replay(prior, command);
    }
    let mut changes = Changes::default();
    let outcome = match execute(command, rows, context, &mut changes) {
        Ok(outcome) => outcome,
        Err(Stop::Refused(refusal)) => {
            if !is_on(Mutant::KeepsHalfOfARefusal) {
                changes = Changes::default();
            }
            Outcome::Refused(refusal)
        }
        Err(Stop::Failed(error)) => return Err(error),
        Err(Stop::Again) => {
            let reply = Reply::Again;
            return Ok(Decision { changes, reply });
        }
    };
    let operation = Some(command.operation.clone());
    let (account, request) = (command.account.clone(), command.request.clone());
    Ok(first_decision(changes, account, request, operation, outcome))
}

/// Whether a mutant takes a decided id for one that was never used.
fn forgotten(prior: &RequestRecord, now: Timestamp) -> bool {
    let age = match &prior.outcome {
        Outcome::Posted(receipt) => now.0.saturating_sub(receipt.at.0),
        Outcome::Amended(_) | Outcome::Refused(_) => 0,
    };
    let posted_debit = matches!(prior.operation, Some(Operation::Debit { .. }))
        && matches!(prior.outcome, Outcome::Posted(_));
    is_on(Mutant::ForgetsAfterAWhile) && age > 2_000_000
        || is_on(Mutant::RunsRepeatsAgain) && posted_debit
        || is_on(Mutant::RedecidesRefusals) && matches!(prior.outcome, Outcome::Refused(_))
}

fn first_decision(
    mut changes: Changes,
    account: AccountId,
    request: RequestId,
    operation: Option<Operation>,
    outcome: Outcome,
) -> Decision {
    changes.request = Some(RequestRecord {
        account,
        request,
        operation,
        outcome,
    });
    let reply = Reply::Filed;
    Decision { changes, reply }
}

fn check_command(command: &Command) -> Result<(), LedgerError> {
    if command
        .operation
        .memo()
        .is_some_and(|memo| memo.len() > MAX_MEMO_BYTES)
    {
        let reason = format!("must be at most {MAX_MEMO_BYTES} bytes long");
        return Err(invalid("memo", reason));
    }
    if command.operation.target() == Some(&command.account) {
        return Err(invalid("to", "must be another account"));
    }
    match &command.operation {
        Operation::Amend(amendment) => amend::check(amendment),
        Operation::Credit { .. }
        | Operation::Debit { .. }
        | Operation::Hold { .. }
        | Operation::Capture { .. }
        | Operation::Release { .. }
        | Operation::Transfer { .. }
        | Operation::Reversal { .. } => Ok(()),
    }
}

fn replay(prior: &RequestRecord, command: &Command) -> Result<Decision, LedgerError> {
    // An abandoned id has no command to differ from: it refuses whatever comes.
    let field = prior
        .operation
        .as_ref()
        .and_then(|operation| operation.first_other_field(&command.operation));
    match field {
        Some(field) if !is_on(Mutant::TakesOthersForRepeats) => Err(LedgerError::RequestReused {
            account: command.account.clone(),
            request: command.request.clone(),
            field,
        }),
        Some(_) | None => Ok(repeat(prior)),
    }
}

fn repeat(prior: &RequestRecord) -> Decision {
    let mut outcome = prior.outcome.clone();
    if let Outcome::Posted(receipt) = &mut outcome
        && is_on(Mutant::TellsRepeatsAnew)
    {
        receipt.posting = Posting::Posted;
    }
    let answer = Answer::Decided {
        outcome,
        replayed: true,
    };
    Decision::ready(Changes::default(), answer)
}

fn abandon(account: &AccountId, request: &RequestId, rows: Rows<'_>) -> Result<Decision, LedgerError> {
    if let Some(prior) = rows.prior {
        return Ok(repeat(prior));
    }
    rows.own.ok_or_else(|| not_found(account, "account_id"))?;
    let outcome = Outcome::Refused(Refusal::Abandoned);
    let (account, request) = (account.clone(), request.clone());
    Ok(first_decision(
        Changes::default(),
        account,
        request,
        None,
        outcome,
    ))
}

fn tidy(own: &AccountRows, context: Context) -> Result<Decision, LedgerError> {
    let plan = plan_tidy(own, context.now);
    let mut changes = Changes::default();
    let mut draft = Draft::new(own, context.now, &mut changes);
    draft.expire(plan.expire).map_err(contradiction)?;
    draft.settle(plan.settle).map_err(contradiction)?;
    draft.shift(&plan.shifts, None).map_err(contradiction)?;
    let left = own.expired(context.now).nth(plan.expire).is_some();
    let more = left || own.pending().len() > plan.settle;
    Ok(Decision::ready(changes, Answer::Tidied { more }))
}

fn not_found(account: &AccountId, field: &'static str) -> LedgerError {
    let account = account.clone();
    LedgerError::AccountNotFound { account, field }
}

fn invalid(field: &'static str, reason: impl Into<String>) -> LedgerError {
    let reason = reason.into();
    LedgerError::Invalid { field, reason }
}

/// The rows contradict the rules that every decision keeps: nothing was changed, and nothing more can be said.
fn contradiction(violation: Violation) -> LedgerError {
    let reason = violation.to_string();
    LedgerError::Unavailable { reason }
}
