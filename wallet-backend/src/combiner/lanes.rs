//! One queue per account, one for the callers' own batches, and the turn-taking between them.
//!
//! A lane exists while it has jobs, and its account is then in `ready` or in the hands of [`Lanes::batch`]. Both
//! change under the lane's shard lock (lock order: shard, then `ready`), so no job is ever left without a turn.
//!
//! Where lanes are handed over one batch at a time, a lane is leased from its turn on until all of its jobs that were
//! taken are answered ([`Lease`]). It exists meanwhile, with jobs or without, and is not in `ready`: the end of the
//! lease puts it back there, or takes it away.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tokio::sync::oneshot;

use super::Limits;
use super::in_flight::Claims;
use crate::account::AccountId;
use crate::command::{Answer, LedgerError, Task, Work};
use crate::store::HandOver;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, Notify};

/// A job before it is handed to the store.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) work: Work,
    pub(super) reply: oneshot::Sender<Result<Answer, LedgerError>>,
    pub(super) claims: Claims,
}

/// A job that was taken.
pub(super) struct Handed {
    pub(super) job: Queued,
    pub(super) lease: Option<Arc<Lease>>,
}

/// Every lane.
#[derive(Debug)]
pub(super) struct Lanes {
    pub(super) limits: Limits,
    pub(super) hand_over: HandOver,
    lanes: DashMap<AccountId, Lane>,
    ready: Mutex<Ready>,
    /// Wakes who takes batches.
    pub(super) wake: Notify,
    /// Tasks in lanes.
    queued: Arc<AtomicUsize>,
    /// Commands in batches.
    in_batches: Arc<AtomicUsize>,
}

/// The jobs of one account that wait.
#[derive(Debug, Default)]
struct Lane {
    jobs: VecDeque<(Queued, Place)>,
    leased: bool,
}

