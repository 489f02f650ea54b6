//! What a decided task does to the money of its accounts, and what of that came from outside or went there.
//!
//! Money is made and lost at the border only: credits, debits, captures, and what undoes them. So every record moves
//! as much as crosses the border with it, and the records of a currency together leave its accounts with what came in
//! less what went out. Settling, consolidating, holding and releasing move nothing: they change where money is.

use std::collections::BTreeMap;

use crate::account::{AccountId, EntryKind};
use crate::command::{Changes, Outcome, ReceiptKind};
use crate::ledger::invariants::{Rule, Violation};
use crate::money::Currency;

/// What one record did. Minor units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Of the receipt; `None` where there is none.
    pub currency: Option<Currency>,
    /// What came in from outside, less what went out.
    pub outside: i64,
    /// By how much each account's money changed: at most two accounts, each once.
    pub accounts: Vec<(AccountId, i64)>,
}

/// One currency at one cut. Minor units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// What came in from outside, less what went out.
    pub outside: i128,
    /// What all accounts have: in slots, held and pending.
    pub inside: i128,
}

/// The totals of every currency that has any.
pub type Currencies = BTreeMap<Currency, Totals>;

impl Flow {
    /// What `changes` did.
    #[must_use]
    pub fn of(changes: &Changes) -> Self {
        let mut accounts: Vec<(AccountId, i64)> = Vec::new();
        let mut add =
            |account: &AccountId, amount: i64| match accounts.iter_mut().find(|(id, _)| id == account) {
                Some((_, sum)) => *sum = sum.saturating_add(amount),
                None => accounts.push((account.clone(), amount)),
            };
        for entry in &changes.entries {
            // What settles was the account's already, as pending.
            if entry.kind != EntryKind::Settle {
                add(&entry.account, entry.delta.saturating_add(entry.held_delta));
            }
        }
        for (account, row) in &changes.pending_added {
            add(account, row.amount.minor());
        }
        let moved = sum(&accounts);
        let receipt = changes.request.as_ref().and_then(|record| match &record.outcome {
            Outcome::Posted(receipt) => Some(receipt),
            Outcome::Amended(_) | Outcome::Refused(_) => None,
        });
        let outside = receipt.map_or(0, |receipt| {
            let amount = receipt.amount.minor();
            match receipt.kind {
                ReceiptKind::Credit => amount,
                ReceiptKind::Debit | ReceiptKind::Capture => amount.saturating_neg(),
                ReceiptKind::Transfer | ReceiptKind::Hold | ReceiptKind::Release => 0,
                // Whether it gives back, takes back or moves back is what it reverses; the amount is its own.
                ReceiptKind::Reversal => amount.saturating_mul(moved.signum()),
            }
        });
        Self {
            currency: receipt.map(|receipt| receipt.currency),
            outside,
            accounts,
        }
    }

    /// That the record moved what crossed the border with it.
    ///
    /// # Errors
    /// What it moved otherwise, at its first entry.
    pub fn check(&self, changes: &Changes) -> Result<(), Violation> {
        let moved = sum(&self.accounts);
        if moved == self.outside {
            return Ok(());
        }
        let first = changes.entries.first();
        let account = first.map(|entry| &entry.account);
        let account = account.or_else(|| self.accounts.first().map(|(account, _)| account));
        let owner = changes.request.as_ref().map(|record| &record.account);
        match account.or(owner) {
            Some(account) => Err(Violation {
                account: account.clone(),
                slot: first.map(|entry| entry.slot),
                version: first.map(|entry| entry.version),
                rule: Rule::Conservation,
                expected: self.outside,
                found: moved,
            }),
            None => Ok(()),
        }
    }
}

fn sum(accounts: &[(AccountId, i64)]) -> i64 {
    accounts
        .iter()
        .fold(0, |sum, (_, amount)| amount.saturating_add(sum))
}
