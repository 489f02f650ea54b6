//! What the jobs ask of the store, through the queue.

use super::{PANICKED, Queue, unavailable};
use crate::account::AccountId;
use crate::combiner::BROKEN;
use crate::command::LedgerError;
use crate::store::duty::{Duty, Turn};
use crate::store::{Cut, GeneralLedger, Store};

impl<S: Store> Queue<S> {
    /// What the rows of these accounts say, each at one cut of its own. Unknown ones are left out.
    ///
    /// # Errors
    /// `Unavailable` where the store does not answer.
    pub async fn cuts(&self, ids: &[AccountId]) -> Result<Vec<Cut>, LedgerError> {
        self.read(self.0.store.cuts(ids)).await
    }

    /// Takes the turn for a duty, or keeps it; `None` while another process has it.
    ///
    /// # Errors
    /// `Unavailable` where the store does not answer.
    pub async fn claim(&self, duty: Duty) -> Result<Option<Turn>, LedgerError> {
        self.read(self.0.store.claim(duty)).await
    }

    /// The books of every currency at one cut: those of `opening`, and what has happened since. Takes as long as it
    /// takes to read that.
    ///
    /// # Errors
    /// `Unavailable` where the store cannot be read.
    pub async fn general_ledger(&self, opening: GeneralLedger) -> Result<GeneralLedger, LedgerError> {
        if self.0.phase() == BROKEN {
            return Err(unavailable(PANICKED));
        }
        self.0.store.general_ledger(opening).await
    }
}

#[cfg(test)]
impl<S> Queue<S> {
    /// The store itself, for a test that falsifies it.
    pub(crate) fn store(&self) -> &S {
        &self.0.store
    }
}
