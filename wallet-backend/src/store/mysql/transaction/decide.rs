//! The decisions of a transaction, one after the other, each on what those before it did.

use super::books::{Books, Stop};
use crate::command::{Answer, Batch, BatchMode, Batched, LedgerError, Outcome, Task, Work, answered};
use crate::ledger::atomic::{Hand as _, Together, decide_together};
use crate::ledger::decide::{Context, Decision, decide};

/// What to tell whoever asked, once it is durable.
pub(super) type Told = Result<Answer, LedgerError>;

impl Books {
    /// Decides a job and makes its changes.
    pub(super) fn work(&mut self, work: &Work, prefer: u64) -> Result<Told, Stop> {
        match work {
            Work::Task(task) => self.task(task, prefer),
            Work::Batch(batch) => match batch.mode() {
                BatchMode::Each => self.each(batch, prefer),
                BatchMode::Atomic => self.together(batch, prefer),
            },
        }
    }

    fn task(&mut self, task: &Task, prefer: u64) -> Result<Told, Stop> {
        let context = Context {
            now: self.now,
            prefer,
        };
        loop {
            let facts = match self.facts(task) {
                Ok(facts) => facts,
                Err(error) => return Ok(Err(error)),
            };
            let rows = facts.rows(task, |id| self.rows(id));
            let Decision { changes, reply } = match decide(task, rows, context) {
                Ok(decision) => decision,
                Err(error) => return Ok(Err(error)),
            };
            self.check(&changes)?;
            let answer = reply.answer(&changes);
            self.apply(changes)?;
            if let Some(answer) = answer {
                return Ok(Ok(answer));
            }
        }
    }

    fn each(&mut self, batch: &Batch, prefer: u64) -> Result<Told, Stop> {
        let mut results = Vec::with_capacity(batch.tasks().len());
        for task in batch.tasks() {
            let told = self.task(task, prefer)?;
            results.push(told.and_then(|answer| {
                answered(answer).ok_or_else(|| LedgerError::Invalid {
                    field: "operations",
                    reason: "must be commands".to_owned(),
                })
            }));
        }
        let applied = true;
        Ok(Ok(Answer::Batched(Batched { applied, results })))
    }

    fn together(&mut self, batch: &Batch, prefer: u64) -> Result<Told, Stop> {
        let context = Context {
            now: self.now,
            prefer,
        };
        let batched = match decide_together(batch.tasks(), self, &mut || context)? {
            Together::Done { changes, decided } => {
                for changes in &changes {
                    self.check(changes)?;
                }
                for changes in changes {
                    self.apply(changes)?;
                }
                Batched {
                    applied: true,
                    results: decided.into_iter().map(Ok).collect(),
                }
            }
            Together::Refused { culprit, refused } => {
                if let Ok(decided) = &refused
                    && let Outcome::Refused(refusal) = &decided.outcome
                    && !decided.replayed
                {
                    self.check_refusal(refusal)?;
                }
                Batched::aborted(batch.tasks().len(), culprit, refused)
            }
        };
        Ok(Ok(Answer::Batched(batched)))
    }
}
