//! From a backup to a data directory: every file as it was, and what is in them proved once more.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::error::BackupError;
use super::manifest::Manifest;
use super::place::{Copied, Original, Place};
use super::{Phase, RESTORING};
use crate::account::Timestamp;
use crate::journal::Root;
use crate::store::embedded::disk::{Disk, RealDisk};
use crate::store::embedded::report::Report;
use crate::store::embedded::segment::FOLDER;
use crate::store::embedded::verify::verify_against;

/// A data directory that was made of a backup.
#[derive(Clone, Debug)]
pub struct Restored {
    pub files: usize,
    pub bytes: u64,
    /// When the backup was made.
    pub made: Timestamp,
    /// What proving it all found: it is clean.
    pub report: Report,
}

/// Copies the backup in `from` to the directory `to`, empty or not there, and proves it: every file against the
/// manifest, and then the ledger as [`verify_against`] does, which must have the root that it had then, and the roots
/// `against`. Blocks.
///
/// # Errors
/// [`BackupError`]; `to` is then as it was.
pub fn restore(
    from: &Path,
    to: &Path,
    against: &[Root],
    mut progress: impl FnMut(Phase, u64, u64),
) -> Result<Restored, BackupError> {
    let manifest = Manifest::read(from)?;
    let place = Place::begin(to, RESTORING)?;
    let all: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    let mut copied = 0_u64;
    for file in &manifest.files {
        copy(from, &place, file, &mut |bytes| {
            copied = copied.saturating_add(bytes);
            progress(Phase::Copying, copied, all);
        })?;
    }
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::for_reading(place.partial()));
    let roots = [against, &[manifest.root]].concat();
    let report = verify_against(&disk, &roots, |done, of| progress(Phase::Proving, done, of))?;
    if !report.is_clean() {
        return Err(BackupError::Unproven(Box::new(report)));
    }
    if report.root != Some(manifest.root) {
        let what = "the log goes on behind the root that the backup was made with";
        return Err(BackupError::changed(FOLDER, what));
    }
    place.finish(FOLDER)?;
    Ok(Restored {
        files: manifest.files.len(),
        bytes: all,
        made: manifest.made,
        report,
    })
}

/// Copies a file that must be what the manifest says.
fn copy(from: &Path, place: &Place, wanted: &Copied, on: &mut dyn FnMut(u64)) -> Result<(), BackupError> {
    let Copied { name, bytes, .. } = wanted;
    let file = match File::open(from.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(BackupError::changed(name, "it is missing"));
        }
        file => file.map_err(BackupError::io(format!("open {name}")))?,
    };
    let original = Original::whole(name, &file)?;
    if original.size != *bytes {
        let what = format!("it has {} bytes, and had {bytes}", original.size);
        return Err(BackupError::changed(name, what));
    }
    let copied = place.copy(name, original, on)?;
    if copied != *wanted {
        let what = format!("its SHA-256 is {}, and was {}", copied.sha256, wanted.sha256);
        return Err(BackupError::changed(name, what));
    }
    Ok(())
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            files,
            bytes,
            made,
            report,
        } = self;
        writeln!(
            f,
            "restored {files} files of {bytes} bytes from the backup of {made}"
        )?;
        report.fmt(f)
    }
}
