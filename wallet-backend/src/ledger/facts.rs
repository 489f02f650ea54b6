//! What a decision needs beside the rows of its accounts: what was decided, reversed or ended before.

use std::collections::HashMap;

use crate::account::{AccountId, Hold, RequestId};
use crate::command::{Changes, Operation, RequestRecord, Task};
use crate::ledger::decide::Rows;
use crate::ledger::rows::AccountRows;

/// Facts of the past that one task asks for. A replay asks for nothing but its own record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// What is filed under the task's own (account, request id).
    pub prior: Option<RequestRecord>,
    /// Of a reversal, what is filed under the request that it undoes.
    pub original: Option<RequestRecord>,
    /// The request that reversed the original already.
    pub reversed_by: Option<RequestId>,
    /// Of a capture or a release, how its hold ended, where it has ended.
    pub ended: Option<Hold>,
}

/// What is known of one request id.
#[derive(Debug, Default)]
pub struct Known {
    pub record: Option<RequestRecord>,
    /// The request that reversed it.
    pub reversed_by: Option<RequestId>,
    /// How the hold that it placed has ended.
    pub ended: Option<Hold>,
}

/// What is known of request ids. An id belongs to its account.
#[derive(Debug, Default)]
pub struct KnownRequests(HashMap<(AccountId, RequestId), Known>);

impl KnownRequests {
    /// What is known of an id, if anything is.
    #[must_use]
    pub fn get(&self, account: &AccountId, request: &RequestId) -> Option<&Known> {
        self.0.get(&(account.clone(), request.clone()))
    }

    /// The same, to add to.
    pub fn of(&mut self, account: &AccountId, request: &RequestId) -> &mut Known {
        let key = (account.clone(), request.clone());
        self.0.entry(key).or_default()
    }

    /// Takes in what was decided.
    pub fn learn(&mut self, changes: &Changes) {
        if let Some((account, reverses, by)) = changes.reversal() {
            self.of(account, reverses).reversed_by = Some(by.clone());
        }
        for (account, hold) in changes.ended_holds() {
            self.of(account, &hold.id).ended = Some(hold.clone());
        }
        if let Some(record) = &changes.request {
            self.of(&record.account, &record.request).record = Some(record.clone());
        }
    }

    /// What a task asks for, as far as it is known.
    #[must_use]
    pub fn facts(&self, task: &Task) -> Facts {
        let known = |request: &RequestId| self.get(task.account(), request);
        let prior = task.request().and_then(known);
        let reverses = task.operation().and_then(Operation::reverses).and_then(known);
        let hold = task.operation().and_then(Operation::hold).and_then(known);
        Facts {
            prior: prior.and_then(|known| known.record.clone()),
            original: reverses.and_then(|known| known.record.clone()),
            reversed_by: reverses.and_then(|known| known.reversed_by.clone()),
            ended: hold.and_then(|known| known.ended.clone()),
        }
    }
}

impl Facts {
    /// These, and where one is missing, what `others` have.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            prior: self.prior.or(others.prior),
            original: self.original.or(others.original),
            reversed_by: self.reversed_by.or(others.reversed_by),
            ended: self.ended.or(others.ended),
        }
    }

    /// The other account that the task needs.
    #[must_use]
    pub fn target<'a>(&'a self, task: &'a Task) -> Option<&'a AccountId> {
        task.target(self.original.as_ref())
    }

    /// All that [`decide`](crate::ledger::decide::decide) needs for the task; `find` gives an account's rows.
    #[must_use]
    pub fn rows<'a>(
        &'a self,
        task: &'a Task,
        find: impl Fn(&AccountId) -> Option<&'a AccountRows>,
    ) -> Rows<'a> {
        Rows {
            prior: self.prior.as_ref(),
            own: find(task.account()),
            target: self.target(task).and_then(&find),
            ended: self.ended.as_ref(),
            original: self.original.as_ref(),
            reversed_by: self.reversed_by.as_ref(),
        }
    }
}
