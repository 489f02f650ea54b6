//! What is asked of the hot account, and what its books must say afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use anyhow::Context as _;
use wallet_backend::Wallet;
use wallet_backend::account::{Account, AccountId, RequestId};
use wallet_backend::command::{Command, Decided, Operation, Outcome, ReceiptKind};
use wallet_backend::money::{Amount, Currency};
use wallet_backend::store::embedded::{Report, verify};

use super::folder::Folder;

/// One client's: credits and debits in turn, each debit less than the credit before it, so that none is short. Ids
/// are as long as a UUID, and as random.
#[derive(Debug)]
pub(super) struct Traffic {
    account: AccountId,
    /// Even for a credit.
    next: u64,
}

/// One operation to ask for.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) credit: bool,
    /// Minor units.
    pub(super) amount: i64,
    pub(super) id: String,
}

/// What was acknowledged. Clones count into the same; read when all is quiet, so any ordering will do.
#[derive(Clone, Debug, Default)]
pub(super) struct Told(Arc<Sums>);

#[derive(Debug, Default)]
struct Sums {
    balance: AtomicI64,
    posted: AtomicU64,
    /// Answers that are no posting.
    others: AtomicU64,
}

impl Traffic {
    /// The account's id, on the wire too.
    pub(super) const ACCOUNT: &str = "hot";

    /// Opens the account, an ordinary one: one slot.
    ///
    /// # Errors
    /// What the wallet says.
    pub(super) async fn open(wallet: &Wallet) -> anyhow::Result<AccountId> {
        let id = AccountId::new(Self::ACCOUNT)?;
        wallet
            .open(Account::new(id.clone(), Currency::new("EUR")?))
            .await?;
        Ok(id)
    }

    /// Client `number`'s.
    ///
    /// # Errors
    /// None in practice: the account's id is one.
    pub(super) fn of(number: u32) -> anyhow::Result<Self> {
        Ok(Self {
            account: AccountId::new(Self::ACCOUNT)?,
            next: u64::from(number) << 32,
        })
    }

    pub(super) fn next(&mut self) -> Ask {
        let credit = self.next.is_multiple_of(2);
        let id = id(self.next);
        self.next = self.next.wrapping_add(1);
        let amount = if credit { 300 } else { 200 };
        Ask { credit, amount, id }
    }

    /// The next one as a command.
    ///
    /// # Errors
    /// None in practice: ids and amounts are good.
    pub(super) fn command(&mut self) -> anyhow::Result<Command> {
        let Ask { credit, amount, id } = self.next();
        let (amount, memo) = (Amount::new(amount)?, None);
        Ok(Command {
            account: self.account.clone(),
            request: RequestId::new(&id)?,
            operation: if credit {
                Operation::Credit { amount, memo }
            } else {
                let amount = amount.into();
                Operation::Debit { amount, memo }
            },
        })
    }
}

/// Spreads a counter: the finaliser of SplitMix64.
pub(super) fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// 36 characters: a counter in a disguise that spreads it, so that ids sort at random.
pub(super) fn id(number: u64) -> String {
    let (high, low) = (mix(number), mix(!number));
    let bytes = [high.to_be_bytes(), low.to_be_bytes()];
    let mut id = String::with_capacity(36);
    // By hand: what formatting costs would be measured as the wallet's.
    for (place, byte) in bytes.as_flattened().iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            id.push(char::from(if digit < 10 {
                b'0' + digit
            } else {
                b'a' + digit - 10
            }));
        }
    }
    id
}

impl Told {
    /// Takes in one answer.
    pub(super) fn take(&self, decided: &Decided) {
        match &decided.outcome {
            Outcome::Posted(receipt) => {
                let credit = receipt.kind == ReceiptKind::Credit;
                self.done(credit, receipt.amount.minor());
            }
            Outcome::Refused(_) | Outcome::Amended(_) => {
                self.0.others.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// One posting.
    pub(super) fn done(&self, credit: bool, amount: i64) {
        let delta = if credit { amount } else { amount.saturating_neg() };
        self.0.balance.fetch_add(delta, Ordering::Relaxed);
        self.0.posted.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn posted(&self) -> u64 {
        self.0.posted.load(Ordering::Relaxed)
    }

    /// Whether the account holds what was acknowledged, in as many entries, and there was no other answer.
    ///
    /// # Errors
    /// What the wallet says.
    pub(super) async fn agrees(&self, wallet: &Wallet, account: &AccountId) -> anyhow::Result<bool> {
        let view = wallet.account(account).await?;
        let entries: u64 = view.slots.iter().map(|slot| slot.version).sum();
        let balance = self.0.balance.load(Ordering::Relaxed);
        let others = self.0.others.load(Ordering::Relaxed);
        Ok(view.balance() == balance && entries == self.posted() && others == 0)
    }

    /// Whether the log is sound, and has as many requests as were acknowledged.
    pub(super) fn all_in(&self, report: &Report) -> bool {
        report.is_clean() && report.requests == self.posted()
    }
}

/// Reads the whole log again.
///
/// # Errors
/// The directory can't be read.
pub(super) fn read_again(folder: &Folder) -> anyhow::Result<Report> {
    verify(folder.path()).context("cannot verify the ledger")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_as_long_as_a_uuid_and_differ() {
        let ids: std::collections::HashSet<String> = (0..10_000).map(id).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.len() == 36 && RequestId::new(id).is_ok()));
    }

    #[test]
    fn a_balance_or_a_number_of_entries_other_than_acknowledged_is_noticed() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let wallet = Wallet::memory().unwrap();
            let account = Traffic::open(&wallet).await.unwrap();
            let (told, mut traffic) = (Told::default(), Traffic::of(0).unwrap());
            for _ in 0..2 {
                told.take(&wallet.run(traffic.command().unwrap()).await.unwrap());
            }
            assert!(told.agrees(&wallet, &account).await.unwrap());
            told.done(true, 0);
            assert!(!told.agrees(&wallet, &account).await.unwrap());
            wallet.run(traffic.command().unwrap()).await.unwrap();
            assert!(!told.agrees(&wallet, &account).await.unwrap());
            told.done(true, 300);
        });
    }

    #[test]
    fn a_log_with_fewer_requests_than_acknowledged_is_noticed() {
        let told = Told::default();
        told.done(true, 1);
        let mut report = Report::default();
        assert!(!told.all_in(&report));
        report.requests = 1;
        assert!(told.all_in(&report));
    }
}
