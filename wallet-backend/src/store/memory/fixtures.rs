//! The model, falsified.
#![expect(clippy::arithmetic_side_effects, reason = "a cent here and there, in a test")]

use super::Memory;
use crate::account::AccountId;
use crate::ledger::rows::fixtures::Fault;

impl Memory {
    pub(crate) fn falsify(&self, id: &AccountId, fault: Fault, by: i64) {
        let mut state = self.state.lock().unwrap();
        state.accounts.get_mut(id).unwrap().falsify(fault, by);
    }

    /// Puts a cent into what an entry of slot 0 says that it moved, and into nothing else.
    pub(crate) fn falsify_entry(&self, id: &AccountId, version: u64) {
        let mut state = self.state.lock().unwrap();
        let entries = &mut state.entries.get_mut(id).unwrap()[0];
        let entry = entries.iter_mut().find(|entry| entry.version == version);
        entry.unwrap().delta += 1;
    }
}
