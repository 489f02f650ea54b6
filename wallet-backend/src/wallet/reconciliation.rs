//! Reconciling, at the wallet: what it has found, and running it by hand.

use std::sync::Arc;

use tokio::sync::watch;

use super::Wallet;
use crate::command::LedgerError;
use crate::jobs::reconcile::{Pass, Report, Run};

impl Wallet {
    /// What the reconciliations of this process have found so far.
    #[must_use]
    pub fn reconciliation(&self) -> Arc<Report> {
        self.reconciler.report()
    }

    /// Hears of every reconciliation that ends.
    #[must_use]
    pub fn watch_reconciliation(&self) -> watch::Receiver<Arc<Report>> {
        self.reconciler.watch()
    }

    /// Does now what is done every [`EVERY`](crate::jobs::reconcile::EVERY) anyway, or a larger pass of it. Takes time
    /// in what it looks at, and holds up operations for a few accounts at a time.
    ///
    /// # Errors
    /// `Unavailable`: it broke off.
    pub async fn reconcile(&self, pass: Pass) -> Result<Run, LedgerError> {
        self.reconciler.once(&self.queue, pass).await
    }
}
