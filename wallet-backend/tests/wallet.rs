//! The public API under concurrency, on real threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use wallet_backend::Wallet;
use wallet_backend::account::Account;
use wallet_backend::command::{LedgerError, Outcome};
use wallet_backend::store::Cursor;
use wallet_backend::store::embedded::{OpenError, Options};
use wallet_backend::wallet::Decided;

use crate::history::{self, History, Span};
use crate::support::{acknowledged, amount, hashed, id, journal, ordinary, request, seen, slotted};

async fn wallet(accounts: impl IntoIterator<Item = Account>) -> Wallet {
    with_accounts(Wallet::memory().unwrap(), accounts).await
}

async fn with_accounts(wallet: Wallet, accounts: impl IntoIterator<Item = Account>) -> Wallet {
    for account in accounts {
        assert!(wallet.open(account).await.unwrap().1);
    }
    wallet
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_callers_with_one_id_have_one_effect() {
    let wallet = wallet([slotted("a", 4)]).await;
    let mut calls = JoinSet::new();
    for _ in 0..64 {
        let wallet = wallet.clone();
        calls.spawn(async move { wallet.credit(&id("a"), &request("once"), amount(5), None).await });
    }
    let decided: Vec<Decided> = calls.join_all().await.into_iter().map(Result::unwrap).collect();
    assert_eq!(decided.iter().filter(|decided| !decided.replayed).count(), 1);
    assert!(decided.iter().all(|other| other.outcome == decided[0].outcome));
    assert_eq!(wallet.account(&id("a")).await.unwrap().balance(), 5);
    assert_eq!(
        wallet
            .entries(&id("a"), &Cursor::default(), 10)
            .await
            .unwrap()
            .entries
            .len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_transfers_in_memory_makes_a_possible_history() {
    storm(Wallet::memory().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_transfers_on_disk_makes_a_possible_history() {
    let folder = tempfile::tempdir().unwrap();
    storm(Wallet::embedded(Options::at(folder.path())).unwrap()).await;
}

const ACCOUNTS: [&str; 4] = ["a", "b", "c", "d"];

/// Eight callers pay, send and read, fifty times each, with a pass of tidying now and then.
async fn storm(wallet: Wallet) {
    let accounts = [ordinary("a"), slotted("b", 4), journal("c"), hashed("d", 3)];
    let wallet = with_accounts(wallet, accounts).await;
    for name in ACCOUNTS {
        let (account, start) = (id(name), request("start"));
        wallet.credit(&account, &start, amount(300), None).await.unwrap();
    }
    let ticks = Arc::new(AtomicU64::new(1));
    let mut callers = JoinSet::new();
    for number in 0..8 {
        callers.spawn(caller(wallet.clone(), number, Arc::clone(&ticks)));
    }
    let mut history = History::default();
    for part in callers.join_all().await {
        history.receipts.extend(part.receipts);
        history.reads.extend(part.reads);
    }
    for name in ACCOUNTS {
        history.entries.extend(statement(&wallet, name).await);
    }
    assert_eq!(history.faults(), Vec::<String>::new());
    wallet.close().await;
}

/// What one caller was answered. `ticks` is the clock of all callers.
async fn caller(wallet: Wallet, caller: usize, ticks: Arc<AtomicU64>) -> History {
    let tick = || ticks.fetch_add(1, Ordering::SeqCst);
    let mut history = History::default();
    for number in 0..50 {
        let from = id(ACCOUNTS[(caller + number) % 4]);
        let to = id(ACCOUNTS[(caller + 3 * number + 1) % 4]);
        let name = request(&format!("{caller}-{number}"));
        let minor = amount(i64::try_from(1 + number % 9).unwrap());
        let begun = tick();
        let decided = if from == to {
            wallet.debit(&from, &name, minor, None).await.unwrap()
        } else {
            wallet.transfer(&from, &name, &to, minor, None).await.unwrap()
        };
        let span = Span { begun, ended: tick() };
        let Outcome::Posted(receipt) = decided.outcome else {
            panic!("there is money: {:?}", decided.outcome);
        };
        history
            .receipts
            .push(acknowledged(&receipt, decided.replayed, span));
        if number % 10 == caller {
            wallet.tidy_once().await.unwrap();
        }
        let begun = tick();
        let view = wallet.account(&to).await.unwrap();
        history.reads.push(seen(&view, Span { begun, ended: tick() }));
    }
    history
}

async fn statement(wallet: &Wallet, name: &str) -> Vec<history::Entry> {
    let (mut all, mut cursor) = (Vec::new(), Cursor::default());
    loop {
        let page = wallet.entries(&id(name), &cursor, 100).await.unwrap();
        if page.entries.is_empty() {
            return all;
        }
        all.extend(page.entries.iter().map(history::Entry::from));
        cursor = page.next;
    }
}

#[tokio::test]
async fn pages_have_one_to_a_thousand_entries() {
    let wallet = wallet([ordinary("a")]).await;
    for limit in [0, 1_001] {
        let page = wallet.entries(&id("a"), &Cursor::default(), limit).await;
        assert!(matches!(page, Err(LedgerError::Invalid { field: "limit", .. })));
    }
    assert!(wallet.entries(&id("a"), &Cursor::default(), 1_000).await.is_ok());
}

#[tokio::test]
async fn a_pass_of_tidying_settles_every_account() {
    let wallet = wallet([journal("a"), slotted("b", 4), ordinary("c")]).await;
    for number in 0..2_500 {
        let name = request(&format!("r{number}"));
        wallet.credit(&id("a"), &name, amount(1), None).await.unwrap();
    }
    wallet
        .credit(&id("b"), &request("r"), amount(9), None)
        .await
        .unwrap();
    wallet.tidy_once().await.unwrap();
    let (a, b) = (
        wallet.account(&id("a")).await.unwrap(),
        wallet.account(&id("b")).await.unwrap(),
    );
    assert_eq!((a.pending, a.slots[0].balance), (0, 2_500));
    assert_eq!((b.slots[0].balance, b.balance()), (9, 9));
    assert_eq!(wallet.tidy_once().await, Ok(0));
}

#[tokio::test]
async fn a_closed_wallet_says_so_on_every_clone() {
    let wallet = wallet([ordinary("a")]).await;
    let clone = wallet.clone();
    wallet.close().await;
    wallet.close().await;
    let credited = clone.credit(&id("a"), &request("c"), amount(1), None).await;
    assert!(matches!(credited, Err(LedgerError::Unavailable { .. })));
    assert!(matches!(
        clone.account(&id("a")).await,
        Err(LedgerError::Unavailable { .. })
    ));
    assert!(clone.health().is_err());
}

#[test]
fn callers_may_live_on_runtimes_of_their_own() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
    };
    let wallet = runtime().block_on(wallet([ordinary("a")]));
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let wallet = wallet.clone();
            std::thread::spawn(move || {
                runtime().block_on(async {
                    let (account, name) = (id("a"), request(&format!("t{thread}")));
                    let within = Duration::from_secs(5);
                    let credited = wallet.credit(&account, &name, amount(1), None);
                    tokio::time::timeout(within, credited).await.unwrap().unwrap();
                });
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let view = runtime().block_on(wallet.account(&id("a"))).unwrap();
    assert_eq!(view.balance(), 4);
}

#[tokio::test]
async fn a_closed_directory_opens_again_with_all_that_was_answered() {
    let folder = tempfile::tempdir().unwrap();
    let first = Wallet::embedded(Options::at(folder.path())).unwrap();
    first.open(slotted("a", 4)).await.unwrap();
    let credited = first
        .credit(&id("a"), &request("c"), amount(7), None)
        .await
        .unwrap();
    // The directory is the first wallet's while it is open.
    assert!(matches!(
        Wallet::embedded(Options::at(folder.path())),
        Err(OpenError::InUse)
    ));
    first.close().await;
    let second = Wallet::embedded(Options::at(folder.path())).unwrap();
    let again = second
        .credit(&id("a"), &request("c"), amount(7), None)
        .await
        .unwrap();
    assert_eq!((again.outcome, again.replayed), (credited.outcome, true));
    assert_eq!(second.account(&id("a")).await.unwrap().balance(), 7);
    second.close().await;
}
