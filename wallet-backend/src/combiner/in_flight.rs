//! The request ids that are queued or being decided. Bounded by the jobs that there are.

use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

use crate::account::{AccountId, RequestId};

pub(super) type Key = (AccountId, RequestId);

/// Ids, each with the number of undecided jobs that bear it.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight(Arc<DashMap<Key, usize>>);

/// One undecided job's id; falls when the job is answered or dropped.
#[derive(Debug)]
pub(super) struct Claim {
    ids: InFlight,
    key: Key,
    /// Another job bore the id already when this one came.
    pub(super) repeated: bool,
}

impl InFlight {
    pub(super) fn claim(&self, account: &AccountId, request: &RequestId) -> Claim {
        let key = (account.clone(), request.clone());
        let mut jobs = self.0.entry(key.clone()).or_insert(0);
        let repeated = *jobs > 0;
        *jobs = jobs.saturating_add(1);
        drop(jobs);
        Claim {
            ids: self.clone(),
            key,
            repeated,
        }
    }

    pub(super) fn contains(&self, account: &AccountId, request: &RequestId) -> bool {
        self.0.contains_key(&(account.clone(), request.clone()))
    }
}

impl Claim {
    /// Whose id.
    pub(super) const fn id(&self) -> &Key {
        &self.key
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Entry::Occupied(mut jobs) = self.ids.0.entry(self.key.clone()) {
            let left = jobs.get().saturating_sub(1);
            if left == 0 {
                jobs.remove();
            } else {
                *jobs.get_mut() = left;
            }
        }
    }
}