/// Jobs of a lane that are under way, or a caller's batch, where what is under way counts. Falls with the last of them.
#[derive(Debug)]
pub(super) struct Lease {
    lanes: Arc<Lanes>,
    lane: Option<AccountId>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.lanes.end_lease(self.lane.take());
    }
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
    leases: usize,
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
    pub(super) fn new(limits: Limits, hand_over: HandOver) -> Self {
        Self {
            limits,
            hand_over,
            lanes: DashMap::new(),
            ready: Mutex::new(Ready {
                turns: VecDeque::new(),
                batches: VecDeque::new(),
                leases: 0,
                closed: None,
            }),
            wake: Notify::new(),
            queued: Arc::default(),
            in_batches: Arc::default(),
        }
    }

    /// Decisions that wait for a batch.
    pub(super) fn queued(&self) -> usize {
        let in_batches = self.in_batches.load(Ordering::Relaxed);
        self.queued.load(Ordering::Relaxed).saturating_add(in_batches)
    }

    /// Puts a job at the end of its lane, or of the batches. Says whether it has a turn, or will get one when what is
    /// under way ends.
    pub(super) fn push(&self, job: Queued) -> Result<bool, LedgerError> {
        match &job.work {
            Work::Task(task) => {
                let tidies = matches!(task, Task::Tidy { .. });
                let account = task.account().clone();
                self.push_task(account, job, tidies)
            }
            Work::Batch(_) => self.push_batch(job),
        }
    }

    fn push_batch(&self, job: Queued) -> Result<bool, LedgerError> {
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
        Ok(true)
    }

    fn push_task(&self, account: AccountId, job: Queued, tidies: bool) -> Result<bool, LedgerError> {
        let place = take(&self.queued, 1, self.limits.store)?;
        match self.lanes.entry(account) {
            // Tidying is what makes a lane of credits that wait go on: a few jobs that nobody else can send.
            Entry::Occupied(lane) if lane.get().jobs.len() >= self.limits.lane && !tidies => {
                let account = lane.key().clone();
                Err(LedgerError::LaneFull { account })
            }
            Entry::Occupied(mut lane) => {
                lane.get_mut().jobs.push_back((job, place));
                Ok(!lane.get().leased)
            }
            Entry::Vacant(lane) => {
                let mut ready = self.ready();
                if let Some(reason) = &ready.closed {
                    let reason = reason.clone();
                    return Err(LedgerError::Unavailable { reason });
                }
                ready.turns.push_back(Turn::Lane(lane.key().clone()));
                drop(ready);
                drop(lane.insert(Lane {
                    jobs: VecDeque::from([(job, place)]),
                    leased: false,
                }));
                Ok(true)
            }
        }
    }

    /// Whatever is queued, at most a batch of it. Lanes take turns, and every lane that is ready now gets its share:
    /// a batch divided by the lanes there are, more where room is left. A lane's order is kept. A caller's batch is
    /// taken whole: one that finds no room is first in the next batch.
    pub(super) fn batch(self: &Arc<Self>) -> Vec<Handed> {
        let mut batch = Vec::new();
        // Lanes that had their share and have more.
        let mut left = VecDeque::new();
        let mut room = self.limits.batch;
        let turns = self.ready().turns.len();
        let share = room.checked_div(turns).unwrap_or(1).max(1);
        while room > 0 {
            let mut ready = self.ready();
            let lane = match ready.turns.pop_front() {
                Some(Turn::Batch) => {
                    let first = ready.batches.front();
                    let weight = first.map_or(0, |(job, _)| job.work.weight());
                    if weight > room && !batch.is_empty() {
                        ready.turns.push_front(Turn::Batch);
                        break;
                    }
                    let lease = self.lease(&mut ready, None);
                    batch.extend(ready.batches.pop_front().map(|(job, _)| Handed { job, lease }));
                    // An empty one takes a turn all the same.
                    room = room.saturating_sub(weight.max(1));
                    continue;
                }
                Some(Turn::Lane(account)) => {
                    let lease = self.lease(&mut ready, Some(&account));
                    Some((account, lease))
                }
                None => left.pop_front(),
            };
            drop(ready);
            let Some((account, lease)) = lane else { break };
            let before = batch.len();
            if let Some(account) = self.take(account, lease.as_ref(), share.min(room), &mut batch) {
                left.push_back((account, lease));
            }
            room = room.saturating_sub(batch.len().saturating_sub(before));
        }
        if self.hand_over == HandOver::Ahead {
            let turns = left.into_iter().map(|(account, _)| Turn::Lane(account));
            self.ready().turns.extend(turns);
        }
        batch
    }

    /// Takes at most so many of a lane's jobs. Gives its account back where there are more.
    fn take(
        &self,
        account: AccountId,
        lease: Option<&Arc<Lease>>,
        most: usize,
        batch: &mut Vec<Handed>,
    ) -> Option<AccountId> {
        let Entry::Occupied(mut lane) = self.lanes.entry(account) else {
            return None;
        };
        let Lane { jobs, leased } = lane.get_mut();
        let with_lease = |(job, _)| Handed {
            job,
            lease: lease.cloned(),
        };
        batch.extend(jobs.drain(..jobs.len().min(most)).map(with_lease));
        *leased = lease.is_some();
        if !jobs.is_empty() {
            return Some(lane.key().clone());
        }
        if lease.is_none() {
            lane.remove();
        }
        None
    }

    /// What is taken in this turn is under way, where that counts.
    fn lease(self: &Arc<Self>, ready: &mut Ready, lane: Option<&AccountId>) -> Option<Arc<Lease>> {
        (self.hand_over == HandOver::OneBatchAtATime).then(|| {
            ready.leases = ready.leases.saturating_add(1);
            Arc::new(Lease {
                lanes: Arc::clone(self),
                lane: lane.cloned(),
            })
        })
    }

    /// All that was taken under a lease is answered: the lane's next turn, or its end.
    fn end_lease(&self, lane: Option<AccountId>) {
        if let Some(Entry::Occupied(mut lane)) = lane.map(|account| self.lanes.entry(account)) {
            if lane.get().jobs.is_empty() {
                lane.remove();
            } else {
                lane.get_mut().leased = false;
                self.ready().turns.push_back(Turn::Lane(lane.key().clone()));
            }
        }
        // Only then: who closes sees the lease or the turn.
        let mut ready = self.ready();
        ready.leases = ready.leases.saturating_sub(1);
        drop(ready);
        self.wake.notify_one();
    }

    /// Ends the queue if nothing waits and nothing counts as under way: from then on no job is taken, so none can be
    /// left behind.
    pub(super) fn close_if_empty(&self, reason: &str) -> bool {
        let mut ready = self.ready();
        let empty = ready.turns.is_empty() && ready.leases == 0;
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
            .flat_map(|(_, lane)| lane.jobs)
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
