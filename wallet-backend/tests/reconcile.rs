//! Under load, with everything that moves money at once, the books never seem to differ.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use wallet_backend::Wallet;
use wallet_backend::account::{Account, AccountId, CreditMode, DebitMode, HoldTerm, SlotCount};
use wallet_backend::combiner::Limits;
use wallet_backend::command::{Amendment, Batch, BatchMode, Command, Operation, Remainder};
use wallet_backend::jobs::reconcile::Pass;
use wallet_backend::store::any::AnyStore;
use wallet_backend::store::embedded::{Embedded, Options};
use wallet_backend::store::memory::Memory;

use crate::process::binary;
use crate::support::{Numbers, amount, id, ordinary, request};

const WORKERS: u64 = 8;
/// Rounds of the load, with a round of every pass at least in each.
const ROUNDS: usize = 8;
/// What is done in each of them.
const ACTS: usize = 600;
/// Accounts that nothing happens to: the totals are added up over several pieces of the list.
const IDLE: usize = 1_500;
const NAMES: [&str; 6] = ["hot", "split", "hashed", "journal", "cold", "other"];

fn accounts() -> [Account; 6] {
    let slots = |count| SlotCount::new(count).unwrap();
    let mut accounts = NAMES.map(ordinary);
    accounts[1].slots = slots(8);
    accounts[2].slots = slots(4);
    accounts[2].debit = DebitMode::Hashed;
    accounts[3].credit = CreditMode::Journal;
    accounts
}

/// Something that is ended, given back or undone right after.
async fn undone(wallet: &Wallet, numbers: &mut Numbers, name: &str) {
    let account = any(numbers);
    let (first, then) = (request(name), request(&format!("{name}-x")));
    let minor = amount(1 + i64::try_from(numbers.below(90)).unwrap());
    if numbers.below(2) == 0 {
        drop(wallet.credit(&account, &first, minor, None).await);
        drop(wallet.reverse(&account, &then, &first).await);
        return;
    }
    // One in two ends by itself within the test.
    let expires_in = HoldTerm::new(u32::try_from(numbers.below(2)).unwrap());
    drop(wallet.hold(&account, &first, minor, expires_in).await);
    drop(match numbers.below(3) {
        0 => {
            let capture = wallet.capture(&account, &then, &first, Some(amount(1)), Remainder::Release);
            capture.await
        }
        1 => wallet.release(&account, &then, &first).await,
        _ => wallet.reverse(&account, &then, &first).await,
    });
}

fn any(numbers: &mut Numbers) -> AccountId {
    id(NAMES[usize::try_from(numbers.below(6)).unwrap()])
}

/// One thing or another, by chance. Refusals are part of it.
async fn act(wallet: &Wallet, numbers: &mut Numbers, name: &str) {
    let (from, to) = (any(numbers), any(numbers));
    let (this, minor) = (
        request(name),
        amount(1 + i64::try_from(numbers.below(90)).unwrap()),
    );
    let memo = None;
    let operation = match numbers.below(10) {
        0..=2 => Operation::Credit { amount: minor, memo },
        3 | 4 => Operation::Debit {
            amount: minor.into(),
            memo,
        },
        5 if from != to => Operation::Transfer {
            to,
            amount: minor,
            memo,
        },
        6 | 7 => return undone(wallet, numbers, name).await,
        8 => {
            let count = u8::try_from(1 + numbers.below(12)).unwrap();
            Operation::Amend(Amendment {
                slots: SlotCount::new(count),
                ..Amendment::default()
            })
        }
        _ => {
            let command = |n: u64, operation| Command {
                account: from.clone(),
                request: request(&format!("{name}-{n}")),
                operation,
            };
            let (credit, debit) = (
                Operation::Credit {
                    amount: minor,
                    memo: None,
                },
                Operation::Debit {
                    amount: amount(70).into(),
                    memo: None,
                },
            );
            let commands = vec![command(1, credit), command(2, debit)];
            let batch = Batch::new(commands, BatchMode::Atomic).unwrap();
            drop(wallet.batch(batch).await);
            return;
        }
    };
    let account = from;
    // Only a ledger that ends would make it fail, and then the reconciliations do.
    let command = Command {
        account,
        request: this,
        operation,
    };
    drop(wallet.run(command).await);
}

