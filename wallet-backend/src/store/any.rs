//! Every store there is, as one type: the wallet is not generic, and its users need not be.

use crate::account::{AccountId, RequestId};
use crate::command::{AccountView, HoldView, LedgerError, PastView, RequestView};
use crate::store::duty::{Duty, Turn};
use crate::store::embedded::Embedded;
use crate::store::memory::Memory;
#[cfg(feature = "mysql")]
use crate::store::mysql::Mysql;
use crate::store::{
    Cursor, Cut, EntryPage, EventCursor, EventPage, GeneralLedger, HandOver, Job, Moment, Store,
};

/// One of the stores.
#[derive(Debug)]
pub enum AnyStore {
    Memory(Memory),
    Embedded(Embedded),
    #[cfg(feature = "mysql")]
    Mysql(Mysql),
}

impl Store for AnyStore {
    async fn run(&self, jobs: Vec<Job>) {
        match self {
            Self::Memory(store) => store.run(jobs).await,
            Self::Embedded(store) => store.run(jobs).await,
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.run(jobs).await,
        }
    }

    fn handing_over(&self) -> HandOver {
        match self {
            Self::Memory(store) => store.handing_over(),
            Self::Embedded(store) => store.handing_over(),
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.handing_over(),
        }
    }

    async fn settled(&self) {
        match self {
            Self::Memory(store) => store.settled().await,
            Self::Embedded(store) => store.settled().await,
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.settled().await,
        }
    }

    async fn account(&self, id: &AccountId) -> Result<Option<AccountView>, LedgerError> {
        match self {
            Self::Memory(store) => store.account(id).await,
            Self::Embedded(store) => store.account(id).await,
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.account(id).await,
        }
    }

    async fn past(&self, id: &AccountId, moment: &Moment) -> Result<Option<PastView>, LedgerError> {
        match self {
            Self::Memory(store) => store.past(id, moment).await,
            Self::Embedded(store) => store.past(id, moment).await,
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.past(id, moment).await,
        }
    }

    async fn accounts(
        &self,
        after: Option<&AccountId>,
        limit: usize,
    ) -> Result<Vec<AccountView>, LedgerError> {
        match self {
            Self::Memory(store) => store.accounts(after, limit).await,
            Self::Embedded(store) => store.accounts(after, limit).await,
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.accounts(after, limit).await,
        }
    }

    async fn entries(
        &self,
        id: &AccountId,
        after: &Cursor,
        limit: usize,
    ) -> Result<Option<EntryPage>, LedgerError> {
        match self {
            Self::Memory(store) => store.entries(id, after, limit).await,
            Self::Embedded(store) => store.entries(id, after, limit).await,
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.entries(id, after, limit).await,
        }
    }

    async fn request(
        &self,
        account: &AccountId,
        request: &RequestId,
    ) -> Result<Option<RequestView>, LedgerError> {
        match self {
            Self::Memory(store) => store.request(account, request).await,
            Self::Embedded(store) => store.request(account, request).await,
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.request(account, request).await,
        }
    }

    async fn hold(&self, account: &AccountId, hold: &RequestId) -> Result<Option<HoldView>, LedgerError> {
        match self {
            Self::Memory(store) => store.hold(account, hold).await,
            Self::Embedded(store) => store.hold(account, hold).await,
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.hold(account, hold).await,
        }
    }

    fn id(&self) -> u64 {
        match self {
            Self::Memory(store) => store.id(),
            Self::Embedded(store) => store.id(),
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.id(),
        }
    }

    async fn events(
        &self,
        after: EventCursor,
        account: Option<&AccountId>,
        limit: usize,
    ) -> Result<Option<EventPage>, LedgerError> {
        match self {
            Self::Memory(store) => store.events(after, account, limit).await,
            Self::Embedded(store) => store.events(after, account, limit).await,
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.events(after, account, limit).await,
        }
    }

    async fn event_after(&self, number: u64) -> Result<(), LedgerError> {
        match self {
            Self::Memory(store) => store.event_after(number).await,
            Self::Embedded(store) => store.event_after(number).await,
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.event_after(number).await,
        }
    }

    fn newest_event(&self) -> u64 {
        match self {
            Self::Memory(store) => store.newest_event(),
            Self::Embedded(store) => store.newest_event(),
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.newest_event(),
        }
    }

    async fn cuts(&self, ids: &[AccountId]) -> Result<Vec<Cut>, LedgerError> {
        match self {
            Self::Memory(store) => store.cuts(ids).await,
            Self::Embedded(store) => store.cuts(ids).await,
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.cuts(ids).await,
        }
    }

    async fn general_ledger(&self, opening: GeneralLedger) -> Result<GeneralLedger, LedgerError> {
        match self {
            Self::Memory(store) => store.general_ledger(opening).await,
            Self::Embedded(store) => store.general_ledger(opening).await,
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.general_ledger(opening).await,
        }
    }

    async fn untidy(&self, limit: usize) -> Result<Vec<AccountId>, LedgerError> {
        match self {
            Self::Memory(store) => store.untidy(limit).await,
            Self::Embedded(store) => store.untidy(limit).await,
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.untidy(limit).await,
        }
    }

    async fn pending(&self) -> Result<u64, LedgerError> {
        match self {
            Self::Memory(store) => store.pending().await,
            Self::Embedded(store) => store.pending().await,
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.pending().await,
        }
    }

    async fn claim(&self, duty: Duty) -> Result<Option<Turn>, LedgerError> {
        match self {
            Self::Memory(store) => store.claim(duty).await,
            Self::Embedded(store) => store.claim(duty).await,
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => Store::claim(store, duty).await,
        }
    }

    fn health(&self) -> Result<(), LedgerError> {
        match self {
            Self::Memory(store) => store.health(),
            Self::Embedded(store) => store.health(),
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.health(),
        }
    }

    async fn close(&self) {
        match self {
            Self::Memory(store) => store.close().await,
            Self::Embedded(store) => store.close().await,
            #[cfg(feature = "mysql")]
            Self::Mysql(store) => store.close().await,
        }
    }
}
