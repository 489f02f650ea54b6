//! Damage: refused with segment and byte, or harmless where nothing is read. Never silently wrong.

use std::sync::Arc;

use wallet_backend::store::embedded::disk::Disk;
use wallet_backend::store::embedded::{Embedded, OpenError, Options, Report, VerifyError, verify_on};

use super::disk::FaultDisk;
use super::trial::{Workload, long, open, picture, small};
use crate::support::Bench;

const PAGE: usize = 4096;

fn verified(disk: &FaultDisk) -> Result<Report, VerifyError> {
    verify_on(&(Arc::new(disk.clone()) as Arc<dyn Disk>), |_, _| ())
}

/// A log left as by kill -9, whose checkpoints came when they did.
fn crashed(workload: &Workload, batches: usize) -> (FaultDisk, usize) {
    left_behind(workload, batches, small)
}

/// The same with several segments, at least two checkpoints, and a tail behind them.
fn checkpointed(workload: &Workload) -> (FaultDisk, usize) {
    let disk = FaultDisk::default();
    let store = open(small(&disk));
    let mut tasks = 0;
    for (n, batch) in workload.batches.iter().take(54).enumerate() {
        tasks += store.ask_all(batch.clone()).len();
        // Batches take a page at least, so that 12 of them are due for a checkpoint.
        if n % 24 == 23 {
            disk.await_checkpoints(1 + n / 24);
        }
    }
    let left = disk.copy();
    drop(store);
    (left, tasks)
}

fn left_behind(
    workload: &Workload,
    batches: usize,
    options: impl Fn(&FaultDisk) -> Options,
) -> (FaultDisk, usize) {
    let disk = FaultDisk::default();
    let store = open(options(&disk));
    let mut tasks = 0;
    for batch in workload.batches.iter().take(batches) {
        tasks += store.ask_all(batch.clone()).len();
    }
    let left = disk.copy();
    drop(store);
    (left, tasks)
}

fn segments(disk: &FaultDisk) -> Vec<String> {
    let mut names = disk.files();
    names.retain(|name| name.starts_with("log/"));
    names
}

/// Flips single bits of a crashed log, one at a time, and counts what opening and `verify` make of each.
struct Flips<'a> {
    workload: &'a Workload,
    left: FaultDisk,
    tasks: usize,
    /// A copy of `left`, kept while openings are refused: those must leave it as it was.
    disk: FaultDisk,
    flips: u64,
    refused: u64,
    harmless: u64,
}

impl<'a> Flips<'a> {
    fn new(workload: &'a Workload, (left, tasks): (FaultDisk, usize)) -> Self {
        let disk = left.copy();
        Self {
            workload,
            left,
            tasks,
            disk,
            flips: 0,
            refused: 0,
            harmless: 0,
        }
    }

    fn flip(&mut self, file: &str, at: usize, bit: u8) {
        self.flips += 1;
        self.disk.flip(file, at, 1 << bit);
        let page = u64::try_from(at / PAGE * PAGE).unwrap();
        match Embedded::open(unchanged(&self.disk)) {
            Err(OpenError::Damaged(damage)) => {
                assert_eq!(
                    (damage.file.as_str(), damage.offset),
                    (file, page),
                    "byte {at}: {damage}"
                );
                if at.is_multiple_of(101) {
                    assert!(!verified(&self.disk).unwrap().is_clean(), "byte {at}");
                }
                self.refused += 1;
                self.disk.flip(file, at, 1 << bit);
            }
            Err(other) => panic!("{file} byte {at} bit {bit}: {other}"),
            // Before the checkpoint, which opening does not read, or where nothing was ever written.
            Ok(store) => {
                let store = Bench::new(store);
                self.disk = self.left.copy();
                self.disk.flip(file, at, 1 << bit);
                let found = verified(&self.disk).unwrap();
                self.disk.flip(file, at, 1 << bit);
                if found.is_clean() {
                    assert_eq!(
                        picture(&store),
                        *self.workload.picture(self.tasks),
                        "{file} byte {at}"
                    );
                    self.harmless += 1;
                } else {
                    assert_eq!(found.findings[0].offset, Some(page), "{found}");
                    self.refused += 1;
                }
            }
        }
    }

    fn summary(&self) -> String {
        let (flips, refused, harmless) = (self.flips, self.refused, self.harmless);
        assert_eq!(flips, refused + harmless);
        format!("{flips} bits flipped: {refused} refused, {harmless} harmless, 0 silently wrong")
    }
}

/// Options for a store that is only looked at: closing it writes no checkpoint.
fn unchanged(disk: &FaultDisk) -> Options {
    Options {
        checkpoint_bytes: 1 << 30,
        ..small(disk)
    }
}

