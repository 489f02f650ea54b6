//! Placing, capturing and releasing holds. All of it happens on slot 0.
//!
//! Whether a hold is expired is asked of the time of the decision and of nothing else, so it has one end, swept or
//! not: at its deadline and after it nothing can be captured or released any more.

use super::execute::{Case, Stop, check_allows_debits, check_open, check_takes_credits, over_limit, short};
use crate::account::{EntryKind, Hold, HoldState, HoldTerm, Link, RequestId, SlotIndex};
use crate::command::{Changes, LedgerError, Posting, Receipt, ReceiptKind, Refusal, Remainder};
use crate::ledger::draft::{Draft, Effect};
use crate::ledger::slots::{Short, may_hold};
use crate::money::Amount;
use crate::mutants::{Mutant, is_on};

pub(super) fn place(
    case: &Case<'_>,
    amount: Amount,
    expires_in: Option<HoldTerm>,
    changes: &mut Changes,
) -> Result<Receipt, Stop> {
    check_allows_debits(case.own.account())?;
    let now = case.context.now;
    if !may_hold(case.own, amount, now) {
        return Err(over_limit(case.own, amount).into());
    }
    let plan = case.plan(case.own, amount)?;
    let effect = Effect {
        held_delta: amount.minor(),
        ..case.taking(EntryKind::Hold, amount, None)
    };
    let leg = case.take(case.own, &plan, effect, changes)?;
    let deadline = expires_in.map(|term| term.deadline(now));
    let hold = Hold::new(case.command.request.clone(), amount, deadline);
    changes.holds.push((case.command.account.clone(), hold));
    Ok(case.receipt(ReceiptKind::Hold, amount, Posting::Posted, [leg]))
}

pub(super) fn capture(
    case: &Case<'_>,
    id: &RequestId,
    amount: Option<Amount>,
    remainder: Remainder,
    changes: &mut Changes,
) -> Result<Receipt, Stop> {
    check_takes_credits(case.own.account())?;
    let hold = open_hold(case, id)?;
    let amount = amount.map_or_else(|| rest_of(case, hold), Ok)?;
    let there = case.own.in_slots();
    if is_on(Mutant::CapturesForFunds) && there < amount.minor() {
        return Err(short(case.own, amount.minor(), Short { available: there }).into());
    }
    if amount.minor() > hold.rest() && !is_on(Mutant::CapturesPastTheHold) {
        return Err(Stop::Refused(Refusal::HoldExceeded {
            hold: id.clone(),
            asked: amount.minor(),
            rest: hold.rest(),
        }));
    }
    let mut after = Hold {
        captured: hold.captured.saturating_add(amount.minor()),
        ..hold.clone()
    };
    let mut draft = Draft::new(case.own, case.context.now, changes);
    let captured = Effect {
        kind: EntryKind::Capture,
        delta: 0,
        held_delta: amount.minor().saturating_neg(),
        request: case.request(),
        link: Some(Link::Hold(id.clone())),
    };
    let mut legs = vec![draft.post(SlotIndex::PRIMARY, captured)?];
    if after.rest() > 0 && remainder == Remainder::Release && !is_on(Mutant::KeepsTheRest) {
        legs.push(draft.post(SlotIndex::PRIMARY, returning(case, &after))?);
        after = after.ended(HoldState::Captured);
    } else if after.rest() == 0 {
        after.state = HoldState::Captured;
    }
    draft.keep(after);
    Ok(case.receipt(ReceiptKind::Capture, amount, Posting::Posted, legs))
}

pub(super) fn release(case: &Case<'_>, id: &RequestId, changes: &mut Changes) -> Result<Receipt, Stop> {
    check_open(case.own.account())?;
    let hold = open_hold(case, id)?;
    let amount = rest_of(case, hold)?;
    let mut draft = Draft::new(case.own, case.context.now, changes);
    let leg = draft.post(SlotIndex::PRIMARY, returning(case, hold))?;
    draft.keep(hold.ended(HoldState::Released));
    Ok(case.receipt(ReceiptKind::Release, amount, Posting::Posted, [leg]))
}

/// The entry that gives a hold's rest back.
fn returning<'a>(case: &'a Case<'_>, hold: &Hold) -> Effect<'a> {
    Effect {
        kind: EntryKind::Release,
        delta: hold.rest(),
        held_delta: hold.rest().saturating_neg(),
        request: case.request(),
        link: Some(Link::Hold(hold.id.clone())),
    }
}

fn open_hold<'a>(case: &Case<'a>, id: &RequestId) -> Result<&'a Hold, Stop> {
    let not_open = |state| Refusal::HoldNotOpen {
        hold: id.clone(),
        state,
    };
    match (case.own.hold(id), case.rows.ended) {
        (Some(hold), _) if hold.is_expired(case.context.now) && !is_on(Mutant::CapturesExpired) => {
            Err(not_open(HoldState::Expired).into())
        }
        (Some(hold), _) => Ok(hold),
        (None, Some(ended)) if !is_on(Mutant::ForgetsHowAHoldEnded) => Err(not_open(ended.state).into()),
        (None, _) => Err(Stop::Failed(LedgerError::HoldNotFound {
            account: case.command.account.clone(),
            hold: id.clone(),
        })),
    }
}

/// What is left of an open hold. That there is something is among the rules of its rows.
fn rest_of(case: &Case<'_>, hold: &Hold) -> Result<Amount, Stop> {
    Amount::new(hold.rest()).map_err(|error| {
        let reason = format!(
            "hold {} of {} has nothing left: it {error}",
            hold.id, case.command.account
        );
        Stop::Failed(LedgerError::Unavailable { reason })
    })
}
