//! One queue per account, one for the callers' own batches, and the turn-taking between them.
//!
//! A lane exists while it has jobs, and its account is then in `ready` or in the hands of [`Lanes::batch`]. Both
//! change under the lane's shard lock (lock order: shard, then `ready`), so no job is ever left without a turn.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tokio::sync::oneshot;

use super::Limits;
use super::in_flight::Claims;
use crate::account::AccountId;
use crate::command::{Answer, LedgerError, Task, Work};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// A job before it is handed to the store.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) work: Work,
    pub(super) reply: oneshot::Sender<Result<Answer, LedgerError>>,
    pub(super) claims: Claims,
}

/// Every lane.
#[derive(Debug)]
pub(super) struct Lanes {
    limits: Limits,
    lanes: DashMap<AccountId, VecDeque<(Queued, Place)>>,
    ready: Mutex<Ready>,
    /// Tasks in lanes.
    queued: Arc<AtomicUsize>,
    /// Commands in batches.
    in_batches: Arc<AtomicUsize>,
}

/// Whose turn it is.
#[derive(Debug)]
enum Turn {
    Lane(AccountId),
    /// The first of the batches.
    Batch,
}

/// Accounts with a lane and batches, in the order of their turns.
#[derive(Debug)]
struct Ready {
    turns: VecDeque<Turn>,
    /// As many as have a turn.
    batches: VecDeque<(Queued, Place)>,
    /// Why no new lane may be made.
    closed: Option<String>,
}

/// Places that are taken of a number of them; free again when this falls.
#[derive(Debug)]
struct Place {
    taken: Arc<AtomicUsize>,
    count: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        // A count that nothing else is published with.
        self.taken.fetch_sub(self.count, Ordering::Relaxed);
    }
}

impl Lanes {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            lanes: DashMap::new(),
            ready: Mutex::new(Ready {
                turns: VecDeque::new(),
                batches: VecDeque::new(),
                closed: None,
            }),
            queued: Arc::default(),
            in_batches: Arc::default(),
        }
    }

    /// Decisions that wait for a batch.
    pub(super) fn queued(&self) -> usize {
        let in_batches = self.in_batches.load(Ordering::Relaxed);
        self.queued.load(Ordering::Relaxed).saturating_add(in_batches)
    }

    /// Puts a job at the end of its lane, or of the batches.
    pub(super) fn push(&self, job: Queued) -> Result<(), LedgerError> {
        match &job.work {
            Work::Task(task) => {
                let tidies = matches!(task, Task::Tidy { .. });
                let account = task.account().clone();
                self.push_task(account, job, tidies)
            }
            Work::Batch(_) => self.push_batch(job),
        }
    }

    fn push_batch(&self, job: Queued) -> Result<(), LedgerError> {
        let count = job.work.weight();
        // A batch that is larger than all the places takes them all.
        let place = take(
            &self.in_batches,
            count.min(self.limits.batches),
            self.limits.batches,
        )?;
        let mut ready = self.ready();
        if let Some(reason) = &ready.closed {
            let reason = reason.clone();
            return Err(LedgerError::Unavailable { reason });
        }
        ready.batches.push_back((job, place));
        ready.turns.push_back(Turn::Batch);
        Ok(())
    }

    fn push_task(&self, account: AccountId, job: Queued, tidies: bool) -> Result<(), LedgerError> {
        let place = take(&self.queued, 1, self.limits.store)?;
        match self.lanes.entry(account) {
            // Tidying is what makes a lane of credits that wait go on: a few jobs that nobody else can send.
            Entry::Occupied(lane) if lane.get().len() >= self.limits.lane && !tidies => {
                let account = lane.key().clone();
                Err(LedgerError::LaneFull { account })
            }
            Entry::Occupied(mut lane) => {
                lane.get_mut().push_back((job, place));
                Ok(())
            }
            Entry::Vacant(lane) => {
                let mut ready = self.ready();
                if let Some(reason) = &ready.closed {
                    let reason = reason.clone();
                    return Err(LedgerError::Unavailable { reason });
                }
                ready.turns.push_back(Turn::Lane(lane.key().clone()));
                drop(ready);
                drop(lane.insert(VecDeque::from([(job, place)])));
                Ok(())
            }
        }
    }

    /// Whatever is queued, at most a batch of it. Lanes take turns, and every lane that is ready now gets its share:
    /// a batch divided by the lanes there are, more where room is left. A lane's order is kept. A caller's batch is
    /// taken whole: one that finds no room is first in the next batch.
    pub(super) fn batch(&self) -> Vec<Queued> {
        let mut batch = Vec::new();
        let mut room = self.limits.batch;
        let turns = self.ready().turns.len();
        let share = room.checked_div(turns).unwrap_or(1).max(1);
        while room > 0 {
            let mut ready = self.ready();
            match ready.turns.pop_front() {
                None => break,
                Some(Turn::Lane(account)) => {
                    drop(ready);
                    let before = batch.len();
                    self.take(account, share.min(room), &mut batch);
                    room = room.saturating_sub(batch.len().saturating_sub(before));
                }
                Some(Turn::Batch) => {
                    let first = ready.batches.front();
                    let weight = first.map_or(0, |(job, _)| job.work.weight());
                    if weight > room && !batch.is_empty() {
                        ready.turns.push_front(Turn::Batch);
                        break;
                    }
                    batch.extend(ready.batches.pop_front().map(|(job, _)| job));
                    // An empty one takes a turn all the same.
                    room = room.saturating_sub(weight.max(1));
                }
            }
        }
        batch
    }

    fn take(&self, account: AccountId, most: usize, batch: &mut Vec<Queued>) {
        let Entry::Occupied(mut lane) = self.lanes.entry(account) else {
            return;
        };
        let count = lane.get().len().min(most);
        batch.extend(lane.get_mut().drain(..count).map(|(job, _)| job));
        if lane.get().is_empty() {
            lane.remove();
        } else {
            let mut ready = self.ready();
            ready.turns.push_back(Turn::Lane(lane.key().clone()));
        }
    }

    /// Ends the queue if nothing waits: from then on no job is taken, so none can be left behind.
    pub(super) fn close_if_empty(&self, reason: &str) -> bool {
        let mut ready = self.ready();
        let empty = ready.turns.is_empty();
        if empty {
            ready.closed.get_or_insert_with(|| reason.to_owned());
        }
        empty
    }

    /// Ends the queue now and gives back what waited.
    pub(super) fn abort(&self, reason: &str) -> Vec<Queued> {
        let mut ready = self.ready();
        ready.closed.get_or_insert_with(|| reason.to_owned());
        ready.turns.clear();
        let batches = std::mem::take(&mut ready.batches);
        drop(ready);
        // A push finds either its lane still here, and the job is taken below, or none, and is refused.
        let accounts: Vec<AccountId> = self.lanes.iter().map(|lane| lane.key().clone()).collect();
        accounts
            .iter()
            .filter_map(|account| self.lanes.remove(account))
            .flat_map(|(_, lane)| lane)
            .chain(batches)
            .map(|(job, _)| job)
            .collect()
    }

    fn ready(&self) -> MutexGuard<'_, Ready> {
        // Nothing panics while it is held, and a queue of ids has no half state.
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes `count` of `most` places.
fn take(taken: &Arc<AtomicUsize>, count: usize, most: usize) -> Result<Place, LedgerError> {
    let raise = |now: usize| now.checked_add(count).filter(|sum| *sum <= most);
    taken
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, raise)
        .map_err(|_| LedgerError::StoreFull)?;
    Ok(Place {
        taken: Arc::clone(taken),
        count,
    })
}
