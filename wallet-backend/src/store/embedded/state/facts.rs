//! Finding what was decided, reversed or ended before.
//!
//! Each is filed by fingerprint, so what is found is only a candidate, and its record is compared in full.

use super::{State, unavailable};
use crate::account::{AccountId, RequestId};
use crate::command::{Changes, LedgerError, RequestRecord, Task};
use crate::ledger::facts::Facts;
use crate::store::embedded::records::Records;
use crate::store::embedded::requests::{Filed, fingerprint};

impl State {
    /// Reads what `task` asks for. A replay asks for nothing but its own record.
    pub(super) fn facts(&self, task: &Task, records: &Records) -> Result<Facts, LedgerError> {
        let account = task.account();
        let mut facts = Facts::default();
        if let Some(request) = task.request() {
            facts.prior = self.decided(account, request, records)?;
        }
        let Some(operation) = task.operation().filter(|_| facts.prior.is_none()) else {
            return Ok(facts);
        };
        if let Some(reverses) = operation.reverses() {
            facts.original = self.decided(account, reverses, records)?;
            facts.reversed_by = self.reversed_by(account, reverses, records)?;
        }
        let open = |hold| self.books.get(account).and_then(|held| held.rows.hold(hold));
        if let Some(hold) = operation.hold().filter(|hold| open(hold).is_none()) {
            facts.ended = self.filed(account, hold, Filed::HoldEnd, records, |changes| {
                changes.ended_hold(account, hold).cloned()
            })?;
        }
        Ok(facts)
    }

    /// The request that has reversed `reverses`.
    pub(in crate::store::embedded) fn reversed_by(
        &self,
        account: &AccountId,
        reverses: &RequestId,
        records: &Records,
    ) -> Result<Option<RequestId>, LedgerError> {
        self.filed(account, reverses, Filed::Reversal, records, |changes| {
            let (of, reversed, by) = changes.reversal()?;
            (of == account && reversed == reverses).then(|| by.clone())
        })
    }

    /// The stored record of a request id.
    pub(in crate::store::embedded) fn decided(
        &self,
        account: &AccountId,
        request: &RequestId,
        records: &Records,
    ) -> Result<Option<RequestRecord>, LedgerError> {
        self.filed(account, request, Filed::Decision, records, |changes| {
            let record = changes.request.as_ref()?;
            (record.account == *account && record.request == *request).then(|| record.clone())
        })
    }

    /// What `pick` finds in the first record filed under the request that has it.
    fn filed<T>(
        &self,
        account: &AccountId,
        request: &RequestId,
        filed: Filed,
        records: &Records,
        pick: impl Fn(&Changes) -> Option<T>,
    ) -> Result<Option<T>, LedgerError> {
        let key = fingerprint(self.segment().head.store, account, request, filed);
        let candidates = self.books.find(records.disk(), key);
        for position in candidates.map_err(|error| unavailable(&error.to_string()))? {
            if let Some(found) = pick(&self.read(position, records)?.changes) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}
