//! A backup has what was acknowledged before it began, whoever writes meanwhile; what is restored of it proves itself;
//! and whatever is not whole or not as it was made is refused.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use wallet_backend::account::Timestamp;
use wallet_backend::store::embedded::disk::{Disk, RealDisk};
use wallet_backend::store::embedded::{
    Backup, BackupError, Embedded, OpenError, Options, Phase, Restored, backup, restore, verify,
};

use self::odd::Odd;
use crate::faults::{FaultDisk, Workload, open, small};
use crate::support::ordinary;

mod kills;
mod odd;

const NOW: Timestamp = Timestamp(1_700_000_000_000_000);

/// Folders for a backup and for what is restored of it.
struct Folders(TempDir);

impl Folders {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn backup(&self) -> PathBuf {
        self.0.path().join("backup")
    }

    fn restored(&self) -> PathBuf {
        self.0.path().join("restored")
    }

    fn make(&self, disk: &FaultDisk) -> Result<Backup, BackupError> {
        self.make_on(Arc::new(disk.clone()), |_, _, _| ())
    }

    fn make_on(
        &self,
        disk: Arc<dyn Disk>,
        progress: impl FnMut(Phase, u64, u64),
    ) -> Result<Backup, BackupError> {
        backup(&disk, &["webhooks.json"], &self.backup(), NOW, progress)
    }

    fn restore(&self) -> Result<Restored, BackupError> {
        restore(&self.backup(), &self.restored(), &[], |_, _, _| ())
    }

    /// The options of a store in the restored directory, in which time stands where it stood.
    fn options(&self) -> Options {
        Options {
            disk: Arc::new(RealDisk::new(self.restored())),
            ..small(&FaultDisk::default())
        }
    }

    fn is_there(&self, name: &str) -> bool {
        self.0.path().join(name).exists()
    }
}

/// Below a directory, with their names in it.
fn files(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            let inside = files(&entry.path()).into_iter();
            found.extend(inside.map(|file| format!("{name}/{file}")));
        } else {
            found.push(name);
        }
    }
    found.sort();
    found
}

/// A store of several segments and checkpoints, closed, and its workload.
fn kept() -> (FaultDisk, Workload) {
    let (disk, workload) = (FaultDisk::default(), Workload::new(51, 80));
    let store = open(small(&disk));
    workload.run(&store, 0);
    store.close();
    disk.add("webhooks.json", b"{}".to_vec());
    (disk, workload)
}

/// The same as a kill leaves it, the only checkpoint some segments before the end: the next opening cuts off the segment
/// that it ends in, and takes those after it away.
fn killed() -> (FaultDisk, Workload) {
    let (disk, workload) = (FaultDisk::default(), Workload::new(51, 80));
    let store = open(Options {
        checkpoint_bytes: 150 << 10,
        ..small(&disk)
    });
    workload.run(&store, 0);
    (disk.copy(), workload)
}

#[test]
fn a_backup_of_a_store_in_use_has_all_that_was_acknowledged_and_goes_on_as_it_would_have() {
    let workload = Workload::new(50, 60);
    let disk = FaultDisk::default();
    let store = open(small(&disk));
    let mut done = 0;
    let mut with_checkpoint = 0;
    for (number, batch) in workload.batches.iter().enumerate() {
        done += store.ask_all(batch.clone()).len();
        if number % 7 > 0 {
            continue;
        }
        let folders = Folders::new();
        let made = folders.make(&disk).unwrap();
        assert_eq!(made.left_out, None);
        with_checkpoint += usize::from(made.checkpoint.is_some());
        let restored = folders.restore().unwrap();
        assert_eq!(restored.report.root, Some(made.root));
        assert_eq!(restored.report.checkpoint, made.checkpoint);
        let copy = open(folders.options());
        let seen = workload.check(&copy, done);
        workload.go_on(&copy, seen);
        copy.close();
        assert!(verify(folders.restored()).unwrap().is_clean());
    }
    assert!(with_checkpoint > 3, "{with_checkpoint} had a checkpoint");
}

