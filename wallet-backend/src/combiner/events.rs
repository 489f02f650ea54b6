//! The store's events, through the queue.

use super::{PANICKED, Queue, not_found, unavailable};
use crate::account::AccountId;
use crate::command::LedgerError;
use crate::store::{EventCursor, EventPage, Store};

impl<S: Store> Queue<S> {
    /// At most `limit` events after `after`, of one account or of all.
    ///
    /// # Errors
    /// As [`Queue::account`]; `Invalid` where `after` is ahead of the ledger.
    pub async fn events(
        &self,
        after: EventCursor,
        account: Option<&AccountId>,
        limit: usize,
    ) -> Result<EventPage, LedgerError> {
        let page = self.read(self.0.store.events(after, account, limit)).await?;
        // Of all accounts there is always a page.
        page.ok_or_else(|| account.map_or_else(|| unavailable(PANICKED), not_found))
    }

    /// Waits, without a limit, until there is an event with a number above `number`.
    ///
    /// # Errors
    /// `Unavailable` once the store ends.
    pub async fn event_after(&self, number: u64) -> Result<(), LedgerError> {
        self.0.store.event_after(number).await
    }

    /// The number of the newest event; 0 before the first.
    #[must_use]
    pub fn newest_event(&self) -> u64 {
        self.0.store.newest_event()
    }

    /// Tells this ledger from every other.
    #[must_use]
    pub fn ledger(&self) -> u64 {
        self.0.store.id()
    }
}
