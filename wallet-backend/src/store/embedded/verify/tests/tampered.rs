//! A log that somebody rewrote in place, every checksum and every link made right again.

use super::*;
use crate::command::DebitAmount;
use crate::store::embedded::fixtures::{repeat_legs, rewrite};
use crate::store::embedded::{Embedded, Options};
use crate::store::{Job, Store as _};

/// A store with some history, closed.
fn history() -> (tempfile::TempDir, Arc<dyn Disk>) {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(folder.path()));
    let store = Embedded::open(Options::on(Arc::clone(&disk))).unwrap();
    let account = Account::new(AccountId::new("a").unwrap(), Currency::new("EUR").unwrap());
    ask(&store, &[Task::Open(account)]);
    for number in 0..12 {
        ask(&store, &[credit(&format!("c{number}"), 100)]);
    }
    drop(store);
    (folder, disk)
}

fn ask(store: &Embedded, tasks: &[Task]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (jobs, answers): (Vec<Job>, Vec<_>) = tasks.iter().cloned().map(Job::new).unzip();
    runtime.block_on(async {
        store.run(jobs).await;
        for answer in answers {
            answer.await.unwrap().unwrap();
        }
    });
}

/// Rewrites the whole log in place as `edit` has it, and takes away what was derived from it.
fn tamper(disk: &dyn Disk, edit: impl FnMut(&mut Changes)) {
    rewrite(disk, edit);
    for folder in ["state", "index", "heads"] {
        for name in disk.list(folder).unwrap() {
            disk.remove(&format!("{folder}/{name}")).unwrap();
        }
    }
}

/// The fourth credit was of 101, in every place that says so.
fn one_cent_more(changes: &mut Changes) {
    for entry in changes.entries.iter_mut().filter(|entry| entry.version >= 4) {
        entry.balance_after = entry.balance_after.saturating_add(1);
        if entry.version == 4 {
            entry.delta = 101;
        }
    }
    let Some(record) = &mut changes.request else {
        return;
    };
    let more = Amount::new(101).unwrap();
    let Outcome::Posted(receipt) = &mut record.outcome else {
        return;
    };
    receipt.legs = changes.entries.iter().map(Leg::from).collect();
    if record.request.as_str() == "c3" {
        receipt.amount = more;
        let memo = None;
        record.operation = Some(Operation::Credit { amount: more, memo });
    }
}

fn root_of(disk: &Arc<dyn Disk>) -> Root {
    let report = verify_on(disk, |_, _| ()).unwrap();
    assert!(report.is_clean(), "{report}");
    report.root.unwrap()
}

fn against(disk: &Arc<dyn Disk>, roots: &[Root]) -> Report {
    verify_against(disk, roots, |_, _| ()).unwrap()
}

#[test]
fn an_amount_that_was_changed_alone_breaks_the_books_whatever_the_checksums_say() {
    let (_folder, disk) = history();
    let root = root_of(&disk);
    tamper(disk.as_ref(), |changes| {
        for entry in changes.entries.iter_mut().filter(|entry| entry.version == 4) {
            entry.delta += 1;
        }
        repeat_legs(changes);
    });
    for report in [against(&disk, &[]), against(&disk, &[root])] {
        assert!(!report.is_clean());
        assert!(report.to_string().contains("version 4"), "{report}");
    }
}

#[test]
fn history_that_was_rewritten_in_every_place_is_found_against_a_root_and_by_nothing_else() {
    let (_folder, disk) = history();
    let before = root_of(&disk);
    tamper(disk.as_ref(), one_cent_more);
    // Every sum and chain is right: this is all that the log can prove by itself.
    let report = against(&disk, &[]);
    assert!(report.is_clean(), "{report}");
    let report = against(&disk, &[before]);
    let [finding] = &report.findings[..] else {
        panic!("{report}");
    };
    let found = report.root.unwrap();
    assert_eq!(
        finding.what,
        format!(
            "the root that was given: records 1 to 13 are not what they were: their root is {}, not {}",
            found.digest, before.digest
        )
    );
    assert_eq!(found.records, before.records);
}

#[test]
fn the_records_that_were_changed_lie_behind_the_last_root_that_agrees() {
    let (_folder, disk) = history();
    let roots: Vec<Root> = {
        let mut heads = Heads::default();
        let layout = Layout::read(disk.as_ref()).unwrap();
        let mut scan = Scan::after(&layout, Mark::default()).unwrap();
        let mut roots = Vec::new();
        while let Some(batch) = scan.next().unwrap() {
            for (_, bytes) in batch.records().unwrap() {
                heads.extend(&decode(bytes).unwrap().changes);
                roots.push(heads.root());
            }
        }
        roots
    };
    assert_eq!(against(&disk, &roots).roots, 13);
    tamper(disk.as_ref(), one_cent_more);
    // Record 1 opens the account, the fourth credit is record 5.
    let report = against(&disk, &roots);
    assert_eq!((report.roots, report.findings.len()), (4, 9));
    assert!(report.findings[0].what.contains("records 5 to 5 "), "{report}");
}

#[test]
fn a_memo_that_was_changed_is_found_against_a_root() {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(folder.path()));
    let store = Embedded::open(Options::on(Arc::clone(&disk))).unwrap();
    let account = Account::new(AccountId::new("a").unwrap(), Currency::new("EUR").unwrap());
    let amount = DebitAmount::Exactly(Amount::new(5).unwrap());
    let memo = Some("for Anna".into());
    let refused = run("d", Operation::Debit { amount, memo });
    ask(&store, &[Task::Open(account), refused]);
    drop(store);
    let before = root_of(&disk);
    tamper(disk.as_ref(), |changes| {
        if let Some(Operation::Debit { memo, .. }) = changes
            .request
            .as_mut()
            .and_then(|record| record.operation.as_mut())
        {
            *memo = Some("for Otto".into());
        }
    });
    assert!(against(&disk, &[]).is_clean());
    assert!(!against(&disk, &[before]).is_clean());
}

#[test]
fn a_log_that_is_shorter_than_a_root_has_lost_something() {
    let (_folder, disk) = history();
    let mut root = root_of(&disk);
    root.records += 1;
    let report = against(&disk, &[root]);
    assert!(
        report
            .to_string()
            .contains("it is about 14 records, and the log has 13")
    );
}
