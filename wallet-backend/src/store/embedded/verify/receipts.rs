//! What a record says that it did, against its entries and against what was done before.

use super::{Check, described};
use crate::account::{AccountId, RequestId};
use crate::command::{
    Changes, DebitAmount, Leg, Operation, Outcome, Posting, Receipt, Remainder, RequestRecord,
};
use crate::money::Amount;
use crate::store::embedded::error::OpenError;
use crate::store::embedded::report::Finding;
use crate::store::embedded::requests::{Filed, fingerprint};

/// What a posted operation must have done.
pub(in crate::store::embedded) struct Right {
    /// Of each leg, what it adds to its slot and to what is held.
    pub(in crate::store::embedded) legs: Vec<(i64, i64)>,
    /// What came in from outside, less what went out.
    pub(in crate::store::embedded) outside: i64,
}

impl Right {
    fn new(legs: &[(i64, i64)], outside: i64) -> Self {
        let legs = legs.to_vec();
        Self { legs, outside }
    }
}

impl Check<'_> {
    /// That what the record does once was not done before.
    pub(super) fn once(
        &mut self,
        key: u64,
        filed: Filed,
        position: u64,
        changes: &Changes,
    ) -> Result<(), OpenError> {
        let what = match filed {
            Filed::Decision => "was decided before",
            Filed::Reversal => "reverses what was reversed before",
            // Pending rows and holds are gone from the books with their end: another one breaks those.
            Filed::Settlement | Filed::HoldEnd => return Ok(()),
        };
        let id = once_only(filed, changes);
        for earlier in self.filed.get(&key).cloned().unwrap_or_default() {
            if once_only(filed, &self.records.read(earlier)?.changes) == id {
                let what = format!("request {} {what}", described(changes));
                self.found(Finding::text(what).at(position));
            }
        }
        Ok(())
    }

    /// That a receipt's legs are its entries and move what it says.
    pub(super) fn receipt(
        &mut self,
        position: u64,
        receipt: &Receipt,
        operation: &Operation,
        changes: &Changes,
    ) -> Result<(), OpenError> {
        for leg in &receipt.legs {
            if !changes.entries.iter().any(|entry| Leg::from(entry) == *leg) {
                let mut finding = Finding::text("a leg of the receipt is no entry").at(position);
                finding.account = Some(leg.account.clone());
                finding.slot = Some(leg.slot);
                finding.version = Some(leg.version);
                self.found(finding);
            }
        }
        let original = match operation.reverses() {
            Some(reverses) => self.original(&receipt.account, reverses)?,
            None => None,
        };
        let legs: Vec<(i64, i64)> = receipt
            .legs
            .iter()
            .map(|leg| (leg.delta, leg.held_delta))
            .collect();
        let right = right(operation, receipt, original.as_ref());
        let outside = right.as_ref().map_or(0, |right| right.outside);
        if right.is_none_or(|right| right.legs != legs) {
            let what = format!("the receipt of {} does not move its amount", described(changes));
            let mut finding = Finding::text(what);
            finding.expected = Some(receipt.amount.minor());
            finding.found = legs.last().map(|(delta, _)| *delta);
            self.found(finding.at(position));
        }
        let sum = self.outside.entry(receipt.currency).or_default();
        *sum = sum.saturating_add(outside.into());
        Ok(())
    }

    /// What was decided for a request, in the log as far as it was read.
    fn original(&self, account: &AccountId, request: &RequestId) -> Result<Option<RequestRecord>, OpenError> {
        let key = fingerprint(self.store, account, request, Filed::Decision);
        for position in self.filed.get(&key).into_iter().flatten() {
            let found = self.records.read(*position)?.changes.request;
            if let Some(found) = found.filter(|found| found.account == *account && found.request == *request)
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// The account, and the request that is decided or reversed.
fn once_only(filed: Filed, changes: &Changes) -> Option<(AccountId, RequestId)> {
    match filed {
        Filed::Decision => {
            let record = changes.request.as_ref()?;
            Some((record.account.clone(), record.request.clone()))
        }
        Filed::Reversal => {
            let (account, reverses, _) = changes.reversal()?;
            Some((account.clone(), reverses.clone()))
        }
        Filed::Settlement | Filed::HoldEnd => None,
    }
}

/// `None` where the operation cannot have such a receipt at all.
pub(in crate::store::embedded) fn right(
    operation: &Operation,
    receipt: &Receipt,
    original: Option<&RequestRecord>,
) -> Option<Right> {
    let amount = receipt.amount.minor();
    let minus = amount.saturating_neg();
    let asked = |asked: Amount| (asked == receipt.amount).then_some(());
    let mut right = match operation {
        Operation::Credit { amount: wanted, .. } => {
            asked(*wanted)?;
            Right::new(&[(amount, 0)], amount)
        }
        Operation::Debit { amount: wanted, .. } => {
            match wanted {
                DebitAmount::Exactly(wanted) => asked(*wanted)?,
                DebitAmount::Max => {}
            }
            Right::new(&[(minus, 0)], minus)
        }
        Operation::Transfer { amount: wanted, .. } => {
            asked(*wanted)?;
            Right::new(&[(minus, 0), (amount, 0)], 0)
        }
        Operation::Hold { amount: wanted, .. } => {
            asked(*wanted)?;
            Right::new(&[(minus, amount)], 0)
        }
        Operation::Capture {
            amount: wanted,
            remainder,
            ..
        } => {
            wanted.map_or(Some(()), asked)?;
            let mut right = Right::new(&[(0, minus)], minus);
            if let (Remainder::Release, Some(back)) = (remainder, receipt.legs.get(1)) {
                right.legs.push((back.delta, back.delta.saturating_neg()));
            }
            right
        }
        Operation::Release { .. } => Right::new(&[(amount, minus)], 0),
        Operation::Reversal { .. } => undone(original?, receipt)?,
        Operation::Amend(_) => return None,
    };
    if receipt.posting == Posting::Pending {
        right.legs.pop();
    }
    Some(right)
}

/// What undoing `original` does.
fn undone(original: &RequestRecord, receipt: &Receipt) -> Option<Right> {
    let (amount, minus) = (receipt.amount.minor(), receipt.amount.minor().saturating_neg());
    let same = matches!(&original.outcome, Outcome::Posted(first) if first.amount == receipt.amount);
    match original.operation.as_ref().filter(|_| same)? {
        Operation::Credit { .. } => Some(Right::new(&[(minus, 0)], minus)),
        Operation::Debit { .. } | Operation::Capture { .. } => Some(Right::new(&[(amount, 0)], amount)),
        Operation::Transfer { .. } => Some(Right::new(&[(minus, 0), (amount, 0)], 0)),
        Operation::Hold { .. }
        | Operation::Release { .. }
        | Operation::Reversal { .. }
        | Operation::Amend(_) => None,
    }
}
