//! Deciding jobs into the open batch, while there is room in it.

use super::{NoPlace, State, Waiting, unavailable};
use crate::account::AccountId;
use crate::command::{
    Answer, Batch, BatchMode, Batched, Changes, Decided, LedgerError, Task, Work, answered,
};
use crate::ledger::atomic::{Hand, Together, decide_together};
use crate::ledger::decide::{Context, Decision, Reply, decide};
use crate::ledger::facts::Facts;
use crate::ledger::invariants::Violation;
use crate::ledger::rows::AccountRows;
use crate::mutants::{Mutant, is_on};
use crate::store::Job;
use crate::store::embedded::links::Links;
use crate::store::embedded::record::encode;
use crate::store::embedded::records::Records;
use crate::store::embedded::state::Answers;
use crate::store::embedded::write::{RECORD_HEAD, append_record};

/// By how much a number may be longer than 0 is: a varint of up to 10 bytes, not of 1.
const NUMBER_GROWS: usize = 9;

/// A job, and how far deciding it has come.
#[derive(Debug)]
pub(in crate::store::embedded) struct Offered {
    job: Job,
    /// What became of the front of a batch whose commands are decided one by one.
    decided: Vec<Result<Decided, LedgerError>>,
    /// The first log batch with a record of it.
    wrote: Option<u64>,
}

/// What became of a job or a task that was offered.
enum Taken {
    Done(Result<Answer, LedgerError>),
    /// What comes first is in the batch; then it is to be offered again.
    Again,
    /// There is no room until something changes.
    Wait,
    /// The store has stopped over it.
    Broken,
}

impl Offered {
    const fn new(job: Job) -> Self {
        Self {
            job,
            decided: Vec::new(),
            wrote: None,
        }
    }

    /// The answer when nothing more is decided. Of a batch that has begun, something may stay.
    fn turned_away(self, refusal: LedgerError) -> (Job, Result<Answer, LedgerError>) {
        let error = match (self.wrote, refusal) {
            (Some(_), LedgerError::Unavailable { reason }) => LedgerError::OutcomeUnknown { reason },
            (_, refusal) => refusal,
        };
        (self.job, Err(error))
    }
}

impl State {
    /// Takes jobs from the front of `jobs` while there is room. What is left must wait for room.
    pub(in crate::store::embedded) fn take_jobs(
        &mut self,
        jobs: &mut std::vec::IntoIter<Job>,
        put_back: &mut Option<Offered>,
        context: &mut dyn FnMut() -> Context,
        records: &Records,
    ) -> Answers {
        let mut answers = Vec::new();
        while let Some(mut offered) = put_back.take().or_else(|| jobs.next().map(Offered::new)) {
            if let Some(refusal) = self.refusal() {
                answers.push(offered.turned_away(refusal));
                continue;
            }
            let Offered { job, decided, wrote } = &mut offered;
            let taken = match &job.work {
                Work::Task(task) => self.take(task, context(), records, wrote),
                Work::Batch(batch) => match batch.mode() {
                    BatchMode::Each => self.take_each(batch, decided, context, records, wrote),
                    BatchMode::Atomic => self.take_atomic(batch, context, records, wrote),
                },
            };
            match taken {
                Taken::Wait => {
                    *put_back = Some(offered);
                    break;
                }
                Taken::Again => *put_back = Some(offered),
                Taken::Broken => answers.push(offered.turned_away(unavailable("the store has stopped"))),
                Taken::Done(answer) => {
                    let Offered { job, wrote, .. } = offered;
                    answers.extend(self.await_durable(Waiting { job, answer, wrote }));
                }
            }
        }
        answers
    }

    /// Decides one task. `wrote` is set if that put a record of it into the batch.
    fn take(&mut self, task: &Task, context: Context, records: &Records, wrote: &mut Option<u64>) -> Taken {
        if self.is_full() {
            return Taken::Wait;
        }
        let facts = match self.facts(task, records) {
            Ok(facts) => facts,
            Err(error) => return Taken::Done(Err(error)),
        };
        let rows = facts.rows(task, |id| self.books.get(id).map(|held| &held.rows));
        let mut decision = match decide(task, rows, context) {
            Ok(decision) => decision,
            Err(error) => return Taken::Done(Err(error)),
        };
        let taken = |decision: &mut Decision| match decision.take_answer() {
            Some(answer) => Taken::Done(Ok(answer)),
            None => Taken::Again,
        };
        if decision.changes == Changes::default() {
            return taken(&mut decision);
        }
        match self.write(&decision.changes) {
            Ok(true) => {
                if decision.reply != Reply::Again {
                    wrote.get_or_insert(self.open.batch);
                }
                taken(&mut decision)
            }
            Ok(false) => Taken::Wait,
            Err(NotWritten::NoPlace(error)) => Taken::Done(Err(error.into())),
            Err(NotWritten::Broken(violation)) => self.broken(&violation),
        }
    }

