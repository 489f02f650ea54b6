//! One wrong cent, wherever it is put, is found by the pass that looks there, and named.

use std::sync::atomic::AtomicI64;

use super::*;
use crate::Wallet;
use crate::account::SlotIndex;
use crate::ledger::invariants::Rule;
use crate::ledger::rows::fixtures::Fault;
use crate::store::embedded::Options;
use crate::wallet::fixtures::id;

/// Whose, slot, version, rule, expected, found.
type Named = (String, Option<u8>, Option<u64>, Rule, i128, i128);

fn named(report: &Report) -> Vec<Named> {
    let name = |difference: &Difference| {
        let whose = match &difference.subject {
            Subject::Account(account) => account.to_string(),
            Subject::Currency(currency) => currency.as_str().to_owned(),
        };
        let slot = difference.slot.map(SlotIndex::get);
        let (version, rule) = (difference.version, difference.rule);
        (whose, slot, version, rule, difference.expected, difference.found)
    };
    let mut named: Vec<Named> = report.differences.iter().map(name).collect();
    named.sort_by_key(|(whose, slot, version, rule, ..)| (whose.clone(), *slot, *version, rule.as_str()));
    named
}

async fn passes(wallet: &Wallet, passes: &[Pass]) -> Vec<Named> {
    for pass in passes {
        let run = wallet.reconcile(*pass).await.unwrap();
        assert!(run.outcome.is_ok());
    }
    named(&wallet.reconciliation())
}

fn difference(whose: &str, slot: u8, version: u64, rule: Rule, (expected, found): (i128, i128)) -> Named {
    let (slot, version) = (Some(slot), Some(version));
    (whose.to_owned(), slot, version, rule, expected, found)
}

#[tokio::test]
async fn books_that_are_right_differ_in_nothing() {
    for (wallet, _folder) in Wallet::with_history().await {
        assert_eq!(passes(&wallet, &Pass::ALL).await, []);
        let report = wallet.reconciliation();
        assert!(report.is_ok());
        let counted = |pass| report.run(pass).map(|run| (run.accounts, run.entries)).unwrap();
        // Pending credits have no entry yet.
        assert_eq!(counted(Pass::Changed), (2, 7));
        assert_eq!(counted(Pass::Everything), (3, 7));
        wallet.close().await;
    }
}

#[tokio::test]
async fn a_wrong_cent_in_a_slot_in_memory_is_found_with_account_slot_and_version() {
    for (wallet, _folder) in Wallet::with_history().await {
        wallet.falsify("b", Fault::Slot(SlotIndex::new(1).unwrap()));
        let expected = [difference("b", 1, 4, Rule::SlotBalance, (400, 401))];
        assert_eq!(passes(&wallet, &[Pass::Changed]).await, expected);
        assert_eq!(passes(&wallet, &[Pass::Everything]).await, expected);
        // What the books of the currency say comes on top.
        let total = ("EUR".to_owned(), None, None, Rule::CurrencyTotal, 900, 901);
        let [account] = expected;
        assert_eq!(passes(&wallet, &[Pass::GeneralLedger]).await, [total, account]);
        wallet.close().await;
    }
}

#[tokio::test]
async fn a_cent_that_was_wrong_before_an_entry_is_found_at_that_entry() {
    for (wallet, _folder) in Wallet::with_history().await {
        assert_eq!(passes(&wallet, &[Pass::Changed]).await, []);
        wallet.falsify_slot();
        assert_eq!(passes(&wallet, &[Pass::Changed]).await, [], "nothing has changed");
        wallet.earn("a", "later").await;
        let expected = [difference("a", 0, 4, Rule::BalanceChain, (400, 401))];
        assert_eq!(passes(&wallet, &[Pass::Changed]).await, expected);
        assert_eq!(
            passes(&wallet, &[Pass::Everything]).await,
            expected,
            "once, whoever finds it"
        );
        wallet.close().await;
    }
}

