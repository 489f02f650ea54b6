//! The model's batches.

use super::{State, unavailable};
use crate::account::AccountId;
use crate::command::{Batch, BatchMode, Batched, LedgerError, Task, answered};
use crate::ledger::atomic::{Hand, Together, decide_together};
use crate::ledger::decide::Context;
use crate::ledger::facts::Facts;
use crate::ledger::rows::AccountRows;

impl State {
    pub(super) fn decide_batch(
        &mut self,
        batch: &Batch,
        context: &mut dyn FnMut() -> Context,
    ) -> Result<Batched, LedgerError> {
        match batch.mode() {
            BatchMode::Each => {
                let tasks = batch.tasks().iter();
                let each = |task| {
                    let answer = self.decide(task, context())?;
                    answered(answer).ok_or_else(|| unavailable("a batch is of commands"))
                };
                Ok(Batched {
                    applied: true,
                    results: tasks.map(each).collect(),
                })
            }
            BatchMode::Atomic => self.decide_atomic(batch.tasks(), context),
        }
    }

    fn decide_atomic(
        &mut self,
        tasks: &[Task],
        context: &mut dyn FnMut() -> Context,
    ) -> Result<Batched, LedgerError> {
        let together = decide_together(tasks, self, context).map_err(|violation| self.stop(&violation))?;
        match together {
            Together::Done { changes, decided } => {
                for changes in changes {
                    self.apply(changes).map_err(|violation| self.stop(&violation))?;
                }
                Ok(Batched {
                    applied: true,
                    results: decided.into_iter().map(Ok).collect(),
                })
            }
            Together::Refused { culprit, refused } => Ok(Batched::aborted(tasks.len(), culprit, refused)),
        }
    }
}

impl Hand for State {
    fn facts(&self, task: &Task) -> Result<Facts, LedgerError> {
        Ok(self.requests.facts(task))
    }

    fn rows(&self, id: &AccountId) -> Option<&AccountRows> {
        self.accounts.get(id)
    }

    fn rows_mut(&mut self, id: &AccountId) -> Option<&mut AccountRows> {
        self.accounts.get_mut(id)
    }
}
