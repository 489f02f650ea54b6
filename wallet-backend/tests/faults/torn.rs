//! The last batch torn at every byte: it is whole or it is gone, never anything in between.

use super::disk::FaultDisk;
use super::trial::{Workload, long, open, picture, small};
use crate::support::{Bench, credit};
use wallet_backend::command::Task;
use wallet_backend::store::embedded::{Embedded, Options};

/// A disk before its last batch, and the write that the last batch was: file, offset, bytes.
struct LastBatch {
    before: FaultDisk,
    whole: FaultDisk,
    write: (String, usize, Vec<u8>),
    /// Tasks before it, and with it.
    tasks: (usize, usize),
}

/// Batches of one page, and a last one of two, in a log with a checkpoint and without.
fn last_batch(workload: &Workload, batches: usize, last: usize) -> LastBatch {
    let disk = FaultDisk::default();
    let store = open(small(&disk));
    let mut tasks = 0;
    for batch in workload.batches.iter().take(batches) {
        tasks += store.ask_all(batch.clone()).len();
    }
    let before = disk.copy();
    let more: Vec<Task> = workload
        .batches
        .iter()
        .skip(batches)
        .take(last)
        .flatten()
        .cloned()
        .collect();
    let all = tasks + more.len();
    store.ask_all(more);
    let (file, ..) = disk.last_log_write();
    assert!(before.files().contains(&file), "the batch begins a segment");
    LastBatch {
        before,
        whole: disk.copy(),
        write: disk.last_log_write(),
        tasks: (tasks, all),
    }
}

/// What comes back when only some bytes of the last batch were written.
fn comes_back(last: &LastBatch, keep: impl Fn(usize) -> bool) -> Bench<Embedded> {
    let disk = last.before.copy();
    let (file, at, bytes) = &last.write;
    let mut content = disk.content(file);
    for (n, byte) in bytes.iter().enumerate() {
        if keep(n) {
            content[at + n] = *byte;
        }
    }
    disk.put(file, content);
    read_only(&disk)
}

/// Opened to be looked at: without the checkpoint that closing would write.
fn read_only(disk: &FaultDisk) -> Bench<Embedded> {
    open(Options {
        checkpoint_bytes: 1 << 30,
        ..small(disk)
    })
}

#[test]
fn a_batch_torn_at_any_byte_is_dropped_whole_and_the_rest_stands() {
    let workload = Workload::new(4, 60);
    let last = last_batch(&workload, 8, 20);
    let length = last.write.2.len();
    assert!(length >= 2 * 4096, "{length} bytes are not two pages");
    let (without, with) = (workload.picture(last.tasks.0), workload.picture(last.tasks.1));
    assert_eq!(picture(&open(small(&last.whole.copy()))), *with);
    for written in 0..length {
        let store = comes_back(&last, |n| n < written);
        assert_eq!(picture(&store), *without, "{written} of {length} bytes written");
    }
    println!("{length} torn writes: all recovered, 0 silently wrong");
}

#[test]
pub(crate) fn a_batch_that_lacks_any_of_its_sectors_is_dropped_whole() {
    let workload = Workload::new(5, 60);
    let last = last_batch(&workload, 9, 22);
    let sectors = last.write.2.len() / 512;
    let without = workload.picture(last.tasks.0);
    // Every single sector missing, and every one alone there; the long version tries every set of the first twelve.
    for lacking in 0..sectors {
        let store = comes_back(&last, |n| n / 512 != lacking);
        assert_eq!(picture(&store), *without, "sector {lacking} is lost");
        let store = comes_back(&last, |n| n / 512 == lacking);
        assert_eq!(picture(&store), *without, "sector {lacking} alone is there");
    }
    let sets = if long() { 4095_u32 } else { 0 };
    for set in 0..sets {
        let store = comes_back(&last, |n| n / 512 < 12 && set & (1 << (n / 512)) != 0);
        assert_eq!(picture(&store), *without, "sectors {set:b}");
    }
}

#[test]
fn a_torn_batch_is_decided_anew_when_its_requests_come_again() {
    let workload = Workload::new(6, 60);
    let last = last_batch(&workload, 8, 20);
    let store = comes_back(&last, |n| n < 5000);
    assert_eq!(workload.check(&store, last.tasks.0), last.tasks.0);
    workload.go_on(&store, last.tasks.0);
    assert!(store.ask(credit("plain", "one-more", 5)).is_ok());
}
