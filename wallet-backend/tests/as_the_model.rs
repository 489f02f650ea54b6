//! What a store of a test leaves to the model that it has. Names are taken from where it is used: the interleavings test
//! has the library's as its own.

macro_rules! as_the_model {
    ($model:ident) => {
        async fn account(&self, id: &AccountId) -> Result<Option<AccountView>, LedgerError> {
            self.$model.account(id).await
        }

        async fn past(&self, id: &AccountId, moment: &Moment) -> Result<Option<PastView>, LedgerError> {
            self.$model.past(id, moment).await
        }

        async fn accounts(
            &self,
            after: Option<&AccountId>,
            limit: usize,
        ) -> Result<Vec<AccountView>, LedgerError> {
            self.$model.accounts(after, limit).await
        }

        async fn entries(
            &self,
            id: &AccountId,
            after: &Cursor,
            limit: usize,
        ) -> Result<Option<EntryPage>, LedgerError> {
            self.$model.entries(id, after, limit).await
        }

        async fn request(
            &self,
            account: &AccountId,
            request: &RequestId,
        ) -> Result<Option<RequestView>, LedgerError> {
            self.$model.request(account, request).await
        }

        async fn hold(&self, account: &AccountId, hold: &RequestId) -> Result<Option<HoldView>, LedgerError> {
            self.$model.hold(account, hold).await
        }

        fn id(&self) -> u64 {
            self.$model.id()
        }

        async fn events(
            &self,
            after: EventCursor,
            account: Option<&AccountId>,
            limit: usize,
        ) -> Result<Option<EventPage>, LedgerError> {
            self.$model.events(after, account, limit).await
        }

        async fn event_after(&self, number: u64) -> Result<(), LedgerError> {
            self.$model.event_after(number).await
        }

        fn newest_event(&self) -> u64 {
            self.$model.newest_event()
        }

        async fn cuts(&self, ids: &[AccountId]) -> Result<Vec<Cut>, LedgerError> {
            self.$model.cuts(ids).await
        }

        async fn general_ledger(&self, opening: GeneralLedger) -> Result<GeneralLedger, LedgerError> {
            self.$model.general_ledger(opening).await
        }

        async fn untidy(&self, limit: usize) -> Result<Vec<AccountId>, LedgerError> {
            self.$model.untidy(limit).await
        }

        async fn pending(&self) -> Result<u64, LedgerError> {
            self.$model.pending().await
        }

        fn health(&self) -> Result<(), LedgerError> {
            self.$model.health()
        }
    };
}