/// Every byte of every page that opening reads, or of some; of unwritten pages, which are all alike, a few.
fn flip_every_page(flips: &mut Flips<'_>, step: usize) {
    for file in segments(&flips.left) {
        let content = flips.left.content(&file);
        for (number, page) in content.chunks(PAGE).enumerate() {
            let written = page.iter().any(|byte| *byte != 0);
            let step = if written || long() { step } else { step.max(1021) };
            for into in (0..PAGE).step_by(step) {
                let bit = u8::try_from((into + number) % 8).unwrap();
                flips.flip(&file, number * PAGE + into, bit);
            }
        }
    }
}

#[test]
fn a_flipped_bit_in_any_byte_of_the_log_is_refused_at_opening() {
    let workload = Workload::new(7, 40);
    // Without a checkpoint: opening reads every page.
    let mut flips = Flips::new(&workload, left_behind(&workload, 30, unchanged));
    flip_every_page(&mut flips, 1);
    println!("{}", flips.summary());
    assert!(flips.refused > 30 * 4096, "{}", flips.summary());
}

#[test]
fn a_flipped_bit_before_the_checkpoint_is_found_by_verify_and_never_changes_an_answer() {
    let workload = Workload::new(7, 60);
    let mut flips = Flips::new(&workload, checkpointed(&workload));
    flip_every_page(&mut flips, if long() { 1 } else { 127 });
    println!("{}", flips.summary());
}

#[test]
pub(crate) fn every_bit_of_a_page_of_the_last_batch_is_guarded() {
    let workload = Workload::new(8, 10);
    let mut flips = Flips::new(&workload, crashed(&workload, 3));
    // The newest segment may be prepared only, without a page yet.
    let written = |file: String| {
        let content = flips.left.content(&file);
        let mut pages = content.chunks(PAGE);
        let last = pages.rposition(|page| page.iter().any(|byte| *byte != 0))?;
        Some((file, last))
    };
    let (file, last) = segments(&flips.left).into_iter().rev().find_map(written).unwrap();
    for into in 0..PAGE {
        for bit in 0..8 {
            flips.flip(&file, last * PAGE + into, bit);
            assert_eq!(
                flips.refused, flips.flips,
                "byte {into} bit {bit} of the last page"
            );
        }
    }
    println!("{}", flips.summary());
    assert_eq!(flips.refused, 8 * 4096);
}

#[test]
fn damage_before_the_checkpoint_is_an_error_when_it_is_read() {
    let workload = Workload::new(9, 60);
    let (left, tasks) = checkpointed(&workload);
    let first = &segments(&left)[0];
    let content = left.content(first);
    for page in 2..content.len() / PAGE {
        let disk = left.copy();
        let mut content = content.clone();
        content[page * PAGE + 700] ^= 16;
        disk.put(first, content);
        let report = verified(&disk).unwrap();
        assert!(!report.is_clean());
        let Ok(store) = Embedded::open(small(&disk)) else {
            continue;
        };
        let store = Bench::new(store);
        // Balances are the checkpoint's; a statement that needs the page says that it cannot be had.
        for name in ["plain", "slotted", "journal"] {
            if let Ok(entries) = store.try_entries(name) {
                let all = workload.statement(tasks, name);
                assert_eq!(entries, *all, "page {page}");
            }
        }
    }
}

#[test]
fn pages_swapped_or_copied_within_the_log_are_damage() {
    let workload = Workload::new(10, 20);
    let (left, _) = crashed(&workload, 10);
    let file = segments(&left)[0].clone();
    let content = left.content(&file);
    let written: Vec<usize> = (1..content.len() / PAGE)
        .filter(|page| content[page * PAGE] != 0)
        .collect();
    for pair in written.windows(2) {
        let [a, b] = pair else { unreachable!() };
        for both in [false, true] {
            let disk = left.copy();
            let mut changed = content.clone();
            changed.copy_within(a * PAGE..(a + 1) * PAGE, b * PAGE);
            if both {
                changed[a * PAGE..(a + 1) * PAGE].copy_from_slice(&content[b * PAGE..(b + 1) * PAGE]);
            }
            disk.put(&file, changed);
            let opened = Embedded::open(small(&disk));
            assert!(
                matches!(opened, Err(OpenError::Damaged(_))),
                "{a} and {b}: {opened:?}"
            );
        }
    }
}