#[test]
fn a_backup_changes_nothing_of_the_ledger_and_needs_no_lock() {
    let data = tempfile::tempdir().unwrap();
    let options = Options {
        disk: Arc::new(RealDisk::new(data.path())),
        // The store, too, changes nothing meanwhile: no checkpoint is under way, no segment being prepared.
        checkpoint_bytes: 1 << 30,
        fresh_bytes: 1 << 20,
        ..small(&FaultDisk::default())
    };
    let store = open(options);
    Workload::new(52, 40).run(&store, 0);
    let content = || -> Vec<(String, Vec<u8>)> {
        let names = files(data.path()).into_iter();
        names
            .map(|name| (name.clone(), fs::read(data.path().join(name)).unwrap()))
            .collect()
    };
    let before = content();
    let folders = Folders::new();
    let source = Arc::new(RealDisk::for_reading(data.path()));
    folders.make_on(source, |_, _, _| ()).unwrap();
    assert_eq!(content(), before);
    store.close();
}

/// The old tail is cut off, taken away and written again elsewhere, between one segment's copying and the next.
#[test]
fn a_process_that_starts_while_the_log_is_copied_takes_nothing_from_the_backup() {
    for (call, (disk, workload)) in [(0, kept()), (2, kept()), (0, killed()), (1, killed())] {
        let (folders, mut calls) = (Folders::new(), 0);
        let made = folders.make_on(Arc::new(disk.clone()), |phase, _, _| {
            if phase == Phase::Copying && calls == call {
                open(small(&disk)).close();
            }
            calls += usize::from(phase == Phase::Copying);
        });
        made.unwrap();
        assert!(calls > call, "{calls} segments were copied");
        folders.restore().unwrap();
        let copy = open(folders.options());
        workload.check(&copy, workload.tasks());
    }
}

#[test]
fn a_batch_that_is_half_written_is_not_in_the_backup_and_what_was_before_it_is() {
    let (disk, workload) = kept();
    let store = open(small(&disk));
    store.open(ordinary("last"));
    let (name, at, bytes) = disk.last_log_write();
    for written in [0, 1, 511, 600, bytes.len() - 1] {
        let half = disk.copy();
        let mut content = half.content(&name);
        content[at + written..at + bytes.len()].fill(0);
        half.put(&name, content);
        let folders = Folders::new();
        folders.make(&half).unwrap();
        folders.restore().unwrap();
        let copy = open(folders.options());
        assert!(copy.view("last").is_none(), "{written} bytes were written");
        workload.check(&copy, workload.tasks());
    }
    let folders = Folders::new();
    folders.make(&disk).unwrap();
    folders.restore().unwrap();
    assert!(open(folders.options()).view("last").is_some());
}

/// The end of the page is there, and its beginning is not.
#[test]
fn a_page_that_looks_damaged_while_it_is_being_written_is_looked_at_again() {
    let (disk, workload) = kept();
    let store = open(small(&disk));
    store.open(ordinary("last"));
    let (segment, page, _) = disk.last_log_write();
    let looks = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&looks);
    let look = move |name: &str, read: &mut [u8], from: u64| {
        let at = page.checked_sub(usize::try_from(from).unwrap());
        let begin = at.and_then(|at| read.get_mut(at..)?.first_chunk_mut::<64>());
        if let Some(begin) = begin.filter(|_| name == segment)
            && seen.fetch_add(1, Ordering::Relaxed) < 3
        {
            begin.fill(0);
        }
        Ok(())
    };
    let folders = Folders::new();
    let disk = Odd {
        disk,
        look: Arc::new(look),
    };
    folders.make_on(Arc::new(disk), |_, _, _| ()).unwrap();
    assert!(looks.load(Ordering::Relaxed) > 3);
    folders.restore().unwrap();
    let copy = open(folders.options());
    assert!(copy.view("last").is_some());
    workload.check_replays(&copy, workload.tasks());
}

#[test]
fn a_log_that_is_cut_off_each_time_that_it_is_copied_is_given_up_and_leaves_nothing() {
    let look = |_: &str, read: &mut [u8], from: u64| {
        // Nobody else reads from the beginning and on.
        let copies = from == 0 && read.len() > 4096;
        if copies {
            Err(io::ErrorKind::UnexpectedEof.into())
        } else {
            Ok(())
        }
    };
    let disk = Odd {
        disk: kept().0,
        look: Arc::new(look),
    };
    // Without it: they are copied from the beginning and on too.
    for name in disk.disk.files().iter().filter(|name| !name.starts_with("log/")) {
        disk.disk.delete(name);
    }
    let folders = Folders::new();
    let error = folders.make_on(Arc::new(disk), |_, _, _| ()).unwrap_err();
    assert!(matches!(error, BackupError::Restless), "{error}");
    assert!(!folders.is_there("backup"));
}

