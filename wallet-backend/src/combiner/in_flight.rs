//! The request ids that are queued or being decided. Bounded by the jobs that there are.
//!
//! Kept as 128-bit hashes under a secret of this process, since they are written and taken out for every command. Two
//! ids that share one would share a wait, never an outcome: what was decided is compared in full.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

use crate::account::{AccountId, RequestId};
use crate::command::{Task, Work};

/// Ids, each with the number of times that undecided jobs bear it.
#[derive(Clone, Debug)]
pub(super) struct InFlight(Arc<Ids>);

#[derive(Debug)]
struct Ids {
    secret: u64,
    jobs: DashMap<u128, usize>,
}

/// One undecided job's ids; they fall when the job is answered or dropped.
#[derive(Debug)]
pub(super) struct Claims {
    ids: InFlight,
    keys: Keys,
    /// Another job bore one of them already when this one came.
    pub(super) repeated: bool,
}

#[derive(Debug)]
enum Keys {
    Task(Option<u128>),
    Batch(Vec<u128>),
}

impl Default for InFlight {
    fn default() -> Self {
        Self(Arc::new(Ids {
            // Random, from the same source as the standard library's hash keys.
            secret: RandomState::new().build_hasher().finish(),
            jobs: DashMap::new(),
        }))
    }
}

impl InFlight {
    pub(super) fn claim(&self, work: &Work) -> Claims {
        let of = |task: &Task| Some(self.key(task.account(), task.request()?));
        let keys = match work {
            Work::Task(task) => Keys::Task(of(task)),
            Work::Batch(batch) => Keys::Batch(batch.tasks().iter().filter_map(of).collect()),
        };
        let mut repeated = false;
        for key in keys.as_slice() {
            let mut jobs = self.0.jobs.entry(*key).or_insert(0);
            repeated |= *jobs > 0;
            *jobs = jobs.saturating_add(1);
        }
        Claims {
            ids: self.clone(),
            keys,
            repeated,
        }
    }

    pub(super) fn contains(&self, account: &AccountId, request: &RequestId) -> bool {
        self.0.jobs.contains_key(&self.key(account, request))
    }

    fn key(&self, account: &AccountId, request: &RequestId) -> u128 {
        let seed = xxh3_64_with_seed(account.as_str().as_bytes(), self.0.secret);
        xxh3_128_with_seed(request.as_str().as_bytes(), seed)
    }
}

impl Keys {
    fn as_slice(&self) -> &[u128] {
        match self {
            Self::Task(key) => key.as_slice(),
            Self::Batch(keys) => keys,
        }
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        for key in self.keys.as_slice() {
            if let Entry::Occupied(mut jobs) = self.ids.0.jobs.entry(*key) {
                let left = jobs.get().saturating_sub(1);
                if left == 0 {
                    jobs.remove();
                } else {
                    *jobs.get_mut() = left;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Batch, BatchMode, Command, Operation};
    use crate::money::Amount;

    fn command(account: &str, request: &str) -> Command {
        Command {
            account: AccountId::new(account).unwrap(),
            request: RequestId::new(request).unwrap(),
            operation: Operation::Credit {
                amount: Amount::new(1).unwrap(),
                memo: None,
            },
        }
    }

    fn lone(account: &str, request: &str) -> Work {
        Task::Run(command(account, request)).into()
    }

    fn contains(flight: &InFlight, account: &str, request: &str) -> bool {
        let Command { account, request, .. } = command(account, request);
        flight.contains(&account, &request)
    }

    #[test]
    fn an_id_is_in_flight_until_the_last_job_that_bears_it_falls() {
        let flight = InFlight::default();
        let batch = Batch::new(vec![command("a", "r"), command("a", "s")], BatchMode::Each);
        let first = flight.claim(&batch.unwrap().into());
        let second = flight.claim(&lone("a", "r"));
        assert!(!first.repeated && second.repeated);
        drop(first);
        assert!(contains(&flight, "a", "r") && !contains(&flight, "a", "s"));
        drop(second);
        assert!(!contains(&flight, "a", "r"));
        assert!(!flight.claim(&lone("a", "r")).repeated);
    }

    #[test]
    fn an_id_belongs_to_its_account() {
        let flight = InFlight::default();
        let claims = flight.claim(&lone("a", "r"));
        for (account, request) in [("b", "r"), ("a", "s"), ("ar", "r")] {
            assert!(!contains(&flight, account, request));
            assert!(!flight.claim(&lone(account, request)).repeated);
        }
        drop(claims);
    }
}
