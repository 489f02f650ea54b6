//! The decision: a task and the rows it needs in, changes and an answer out. The same code for every store.
//!
//! Order of checks: fields, request id, account, status, operation, funds. A refusal of business is an outcome: its
//! only change is its own record. A missing account, a reused id or a field out of range changes nothing at all.
//!
//! ```text
//! prior record -> replay, or the first differing field         no record -> execute -> record + entries + pending
//! ```

use crate::account::{
    Account, AccountId, CreditMode, DebitMode, EntryKind, Link, RequestId, Status, Timestamp,
};
use crate::command::{
    Answer, Changes, Command, LedgerError, Leg, MAX_MEMO_BYTES, Operation, Outcome, Posting, Receipt,
    Refusal, RequestRecord, Task,
};
use crate::ledger::draft::Draft;
use crate::ledger::invariants::Violation;
use crate::ledger::rows::AccountRows;
use crate::ledger::slots::{
    DebitPlan, Short, may_wait, plan_credit, plan_debit, plan_hashed_debit, plan_tidy,
};
use crate::money::{Amount, MAX_AMOUNT};

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
}

/// What to write, and what to answer once it is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Empty for a replay and for a job that found nothing to do.
    pub changes: Changes,
    /// `None`: these changes come first, whole in themselves; once they are applied the task is decided again. Each
    /// time there are fewer pending rows, so it ends.
    pub answer: Option<Answer>,
}

/// Decides one task.
///
/// # Errors
/// A [`LedgerError`] that is never stored: `Invalid`, `AccountNotFound`, `AccountExists`, `RequestReused`, and
/// `Unavailable` where the rows contradict themselves.
pub fn decide(task: &Task, rows: Rows<'_>, context: Context) -> Result<Decision, LedgerError> {
    match task {
        Task::Open(account) => open(account, rows.own),
        Task::Run(command) => run(command, rows, context),
        Task::Abandon { account, request } => abandon(account, request, rows),
        Task::Tidy { account } => {
            let own = rows.own.ok_or_else(|| not_found(account, "account_id"))?;
            tidy(own, context)
        }
    }
}

fn open(account: &Account, own: Option<&AccountRows>) -> Result<Decision, LedgerError> {
    check_account(account)?;
    if let Some(own) = own {
        if let Some(field) = first_other_term(own.account(), account) {
            let account = account.id.clone();
            return Err(LedgerError::AccountExists { account, field });
        }
        return Ok(Decision {
            changes: Changes::default(),
            answer: Some(Answer::Opened {
                account: own.view(),
                created: false,
            }),
        });
    }
    let changes = Changes {
        account: Some(account.clone()),
        ..Changes::default()
    };
    let answer = Answer::Opened {
        account: AccountRows::open(account.clone()).view(),
        created: true,
    };
    let answer = Some(answer);
    Ok(Decision { changes, answer })
}

fn check_account(account: &Account) -> Result<(), LedgerError> {
    if !(0..=MAX_AMOUNT).contains(&account.floor) {
        return Err(invalid("floor", format!("must be 0 to {MAX_AMOUNT}")));
    }
    if account.debit == DebitMode::Hashed && account.floor != 0 {
        return Err(invalid("floor", "must be 0 where debits are hashed"));
    }
    if account.status != Status::Active {
        return Err(invalid("status", "must be active when an account is opened"));
    }
    Ok(())
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
    if let Some(prior) = rows.prior {
        return replay(prior, command);
    }
    let mut changes = Changes::default();
    let outcome = match execute(command, rows, context, &mut changes) {
        Ok(receipt) => Outcome::Posted(receipt),
        Err(Stop::Refused(refusal)) => {
            changes = Changes::default();
            Outcome::Refused(refusal)
        }
        Err(Stop::Failed(error)) => return Err(error),
        Err(Stop::Again) => {
            let answer = None;
            return Ok(Decision { changes, answer });
        }
    };
    let operation = Some(command.operation.clone());
    let (account, request) = (command.account.clone(), command.request.clone());
    Ok(first_decision(changes, account, request, operation, outcome))
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
        outcome: outcome.clone(),
    });
    let answer = Some(Answer::Decided {
        outcome,
        replayed: false,
    });
    Decision { changes, answer }
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
    Ok(())
}

