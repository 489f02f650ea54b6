//! What each operation posts, in the order account, status, operation, funds.
//!
//! What moves money goes through [`Case::take`] and [`Case::give`]: collect what is needed and take it in one entry,
//! or give it to one slot.

use super::{Context, Rows, amend, contradiction, holds, not_found, reversals};
use crate::account::{Account, AccountId, CreditMode, DebitMode, EntryKind, Link, RequestId, Status};
use crate::command::{
    Changes, Command, DebitAmount, LedgerError, Leg, Operation, Outcome, Posting, Receipt, ReceiptKind,
    Refusal,
};
use crate::ledger::draft::{Draft, Effect};
use crate::ledger::invariants::Violation;
use crate::ledger::rows::AccountRows;
use crate::ledger::slots::{
    DebitPlan, Short, may_wait, plan_credit, plan_debit, plan_hashed_debit, plan_max,
};
use crate::money::Amount;
use crate::mutants::{Mutant, is_on};

/// Why a command has no receipt.
#[derive(Debug)]
pub(super) enum Stop {
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

impl From<LedgerError> for Stop {
    fn from(error: LedgerError) -> Self {
        Self::Failed(error)
    }
}

impl From<Violation> for Stop {
    fn from(violation: Violation) -> Self {
        Self::Failed(contradiction(violation))
    }
}

/// A command that is decided for the first time, over the rows of an account that exists.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case<'a> {
    pub(super) command: &'a Command,
    pub(super) own: &'a AccountRows,
    pub(super) rows: Rows<'a>,
    pub(super) context: Context,
}

/// Posts a command to `changes`.
pub(super) fn execute(
    command: &Command,
    rows: Rows<'_>,
    context: Context,
    changes: &mut Changes,
) -> Result<Outcome, Stop> {
    let own = rows
        .own
        .ok_or_else(|| not_found(&command.account, own_field(&command.operation)))?;
    let case = Case {
        command,
        own,
        rows,
        context,
    };
    let receipt = match &command.operation {
        Operation::Credit { amount, .. } => case.credit(*amount, changes)?,
        Operation::Debit { amount, .. } => case.debit(*amount, changes)?,
        Operation::Transfer { to, amount, .. } => case.transfer(to, *amount, changes)?,
        Operation::Hold { amount, expires_in } => holds::place(&case, *amount, *expires_in, changes)?,
        Operation::Capture {
            hold,
            amount,
            remainder,
        } => holds::capture(&case, hold, *amount, *remainder, changes)?,
        Operation::Release { hold } => holds::release(&case, hold, changes)?,
        Operation::Reversal { reverses } => reversals::reverse(&case, reverses, changes)?,
        Operation::Amend(amendment) => {
            let view = amend::amend(&case, amendment, changes)?;
            return Ok(Outcome::Amended(Box::new(view)));
        }
    };
    Ok(Outcome::Posted(receipt))
}

/// The name on the wire of the field that names the command's own account.
const fn own_field(operation: &Operation) -> &'static str {
    match operation {
        Operation::Transfer { .. } => "from",
        Operation::Credit { .. }
        | Operation::Debit { .. }
        | Operation::Hold { .. }
        | Operation::Capture { .. }
        | Operation::Release { .. }
        | Operation::Reversal { .. }
        | Operation::Amend(_) => "account_id",
    }
}

/// Whether something may come in, or a hold be captured.
pub(super) fn check_takes_credits(account: &Account) -> Result<(), Refusal> {
    let id = account.id.clone();
    match account.status {
        Status::Active | Status::DebitFrozen => Ok(()),
        Status::Frozen => Err(Refusal::AccountFrozen { account: id }),
        Status::Closed => Err(Refusal::AccountClosed { account: id }),
    }
}

/// Whether something may be taken.
pub(super) fn check_allows_debits(account: &Account) -> Result<(), Refusal> {
    let id = account.id.clone();
    match account.status {
        _ if is_on(Mutant::IgnoresStatus) => Ok(()),
        Status::Active => Ok(()),
        Status::DebitFrozen | Status::Frozen => Err(Refusal::AccountFrozen { account: id }),
        Status::Closed => Err(Refusal::AccountClosed { account: id }),
    }
}

/// What is left when a closed account is all that stands in the way.
pub(super) fn check_open(account: &Account) -> Result<(), Refusal> {
    let id = account.id.clone();
    match account.status {
        Status::Active | Status::DebitFrozen | Status::Frozen => Ok(()),
        Status::Closed => Err(Refusal::AccountClosed { account: id }),
    }
}

fn check_currencies(from: &Account, to: &Account) -> Result<(), Refusal> {
    if from.currency == to.currency || is_on(Mutant::IgnoresCurrency) {
        return Ok(());
    }
    Err(Refusal::CurrencyMismatch {
        from: from.currency,
        to: to.currency,
    })
}

