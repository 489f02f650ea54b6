//! Credits that wait for a slot.

use std::collections::VecDeque;

use crate::account::Pending;

/// An account's pending rows and what there is to know of them. Boxed, and absent until the first one: most accounts
/// never have any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Backlog {
    /// Ascending by number; the oldest settles first.
    pub(super) rows: VecDeque<Pending>,
    /// Of the rows, in minor units.
    pub(super) sum: i64,
    /// What waits beside them in rows that are not here.
    pub(super) unseen: i64,
    /// The number of the next row.
    pub(super) next: u64,
}

impl Default for Backlog {
    fn default() -> Self {
        Self {
            rows: VecDeque::new(),
            sum: 0,
            unseen: 0,
            next: Self::FIRST,
        }
    }
}

impl Backlog {
    pub(super) const FIRST: u64 = 1;

    pub(super) fn find(&self, number: u64) -> Option<&Pending> {
        let found = self.rows.binary_search_by_key(&number, |row| row.number);
        self.rows.get(found.ok()?)
    }

    /// Takes a row away, and it out of the sum.
    pub(super) fn take(&mut self, number: u64) -> Option<Pending> {
        let found = self.rows.binary_search_by_key(&number, |row| row.number);
        let row = self.rows.remove(found.ok()?)?;
        self.sum = self.sum.saturating_sub(row.amount.minor());
        // What a burst needed is not kept as capacity of an idle account.
        if self.rows.is_empty() {
            self.rows = VecDeque::new();
        }
        Some(row)
    }

    /// `None` for what [`Default`] makes, so that rows are equal whether there was a first one taken back or none.
    pub(super) fn boxed(self) -> Option<Box<Self>> {
        (self.next != Self::FIRST || !self.rows.is_empty() || self.unseen != 0).then(|| Box::new(self))
    }
}