#[tokio::test]
async fn a_wrong_cent_in_an_entry_that_was_written_is_found_with_account_slot_and_version() {
    for (wallet, _folder) in Wallet::with_history().await {
        wallet.falsify_entry("a", 2);
        let expected = [difference("a", 0, 2, Rule::BalanceChain, (201, 200))];
        assert_eq!(passes(&wallet, &[Pass::Changed]).await, expected);
        assert_eq!(passes(&wallet, &[Pass::Everything]).await, expected);
        wallet.close().await;
    }
}

#[tokio::test]
async fn an_entry_that_makes_money_is_found_by_the_general_ledger() {
    let [_, (wallet, _folder)] = Wallet::with_history().await;
    wallet.falsify_entry("a", 2);
    let found = passes(&wallet, &[Pass::GeneralLedger]).await;
    let broken = difference("a", 0, 2, Rule::Conservation, (100, 101));
    assert!(found.contains(&broken), "{found:?}");
    wallet.close().await;
}

#[tokio::test]
async fn a_wrong_sum_in_memory_is_found_with_its_account() {
    for (wallet, _folder) in Wallet::with_history().await {
        wallet.falsify("a", Fault::SlotsSum);
        let expected = [("a".to_owned(), None, None, Rule::CachedSum, 300, 301)];
        assert_eq!(passes(&wallet, &[Pass::Everything]).await, expected);
        wallet.close().await;
    }
}

#[tokio::test]
async fn a_wrong_cent_that_no_entry_tells_of_is_found_in_the_total_of_its_currency() {
    for (wallet, _folder) in Wallet::with_history().await {
        wallet.falsify("j", Fault::Pending);
        assert_eq!(passes(&wallet, &[Pass::Changed, Pass::Everything]).await, []);
        let total = ("EUR".to_owned(), None, None, Rule::CurrencyTotal, 900, 901);
        assert_eq!(passes(&wallet, &[Pass::GeneralLedger]).await, [total]);
        wallet.close().await;
    }
}

#[tokio::test]
async fn a_difference_stays_listed_with_its_first_time_until_a_run_that_looks_there_does_not_find_it() {
    let [(wallet, _), _] = Wallet::with_history().await;
    wallet.falsify_slot();
    passes(&wallet, &[Pass::Everything]).await;
    let first = wallet.reconciliation();
    assert_eq!((first.count(), first.is_ok()), (1, false));
    passes(&wallet, &[Pass::Changed, Pass::Everything]).await;
    assert_eq!(wallet.reconciliation().differences, first.differences);
    wallet.falsify_by("a", Fault::Slot(SlotIndex::PRIMARY), -1);
    passes(&wallet, &[Pass::Changed]).await;
    assert_eq!(wallet.reconciliation().differences, first.differences);
    assert_eq!(passes(&wallet, &[Pass::Everything]).await, []);
    wallet.close().await;
}

#[tokio::test]
async fn a_wrong_cent_that_a_checkpoint_has_kept_is_found_after_a_restart() {
    let [_, (wallet, folder)] = Wallet::with_history().await;
    wallet.falsify_slot();
    // Changed, so that the checkpoint at the end has it.
    wallet.earn("a", "later").await;
    wallet.close().await;
    drop(wallet);
    let folder = folder.unwrap();
    let wallet = Wallet::embedded(Options::at(folder.path())).unwrap();
    let view = wallet.account(&id("a")).await.unwrap();
    assert_eq!(view.balance(), 401);
    let expected = difference("a", 0, 4, Rule::BalanceChain, (400, 401));
    assert!(passes(&wallet, &[Pass::Everything]).await.contains(&expected));
    let told = wallet.reconciliation().to_string();
    assert!(
        told.contains("FOUND account a slot 0 version 4: not so that"),
        "{told}"
    );
    wallet.close().await;
}

