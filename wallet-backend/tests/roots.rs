//! The root of a day: published once the day has ended, the same wherever the log keeps its records, and what `verify`
//! holds the history to.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use wallet_backend::journal::Root;
use wallet_backend::store::embedded::disk::Disk;
use wallet_backend::store::embedded::{Embedded, Options, Report, verify_against, verify_on};

use crate::faults::{FaultDisk, Op, Workload, open, small};
use crate::support::{Bench, SECOND, Time, credit, ordinary};

const DAY: i64 = 86_400 * SECOND;

/// Looks at the time of day all the time.
fn daily(disk: &FaultDisk, time: &Time) -> Options {
    Options {
        clock: time.clock(),
        daily_root: Some(Duration::from_millis(1)),
        ..small(disk)
    }
}

fn verified(disk: &FaultDisk) -> Report {
    verify_on(&(Arc::new(disk.clone()) as Arc<dyn Disk>), |_, _| ()).unwrap()
}

fn file(day: &str) -> String {
    format!("roots/{day}.ndjson")
}

/// The root in a published file.
fn published(disk: &FaultDisk, day: &str) -> Root {
    let line = String::from_utf8(disk.content(&file(day))).unwrap();
    assert!(line.starts_with(&format!("{{\"day\":\"{day}\"")), "{line}");
    line.split('"').nth(7).unwrap().parse().unwrap()
}

fn credits(store: &Bench<Embedded>, day: &str, count: usize) {
    for number in 0..count {
        store.post(credit("a", &format!("{day}-{number}"), 10));
    }
}

#[test]
fn the_root_of_each_day_is_published_after_its_end_and_verify_holds_the_log_to_it() {
    let (disk, time) = (FaultDisk::default(), Time::starting("2026-07-01T09:00:00Z"));
    let store = open(daily(&disk, &time));
    store.open(ordinary("a"));
    let mut roots = Vec::new();
    for (day, count) in [("2026-07-01", 40), ("2026-07-02", 3), ("2026-07-03", 0)] {
        credits(&store, day, count);
        assert!(!disk.files().contains(&file(day)), "{day} has not ended");
        time.pass(DAY);
        disk.await_file(&file(day));
        roots.push(published(&disk, day));
    }
    let records: Vec<u64> = roots.iter().map(|root| root.records).collect();
    assert_eq!(records, [41, 44, 44]);
    assert_eq!(roots[1], roots[2], "nothing happened on the third day");
    credits(&store, "later", 5);
    store.close();
    drop(store);
    // The three, and the heads that the newest was made from.
    let report = verified(&disk);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.roots, 4);
    assert_eq!(report.root.unwrap().records, 49);
    let given = verify_against(&(Arc::new(disk.clone()) as Arc<dyn Disk>), &roots, |_, _| ());
    assert_eq!(given.unwrap().roots, 7);
}

#[test]
fn a_day_that_ended_while_the_store_was_closed_or_killed_has_its_root_soon_after_opening() {
    let (mut disk, time) = (FaultDisk::default(), Time::starting("2026-07-01T23:59:58Z"));
    for day in ["2026-07-01", "2026-07-02", "2026-07-03"] {
        let store = open(daily(&disk, &time));
        if day == "2026-07-01" {
            store.open(ordinary("a"));
        }
        credits(&store, day, 30);
        // What a kill leaves: dropping the store would write on.
        let left = disk.copy();
        drop(store);
        disk = left;
        time.pass(DAY);
        let store = open(daily(&disk, &time));
        disk.await_file(&file(day));
        drop(store);
    }
    assert_eq!(published(&disk, "2026-07-03").records, 91);
    let report = verified(&disk);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.roots, 4);
}

