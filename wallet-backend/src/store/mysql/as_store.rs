//! The database as a [`Store`].

use std::sync::Arc;

use super::{Mysql, unavailable};
use crate::account::{AccountId, RequestId};
use crate::command::{AccountView, HoldView, LedgerError, PastView, RequestView};
use crate::store::duty::{Duty, Turn};
use crate::store::{
    Cursor, Cut, EntryPage, EventCursor, EventPage, GeneralLedger, HandOver, Job, Moment, Store,
};

impl Store for Mysql {
    async fn run(&self, jobs: Vec<Job>) {
        let Some(runtime) = &self.runtime else {
            for job in jobs {
                job.answer(Err(unavailable("the wallet is closed")));
            }
            return;
        };
        let numbers = Arc::clone(&self.numbers);
        self.writers
            .run(runtime.handle(), jobs, move || numbers.nudge())
            .await;
    }

    fn handing_over(&self) -> HandOver {
        HandOver::OneBatchAtATime
    }

    async fn account(&self, id: &AccountId) -> Result<Option<AccountView>, LedgerError> {
        Self::account(self, id).await
    }

    async fn past(&self, id: &AccountId, moment: &Moment) -> Result<Option<PastView>, LedgerError> {
        Self::past(self, id, moment).await
    }

    async fn accounts(
        &self,
        after: Option<&AccountId>,
        limit: usize,
    ) -> Result<Vec<AccountView>, LedgerError> {
        Self::accounts(self, after, limit).await
    }

    async fn entries(
        &self,
        id: &AccountId,
        after: &Cursor,
        limit: usize,
    ) -> Result<Option<EntryPage>, LedgerError> {
        Self::entries(self, id, after, limit).await
    }

    async fn request(
        &self,
        account: &AccountId,
        request: &RequestId,
    ) -> Result<Option<RequestView>, LedgerError> {
        Self::request(self, account, request).await
    }

    async fn hold(&self, account: &AccountId, hold: &RequestId) -> Result<Option<HoldView>, LedgerError> {
        Self::hold(self, account, hold).await
    }

    fn id(&self) -> u64 {
        self.id
    }

    async fn events(
        &self,
        after: EventCursor,
        account: Option<&AccountId>,
        limit: usize,
    ) -> Result<Option<EventPage>, LedgerError> {
        Self::events(self, after, account, limit).await
    }

    async fn event_after(&self, number: u64) -> Result<(), LedgerError> {
        Self::event_after(self, number).await
    }

    fn newest_event(&self) -> u64 {
        Self::newest_event(self)
    }

    async fn cuts(&self, ids: &[AccountId]) -> Result<Vec<Cut>, LedgerError> {
        Self::cuts(self, ids).await
    }

    async fn general_ledger(&self, opening: GeneralLedger) -> Result<GeneralLedger, LedgerError> {
        Self::general_ledger(self, opening).await
    }

    async fn untidy(&self, limit: usize) -> Result<Vec<AccountId>, LedgerError> {
        Self::untidy(self, limit).await
    }

    async fn pending(&self) -> Result<u64, LedgerError> {
        Self::pending(self).await
    }

    async fn claim(&self, duty: Duty) -> Result<Option<Turn>, LedgerError> {
        Self::claim(self, duty).await
    }

    /// A database that does not answer now may answer the next call.
    fn health(&self) -> Result<(), LedgerError> {
        Ok(())
    }

    async fn close(&self) {
        let writers = Arc::clone(&self.writers);
        let closing = async move {
            writers.close().await;
            Ok(())
        };
        // Closed already, there is nothing left to close.
        drop(self.on_own_thread(closing).await);
        if let Err(error) = self.give_back().await {
            tracing::debug!(%error, "what this process did in turn is another's after its lease only");
        }
        self.close_reading().await;
    }
}