#[expect(clippy::print_stdout, reason = "what was measured, for whoever looks")]
async fn under_load(wallet: Wallet) {
    for account in accounts() {
        wallet.open(account).await.unwrap();
    }
    // Behind the others, so that adding up takes a while in which those go on.
    let idle = (0..IDLE).map(|n| wallet.open(ordinary(&format!("z{n}"))));
    for opened in join_all(idle).await {
        opened.unwrap();
    }
    let (turns, acts) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU64::new(0)));
    let mut load = JoinSet::new();
    for worker in 0..WORKERS {
        let (wallet, turns, acts) = (wallet.clone(), Arc::clone(&turns), Arc::clone(&acts));
        load.spawn(async move {
            let mut numbers = Numbers(worker + 1);
            while let Ok(turn) = turns.acquire().await {
                turn.forget();
                let n = acts.fetch_add(1, Ordering::Relaxed);
                act(&wallet, &mut numbers, &format!("r{worker}-{n}")).await;
                if n % 16 == 0 {
                    // An account that nobody has counted yet, in the middle of the others.
                    let (late, first) = (format!("m{n}"), request("first"));
                    wallet.open(ordinary(&late)).await.unwrap();
                    wallet.credit(&id(&late), &first, amount(5), None).await.unwrap();
                }
            }
        });
    }
    let (mut entries, mut cycles) = (0, 0);
    for round in 0..ROUNDS {
        turns.add_permits(ACTS);
        // For as long as that goes on.
        while turns.available_permits() > 0 || cycles <= round {
            for pass in Pass::ALL {
                let run = wallet.reconcile(pass).await.unwrap();
                assert_eq!(run.outcome, Ok(0), "{:?}", wallet.reconciliation().differences);
                entries += run.entries;
            }
            cycles += 1;
        }
        if round % 4 == 3 {
            wallet.tidy_once().await.unwrap();
        }
    }
    turns.close();
    while let Some(worker) = load.join_next().await {
        worker.unwrap();
    }
    let acts = acts.load(Ordering::Relaxed);
    assert_eq!(acts, u64::try_from(ROUNDS * ACTS).unwrap());
    println!("{cycles} rounds of every pass over {entries} entries beside {acts} acts: no alarm");
    assert!(wallet.reconciliation().is_ok());
    wallet.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_cycles_under_load_raise_nothing_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    // Small, so that many segments and checkpoints come and go.
    let options = Options {
        segment_bytes: 1 << 20,
        checkpoint_bytes: 1 << 20,
        ..Options::at(folder.path())
    };
    let store = AnyStore::Embedded(Embedded::open(options).unwrap());
    under_load(Wallet::over(store, Limits::default()).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_cycles_under_load_raise_nothing_in_memory() {
    let store = AnyStore::Memory(Memory::default());
    under_load(Wallet::over(store, Limits::default()).unwrap()).await;
}

fn reconcile(data: &Path) -> (Option<i32>, String) {
    let store = format!("embedded:{}", data.display());
    let output = binary(&["reconcile", "--store", &store]).output().unwrap();
    let told = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(told).unwrap())
}

#[tokio::test]
async fn the_command_says_that_all_is_well_and_changes_no_balance() {
    let folder = tempfile::tempdir().unwrap();
    let wallet = Wallet::embedded(Options::at(folder.path())).unwrap();
    for account in accounts() {
        wallet.open(account).await.unwrap();
    }
    for (n, name) in NAMES.into_iter().enumerate() {
        let paid = request(&format!("c{n}"));
        wallet.credit(&id(name), &paid, amount(7), None).await.unwrap();
    }
    wallet.close().await;
    let (code, told) = reconcile(folder.path());
    // The one of the journal waits, and has no entry.
    assert_eq!(
        (code, told.as_str()),
        (Some(0), "6 accounts against 5 entries\nall is well\n")
    );
    let wallet = Wallet::embedded(Options::at(folder.path())).unwrap();
    let (code, told) = reconcile(folder.path());
    assert!(code == Some(2) && told.contains("in use"), "{code:?} {told}");
    assert_eq!(wallet.account(&id("journal")).await.unwrap().pending, 7);
    wallet.close().await;
}

#[test]
fn the_command_cannot_run_where_there_is_no_ledger_and_makes_none() {
    let folder = tempfile::tempdir().unwrap();
    let (code, told) = reconcile(folder.path());
    assert!(code == Some(2) && told.contains("no ledger"), "{code:?} {told}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    let (code, told) = reconcile(&folder.path().join("none"));
    assert!(
        code == Some(2) && told.contains("no directory"),
        "{code:?} {told}"
    );
}

#[tokio::test]
async fn the_command_names_damage() {
    let folder = tempfile::tempdir().unwrap();
    let wallet = Wallet::embedded(Options::at(folder.path())).unwrap();
    wallet.open(ordinary("hot")).await.unwrap();
    wallet.close().await;
    let segment = folder
        .path()
        .join("log")
        .read_dir()
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let mut bytes = std::fs::read(segment.path()).unwrap();
    // In the first page behind the head: the record.
    bytes[4_096 + 64] ^= 1;
    std::fs::write(segment.path(), bytes).unwrap();
    let (code, told) = reconcile(folder.path());
    assert!(code == Some(1) && told.contains("FOUND"), "{code:?} {told}");
}
