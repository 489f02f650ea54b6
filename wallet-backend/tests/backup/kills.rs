//! What a kill leaves of a backup or a restore is what is there at that moment: looked at after each piece of the work.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use wallet_backend::store::embedded::{BackupError, Embedded, OpenError, Options, restore, verify};

use super::{Folders, files, kept};

fn copy_all(from: &Path, to: &Path) {
    for name in files(from) {
        let path = to.join(&name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(from.join(&name), path).unwrap();
    }
}

#[test]
fn what_a_kill_leaves_of_a_backup_is_none_and_no_ledger() {
    let (disk, _) = kept();
    let (folders, left) = (Folders::new(), tempfile::tempdir().unwrap());
    let mut moments = 0;
    folders
        .make_on(Arc::new(disk), |_, _, _| {
            moments += 1;
            copy_all(&folders.backup(), &left.path().join(moments.to_string()));
        })
        .unwrap();
    assert!(moments > 4, "{moments}");
    for moment in 1..=moments {
        let backup = left.path().join(moment.to_string());
        let error = restore(&backup, &folders.restored(), &[], |_, _, _| ()).unwrap_err();
        assert!(matches!(error, BackupError::NoBackup { .. }), "{error}");
        assert!(verify(&backup).is_err(), "it is no store either");
    }
}

#[test]
fn what_a_kill_leaves_of_a_restore_is_no_ledger_that_could_be_served() {
    let folders = Folders::new();
    folders.make(&kept().0).unwrap();
    let left = tempfile::tempdir().unwrap();
    let mut moments = 0;
    restore(&folders.backup(), &folders.restored(), &[], |_, _, _| {
        moments += 1;
        copy_all(&folders.restored(), &left.path().join(moments.to_string()));
    })
    .unwrap();
    assert!(moments > 4, "{moments}");
    for moment in 1..=moments {
        let directory = left.path().join(moment.to_string());
        let before = files(&directory);
        let opened = Embedded::open(Options::at(&directory));
        let Err(OpenError::NoLedger { what }) = opened else {
            panic!("moment {moment}: {opened:?}");
        };
        assert!(what.contains("restore.partial"), "{what}");
        let again = restore(&folders.backup(), &directory, &[], |_, _, _| ()).unwrap_err();
        assert!(matches!(again, BackupError::BrokenOff(_)), "{again}");
        assert_eq!(files(&directory), before);
    }
}
