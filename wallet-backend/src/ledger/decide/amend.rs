//! Changing an account: status, slots, modes, floor. In force with the next task of its lane.
//!
//! Lowering the number of slots drains those beyond it into slot 0 in the same step; their rows stay, so that versions
//! and cursors go on.

use super::execute::{Case, Stop, check_open, short};
use super::{NO_FLOOR, check_floor, invalid};
use crate::account::{DebitMode, Status};
use crate::command::{AccountView, Amendment, Changes, LedgerError, Refusal};
use crate::ledger::draft::Draft;
use crate::ledger::slots::{Short, plan_drain};
use crate::mutants::{Mutant, is_on};

/// What can be said without the account.
pub(super) fn check(amendment: &Amendment) -> Result<(), LedgerError> {
    amendment.floor.map_or(Ok(()), check_floor)?;
    let hashed = amendment.debit == Some(DebitMode::Hashed);
    if hashed && amendment.floor.is_some_and(|floor| floor != 0) {
        return Err(invalid("floor", NO_FLOOR));
    }
    Ok(())
}

/// Posts the changed account row and what its slots need; gives the account back as it becomes.
pub(super) fn amend(
    case: &Case<'_>,
    amendment: &Amendment,
    changes: &mut Changes,
) -> Result<AccountView, Stop> {
    let now = case.context.now;
    let before = case.own.account();
    check_open(before)?;
    let after = amendment.applied_to(before);
    if after.debit == DebitMode::Hashed && after.floor != 0 {
        let failed = match amendment.floor {
            Some(_) => invalid("floor", NO_FLOOR),
            None => invalid("debit", "cannot be hashed where there is a floor"),
        };
        return Err(failed.into());
    }
    if after.status == Status::Closed && case.own.total() != 0 && !is_on(Mutant::ClosesOverMoney) {
        return Err(Stop::Refused(Refusal::AccountNotEmpty {
            account: before.id.clone(),
            balance: case.own.total(),
        }));
    }
    let available = case.own.spendable(now);
    if after.floor > before.floor && available < after.floor {
        return Err(short(case.own, after.floor, Short { available }).into());
    }
    let drained = plan_drain(case.own, after.slots);
    Draft::new(case.own, now, changes).shift(&drained, case.request())?;
    changes.account = Some(after);
    let mut rows = case.own.clone();
    rows.apply(changes)?;
    Ok(rows.view(now))
}
