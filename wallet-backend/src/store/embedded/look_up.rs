//! What became of a request or of a hold, read back from the log.

use std::sync::Arc;

use crate::account::{AccountId, RequestId};
use crate::command::{HoldView, LedgerError, Leg, RequestView};
use crate::store::embedded::books::Books;
use crate::store::embedded::error::OpenError;
use crate::store::embedded::records::Records;
use crate::store::embedded::requests::{Filed, Older, fingerprint};
use crate::store::embedded::state::unavailable;

/// Where records may be that are about one request: of `N` kinds, as of one moment. Those on disk are looked for later,
/// without the lock.
#[derive(Debug)]
pub(super) struct Candidates<const N: usize> {
    keys: [u64; N],
    recent: [Vec<u64>; N],
    older: Arc<Older>,
}

impl<const N: usize> Candidates<N> {
    pub(super) fn of(
        books: &Books,
        store: u64,
        (account, request): (&AccountId, &RequestId),
        kinds: [Filed; N],
    ) -> Self {
        let keys = kinds.map(|filed| fingerprint(store, account, request, filed));
        Self {
            keys,
            recent: keys.map(|key| books.find_recent(key)),
            older: Arc::clone(&books.older),
        }
    }

    /// All their positions, kind by kind.
    fn positions(self, records: &Records) -> Result<[Vec<u64>; N], LedgerError> {
        let mut found = self.recent;
        for (key, found) in self.keys.into_iter().zip(&mut found) {
            let more = self.older.find(records.disk(), key, found);
            more.map_err(|error| unavailable(&error.to_string()))?;
        }
        Ok(found)
    }
}

/// What became of a request: its decision, and the settlement of what was pending then. All of it is durable.
pub(super) fn request(
    records: &Records,
    account: &AccountId,
    request: &RequestId,
    found: Candidates<2>,
) -> Result<RequestView, LedgerError> {
    let [decisions, settlements] = found.positions(records)?;
    let read = |position: &u64| records.read(*position).map_err(|error| failed_read(&error));
    for position in &decisions {
        let found = read(position)?.changes.request;
        let Some(found) = found.filter(|found| found.account == *account && found.request == *request) else {
            continue;
        };
        let mut outcome = found.outcome;
        for position in &settlements {
            let record = read(position)?;
            let mut entries = record.changes.entries.iter();
            if let Some(entry) = entries.find(|entry| entry.settles() == Some((account, request))) {
                outcome = outcome.settled_by(Leg::from(entry));
            }
        }
        return Ok(RequestView::Decided(outcome));
    }
    Ok(RequestView::NotFound)
}

/// How a hold ended that is not open any more, if it ever was.
pub(super) fn ended_hold(
    records: &Records,
    account: &AccountId,
    hold: &RequestId,
    found: Candidates<1>,
) -> Result<HoldView, LedgerError> {
    let [ends] = found.positions(records)?;
    for position in ends {
        let record = records.read(position).map_err(|error| failed_read(&error))?;
        if let Some(ended) = record.changes.ended_hold(account, hold) {
            return Ok(HoldView::Found(ended.clone()));
        }
    }
    Ok(HoldView::NotFound)
}

/// Damage in an old part of the log: an operator must know, the caller learns that nothing can be said.
pub(super) fn failed_read(error: &OpenError) -> LedgerError {
    let error = error.whole();
    tracing::error!(error, "the log cannot be read");
    unavailable(&error)
}
