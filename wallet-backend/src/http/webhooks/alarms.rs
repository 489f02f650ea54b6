//! Differences that a reconciliation has found, as webhooks: which goes next, and when again. Pure: `now` is an
//! argument.
//!
//! They are no entries and have no place among them: they go on their own, one at a time, in the order in which they
//! were found. Each is sent until it has arrived, or has gone through its [`Rounds`]. Nothing is kept over a restart: a
//! difference that is still there is found again, and sent under the same id.

use std::collections::BTreeSet;

use super::deliveries::later;
use super::rounds::{Next, Rounds};
use crate::account::Timestamp;
use crate::jobs::reconcile::{Difference, MOST_DIFFERENCES, Report};

/// Undelivered ones at once, those that are over meanwhile among them; more come in when there is room.
const MOST: usize = 2 * MOST_DIFFERENCES;

/// What there is to send.
#[derive(Debug)]
pub(super) struct Alarms {
    rounds: Rounds,
    /// In the order in which they were found.
    undelivered: Vec<Alarm>,
    /// Those that are listed and have been sent, or given up.
    done: BTreeSet<u64>,
    /// One is under way.
    busy: bool,
}

#[derive(Debug)]
struct Alarm {
    difference: Difference,
    tries: u32,
    not_before: Timestamp,
}

impl Alarms {
    pub(super) const fn new(rounds: Rounds) -> Self {
        Self {
            rounds,
            undelivered: Vec::new(),
            done: BTreeSet::new(),
            busy: false,
        }
    }

    /// Takes in what is listed now.
    pub(super) fn take_in(&mut self, report: &Report) {
        let listed: BTreeSet<u64> = report.differences.iter().map(|listed| listed.id).collect();
        self.done.retain(|id| listed.contains(id));
        let mut known: BTreeSet<u64> = self.undelivered.iter().map(|alarm| alarm.difference.id).collect();
        for difference in &report.differences {
            let room = self.undelivered.len() < MOST;
            if room && !self.done.contains(&difference.id) && known.insert(difference.id) {
                self.undelivered.push(Alarm {
                    difference: difference.clone(),
                    tries: 0,
                    not_before: Timestamp::default(),
                });
            }
        }
    }

    /// What to send now; then [`Alarms::sent`].
    pub(super) fn next(&mut self, now: Timestamp) -> Option<Difference> {
        if self.busy {
            return None;
        }
        let due = self.undelivered.iter().find(|alarm| alarm.not_before <= now)?;
        self.busy = true;
        Some(due.difference.clone())
    }

    /// When the first of those that wait may go; `None` while one is under way.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        let waiting = self.undelivered.iter().filter(|_| !self.busy);
        waiting.map(|alarm| alarm.not_before).min()
    }

    /// What became of it: the error is the reason.
    pub(super) fn sent(&mut self, id: u64, result: Result<(), String>, now: Timestamp) {
        self.busy = false;
        let Some(at) = self
            .undelivered
            .iter()
            .position(|alarm| alarm.difference.id == id)
        else {
            return;
        };
        if let Err(reason) = result
            && let Some(alarm) = self.undelivered.get_mut(at)
        {
            alarm.tries = alarm.tries.saturating_add(1);
            match self.rounds.after(alarm.tries, id ^ u64::from(alarm.tries)) {
                Next::After(wait) => {
                    alarm.not_before = later(now, wait);
                    return;
                }
                Next::Dead => tracing::error!(
                    id,
                    reason,
                    "a difference is undelivered after its last round, and is not sent any more: {}",
                    alarm.difference
                ),
            }
        }
        self.undelivered.remove(at);
        self.done.insert(id);
    }
}

#[cfg(test)]
mod tests;
