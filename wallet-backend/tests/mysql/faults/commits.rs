//! The answer to a COMMIT that is lost, late, or never comes.

use wallet_backend::Wallet;
use wallet_backend::account::Status;
use wallet_backend::command::{BatchMode, Command, LedgerError, Outcome, Task};
use wallet_backend::store::Cursor;

use super::load::Load;
use super::{DECIDES, wallet};
use crate::mysql::{Fault, database};
use crate::support::{
    abandon, amount, capture, credit, debit, drain, hold, id, journal, ordinary, release, request, reslot,
    reversal, slotted, status, together, transfer,
};

/// One of each kind, in an order in which each succeeds. The slots of "split" are short for the drain.
fn one_of_each() -> Vec<Task> {
    vec![
        credit("plain", "credit", 100),
        debit("plain", "debit", 30),
        hold("plain", "hold", 40, 0),
        capture("plain", "capture", "hold", 10),
        hold("plain", "second", 5, 0),
        release("plain", "release", "second"),
        transfer("plain", "transfer", "split", 20),
        transfer("plain", "waits", "journal", 20),
        credit("split", "into-a-slot", 7),
        drain("split", "drain"),
        reversal("plain", "reversal", "debit"),
        credit("journal", "journal", 50),
        debit("journal", "from-pending", 60),
        reslot("split", "reslot", 2),
        status("split", "status", Status::Frozen),
    ]
}

fn command(task: &Task) -> Command {
    match task {
        Task::Run(command) => command.clone(),
        other => panic!("no command: {other:?}"),
    }
}

async fn open_all(wallet: &Wallet) {
    for account in [ordinary("plain"), slotted("split", 3), journal("journal")] {
        wallet.open(account).await.unwrap();
    }
}

async fn entries(wallet: &Wallet) -> Vec<usize> {
    let mut counts = Vec::new();
    for account in ["plain", "split", "journal"] {
        let page = wallet.entries(&id(account), &Cursor::default(), 1_000).await;
        counts.push(page.unwrap().entries.len());
    }
    counts
}

/// Each operation, of which `fault` meets the first COMMIT: the caller hears what became of it, and it became that once.
async fn each_is_done_once(fault: Fault) {
    let (database, undisturbed) = (database(), database());
    let (proxy, url) = database.proxy();
    let (met, model) = (wallet(&url).await, wallet(undisturbed.url()).await);
    open_all(&met).await;
    open_all(&model).await;
    for task in one_of_each() {
        let pending = proxy.arm(DECIDES, 0, 1, fault);
        let decided = met.run(command(&task)).await.unwrap();
        pending.happened(1).await;
        let expected = model.run(command(&task)).await.unwrap();
        assert!(!decided.replayed && decided.is_success(), "{task:?}: {decided:?}");
        assert_eq!(masked(&decided.outcome), masked(&expected.outcome), "{task:?}");
        let again = met.run(command(&task)).await.unwrap();
        assert!(again.replayed, "{task:?}");
        assert_eq!(again.outcome, decided.outcome, "{task:?}");
        assert_eq!(entries(&met).await, entries(&model).await, "{task:?}");
    }
    for account in ["plain", "split", "journal"] {
        let (met, model) = (met.account(&id(account)).await, model.account(&id(account)).await);
        assert_eq!(met.unwrap(), model.unwrap());
    }
}

fn masked(outcome: &Outcome) -> Outcome {
    let mut outcome = outcome.clone();
    if let Outcome::Posted(receipt) = &mut outcome {
        receipt.at = Default::default();
    }
    outcome
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn of_a_lost_answer_the_caller_hears_what_became_of_it_once() {
    each_is_done_once(Fault::LoseAnswer).await;
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn a_commit_that_never_arrived_is_sent_again() {
    each_is_done_once(Fault::LoseText).await;
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn an_account_that_is_opened_behind_a_lost_answer_is_created() {
    let database = database();
    let (proxy, url) = database.proxy();
    let wallet = wallet(&url).await;
    let lost = proxy.arm("INSERT INTO account ", 0, 1, Fault::LoseAnswer);
    let (view, created) = wallet.open(ordinary("a")).await.unwrap();
    lost.happened(1).await;
    assert!(created && view.balance() == 0);
    assert!(!wallet.open(ordinary("a")).await.unwrap().1);
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn an_id_that_is_abandoned_behind_a_lost_answer_stays_so() {
    let database = database();
    let (proxy, url) = database.proxy();
    let wallet = wallet(&url).await;
    wallet.open(ordinary("a")).await.unwrap();
    let lost = proxy.arm(DECIDES, 0, 1, Fault::LoseAnswer);
    let Task::Abandon { account, request } = abandon("a", "late") else {
        unreachable!("an abandon");
    };
    let abandoned = wallet.abandon(&account, &request).await.unwrap();
    lost.happened(1).await;
    assert!(!abandoned.is_success());
    let late = wallet.credit(&account, &request, amount(5), None).await.unwrap();
    assert_eq!(late.outcome, abandoned.outcome);
    assert_eq!(wallet.account(&id("a")).await.unwrap().balance(), 0);
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn an_atomic_batch_behind_a_lost_answer_is_done_whole_and_once() {
    let database = database();
    let (proxy, url) = database.proxy();
    let wallet = wallet(&url).await;
    open_all(&wallet).await;
    let tasks = [
        credit("plain", "c", 100),
        transfer("plain", "t", "split", 60),
        hold("split", "h", 10, 0),
    ];
    let lost = proxy.arm(DECIDES, 0, 1, Fault::LoseAnswer);
    let first = wallet.batch(together(BatchMode::Atomic, &tasks)).await.unwrap();
    lost.happened(1).await;
    assert!(first.applied);
    let again = wallet.batch(together(BatchMode::Atomic, &tasks)).await.unwrap();
    for (first, again) in first.results.iter().zip(&again.results) {
        let (first, again) = (first.as_ref().unwrap(), again.as_ref().unwrap());
        assert!(!first.replayed && again.replayed);
        assert_eq!(first.outcome, again.outcome);
    }
    let balance = async |account| wallet.account(&id(account)).await.unwrap().balance();
    assert_eq!((balance("plain").await, balance("split").await), (40, 60));
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn an_answer_that_comes_after_the_deadline_was_unknown_and_the_same_id_tells() {
    let database = database();
    let (proxy, url) = database.proxy();
    let wallet = wallet(&url).await;
    wallet.open(ordinary("a")).await.unwrap();
    let held = proxy.arm(DECIDES, 0, 1, Fault::HoldAnswer);
    let (account, name) = (id("a"), request("c"));
    let late = wallet.credit(&account, &name, amount(100), None).await;
    assert!(
        matches!(late, Err(LedgerError::OutcomeUnknown { .. })),
        "{late:?}"
    );
    held.happened(1).await;
    held.let_go();
    let told = wallet.credit(&account, &name, amount(100), None).await.unwrap();
    assert!(told.is_success() && told.replayed, "{told:?}");
    assert_eq!(wallet.account(&account).await.unwrap().balance(), 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs MariaDB: tests/run"]
async fn under_load_every_few_commits_are_lost_and_nothing_else() {
    let database = database();
    let (proxy, url) = database.proxy();
    let load = Load::new(wallet(&url).await).await;
    for n in 0..12 {
        proxy.arm(DECIDES, n * 5, 1, Fault::LoseAnswer);
        proxy.arm(DECIDES, n * 5 + 2, 1, Fault::LoseText);
    }
    load.start(11, 8, 40).join_all().await;
    let counts = load.check().await;
    println!("12 answers and 12 texts with COMMIT lost: {counts:?}");
}
