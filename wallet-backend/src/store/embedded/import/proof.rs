//! What a record must be, given everything before it, that applying it to the books does not show: nothing is decided
//! or reversed twice, receipts are their entries, no money comes from nowhere.

use std::collections::{BTreeMap, HashMap};

use crate::account::{AccountId, EntryKind};
use crate::command::{Changes, LedgerError, Operation, Outcome, Receipt, RequestRecord};
use crate::journal::LineError;
use crate::money::Currency;
use crate::store::embedded::records::Records;
use crate::store::embedded::state::State;
use crate::store::embedded::verify::receipts::right;

/// Why a record cannot be taken in.
pub(super) enum Fault {
    Line(LineError),
    /// What came before could not be looked up.
    Store(LedgerError),
}

impl From<LineError> for Fault {
    fn from(fault: LineError) -> Self {
        Self::Line(fault)
    }
}

impl From<LedgerError> for Fault {
    fn from(error: LedgerError) -> Self {
        Self::Store(error)
    }
}

/// Sums over the history so far.
#[derive(Debug, Default)]
pub(super) struct Proof {
    pub(super) entries: u64,
    pub(super) requests: u64,
    /// What came in from outside less what went out.
    pub(super) outside: BTreeMap<Currency, i128>,
}

/// What a record moves over the ledger's edge.
pub(super) struct Moved(Option<(Currency, i64)>);

impl Proof {
    /// What the record moves, if it may follow what `state` has. Changes nothing.
    pub(super) fn of(state: &State, records: &Records, changes: &Changes) -> Result<Moved, Fault> {
        check_account(state, changes)?;
        let moved = match &changes.request {
            Some(record) => check_request(state, records, record, changes)?,
            None => Moved(None),
        };
        check_money(state, changes, &moved)?;
        Ok(moved)
    }

    /// Takes in a record that was proven.
    pub(super) fn note(&mut self, changes: &Changes, Moved(moved): Moved) {
        let entries = u64::try_from(changes.entries.len()).unwrap_or(u64::MAX);
        self.entries = self.entries.saturating_add(entries);
        self.requests = self.requests.saturating_add(changes.request.is_some().into());
        if let Some((currency, outside)) = moved {
            let sum = self.outside.entry(currency).or_default();
            *sum = sum.saturating_add(outside.into());
        }
    }
}

/// An account is opened once, and changed only by a request that asks for just this.
fn check_account(state: &State, changes: &Changes) -> Result<(), LineError> {
    let wrong = |field: &str, reason: String| Err(LineError::new(field, reason));
    let Some(account) = &changes.account else {
        return match changes.request.as_ref().map(|record| &record.outcome) {
            Some(Outcome::Amended(_)) => {
                wrong("account", "is missing, and the request changes it".to_owned())
            }
            _ => Ok(()),
        };
    };
    let before = state.books.get(&account.id).map(|held| held.rows.account());
    match (&changes.request, before) {
        (None, None) => Ok(()),
        (None, Some(_)) => wrong("account.account_id", format!("{} was opened before", account.id)),
        (Some(record), Some(before)) => {
            let becomes = match (&record.operation, &record.outcome) {
                (Some(Operation::Amend(amendment)), Outcome::Amended(view)) => {
                    let becomes = amendment.applied_to(before);
                    (record.account == account.id && view.account == becomes).then_some(becomes)
                }
                _ => None,
            };
            if becomes.as_ref() == Some(account) {
                Ok(())
            } else {
                wrong("account", "is not what the request makes of it".to_owned())
            }
        }
        (Some(_), None) => wrong("account.account_id", format!("{} was not opened", account.id)),
    }
}