#[test]
fn damage_in_the_ledger_is_named_and_there_is_no_backup_of_it() {
    let (disk, _) = kept();
    let used = |name: &String| name.starts_with("log/") && disk.content(name)[3 * 4096 - 1] != 0;
    let used: Vec<String> = disk.files().into_iter().filter(used).collect();
    assert!(used.len() > 3, "{used:?}");
    for name in used {
        let damaged = disk.copy();
        damaged.flip(&name, 2 * 4096 + 77, 1);
        let folders = Folders::new();
        let error = folders.make(&damaged).unwrap_err();
        assert!(error.is_damage(), "{error}");
        assert!(error.to_string().contains(&name), "{error}");
        assert!(!folders.is_there("backup"));
    }
}

#[test]
fn a_checkpoint_that_is_damaged_is_left_out_and_the_log_is_enough() {
    let (disk, workload) = kept();
    let checkpoints = disk.files().into_iter().filter(|name| name.ends_with(".ckpt"));
    let newest = checkpoints.max().unwrap();
    disk.flip(&newest, 5_000, 1);
    let folders = Folders::new();
    let made = folders.make(&disk).unwrap();
    assert_eq!(made.checkpoint, None);
    assert!(made.left_out.unwrap().contains(&newest));
    let restored = folders.restore().unwrap();
    assert_eq!(restored.report.checkpoint, None);
    let copy = open(folders.options());
    workload.check(&copy, workload.tasks());
}

#[test]
fn what_was_published_and_what_others_keep_comes_along() {
    let (disk, _) = kept();
    let folders = Folders::new();
    folders.make(&disk).unwrap();
    folders.restore().unwrap();
    assert_eq!(fs::read(folders.restored().join("webhooks.json")).unwrap(), b"{}");
    let log = files(&folders.restored());
    assert!(log.iter().any(|name| name.ends_with(".run")), "{log:?}");
    assert!(!log.iter().any(|name| name.contains("partial")), "{log:?}");
}

/// Every file of a backup but the manifest, and a backup of which one is replaced by what `change` makes of it.
fn each_changed(change: impl Fn(&mut Vec<u8>), refused: impl Fn(&str, &BackupError)) {
    let folders = Folders::new();
    folders.make(&kept().0).unwrap();
    for name in files(&folders.backup()) {
        let path = folders.backup().join(&name);
        let whole = fs::read(&path).unwrap();
        let mut changed = whole.clone();
        change(&mut changed);
        fs::write(&path, changed).unwrap();
        let error = folders.restore().unwrap_err();
        refused(&name, &error);
        assert!(!folders.is_there("restored"), "{name}");
        fs::write(&path, whole).unwrap();
    }
    folders.restore().unwrap();
}

#[test]
fn one_flipped_bit_in_any_file_of_a_backup_is_refused_by_the_files_name() {
    for seed in 0..6_usize {
        let flip = |bytes: &mut Vec<u8>| {
            let at = seed * 7_919 % bytes.len();
            bytes[at] ^= 1 << (seed % 8);
        };
        each_changed(flip, |name, error| {
            assert!(error.is_damage() && error.to_string().contains(name), "{error}");
        });
    }
}

#[test]
fn a_file_that_is_shorter_or_longer_than_it_was_is_refused_by_its_name() {
    let refused = |name: &str, error: &BackupError| {
        assert!(error.is_damage() && error.to_string().contains(name), "{error}");
    };
    each_changed(|bytes| bytes.truncate(bytes.len() - 1), refused);
    each_changed(Vec::clear, refused);
    each_changed(|bytes| bytes.push(0), refused);
}

