//! Undoing what an earlier request did: wholly, and at most once.
//!
//! A credit is taken back, a debit or a capture returned; of a transfer what arrived is taken from the target and
//! returned to the source. What returns money is never refused for the status of the account that it returns to, nor
//! for a cap.

use super::execute::{Case, Stop, check_allows_debits, check_open, check_takes_credits, over_limit};
use super::not_found;
use crate::account::{AccountId, EntryKind, Link, RequestId};
use crate::command::{
    Changes, LedgerError, Leg, Operation, Outcome, Posting, Receipt, ReceiptKind, Refusal, RequestRecord,
};
use crate::ledger::draft::{Draft, Effect};
use crate::ledger::rows::AccountRows;
use crate::ledger::slots::plan_return;
use crate::money::Amount;
use crate::mutants::{Mutant, is_on};

/// What undoing a request does.
#[derive(Clone, Copy, Debug)]
enum Undoing<'a> {
    TakesBack(Amount),
    Returns(Amount),
    /// Takes it from a transfer's target and returns it.
    SendsBack(&'a AccountId, Amount),
}

pub(super) fn reverse(case: &Case<'_>, reverses: &RequestId, changes: &mut Changes) -> Result<Receipt, Stop> {
    let original = case.rows.original.ok_or_else(|| LedgerError::NothingToReverse {
        account: case.command.account.clone(),
        reverses: reverses.clone(),
    })?;
    let undoing = undoing(original);
    check_status(case, undoing)?;
    let undoing = undoing.ok_or_else(|| Refusal::NotReversible {
        reverses: reverses.clone(),
    })?;
    if let Some(by) = case.rows.reversed_by
        && !is_on(Mutant::ReversesTwice)
    {
        return Err(Stop::Refused(Refusal::AlreadyReversed {
            reverses: reverses.clone(),
            by: by.clone(),
        }));
    }
    let link = Link::Reversed(reverses.clone());
    let (amount, legs) = match undoing {
        Undoing::TakesBack(amount) => (amount, vec![take_back(case, case.own, amount, link, changes)?]),
        Undoing::Returns(amount) => (amount, vec![give_back(case, amount, link, changes)?]),
        Undoing::SendsBack(to, amount) => {
            let source = Link::Transfer(case.command.account.clone());
            let taken = take_back(case, target(case, to)?, amount, source, changes)?;
            (amount, vec![taken, give_back(case, amount, link, changes)?])
        }
    };
    Ok(case.receipt(ReceiptKind::Reversal, amount, Posting::Posted, legs))
}

/// The status is asked before the operation, of the account that it matters for: the one that is taken from.
fn check_status(case: &Case<'_>, undoing: Option<Undoing<'_>>) -> Result<(), Stop> {
    match undoing {
        Some(Undoing::TakesBack(_)) => check_allows_debits(case.own.account())?,
        Some(Undoing::Returns(_)) if is_on(Mutant::AsksStatusOfReturns) => {
            check_takes_credits(case.own.account())?;
        }
        Some(Undoing::Returns(_)) => {}
        Some(Undoing::SendsBack(to, _)) => check_allows_debits(target(case, to)?.account())?,
        None => check_open(case.own.account())?,
    }
    Ok(())
}

fn target<'a>(case: &Case<'a>, to: &AccountId) -> Result<&'a AccountRows, Stop> {
    Ok(case.rows.target.ok_or_else(|| not_found(to, "reverses"))?)
}

/// `None` for what cannot be undone: a hold, a release, a reversal, an amendment, a refusal.
fn undoing(original: &RequestRecord) -> Option<Undoing<'_>> {
    let amount = match &original.outcome {
        Outcome::Posted(receipt) => receipt.amount,
        Outcome::Amended(_) | Outcome::Refused(_) => return None,
    };
    match original.operation.as_ref()? {
        Operation::Credit { .. } => Some(Undoing::TakesBack(amount)),
        Operation::Reversal { .. } if is_on(Mutant::ReversesReversals) => Some(Undoing::Returns(amount)),
        Operation::Debit { .. } | Operation::Capture { .. } => Some(Undoing::Returns(amount)),
        Operation::Transfer { to, .. } => Some(Undoing::SendsBack(to, amount)),
        Operation::Hold { .. }
        | Operation::Release { .. }
        | Operation::Reversal { .. }
        | Operation::Amend(_) => None,
    }
}

fn take_back(
    case: &Case<'_>,
    from: &AccountRows,
    amount: Amount,
    link: Link,
    changes: &mut Changes,
) -> Result<Leg, Stop> {
    let plan = case.plan(from, amount)?;
    let effect = case.taking(EntryKind::Reversal, amount, Some(link));
    case.take(from, &plan, effect, changes)
}

fn give_back(case: &Case<'_>, amount: Amount, link: Link, changes: &mut Changes) -> Result<Leg, Stop> {
    let slot =
        plan_return(case.own, amount, case.context.prefer).ok_or_else(|| over_limit(case.own, amount))?;
    let effect = Effect {
        kind: EntryKind::Reversal,
        delta: amount.minor(),
        held_delta: 0,
        request: case.request(),
        link: Some(link),
    };
    Ok(Draft::new(case.own, case.context.now, changes).post(slot, effect)?)
}
