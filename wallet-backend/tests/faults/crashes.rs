//! Power cuts at every single operation of the disk: while batches, segments, checkpoints and runs are written, and
//! while a tail is written again at opening.

use wallet_backend::command::LedgerError;
use wallet_backend::store::embedded::{Embedded, Options};

use std::io::ErrorKind;

use super::disk::{FaultDisk, Op, PowerCut};
use super::trial::{Workload, close_and_verify, long, open, small};
use crate::support::{Bench, credit, ordinary};

/// Enough batches for five segments and six checkpoints.
const BATCHES: usize = 64;

fn cuts(seed: u64) -> Vec<PowerCut> {
    let mut cuts = vec![PowerCut::LoseAll, PowerCut::KeepAll];
    let random = if long() { 20 } else { 2 };
    cuts.extend((0..random).map(|n| PowerCut::Some(seed * 1000 + n)));
    cuts
}

/// What a store has to show after a power cut, and that it goes on as if there had been none.
fn recovers(workload: &Workload, disk: &FaultDisk, acknowledged: usize, whole: bool) {
    let store = open(small(disk));
    let seen = workload.check(&store, acknowledged);
    if whole {
        workload.check_replays(&store, seen);
        workload.go_on(&store, seen);
    }
    close_and_verify(store, disk);
}

#[test]
fn a_power_cut_at_any_operation_loses_nothing_that_was_acknowledged() {
    let workload = Workload::new(1, BATCHES);
    let (mut at, mut tried) = (0, 0);
    loop {
        let disk = FaultDisk::default();
        disk.cut_power_at(at);
        let Ok(store) = Embedded::open(small(&disk)) else {
            // Cut while the store was being made: the next opening makes it.
            for cut in cuts(at) {
                recovers(&workload, &disk.after(cut), 0, false);
            }
            at += 1;
            continue;
        };
        let store = Bench::new(store);
        let ran = workload.run(&store, 0);
        store.close();
        if !ran.stopped && disk.operations() <= at {
            break;
        }
        for (n, cut) in cuts(at).into_iter().enumerate() {
            recovers(&workload, &disk.after(cut), ran.acknowledged, n == 2);
            tried += 1;
        }
        at += 1;
    }
    println!("{at} operations, {tried} power cuts, 0 acknowledged tasks lost");
    assert!(at > 150, "{at} operations are too few to have met everything");
}

#[test]
fn a_power_cut_at_any_operation_of_an_opening_leaves_the_old_tail_or_the_new() {
    let workload = Workload::new(2, BATCHES);
    // Tails of several lengths, some with a torn end.
    for stop in [3, 20, 41, 64] {
        let disk = FaultDisk::default();
        let store = open(small(&disk));
        let mut ran = 0;
        for batch in workload.batches.iter().take(stop) {
            ran += store.ask_all(batch.clone()).len();
        }
        let crashed = disk.after(PowerCut::Some(stop.try_into().unwrap()));
        drop(store);
        let mut at = 0;
        loop {
            let disk = crashed.copy();
            disk.cut_power_at(at);
            let opened = Embedded::open(small(&disk));
            let whole = opened.is_ok();
            drop(opened);
            for (n, cut) in cuts(at).into_iter().enumerate() {
                let after = disk.after(cut);
                // And once more: a second crash in the same place.
                let again = after.copy();
                again.cut_power_at(at);
                drop(Embedded::open(small(&again)));
                recovers(&workload, &again.after(cut), ran, n == 2);
                recovers(&workload, &after, ran, false);
            }
            if whole && disk.operations() <= at {
                break;
            }
            at += 1;
        }
        assert!(at > 8, "{at} operations");
    }
}

#[test]
fn any_single_operation_that_fails_loses_nothing_and_lies_to_nobody() {
    let workload = Workload::new(4, BATCHES);
    let kinds = [
        Op::Create,
        Op::Write,
        Op::Sync,
        Op::Rename,
        Op::Remove,
        Op::SyncFolder,
        Op::Cut,
    ];
    let mut failed = 0;
    for kind in kinds {
        for nth in 0.. {
            let disk = FaultDisk::default();
            disk.fail(kind, nth, ErrorKind::Other, 1);
            let mut acknowledged = 0;
            if let Ok(store) = Embedded::open(small(&disk)) {
                let store = Bench::new(store);
                acknowledged = workload.run(&store, 0).acknowledged;
                store.close();
            }
            let happened = disk.has_failed();
            disk.heal();
            for cut in cuts(nth) {
                recovers(&workload, &disk.after(cut), acknowledged, nth % 8 == 0);
            }
            if !happened {
                break;
            }
            failed += 1;
        }
    }
    println!("{failed} failed operations, 0 acknowledged tasks lost");
    assert!(failed > 150, "{failed}");
}

/// After a failed sync the page cache shows what the disk has not got, and says that it is clean.
#[test]
pub(crate) fn what_was_read_from_the_page_cache_is_on_the_disk_before_it_is_answered() {
    let disk = FaultDisk::default();
    let roomy = || Options {
        fresh_bytes: 1 << 20,
        ..small(&disk)
    };
    let store = open(roomy());
    store.open(ordinary("a"));
    disk.fail(Op::Sync, 0, ErrorKind::Other, 1);
    let unknown = store.ask(credit("a", "c", 100));
    assert!(
        matches!(unknown, Err(LedgerError::OutcomeUnknown { .. })),
        "{unknown:?}"
    );
    drop(store);
    let store = open(roomy());
    // It was read back, so it counts from now on.
    assert!(store.decide(credit("a", "c", 100)).1);
    let after = disk.after(PowerCut::LoseAll);
    drop(store);
    let store = open(small(&after));
    assert_eq!(store.account("a").balance(), 100);
    assert!(store.decide(credit("a", "c", 100)).1);
}

#[test]
fn crash_after_crash_the_books_go_on() {
    crash_again_and_again(if long() { 300 } else { 30 });
}

/// Each round is a disk that loses its power a dozen times.
pub(crate) fn crash_again_and_again(rounds: u64) {
    let workload = Workload::new(3, 40);
    for seed in 0..rounds {
        let mut disk = FaultDisk::default();
        let mut acknowledged = 0;
        for round in 0..12 {
            let store = open(small(&disk));
            acknowledged = workload.check(&store, acknowledged);
            disk.cut_power_at(disk.operations() + (seed * 7 + round * 13) % 40);
            acknowledged = workload.go_on_until_stopped(&store, acknowledged);
            drop(store);
            disk = disk.after(PowerCut::Some(seed * 100 + round));
        }
        recovers(&workload, &disk, acknowledged, true);
    }
}
