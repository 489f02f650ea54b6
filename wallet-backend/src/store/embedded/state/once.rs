//! What a decision needs beside the rows of its accounts: what was decided, reversed or ended before.
//!
//! Each is filed by fingerprint, so what is found is only a candidate, and its record is compared in full.

use super::{State, unavailable};
use crate::account::{AccountId, Hold, RequestId};
use crate::command::{Changes, LedgerError, RequestRecord, Task};
use crate::ledger::decide::Rows;
use crate::ledger::rows::AccountRows;
use crate::store::embedded::records::Records;
use crate::store::embedded::requests::{Filed, fingerprint};

/// Facts of the past that a task asks for.
#[derive(Debug, Default)]
pub(super) struct Once {
    prior: Option<RequestRecord>,
    original: Option<RequestRecord>,
    reversed_by: Option<RequestId>,
    ended: Option<Hold>,
}

impl Once {
    /// The other account that the task needs.
    pub(super) fn target<'a>(&'a self, task: &'a Task) -> Option<&'a AccountId> {
        task.target(self.original.as_ref())
    }

    /// All that [`decide`](crate::ledger::decide::decide) needs.
    pub(super) fn rows<'a>(
        &'a self,
        own: Option<&'a AccountRows>,
        target: Option<&'a AccountRows>,
    ) -> Rows<'a> {
        Rows {
            prior: self.prior.as_ref(),
            own,
            target,
            ended: self.ended.as_ref(),
            original: self.original.as_ref(),
            reversed_by: self.reversed_by.as_ref(),
        }
    }
}

impl State {
    /// Reads what `task` asks for. A replay asks for nothing but its own record.
    pub(super) fn once(&self, task: &Task, records: &Records) -> Result<Once, LedgerError> {
        let account = task.account();
        let mut once = Once::default();
        if let Some(request) = task.request() {
            once.prior = self.decided(account, request, records)?;
        }
        let Some(operation) = task.operation().filter(|_| once.prior.is_none()) else {
            return Ok(once);
        };
        if let Some(reverses) = operation.reverses() {
            once.original = self.decided(account, reverses, records)?;
            once.reversed_by = self.filed(account, reverses, Filed::Reversal, records, |changes| {
                let (of, reversed, by) = changes.reversal()?;
                (of == account && reversed == reverses).then(|| by.clone())
            })?;
        }
        let open = |hold| self.books.get(account).and_then(|held| held.rows.hold(hold));
        if let Some(hold) = operation.hold().filter(|hold| open(hold).is_none()) {
            once.ended = self.filed(account, hold, Filed::HoldEnd, records, |changes| {
                changes.ended_hold(account, hold).cloned()
            })?;
        }
        Ok(once)
    }

    /// The stored record of a request id.
    fn decided(
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