impl Case<'_> {
    pub(super) fn request(&self) -> Option<&RequestId> {
        Some(&self.command.request)
    }

    fn credit(&self, amount: Amount, changes: &mut Changes) -> Result<Receipt, Stop> {
        check_takes_credits(self.own.account())?;
        let leg = self.give(self.own, amount, EntryKind::Credit, None, changes)?;
        let posting = if leg.is_some() {
            Posting::Posted
        } else {
            Posting::Pending
        };
        Ok(self.receipt(ReceiptKind::Credit, amount, posting, leg))
    }

    fn debit(&self, amount: DebitAmount, changes: &mut Changes) -> Result<Receipt, Stop> {
        check_allows_debits(self.own.account())?;
        let now = self.context.now;
        let (amount, plan) = match amount {
            DebitAmount::Exactly(amount) => {
                let plan = match self.own.account().debit {
                    DebitMode::Primary => plan_debit(self.own, amount, now),
                    DebitMode::Hashed => plan_hashed_debit(self.own, amount, &self.command.request, now),
                };
                (
                    amount,
                    plan.map_err(|lack| short(self.own, amount.minor(), lack))?,
                )
            }
            DebitAmount::Max => plan_max(self.own, now).map_err(|lack| short(self.own, 1, lack))?,
        };
        let effect = self.taking(EntryKind::Debit, amount, None);
        let leg = self.take(self.own, &plan, effect, changes)?;
        Ok(self.receipt(ReceiptKind::Debit, amount, Posting::Posted, [leg]))
    }

    fn transfer(&self, to: &AccountId, amount: Amount, changes: &mut Changes) -> Result<Receipt, Stop> {
        let target = self.rows.target.ok_or_else(|| not_found(to, "to"))?;
        check_allows_debits(self.own.account())?;
        check_takes_credits(target.account())?;
        check_currencies(self.own.account(), target.account())?;
        let plan = self.plan(self.own, amount)?;
        let link = Some(Link::Transfer(to.clone()));
        let effect = self.taking(EntryKind::TransferOut, amount, link);
        let out = self.take(self.own, &plan, effect, changes)?;
        // The credit leg comes last and waits for nothing.
        let link = Some(Link::Transfer(self.command.account.clone()));
        let within = self.give(target, amount, EntryKind::TransferIn, link, changes)?;
        let posting = if within.is_some() {
            Posting::Posted
        } else {
            Posting::Pending
        };
        let legs = [out].into_iter().chain(within);
        Ok(self.receipt(ReceiptKind::Transfer, amount, posting, legs))
    }

    /// How `amount` is collected under the gate.
    pub(super) fn plan(&self, from: &AccountRows, amount: Amount) -> Result<DebitPlan, Refusal> {
        plan_debit(from, amount, self.context.now).map_err(|lack| short(from, amount.minor(), lack))
    }

    /// An entry that takes `amount` out of its slot.
    pub(super) fn taking(&self, kind: EntryKind, amount: Amount, link: Option<Link>) -> Effect<'_> {
        Effect {
            kind,
            delta: amount.minor().saturating_neg(),
            held_delta: 0,
            request: self.request(),
            link,
        }
    }

    /// Posts what has to be collected first, then the one entry.
    pub(super) fn take(
        &self,
        from: &AccountRows,
        plan: &DebitPlan,
        effect: Effect<'_>,
        changes: &mut Changes,
    ) -> Result<Leg, Stop> {
        // On another account's statement the command's request id would be read as one of that account's.
        let own = from.account().id == self.command.account;
        let mover = self.request().filter(|_| own);
        let mut draft = Draft::new(from, self.context.now, changes);
        draft.expire(plan.expire)?;
        draft.settle(plan.settle)?;
        let slot = plan.slot.ok_or(Stop::Again)?;
        draft.shift(&plan.shifts, mover)?;
        Ok(draft.post(slot, effect)?)
    }

    /// Posts a credit, or a transfer's credit leg; `None` where it waits as a pending row.
    fn give(
        &self,
        to: &AccountRows,
        amount: Amount,
        kind: EntryKind,
        link: Option<Link>,
        changes: &mut Changes,
    ) -> Result<Option<Leg>, Stop> {
        let limit = || over_limit(to, amount);
        let mut draft = Draft::new(to, self.context.now, changes);
        match to.account().credit {
            CreditMode::Journal => {
                if !may_wait(to, amount) {
                    return Err(limit().into());
                }
                draft.wait(amount, &self.command.request, link);
                Ok(None)
            }
            CreditMode::Slot | CreditMode::Upsert => {
                let slot = plan_credit(to, amount, self.context.prefer).ok_or_else(limit)?;
                let effect = Effect {
                    kind,
                    delta: amount.minor(),
                    held_delta: 0,
                    request: self.request(),
                    link,
                };
                Ok(Some(draft.post(slot, effect)?))
            }
        }
    }

    pub(super) fn receipt(
        &self,
        kind: ReceiptKind,
        amount: Amount,
        posting: Posting,
        legs: impl IntoIterator<Item = Leg>,
    ) -> Receipt {
        Receipt {
            account: self.command.account.clone(),
            request: self.command.request.clone(),
            kind,
            amount,
            currency: self.own.account().currency,
            posting,
            at: self.context.now,
            legs: legs.into_iter().collect(),
        }
    }
}

pub(super) fn short(rows: &AccountRows, asked: i64, Short { available }: Short) -> Refusal {
    Refusal::InsufficientFunds {
        account: rows.account().id.clone(),
        asked,
        available,
    }
}

pub(super) fn over_limit(rows: &AccountRows, amount: Amount) -> Refusal {
    Refusal::BalanceLimit {
        account: rows.account().id.clone(),
        asked: amount.minor(),
    }
}
