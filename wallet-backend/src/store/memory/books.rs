//! The model's general ledger: what crossed the border, added up as it happened, and what the accounts have.

use crate::command::Changes;
use crate::ledger::flow::{Currencies, Flow};
use crate::ledger::invariants::Violation;
use crate::ledger::rows::AccountRows;
use crate::store::GeneralLedger;

/// What came in and went out, since the beginning.
#[derive(Debug, Default)]
pub(super) struct Books {
    currencies: Currencies,
    broken: Vec<Violation>,
}

impl Books {
    pub(super) fn take(&mut self, changes: &Changes) {
        let flow = Flow::of(changes);
        if let Err(violation) = flow.check(changes)
            && self.broken.len() < GeneralLedger::MOST_BROKEN
        {
            self.broken.push(violation);
        }
        if let Some(currency) = flow.currency {
            let totals = self.currencies.entry(currency).or_default();
            totals.outside = totals.outside.saturating_add(flow.outside.into());
        }
    }

    /// At this moment, when these are all accounts.
    pub(super) fn general_ledger<'a>(
        &self,
        accounts: impl Iterator<Item = &'a AccountRows>,
    ) -> GeneralLedger {
        let mut currencies = self.currencies.clone();
        for rows in accounts {
            let totals = currencies.entry(rows.account().currency).or_default();
            totals.inside = totals.inside.saturating_add(rows.total().into());
        }
        GeneralLedger {
            currencies,
            broken: self.broken.clone(),
            place: 0,
        }
    }
}
