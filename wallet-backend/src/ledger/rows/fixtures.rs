//! Rows that are wrong, as a fault of the machine or of the program would leave them.
#![expect(clippy::arithmetic_side_effects, reason = "a cent here and there, in a test")]

use super::AccountRows;
use crate::account::SlotIndex;
use crate::money::Amount;

/// Where cents are put that nobody paid.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// In a slot's balance, and in the sum of the slots.
    Slot(SlotIndex),
    /// In the sum of the slots alone.
    SlotsSum,
    /// In the oldest pending row, and in their sum.
    Pending,
}

impl AccountRows {
    pub(crate) fn falsify(&mut self, fault: Fault, by: i64) {
        match fault {
            Fault::Slot(index) => {
                self.slots[usize::from(index.get())].balance += by;
                self.in_slots += by;
            }
            Fault::SlotsSum => self.in_slots += by,
            Fault::Pending => {
                let backlog = self.backlog.as_mut().unwrap();
                let row = backlog.rows.front_mut().unwrap();
                row.amount = Amount::new(row.amount.minor() + by).unwrap();
                backlog.sum += by;
            }
        }
    }
}
