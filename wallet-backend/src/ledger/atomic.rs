//! Tasks that are all done or not at all.
//!
//! They are decided one after the other, each on what those before it did, and done on the rows themselves: that takes
//! time in what they change, however much their accounts have. Before anything else happens the rows are taken back
//! to what they were. So whoever asked still decides nothing but whether to apply the changes, in their order.

use crate::account::AccountId;
use crate::command::{Changes, Decided, LedgerError, Task, answered};
use crate::ledger::decide::{Context, Decision, decide};
use crate::ledger::facts::{Facts, KnownRequests};
use crate::ledger::invariants::{Rule, Violation};
use crate::ledger::rows::{AccountRows, Undo};
use crate::mutants::{Mutant, is_on};

/// What a store has in hand while nobody else does: the rows of its accounts, and what it knows.
pub trait Hand {
    /// What `task` asks for.
    ///
    /// # Errors
    /// Where it can't be read: that task fails with it.
    fn facts(&self, task: &Task) -> Result<Facts, LedgerError>;

    /// An account's rows.
    fn rows(&self, id: &AccountId) -> Option<&AccountRows>;

    /// The same, to change.
    fn rows_mut(&mut self, id: &AccountId) -> Option<&mut AccountRows>;
}

/// What becomes of all tasks together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Together {
    /// `changes` are to be applied in their order, whole in one durable write. `decided` has one for each task.
    Done {
        changes: Vec<Changes>,
        decided: Vec<Decided>,
    },
    /// Nothing is to be done, for the task at `culprit` was refused or failed.
    Refused {
        culprit: usize,
        refused: Result<Decided, LedgerError>,
    },
}

/// Decides `tasks` together. The rows of `hand` are afterwards what they were.
///
/// # Errors
/// A broken rule: the rows or a decision is wrong, and the rows may be half changed. The store must stop.
pub fn decide_together(
    tasks: &[Task],
    hand: &mut impl Hand,
    context: &mut dyn FnMut() -> Context,
) -> Result<Together, Violation> {
    let mut trial = Trial {
        hand,
        known: KnownRequests::default(),
        changes: Vec::new(),
        undo: Vec::new(),
    };
    let mut decided = Vec::with_capacity(tasks.len());
    for (culprit, task) in tasks.iter().enumerate() {
        let refused = match trial.run(task, context)? {
            Ok(one) if one.is_success() => {
                decided.push(one);
                continue;
            }
            refused => refused,
        };
        if !is_on(Mutant::KeepsTheFrontOfABatch) {
            trial.take_back();
        }
        return Ok(Together::Refused { culprit, refused });
    }
    let changes = trial.take_back();
    Ok(Together::Done { changes, decided })
}

#[derive(Debug)]
struct Trial<'a, H> {
    hand: &'a mut H,
    /// What this batch has come to know.
    known: KnownRequests,
    changes: Vec<Changes>,
    /// What takes the changes back, newest last.
    undo: Vec<(AccountId, Undo)>,
}

impl<H: Hand> Trial<'_, H> {
    fn run(
        &mut self,
        task: &Task,
        context: &mut dyn FnMut() -> Context,
    ) -> Result<Result<Decided, LedgerError>, Violation> {
        loop {
            let facts = match self.facts(task) {
                Ok(facts) => facts,
                Err(error) => return Ok(Err(error)),
            };
            let rows = facts.rows(task, |id| self.hand.rows(id));
            let Decision { changes, reply } = match decide(task, rows, context()) {
                Ok(decision) => decision,
                Err(error) => return Ok(Err(error)),
            };
            let answer = reply.answer(&changes);
            if changes != Changes::default() {
                self.apply(changes)?;
            }
            if let Some(answer) = answer {
                return Ok(answered(answer).ok_or_else(|| LedgerError::Invalid {
                    field: "operations",
                    reason: "must be commands".to_owned(),
                }));
            }
        }
    }

    /// What the store knows, and on top of it what the tasks before this one did.
    fn facts(&self, task: &Task) -> Result<Facts, LedgerError> {
        Ok(self.hand.facts(task)?.or(self.known.facts(task)))
    }

    fn apply(&mut self, changes: Changes) -> Result<(), Violation> {
        for id in changes.accounts() {
            let rows = self.hand.rows_mut(id).ok_or_else(|| missing(id))?;
            self.undo.push((id.clone(), rows.undo_of(&changes)));
            rows.apply(&changes)?;
        }
        self.known.learn(&changes);
        self.changes.push(changes);
        Ok(())
    }

    /// Gives the changes, which no row shows any more.
    fn take_back(&mut self) -> Vec<Changes> {
        while let Some((id, undo)) = self.undo.pop() {
            if let Some(rows) = self.hand.rows_mut(&id) {
                rows.undo(undo);
            }
        }
        std::mem::take(&mut self.changes)
    }
}

fn missing(account: &AccountId) -> Violation {
    Violation {
        account: account.clone(),
        slot: None,
        version: None,
        rule: Rule::Account,
        expected: 1,
        found: 0,
    }
}

#[cfg(test)]
mod tests;