#[test]
fn a_file_that_is_missing_is_named_and_without_its_manifest_it_is_no_backup() {
    let folders = Folders::new();
    folders.make(&kept().0).unwrap();
    for name in files(&folders.backup()) {
        let (path, aside) = (folders.backup().join(&name), folders.0.path().join("aside"));
        fs::rename(&path, &aside).unwrap();
        let error = folders.restore().unwrap_err();
        assert!(error.to_string().contains(&name), "{error}");
        assert_eq!(
            matches!(error, BackupError::NoBackup { .. }),
            name == "backup.manifest",
            "{error}"
        );
        assert!(!folders.is_there("restored"));
        fs::rename(&aside, &path).unwrap();
    }
}

/// Somebody changed the log and made the manifest fit.
#[test]
fn a_backup_whose_manifest_fits_must_prove_itself_all_the_same() {
    let folders = Folders::new();
    folders.make(&kept().0).unwrap();
    let sum = |bytes: &[u8]| -> String {
        let digest = Sha256::digest(bytes);
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let name = files(&folders.backup())
        .into_iter()
        .find(|name| name.ends_with(".seg"))
        .unwrap();
    let path = folders.backup().join(&name);
    let mut bytes = fs::read(&path).unwrap();
    let before = sum(&bytes);
    bytes[3 * 4096 + 99] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let manifest = folders.backup().join("backup.manifest");
    let text = fs::read_to_string(&manifest)
        .unwrap()
        .replace(&before, &sum(&bytes));
    let (lines, _) = text.split_once("sha256 ").unwrap();
    fs::write(&manifest, format!("{lines}sha256 {}\n", sum(lines.as_bytes()))).unwrap();
    let error = folders.restore().unwrap_err();
    assert!(matches!(error, BackupError::Unproven(_)), "{error}");
    assert!(error.to_string().contains("byte 12288"), "{error}");
    assert!(!folders.is_there("restored"));
}

#[test]
fn a_kept_root_that_the_backup_does_not_have_is_refused() {
    let folders = Folders::new();
    let made = folders.make(&kept().0).unwrap();
    let mut other = made.root;
    other.records -= 1;
    let restored = restore(&folders.backup(), &folders.restored(), &[other], |_, _, _| ());
    assert!(matches!(restored, Err(BackupError::Unproven(_))), "{restored:?}");
    let restored = restore(&folders.backup(), &folders.restored(), &[made.root], |_, _, _| ());
    // The given one, and that of the manifest.
    assert_eq!(restored.unwrap().report.roots, 2);
}

#[test]
fn a_directory_that_is_not_empty_is_left_as_it_is() {
    let (disk, _) = kept();
    let folders = Folders::new();
    for target in [folders.backup(), folders.restored()] {
        fs::create_dir(&target).unwrap();
        fs::write(target.join("mine"), "mine").unwrap();
    }
    let refused = folders.make(&disk).unwrap_err();
    assert!(matches!(refused, BackupError::NotEmpty(_)), "{refused}");
    assert_eq!(files(&folders.backup()), ["mine"]);
    fs::remove_file(folders.backup().join("mine")).unwrap();
    // A file system of its own has this from the beginning.
    fs::create_dir(folders.backup().join("lost+found")).unwrap();
    folders.make(&disk).unwrap();
    let refused = folders.restore().unwrap_err();
    assert!(matches!(refused, BackupError::NotEmpty(_)), "{refused}");
    assert_eq!(files(&folders.restored()), ["mine"]);
}

#[test]
fn without_a_store_there_is_no_backup() {
    let folders = Folders::new();
    let error = folders.make(&FaultDisk::default()).unwrap_err();
    assert!(matches!(error, BackupError::NoStore), "{error}");
    assert!(!folders.is_there("backup"));
    let (disk, _) = kept();
    for name in disk.files().iter().filter(|name| name.starts_with("log/")) {
        disk.delete(name);
    }
    let error = folders.make(&disk).unwrap_err();
    assert!(error.to_string().contains("the log is missing"), "{error}");
}

#[test]
fn a_backup_is_verified_where_it_is_but_no_ledger_goes_on_in_it() {
    let folders = Folders::new();
    folders.make(&kept().0).unwrap();
    assert!(verify(folders.backup()).unwrap().is_clean());
    let opened = Embedded::open(Options::at(folders.backup()));
    assert!(
        matches!(&opened, Err(OpenError::NoLedger { what }) if what.contains("backup.manifest")),
        "{opened:?}"
    );
    folders.restore().unwrap();
}