fn check_request(
    state: &State,
    records: &Records,
    record: &RequestRecord,
    changes: &Changes,
) -> Result<Moved, Fault> {
    let (account, request) = (&record.account, &record.request);
    if state.books.get(account).is_none() {
        let reason = format!("{account} was not opened before");
        return Err(LineError::new("request.account_id", reason).into());
    }
    if state.decided(account, request, records)?.is_some() {
        let reason = format!("{request} of {account} was decided before");
        return Err(LineError::new("request.request_id", reason).into());
    }
    let (Some(operation), Outcome::Posted(receipt)) = (&record.operation, &record.outcome) else {
        return Ok(Moved(None));
    };
    let mut original = None;
    if let Some(reverses) = operation.reverses() {
        if let Some(by) = state.reversed_by(account, reverses, records)? {
            let reason = format!("{reverses} of {account} was reversed before, by {by}");
            return Err(LineError::new("request.operation.reverses", reason).into());
        }
        original = state.decided(account, reverses, records)?;
    }
    let outside = check_receipt(receipt, operation, original.as_ref(), changes)?;
    Ok(Moved(Some((receipt.currency, outside))))
}

/// What a receipt says came in from outside, if its legs are entries and move its amount.
fn check_receipt(
    receipt: &Receipt,
    operation: &Operation,
    original: Option<&RequestRecord>,
    changes: &Changes,
) -> Result<i64, LineError> {
    for (at, leg) in receipt.legs.iter().enumerate() {
        if !changes.entries.iter().any(|entry| leg.is(entry)) {
            let field = format!("request.receipt.entries[{at}]");
            return Err(LineError::new(field, "is none of the entries"));
        }
    }
    let legs = receipt.legs.iter().map(|leg| (leg.delta, leg.held_delta));
    match right(operation, receipt, original) {
        Some(right) if right.legs.iter().copied().eq(legs) => Ok(right.outside),
        _ => {
            let (request, account) = (&receipt.request, &receipt.account);
            let reason = format!("the receipt of {request} of {account} does not move its amount");
            Err(LineError::new("request.receipt", reason))
        }
    }
}

/// What the accounts gain is what came in from outside, in one currency, and moves between slots cancel out.
fn check_money(state: &State, changes: &Changes, Moved(moved): &Moved) -> Result<(), LineError> {
    let mut gained: i128 = 0;
    let mut between: HashMap<&AccountId, i128> = HashMap::new();
    let in_currency = |field: String, id: &AccountId| {
        // An account that is not there breaks the books, which say so.
        let kept = state.books.get(id).map(|held| held.rows.account().currency);
        match (kept, moved) {
            (Some(kept), Some((currency, _))) if kept != *currency => {
                let reason = format!("{id} is kept in {kept}, and the receipt is in {currency}");
                Err(LineError::new(field, reason))
            }
            _ => Ok(()),
        }
    };
    for (at, entry) in changes.entries.iter().enumerate() {
        in_currency(format!("entries[{at}].account_id"), &entry.account)?;
        let delta = i128::from(entry.delta);
        match entry.kind {
            // It was the account's before: it was pending.
            EntryKind::Settle => {}
            EntryKind::Consolidate => {
                let sum = between.entry(&entry.account).or_default();
                *sum = sum.saturating_add(delta);
            }
            EntryKind::Credit
            | EntryKind::Debit
            | EntryKind::TransferIn
            | EntryKind::TransferOut
            | EntryKind::Hold
            | EntryKind::Capture
            | EntryKind::Release
            | EntryKind::Reversal => {
                gained = gained
                    .saturating_add(delta)
                    .saturating_add(entry.held_delta.into());
            }
        }
    }
    for (at, (account, row)) in changes.pending_added.iter().enumerate() {
        in_currency(format!("pending_added[{at}].account_id"), account)?;
        gained = gained.saturating_add(row.amount.minor().into());
    }
    if let Some((account, sum)) = between.into_iter().find(|(_, sum)| *sum != 0) {
        let reason = format!("moves between the slots of {account} do not cancel out, {sum} is left");
        return Err(LineError::new("entries", reason));
    }
    let outside = moved.map_or(0, |(_, outside)| i128::from(outside));
    if gained != outside {
        let reason = format!("the accounts gain {gained}, and {outside} came in from outside");
        return Err(LineError::new("entries", reason));
    }
    Ok(())
}