    /// Decides a batch from where it stands, command by command.
    fn take_each(
        &mut self,
        batch: &Batch,
        decided: &mut Vec<Result<Decided, LedgerError>>,
        context: &mut dyn FnMut() -> Context,
        records: &Records,
        wrote: &mut Option<u64>,
    ) -> Taken {
        decided.reserve_exact(batch.tasks().len().saturating_sub(decided.len()));
        while let Some(task) = batch.tasks().get(decided.len()) {
            match self.take(task, context(), records, wrote) {
                Taken::Done(Ok(answer)) => {
                    let answer = answered(answer);
                    decided.push(answer.ok_or_else(|| unavailable("a batch is of commands")));
                }
                Taken::Done(Err(error)) => decided.push(Err(error)),
                Taken::Again => {}
                waits @ (Taken::Wait | Taken::Broken) => return waits,
            }
        }
        Taken::Done(Ok(Answer::Batched(Batched {
            applied: true,
            results: std::mem::take(decided),
        })))
    }

    /// Decides a batch as one; its records are in one log batch, which is on disk whole or not at all.
    fn take_atomic(
        &mut self,
        batch: &Batch,
        context: &mut dyn FnMut() -> Context,
        records: &Records,
        wrote: &mut Option<u64>,
    ) -> Taken {
        if self.is_full() {
            return Taken::Wait;
        }
        let mut reach = Reach { state: self, records };
        let (changes, decided) = match decide_together(batch.tasks(), &mut reach, context) {
            Ok(Together::Done { changes, decided }) => (changes, decided),
            Ok(Together::Refused { culprit, refused }) => {
                let aborted = Batched::aborted(batch.tasks().len(), culprit, refused);
                return Taken::Done(Ok(Answer::Batched(aborted)));
            }
            Err(violation) => return self.broken(&violation),
        };
        if !changes.is_empty() && !is_on(Mutant::SplitsAtomicBatches) {
            let bytes = self.most_bytes(&changes);
            match self.place(bytes) {
                Ok(Some(_)) => {}
                Ok(None) => return Taken::Wait,
                Err(NoPlace::TooLong(bytes)) => return Taken::Done(Err(too_long(bytes))),
                Err(failed @ NoPlace::Failed(_)) => return Taken::Done(Err(failed.into())),
            }
            wrote.get_or_insert(self.open.batch);
        }
        for changes in &changes {
            match self.write(changes) {
                Ok(true) => {}
                Ok(false) | Err(NotWritten::NoPlace(_)) => {
                    self.stopped = Some("a batch did not fit where it had been given room".to_owned());
                    return Taken::Broken;
                }
                Err(NotWritten::Broken(violation)) => return self.broken(&violation),
            }
        }
        Taken::Done(Ok(Answer::Batched(Batched {
            applied: true,
            results: decided.into_iter().map(Ok).collect(),
        })))
    }

    /// Applies changes and appends their record to the open batch. `false`, and nothing done, where that has to wait.
    pub(super) fn write(&mut self, changes: &Changes) -> Result<bool, NotWritten> {
        self.links.clear();
        self.links.extend(self.books.links(changes));
        self.scratch.bytes.clear();
        encode(self.books.entries(), changes, &self.links, &mut self.scratch);
        let length = self.scratch.bytes.len().saturating_add(RECORD_HEAD);
        let Some(position) = self.place(length).map_err(NotWritten::NoPlace)? else {
            return Ok(false);
        };
        self.books.apply(changes, position).map_err(NotWritten::Broken)?;
        append_record(&self.scratch.bytes, &mut self.open.payload);
        Ok(true)
    }

    /// The most that these changes take in the log. Their number and each entry's two links are not known yet.
    fn most_bytes(&mut self, all: &[Changes]) -> usize {
        let mut bytes: usize = 0;
        for changes in all {
            let entries = changes.entries.len();
            self.scratch.bytes.clear();
            encode(0, changes, &vec![Links::default(); entries], &mut self.scratch);
            let grow = entries.saturating_mul(2).saturating_add(1);
            bytes = bytes
                .saturating_add(self.scratch.bytes.len())
                .saturating_add(RECORD_HEAD)
                .saturating_add(grow.saturating_mul(NUMBER_GROWS));
        }
        bytes
    }

    fn broken(&mut self, violation: &Violation) -> Taken {
        self.stopped = Some(format!("a decision broke the books: {violation}"));
        Taken::Broken
    }
}

/// Why changes are not in the open batch.
pub(super) enum NotWritten {
    NoPlace(NoPlace),
    Broken(Violation),
}

fn too_long(bytes: usize) -> LedgerError {
    LedgerError::Invalid {
        field: "operations",
        reason: format!(
            "take {bytes} bytes of the log at once, which is more than a segment has: send fewer"
        ),
    }
}

/// All that a decision may ask for.
struct Reach<'a> {
    state: &'a mut State,
    records: &'a Records,
}

impl Hand for Reach<'_> {
    fn facts(&self, task: &Task) -> Result<Facts, LedgerError> {
        self.state.facts(task, self.records)
    }

    fn rows(&self, id: &AccountId) -> Option<&AccountRows> {
        self.state.books.get(id).map(|held| &held.rows)
    }

    fn rows_mut(&mut self, id: &AccountId) -> Option<&mut AccountRows> {
        self.state.books.rows_mut(id)
    }
}
