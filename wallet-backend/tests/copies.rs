//! `backup` and `restore` as commands: what they print, and with what code they end.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use tempfile::TempDir;
use wallet_backend::store::embedded::Options;

use crate::faults::{Workload, open};
use crate::process::{Served, binary};

/// Directories of a ledger, its backup, and what is restored of it.
struct Directories(TempDir);

impl Directories {
    /// With a ledger, closed.
    fn new() -> Self {
        let directories = Self(tempfile::tempdir().unwrap());
        let store = open(Options::at(directories.path("data")));
        for batch in Workload::new(61, 40).batches {
            store.ask_all(batch);
        }
        store.close();
        directories
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn store(&self, name: &str) -> String {
        format!("embedded:{}", self.text(name))
    }

    fn backup(&self) -> Output {
        let (store, to) = (self.store("data"), self.text("backup"));
        binary(&["backup", "--store", &store, "--to", &to])
            .output()
            .unwrap()
    }

    fn restore(&self, more: &[&str]) -> Output {
        let (from, store) = (self.text("backup"), self.store("restored"));
        let arguments = ["restore", "--from", &from, "--store", &store];
        binary(&[&arguments, more].concat()).output().unwrap()
    }
}

fn ended(output: &Output, code: i32) -> String {
    let said = [output.stdout.clone(), output.stderr.clone()].concat();
    let said = String::from_utf8(said).unwrap();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

#[test]
fn a_ledger_that_is_served_is_backed_up_and_what_is_restored_is_served_in_its_stead() {
    let directories = Directories::new();
    let served = Served::start("127.0.0.1:0", &directories.store("data"), &[]);
    let made = ended(&directories.backup(), 0);
    assert_eq!(served.stop(), Some(0));
    let verified = binary(&["verify", "--store", &directories.store("data")]);
    let verified = ended(&{ verified }.output().unwrap(), 0);
    let root = made.lines().last().unwrap();
    assert!(
        root.starts_with("root ") && verified.contains(root),
        "{made}{verified}"
    );
    assert!(made.contains("segments of the log"), "{made}");
    let root = root.strip_prefix("root ").unwrap();
    let restored = ended(&directories.restore(&["--against", root]), 0);
    assert!(restored.contains("all is well"), "{restored}");
    let served = Served::start("127.0.0.1:0", &directories.store("restored"), &[]);
    assert_eq!(served.stop(), Some(0));
}

#[test]
fn damage_ends_with_1_and_what_keeps_from_looking_with_2() {
    let directories = Directories::new();
    ended(&directories.backup(), 0);
    let again = ended(&directories.backup(), 2);
    assert!(again.contains("is not empty"), "{again}");
    let kept = format!("1:{}", "0".repeat(64));
    let other = ended(&directories.restore(&["--against", &kept]), 1);
    assert!(
        other.contains("FOUND") && other.contains("records 1 to 1"),
        "{other}"
    );
    assert!(!directories.path("restored").exists());
    let manifest = directories.path("backup").join("backup.manifest");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replacen("page", "pagf", 1)).unwrap();
    let changed = ended(&directories.restore(&[]), 1);
    assert!(
        changed.contains("backup.manifest is not as the backup was made"),
        "{changed}"
    );
    fs::remove_file(&manifest).unwrap();
    let none = ended(&directories.restore(&[]), 2);
    assert!(none.contains("is no backup"), "{none}");
    fs::remove_dir_all(directories.path("data")).unwrap();
    let missing = ended(&directories.backup(), 2);
    assert!(missing.contains("there is no directory"), "{missing}");
}

#[test]
fn a_backup_cannot_be_served() {
    let directories = Directories::new();
    ended(&directories.backup(), 0);
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--store",
        &directories.store("backup"),
    ];
    let refused = ended(&binary(&arguments).output().unwrap(), 1);
    assert!(
        refused.contains("restore it into a directory of its own"),
        "{refused}"
    );
    ended(&directories.restore(&[]), 0);
}
