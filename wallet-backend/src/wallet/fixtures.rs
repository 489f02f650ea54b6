//! Wallets with some history, and their stores falsified.

use super::{Wallet, command};
use crate::account::{Account, AccountId, CreditMode, RequestId, SlotCount, SlotIndex};
use crate::command::{Command, Operation, Task};
use crate::ledger::rows::fixtures::Fault;
use crate::money::{Amount, Currency};
use crate::store::any::AnyStore;
use crate::store::embedded::Options;

pub(crate) fn id(text: &str) -> AccountId {
    AccountId::new(text).unwrap()
}

fn credit(account: &str, name: &str) -> Command {
    let (amount, memo) = (Amount::new(100).unwrap(), None);
    let request = RequestId::new(name).unwrap();
    command(&id(account), &request, Operation::Credit { amount, memo })
}

impl Wallet {
    /// On each store: `a` with 3 credits of 100 on slot 0, `b` with 4 over 2 slots, `j` with 2 pending ones.
    pub(crate) async fn with_history() -> [(Self, Option<tempfile::TempDir>); 2] {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            daily_root: None,
            // At its end the log has more than a sixteenth of it: then there is a checkpoint.
            checkpoint_bytes: 1 << 16,
            ..Options::at(folder.path())
        };
        let memory = Self::memory().unwrap();
        let embedded = Self::embedded(options).unwrap();
        for wallet in [&memory, &embedded] {
            let plain = |name| Account::new(id(name), Currency::new("EUR").unwrap());
            let mut split = plain("b");
            split.slots = SlotCount::new(2).unwrap();
            let mut waiting = plain("j");
            waiting.credit = CreditMode::Journal;
            for account in [plain("a"), split, waiting] {
                wallet.open(account).await.unwrap();
            }
            for (account, count) in [("a", 3), ("b", 4), ("j", 2)] {
                for number in 0..count {
                    wallet.earn(account, &format!("c{number}")).await;
                }
            }
        }
        [(memory, None), (embedded, Some(folder))]
    }

    /// A credit of 100.
    pub(crate) async fn earn(&self, account: &str, name: &str) {
        assert!(self.run(credit(account, name)).await.unwrap().is_success());
    }

    /// The same on the model, past its queue.
    pub(crate) fn earn_at_once(&self, account: &str, name: &str) {
        let AnyStore::Memory(store) = self.queue.store() else {
            panic!("the model does at once what it is told");
        };
        store.decide(&Task::Run(credit(account, name))).unwrap();
    }

    pub(crate) const fn queue(&self) -> &crate::combiner::Queue<AnyStore> {
        &self.queue
    }

    /// A cent more.
    pub(crate) fn falsify(&self, account: &str, fault: Fault) {
        self.falsify_by(account, fault, 1);
    }

    pub(crate) fn falsify_by(&self, account: &str, fault: Fault, by: i64) {
        match self.queue.store() {
            AnyStore::Memory(store) => store.falsify(&id(account), fault, by),
            AnyStore::Embedded(store) => store.falsify(&id(account), fault, by),
            #[cfg(feature = "mysql")]
            AnyStore::Mysql(_) => panic!("a database is falsified by SQL"),
        }
    }

    /// A cent more in slot 0 of `a`.
    pub(crate) fn falsify_slot(&self) {
        self.falsify("a", Fault::Slot(SlotIndex::PRIMARY));
    }

    pub(crate) fn falsify_entry(&self, account: &str, version: u64) {
        match self.queue.store() {
            AnyStore::Memory(store) => store.falsify_entry(&id(account), version),
            AnyStore::Embedded(store) => store.falsify_entry(&id(account), version),
            #[cfg(feature = "mysql")]
            AnyStore::Mysql(_) => panic!("a database is falsified by SQL"),
        }
    }
}
