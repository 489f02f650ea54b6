//! A folder for one measurement, taken away with all that is in it.

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::Context as _;
use wallet_backend::Wallet;
use wallet_backend::combiner::Limits;
use wallet_backend::store::any::AnyStore;
use wallet_backend::store::embedded::{Embedded, Options};

#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// A new folder below `parent`.
    ///
    /// # Errors
    /// What the file system says; it is there already.
    pub(super) fn new(parent: &Path, name: &str) -> anyhow::Result<Self> {
        let path = parent.join(format!("wallet-bench-{}-{name}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }

    /// A wallet here, as it ships, but that at least `callers` may wait on one account.
    ///
    /// # Errors
    /// The ledger can't be made.
    pub(super) fn wallet(&self, callers: u32) -> anyhow::Result<Wallet> {
        let mut limits = Limits::default();
        limits.lane = limits.lane.max(usize::try_from(callers)?);
        let store = AnyStore::Embedded(Embedded::open(Options::at(&self.0))?);
        Ok(Wallet::over(store, limits)?)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                eprintln!("wallet-backend: cannot remove {}: {error}", self.0.display());
            }
            _ => {}
        }
    }
}