fn replay(prior: &RequestRecord, command: &Command) -> Result<Decision, LedgerError> {
    // An abandoned id has no command to differ from: it refuses whatever comes.
    let field = prior
        .operation
        .as_ref()
        .and_then(|operation| first_other_field(operation, &command.operation));
    match field {
        Some(field) => Err(LedgerError::RequestReused {
            account: command.account.clone(),
            request: command.request.clone(),
            field,
        }),
        None => Ok(repeat(prior)),
    }
}

fn repeat(prior: &RequestRecord) -> Decision {
    Decision {
        changes: Changes::default(),
        answer: Some(Answer::Decided {
            outcome: prior.outcome.clone(),
            replayed: true,
        }),
    }
}

/// The first field in which two commands of one id differ, by its name on the wire.
fn first_other_field(old: &Operation, new: &Operation) -> Option<&'static str> {
    let same = [
        ("type", old.kind() == new.kind()),
        ("to", old.target() == new.target()),
        ("amount", old.amount() == new.amount()),
        ("memo", old.memo() == new.memo()),
    ];
    same.into_iter().find(|(_, same)| !same).map(|(field, _)| field)
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
    let plan = plan_tidy(own);
    let mut changes = Changes::default();
    let mut draft = Draft::new(own, context.now, &mut changes);
    draft.settle(plan.settle).map_err(contradiction)?;
    draft.shift(&plan.shifts, None).map_err(contradiction)?;
    let more = own.pending().len() > plan.settle;
    Ok(Decision {
        changes,
        answer: Some(Answer::Tidied { more }),
    })
}

