//! The data directory that the wallet's tests keep: a ledger with everything in it.

use std::path::Path;
use std::sync::LazyLock;

use wallet_backend::store::embedded::fuzzing::{payloads, store_of};

use crate::disk::MemoryDisk;

/// Its files, by name, in order.
pub(crate) static FILES: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wallet-backend/tests/data/format-1");
    let mut files = Vec::new();
    for folder in ["index", "log", "state"] {
        for file in root.join(folder).read_dir().expect("the tests keep it") {
            let file = file.expect("it can be listed");
            let bytes = std::fs::read(file.path()).expect("it can be read");
            files.push((format!("{folder}/{}", file.file_name().display()), bytes));
        }
    }
    files.sort();
    files
});

/// Its store's id.
pub(crate) static STORE: LazyLock<u64> = LazyLock::new(|| {
    let segment = FILES.iter().find(|(name, _)| name.starts_with("log/"));
    store_of(&segment.expect("it has a log").1)
});

/// What the batches of its log have in them.
pub(crate) static PAYLOADS: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| payloads(&directory()).expect("its log is good"));

/// A copy.
pub(crate) fn directory() -> MemoryDisk {
    MemoryDisk::with(FILES.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())))
}
