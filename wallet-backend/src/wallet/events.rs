//! Events: every committed effect once, in the order in which they were committed, from any of them on.

use crate::account::AccountId;
use crate::combiner::Queue;
use crate::command::LedgerError;
use crate::store::any::AnyStore;
use crate::store::{Event, EventCursor};
use crate::wallet::check_limit;

/// A reader of the events of all accounts, or of one. Holds no events: it reads from the ledger, as far back as it is
/// behind.
#[derive(Clone, Debug)]
pub struct Events {
    queue: Queue<AnyStore>,
    account: Option<AccountId>,
    at: EventCursor,
}

impl Events {
    pub(super) fn new(queue: Queue<AnyStore>, after: u64, account: Option<AccountId>) -> Self {
        Self {
            queue,
            account,
            at: after.into(),
        }
    }

    /// The number of the last event that was read, or passed over as another account's. Reading may begin after it
    /// again at any time, in this process or a later one.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.at.number
    }

    /// The next events, at most `limit` (1 to [`MAX_PAGE`](super::MAX_PAGE)). Where there is none it does not wait,
    /// and there may be none although more follow: [`Events::wait`] tells.
    ///
    /// # Errors
    /// `Invalid` for another limit, or where reading began ahead of the ledger; `AccountNotFound`; `Unavailable`.
    /// Asked again it goes on at the same place.
    pub async fn read(&mut self, limit: usize) -> Result<Vec<Event>, LedgerError> {
        check_limit(limit)?;
        let page = self.queue.events(self.at, self.account.as_ref(), limit).await?;
        self.at = page.next;
        Ok(page.events)
    }

    /// Waits, without a limit, until there is something to read: an event, not necessarily of the account.
    ///
    /// # Errors
    /// `Unavailable` once the ledger ends.
    pub async fn wait(&self) -> Result<(), LedgerError> {
        self.queue.event_after(self.at.number).await
    }
}
