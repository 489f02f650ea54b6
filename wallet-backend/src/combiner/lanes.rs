//! One queue per account, and the turn-taking between them.
//!
//! A lane exists while it has jobs, and its account is then in `ready` or in the hands of [`Lanes::batch`]. Both
//! change under the lane's shard lock (lock order: shard, then `ready`), so no job is ever left without a turn.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tokio::sync::oneshot;

use super::Limits;
use super::in_flight::Claim;
use crate::account::AccountId;
use crate::command::{Answer, LedgerError, Task};

/// A job before it is handed to the store.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) task: Task,
    pub(super) reply: oneshot::Sender<Result<Answer, LedgerError>>,
    pub(super) claim: Option<Claim>,
}

/// Every lane.
#[derive(Debug)]
pub(super) struct Lanes {
    limits: Limits,
    lanes: DashMap<AccountId, VecDeque<(Queued, Place)>>,
    ready: Mutex<Ready>,
    queued: Arc<AtomicUsize>,
}

/// Accounts with a lane, in the order of their turns.
#[derive(Debug)]
struct Ready {
    turns: VecDeque<AccountId>,
    /// Why no new lane may be made.
    closed: Option<String>,
}

/// One of the store's places; free again when this falls.
#[derive(Debug)]
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        // A count that nothing else is published with.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Lanes {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            lanes: DashMap::new(),
            ready: Mutex::new(Ready {
                turns: VecDeque::new(),
                closed: None,
            }),
            queued: Arc::default(),
        }
    }

    /// Jobs that wait for a batch.
    pub(super) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Puts a job at its lane's end.
    pub(super) fn push(&self, job: Queued) -> Result<(), LedgerError> {
        let place = self.place()?;
        let account = job.task.account().clone();
        match self.lanes.entry(account) {
            // Tidying is what makes a lane of credits that wait go on: a few jobs that nobody else can send.
            Entry::Occupied(lane)
                if lane.get().len() >= self.limits.lane && !matches!(job.task, Task::Tidy { .. }) =>
            {
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
                ready.turns.push_back(lane.key().clone());
                drop(ready);
                drop(lane.insert(VecDeque::from([(job, place)])));
                Ok(())
            }
        }
    }

    /// Whatever is queued, at most a batch of it. Lanes take turns, and every lane that is ready now gets its share:
    /// a batch divided by the lanes there are, more where room is left. A lane's order is kept.
    pub(super) fn batch(&self) -> Vec<Queued> {
        let mut batch = Vec::new();
        let lanes = self.ready().turns.len();
        let share = self.limits.batch.checked_div(lanes).unwrap_or(1).max(1);
        while batch.len() < self.limits.batch {
            let Some(account) = self.ready().turns.pop_front() else {
                break;
            };
            let room = self.limits.batch.saturating_sub(batch.len());
            self.take(account, share.min(room), &mut batch);
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
            ready.turns.push_back(lane.key().clone());
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
        drop(ready);
        // A push finds either its lane still here, and the job is taken below, or none, and is refused.
        let accounts: Vec<AccountId> = self.lanes.iter().map(|lane| lane.key().clone()).collect();
        accounts
            .iter()
            .filter_map(|account| self.lanes.remove(account))
            .flat_map(|(_, lane)| lane)
            .map(|(job, _)| job)
            .collect()
    }

    fn place(&self) -> Result<Place, LedgerError> {
        let most = self.limits.store;
        let raise = |queued: usize| (queued < most).then(|| queued.saturating_add(1));
        self.queued
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, raise)
            .map_err(|_| LedgerError::StoreFull)?;
        Ok(Place(Arc::clone(&self.queued)))
    }

    fn ready(&self) -> MutexGuard<'_, Ready> {
        // Nothing panics while it is held, and a queue of ids has no half state.
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