#[test]
fn a_store_without_history_publishes_nothing_and_a_new_one_no_root_of_the_day_before() {
    let (disk, time) = (FaultDisk::default(), Time::starting("2026-07-01T09:00:00Z"));
    let store = open(daily(&disk, &time));
    store.open(ordinary("a"));
    time.pass(DAY);
    disk.await_file(&file("2026-07-01"));
    store.close();
    let roots = disk.files().into_iter().filter(|name| name.starts_with("roots/"));
    assert_eq!(roots.collect::<Vec<_>>(), [file("2026-07-01")]);
}

#[test]
fn a_root_that_cannot_be_written_is_tried_again_and_holds_nobody_up() {
    let (disk, time) = (FaultDisk::default(), Time::starting("2026-07-01T09:00:00Z"));
    let store = open(daily(&disk, &time));
    store.open(ordinary("a"));
    credits(&store, "first", 3);
    disk.fail(Op::Rename, 0, ErrorKind::StorageFull, 3);
    time.pass(DAY);
    credits(&store, "second", 3);
    disk.await_file(&file("2026-07-01"));
    assert!(disk.has_failed());
    store.close();
    drop(store);
    let report = verified(&disk);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.roots, 2);
}

#[test]
fn the_root_is_that_of_the_history_wherever_its_records_are_kept() {
    let workload = Workload::new(31, 60);
    let root = |options: &dyn Fn(&FaultDisk) -> Options, reopened_every: usize| {
        let mut disk = FaultDisk::default();
        let mut store = open(options(&disk));
        for (number, batch) in workload.batches.iter().enumerate() {
            if number % reopened_every == reopened_every - 1 {
                let left = disk.copy();
                drop(store);
                disk = left;
                store = open(options(&disk));
            }
            store.ask_all(batch.clone());
        }
        store.close();
        drop(store);
        let report = verified(&disk);
        assert!(report.is_clean(), "{report}");
        report.root.unwrap()
    };
    let straight = root(&small, 1_000);
    let without_checkpoints = |disk: &FaultDisk| Options {
        checkpoint_bytes: 1 << 30,
        segment_bytes: 1 << 20,
        ..small(disk)
    };
    assert!(straight.records > 100);
    assert_eq!(root(&small, 7), straight);
    assert_eq!(root(&without_checkpoints, 11), straight);
}

#[test]
fn changed_heads_are_found_and_made_again_from_the_log() {
    let (disk, time) = (FaultDisk::default(), Time::starting("2026-07-01T09:00:00Z"));
    let store = open(daily(&disk, &time));
    store.open(ordinary("a"));
    credits(&store, "first", 20);
    time.pass(DAY);
    disk.await_file(&file("2026-07-01"));
    drop(store);
    let heads = disk.files().into_iter().find(|name| name.starts_with("heads/"));
    disk.flip(&heads.clone().unwrap(), 4096 + 40, 1);
    let report = verified(&disk);
    assert!(report.to_string().contains(&heads.unwrap()), "{report}");
    time.pass(DAY);
    let store = open(daily(&disk, &time));
    disk.await_file(&file("2026-07-02"));
    drop(store);
    let report = verified(&disk);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.roots, 3);
}

#[test]
fn a_published_root_that_was_changed_is_a_finding() {
    let (disk, time) = (FaultDisk::default(), Time::starting("2026-07-01T09:00:00Z"));
    let store = open(daily(&disk, &time));
    store.open(ordinary("a"));
    time.pass(DAY);
    disk.await_file(&file("2026-07-01"));
    drop(store);
    let name = file("2026-07-01");
    let line = disk.content(&name);
    let digit = line.iter().rposition(|byte| byte.is_ascii_hexdigit()).unwrap();
    let mut other = line.clone();
    let at = line.windows(8).position(|part| part == b"\"root\":\"").unwrap() + 12;
    other[at] = if other[at] == b'0' { b'1' } else { b'0' };
    disk.put(&name, other);
    let report = verified(&disk);
    assert!(report.to_string().contains("are not what they were"), "{report}");
    let mut broken = line;
    broken[digit] = b'x';
    disk.put(&name, broken);
    let report = verified(&disk);
    assert!(report.to_string().contains("not as it was written"), "{report}");
}