/// Why a command has no receipt.
#[derive(Debug)]
enum Stop {
    Refused(Refusal),
    Failed(LedgerError),
    /// What was posted so far comes first.
    Again,
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Violation> for Stop {
    fn from(violation: Violation) -> Self {
        Self::Failed(contradiction(violation))
    }
}

/// Posts a command to `changes`, in the order account, status, operation, funds.
fn execute(
    command: &Command,
    rows: Rows<'_>,
    context: Context,
    changes: &mut Changes,
) -> Result<Receipt, Stop> {
    let own_field = match command.operation {
        Operation::Transfer { .. } => "from",
        Operation::Credit { .. } | Operation::Debit { .. } => "account_id",
    };
    let own = rows
        .own
        .ok_or_else(|| Stop::Failed(not_found(&command.account, own_field)))?;
    match &command.operation {
        Operation::Credit { amount, .. } => {
            check_takes_credits(own.account())?;
            let leg = credit(own, command, *amount, context, changes)?;
            Ok(receipt(own, command, context, leg.into_iter().collect()))
        }
        Operation::Debit { amount, .. } => {
            check_allows_debits(own.account())?;
            let plan = match own.account().debit {
                DebitMode::Primary => plan_debit(own, *amount),
                DebitMode::Hashed => plan_hashed_debit(own, *amount, &command.request),
            };
            let leg = debit(own, command, plan, context, changes)?;
            Ok(receipt(own, command, context, vec![leg]))
        }
        Operation::Transfer { to, amount, .. } => {
            let target = rows.target.ok_or_else(|| Stop::Failed(not_found(to, "to")))?;
            check_allows_debits(own.account())?;
            check_takes_credits(target.account())?;
            check_currencies(own.account(), target.account())?;
            let out = debit(own, command, plan_debit(own, *amount), context, changes)?;
            // The credit leg comes last and waits for nothing.
            let within = credit(target, command, *amount, context, changes)?;
            let legs = [out].into_iter().chain(within).collect();
            Ok(receipt(own, command, context, legs))
        }
    }
}

fn check_takes_credits(account: &Account) -> Result<(), Refusal> {
    let id = account.id.clone();
    match account.status {
        Status::Active | Status::DebitFrozen => Ok(()),
        Status::Frozen => Err(Refusal::AccountFrozen { account: id }),
        Status::Closed => Err(Refusal::AccountClosed { account: id }),
    }
}

fn check_allows_debits(account: &Account) -> Result<(), Refusal> {
    let id = account.id.clone();
    match account.status {
        Status::Active => Ok(()),
        Status::DebitFrozen | Status::Frozen => Err(Refusal::AccountFrozen { account: id }),
        Status::Closed => Err(Refusal::AccountClosed { account: id }),
    }
}

fn check_currencies(from: &Account, to: &Account) -> Result<(), Refusal> {
    if from.currency == to.currency {
        return Ok(());
    }
    Err(Refusal::CurrencyMismatch {
        from: from.currency,
        to: to.currency,
    })
}

/// Posts the credit, or a transfer's credit leg, to `rows`; `None` where it waits as a pending row.
fn credit(
    rows: &AccountRows,
    command: &Command,
    amount: Amount,
    context: Context,
    changes: &mut Changes,
) -> Result<Option<Leg>, Stop> {
    let (kind, link) = match &command.operation {
        Operation::Transfer { .. } => {
            let source = Link::Transfer(command.account.clone());
            (EntryKind::TransferIn, Some(source))
        }
        Operation::Credit { .. } | Operation::Debit { .. } => (EntryKind::Credit, None),
    };
    let limit = || Refusal::BalanceLimit {
        account: rows.account().id.clone(),
        asked: amount.minor(),
    };
    let mut draft = Draft::new(rows, context.now, changes);
    match rows.account().credit {
        CreditMode::Journal => {
            if !may_wait(rows, amount) {
                return Err(limit().into());
            }
            draft.wait(amount, &command.request, link);
            Ok(None)
        }
        CreditMode::Slot | CreditMode::Upsert => {
            let slot = plan_credit(rows, amount, context.prefer).ok_or_else(limit)?;
            let request = Some(&command.request);
            Ok(Some(draft.post(slot, kind, amount.minor(), request, link)?))
        }
    }
}

/// Posts the debit, or a transfer's debit leg, to `rows`: what has to be collected first, then one entry.
fn debit(
    rows: &AccountRows,
    command: &Command,
    plan: Result<DebitPlan, Short>,
    context: Context,
    changes: &mut Changes,
) -> Result<Leg, Stop> {
    let amount = command.operation.amount().minor();
    let plan = plan.map_err(|Short { available }| Refusal::InsufficientFunds {
        account: rows.account().id.clone(),
        asked: amount,
        available,
    })?;
    let (kind, link) = match command.operation.target() {
        Some(to) => (EntryKind::TransferOut, Some(Link::Transfer(to.clone()))),
        None => (EntryKind::Debit, None),
    };
    let request = Some(&command.request);
    let mut draft = Draft::new(rows, context.now, changes);
    draft.settle(plan.settle)?;
    let slot = plan.slot.ok_or(Stop::Again)?;
    draft.shift(&plan.shifts, request)?;
    Ok(draft.post(slot, kind, amount.saturating_neg(), request, link)?)
}

fn receipt(own: &AccountRows, command: &Command, context: Context, legs: Vec<Leg>) -> Receipt {
    let whole = match command.operation {
        Operation::Credit { .. } | Operation::Debit { .. } => 1,
        Operation::Transfer { .. } => 2,
    };
    Receipt {
        account: command.account.clone(),
        request: command.request.clone(),
        kind: command.operation.kind(),
        amount: command.operation.amount(),
        currency: own.account().currency,
        posting: if legs.len() == whole {
            Posting::Posted
        } else {
            Posting::Pending
        },
        at: context.now,
        legs,
    }
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
