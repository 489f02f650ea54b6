//! What a decision needs beside the rows of its accounts: what was decided, reversed or ended before.

use crate::account::{AccountId, Hold, RequestId};
use crate::command::{RequestRecord, Task};
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

impl Facts {
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
