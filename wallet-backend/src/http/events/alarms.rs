//! Differences that a reconciliation has found, among the events of a stream.
//!
//! ```text
//! event: reconciliation_difference            no id: where to go on stays where it was
//! data: {"type":"reconciliation_difference","account_id":"alice","slot":0,"version":7,…}
//! ```
//!
//! They are no entries, so they are not in the ledger's order and have no place in it. A stream tells every difference
//! that is listed, once; one that begins later tells those that are listed then.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::watch;

use crate::Wallet;
use crate::account::AccountId;
use crate::http::reconciliation::{EVENT, event};
use crate::jobs::reconcile::Report;

/// What one stream has told. At most as many as are listed.
#[derive(Debug)]
pub(super) struct Alarms {
    reports: watch::Receiver<Arc<Report>>,
    /// Of which it tells; `None` for all.
    account: Option<AccountId>,
    told: BTreeSet<u64>,
}

impl Alarms {
    pub(super) fn new(wallet: &Wallet, account: Option<AccountId>) -> Self {
        let mut reports = wallet.watch_reconciliation();
        // What is listed now is news to this stream.
        reports.mark_changed();
        Self {
            reports,
            account,
            told: BTreeSet::new(),
        }
    }

    /// Waits until there may be something to tell.
    pub(super) fn come(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut reports = self.reports.clone();
        async move {
            // With the ledger gone there will be no more.
            if reports.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// What has not been told yet, as events; empty where there is nothing.
    pub(super) fn piece(&mut self) -> String {
        let report = Arc::clone(&self.reports.borrow_and_update());
        let mut piece = String::new();
        let mut listed = BTreeSet::new();
        for difference in &report.differences {
            let ours = self.account.is_none() || difference.account() == self.account.as_ref();
            if ours && !self.told.contains(&difference.id) {
                let data = event(difference);
                // Into memory, which cannot fail.
                let _ = write!(piece, "event: {EVENT}\ndata: {data}\n\n");
            }
            listed.insert(difference.id);
        }
        self.told = listed;
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::reconcile::Pass;
    use crate::wallet::fixtures::id;

    #[tokio::test]
    async fn a_stream_tells_each_difference_of_its_account_once_and_without_an_id() {
        let [(wallet, _), _] = Wallet::with_history().await;
        let (mut all, mut ours) = (Alarms::new(&wallet, None), Alarms::new(&wallet, Some(id("b"))));
        all.come().await;
        assert_eq!(all.piece(), "");
        wallet.falsify_slot();
        wallet.reconcile(Pass::Everything).await.unwrap();
        all.come().await;
        let told = all.piece();
        assert!(
            told.starts_with(
                "event: reconciliation_difference\ndata: {\"type\":\"reconciliation_difference\","
            ),
            "{told}"
        );
        assert!(
            told.contains("\"account_id\":\"a\"") && told.ends_with("}\n\n"),
            "{told}"
        );
        assert!(!told.contains("\nid:"), "{told}");
        assert_eq!(ours.piece(), "");
        wallet.reconcile(Pass::Everything).await.unwrap();
        assert_eq!(all.piece(), "");
        // Who comes later is told what is listed.
        let mut late = Alarms::new(&wallet, Some(id("a")));
        late.come().await;
        assert_eq!(late.piece(), told);
        wallet.close().await;
    }
}