#[test]
fn a_lost_page_before_the_last_batch_is_damage_and_not_a_torn_end() {
    let workload = Workload::new(11, 20);
    let (left, _) = crashed(&workload, 8);
    let file = segments(&left)[0].clone();
    let content = left.content(&file);
    let written: Vec<usize> = (2..content.len() / PAGE)
        .filter(|page| content[page * PAGE] != 0)
        .collect();
    for page in &written[..written.len() - 1] {
        let disk = left.copy();
        let mut changed = content.clone();
        changed[page * PAGE..(page + 1) * PAGE].fill(0);
        disk.put(&file, changed);
        let opened = Embedded::open(small(&disk));
        assert!(
            matches!(opened, Err(OpenError::Damaged(_))),
            "page {page}: {opened:?}"
        );
    }
}

#[test]
fn a_missing_or_shortened_segment_is_refused_by_name() {
    let workload = Workload::new(12, 60);
    let (left, _) = checkpointed(&workload);
    let names = segments(&left);
    assert!(names.len() >= 3, "{names:?}");
    for name in &names[..names.len() - 2] {
        let disk = left.copy();
        disk.delete(name);
        let opened = Embedded::open(small(&disk));
        assert!(matches!(opened, Err(OpenError::Damaged(_))), "{name}: {opened:?}");
        let disk = left.copy();
        let mut content = disk.content(name);
        content.truncate(content.len() - PAGE);
        disk.put(name, content);
        let opened = Embedded::open(small(&disk));
        assert!(
            matches!(&opened, Err(OpenError::Damaged(damage)) if damage.file == *name),
            "{opened:?}"
        );
    }
}

#[test]
fn a_directory_whose_log_is_gone_is_not_taken_for_a_new_one() {
    let workload = Workload::new(13, 60);
    let (disk, _) = checkpointed(&workload);
    for name in segments(&disk) {
        disk.delete(&name);
    }
    assert!(matches!(Embedded::open(small(&disk)), Err(OpenError::Damaged(_))));
}

#[test]
fn an_old_log_put_back_under_a_newer_checkpoint_is_refused() {
    let workload = Workload::new(14, 60);
    let (old, _) = crashed(&workload, 10);
    let disk = old.copy();
    let store = open(small(&disk));
    let tasks = workload.batches.iter().take(10).map(Vec::len).sum();
    workload.go_on(&store, tasks);
    store.close();
    let rolled_back = disk.copy();
    for name in segments(&rolled_back) {
        rolled_back.delete(&name);
    }
    for name in segments(&old) {
        rolled_back.add(&name, old.content(&name));
    }
    let opened = Embedded::open(small(&rolled_back));
    assert!(matches!(opened, Err(OpenError::Damaged(_))), "{opened:?}");
}

#[test]
fn a_flipped_bit_in_a_checkpoint_or_run_costs_time_and_nothing_else() {
    let workload = Workload::new(15, 60);
    let (left, tasks) = checkpointed(&workload);
    let derived: Vec<String> = left
        .files()
        .into_iter()
        .filter(|name| !name.starts_with("log/"))
        .collect();
    assert!(derived.len() >= 4, "{derived:?}");
    for file in derived {
        let length = left.content(&file).len();
        let step = if long() { 1 } else { 199 };
        for at in (0..length).step_by(step) {
            let disk = left.copy();
            let mut content = disk.content(&file);
            content[at] ^= 1 << (at % 8);
            disk.put(&file, content);
            match Embedded::open(small(&disk)) {
                Err(error) => panic!("{file} byte {at}: {error}"),
                Ok(store) => {
                    let store = Bench::new(store);
                    assert_eq!(picture(&store), *workload.picture(tasks), "{file} byte {at}");
                    if at % 10 == 0 {
                        workload.check_replays(&store, tasks);
                    }
                }
            }
        }
    }
}

#[test]
fn another_format_version_is_refused_by_number() {
    let workload = Workload::new(16, 60);
    let (left, _) = checkpointed(&workload);
    let last = segments(&left).pop().unwrap();
    let checkpoint = left
        .files()
        .into_iter()
        .rfind(|name| name.starts_with("state/"))
        .unwrap();
    // The version follows the magic number: at byte 40 of a segment, 24 of a derived file.
    for (file, at) in [(last, 40), (checkpoint, 24)] {
        let disk = left.copy();
        let mut content = disk.content(&file);
        content[at] = 2;
        // Another version may mean anything by its bytes; one that differs in its number alone is damage.
        content[at + 100] = 1;
        disk.put(&file, content);
        let opened = Embedded::open(small(&disk));
        assert!(
            matches!(&opened, Err(OpenError::Version { file: named, found: 2, known: 1 }) if *named == file),
            "{opened:?}"
        );
    }
}
