//! The readers of what is derived from the log, request runs and checkpoints: one of the kept directory's, with edits.
//!
//! Where checksums are left as they were, no edit may change anything that can be read: what is damaged is passed over,
//! and more of the log read. Where they are put right, the file may say what it likes, and nothing may panic.

use std::sync::LazyLock;

use wallet_backend::store::embedded::OpenError;
use wallet_backend::store::embedded::fuzzing::mend;

use crate::input::Input;
use crate::judge::{Opened, Read, judge};
use crate::kept::{FILES, STORE, directory};

/// What is to be read of the kept directory.
static TRUTH: LazyLock<Read> = LazyLock::new(|| {
    let store = Opened::open(&directory()).expect("the kept directory opens");
    let read = store.read().expect("the kept directory can be read");
    store.close();
    read
});

/// # Panics
/// Where something is wrong with the wallet.
pub fn check(bytes: &[u8]) {
    let mut input = Input(bytes);
    let derived: Vec<_> = FILES
        .iter()
        .filter(|(name, _)| !name.starts_with("log/"))
        .collect();
    let (name, bytes) = input.choose(&derived);
    let mended = input.byte() % 2 == 1;
    let mut file = bytes.clone();
    input.edit(&mut file, u8::MAX);
    if mended {
        mend(name, *STORE, &mut file, |_| true);
    }
    let disk = directory();
    disk.put(name, file);
    if mended {
        return judge(&disk);
    }
    match Opened::open(&disk) {
        Ok(store) => {
            let read = store.read().expect("damage in a derived file is no hindrance");
            assert_eq!(read, *TRUTH, "{name} was damaged, and something else is read");
            store.close();
        }
        // It says that it is of another version, and only its version is not refuted by the checksum.
        Err(OpenError::Version { .. }) => {}
        Err(error) => panic!("{name} was damaged, and the store does not open: {error}"),
    }
}