#[tokio::test]
async fn on_its_timer_a_wrong_cent_is_found_within_a_cycle() {
    let [(wallet, _), (embedded, _folder)] = Wallet::with_history().await;
    embedded.close().await;
    // From here on nobody waits for another thread, which a paused clock would not wait for.
    tokio::time::pause();
    let micros = Arc::new(AtomicI64::new(1));
    let reconciler = Reconciler::new(Clock::Set(micros), 0);
    let mut watch = reconciler.watch();
    let begun = Instant::now();
    let mut job = tokio::task::JoinSet::new();
    job.spawn(run(wallet.queue().clone(), reconciler.clone()));
    watch.changed().await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), EVERY.as_secs());
    let first = Arc::clone(&watch.borrow_and_update());
    assert!(first.run(Pass::GeneralLedger).is_some() && first.is_ok());
    wallet.falsify_slot();
    wallet.earn_at_once("a", "later");
    watch.changed().await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 2 * EVERY.as_secs());
    let expected = [difference("a", 0, 4, Rule::BalanceChain, (400, 401))];
    assert_eq!(named(&reconciler.report()), expected);
    job.shutdown().await;
}

#[test]
fn the_first_run_is_of_everything_then_each_pass_when_it_is_due() {
    let minute = 60_000_000_i64;
    let mut report = Report::default();
    let mut at = [0_usize; 3];
    for tick in 1..=(26 * 12) {
        let now = Timestamp(tick * 5 * minute + 1_000);
        let pass = due(&report, now);
        at[Pass::ALL.iter().position(|known| *known == pass).unwrap()] += 1;
        let run = Run {
            pass,
            at: now,
            took: Duration::ZERO,
            accounts: 0,
            entries: 0,
            outcome: Ok(0),
        };
        report = report.after(run, Found::default()).0;
        assert!(tick > 1 || pass == Pass::GeneralLedger);
    }
    // In 26 hours: the first, and one a day later; every other full hour.
    assert_eq!(at, [26 * 12 - 26, 24, 2]);
}

#[test]
fn a_run_that_broke_off_is_tried_again_and_takes_nothing_from_the_list() {
    let run = |outcome| Run {
        pass: Pass::GeneralLedger,
        at: Timestamp(1),
        took: Duration::ZERO,
        accounts: 0,
        entries: 0,
        outcome,
    };
    let eur = crate::money::Currency::new("EUR").unwrap();
    let found = |expected| {
        let mut found = Found::default();
        found.add(Difference::of_currency(7, eur, (expected, 2), Timestamp(1)));
        found
    };
    let (report, news) = Report::default().after(run(Ok(1)), found(1));
    assert_eq!((report.count(), news.len()), (1, 1));
    let (report, news) = report.after(run(Err("no disk".to_owned())), Found::default());
    assert_eq!((report.count(), news.len(), report.is_ok()), (1, 0, false));
    assert_eq!(due(&report, Timestamp(2)), Pass::GeneralLedger);
    let (report, news) = report.after(run(Ok(1)), found(3));
    assert_eq!((report.count(), news.len()), (1, 1), "the other one is over");
    let (report, _) = report.after(run(Ok(0)), Found::default());
    assert!(report.is_ok());
}

#[test]
fn what_is_too_much_to_list_is_counted() {
    let mut found = Found::default();
    for expected in 0..i128::try_from(MOST_DIFFERENCES).unwrap() + 5 {
        let eur = crate::money::Currency::new("EUR").unwrap();
        found.add(Difference::of_currency(7, eur, (expected, -1), Timestamp(1)));
    }
    assert_eq!(found.count(), 1_005);
    let run = Run {
        pass: Pass::GeneralLedger,
        at: Timestamp(1),
        took: Duration::ZERO,
        accounts: 0,
        entries: 0,
        outcome: Ok(found.count()),
    };
    let (report, news) = Report::default().after(run, found);
    assert_eq!((report.count(), report.differences.len()), (1_005, 1_000));
    assert_eq!(news.len(), 1_000);
}
