//! A directory that is being filled: whole in the end, or as it was.
//!
//! Everything is written into a folder inside of it whose name says that it is not whole, so that a directory that is
//! a volume of its own will do. At the end what is in the folder moves up, the one name last that makes it count.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::error::BackupError;
use crate::journal::Digest;
use crate::store::embedded::disk::DiskFile;
use crate::store::embedded::error::OpenError;

/// Bytes that are copied at once.
const PIECE: usize = 1 << 20;
/// What a file system has in its topmost directory from the beginning.
const LOST_AND_FOUND: &str = "lost+found";

/// The directory. Dropped before [`Place::finish`] has returned it is as it was.
#[derive(Debug)]
pub(super) struct Place {
    directory: PathBuf,
    partial: PathBuf,
    /// Names that have moved up.
    moved: Vec<PathBuf>,
    /// The directory was not there.
    made: bool,
    done: bool,
}

/// A file that was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store::embedded) struct Copied {
    /// With `/` between folder and file.
    pub(in crate::store::embedded) name: String,
    pub(super) bytes: u64,
    pub(super) sha256: Digest,
}

/// A file to copy: its first `bytes`, and zeros up to `size`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Original<'a> {
    pub(super) file: &'a dyn DiskFile,
    pub(super) bytes: u64,
    pub(super) size: u64,
}

impl<'a> Original<'a> {
    /// All of a file.
    pub(super) fn whole(name: &str, file: &'a dyn DiskFile) -> Result<Self, BackupError> {
        let size = file.size().map_err(OpenError::io(format!("measure {name}")))?;
        let bytes = size;
        Ok(Self { file, bytes, size })
    }
}

impl Place {
    /// Begins to fill a directory that is empty or not there, in its folder `partial`.
    pub(super) fn begin(directory: &Path, partial: &str) -> Result<Self, BackupError> {
        let cannot = |doing: &str| BackupError::io(format!("{doing} {}", directory.display()));
        let made = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(cannot("look into")(error)),
            Ok(files) => {
                for file in files {
                    let name = file.map_err(cannot("look into"))?.file_name();
                    if name == OsStr::new(partial) {
                        return Err(BackupError::BrokenOff(directory.join(partial)));
                    }
                    if name != OsStr::new(LOST_AND_FOUND) {
                        return Err(BackupError::NotEmpty(directory.to_owned()));
                    }
                }
                false
            }
        };
        fs::create_dir_all(directory).map_err(cannot("make"))?;
        let place = Self {
            directory: directory.to_owned(),
            partial: directory.join(partial),
            moved: Vec::new(),
            made,
            done: false,
        };
        // Whoever makes the folder is alone here.
        fs::create_dir(&place.partial).map_err(cannot("write to"))?;
        Ok(place)
    }

    /// Where the files are until it is finished.
    pub(super) fn partial(&self) -> &Path {
        &self.partial
    }

    /// Copies a file; on disk when this returns. `on` hears of every piece's bytes.
    pub(super) fn copy(
        &self,
        name: &str,
        from: Original<'_>,
        on: &mut dyn FnMut(u64),
    ) -> Result<Copied, BackupError> {
        let path = self.partial.join(name);
        let cannot = || BackupError::io(format!("write {}", path.display()));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(cannot())?;
        }
        let to = File::create(&path).map_err(cannot())?;
        let (mut piece, mut hash, mut at) = (vec![0; PIECE], Sha256::new(), 0);
        while at < from.size {
            let most = u64::try_from(PIECE).unwrap_or(u64::MAX);
            let kept = at < from.bytes;
            let end = if kept { from.bytes } else { from.size };
            let wanted = end.saturating_sub(at).min(most);
            let length = usize::try_from(wanted).unwrap_or(PIECE);
            let bytes = piece.get_mut(..length).unwrap_or_default();
            if kept {
                let read = from.file.read_at(bytes, at);
                read.map_err(OpenError::io(format!("read {name} at byte {at}")))?;
            } else {
                bytes.fill(0);
            }
            hash.update(&*bytes);
            to.write_at(bytes, at).map_err(cannot())?;
            at = at.saturating_add(wanted);
            on(wanted);
        }
        to.sync_all().map_err(cannot())?;
        Ok(Copied {
            name: name.to_owned(),
            bytes: from.size,
            sha256: Digest(hash.finalize().into()),
        })
    }

    /// Writes a file of its own; on disk when this returns.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), BackupError> {
        let path = self.partial.join(name);
        let cannot = || BackupError::io(format!("write {}", path.display()));
        fs::write(&path, text).map_err(cannot())?;
        File::open(&path)
            .and_then(|file| file.sync_all())
            .map_err(cannot())
    }

    /// Takes a file or a folder away again.
    pub(super) fn remove(&self, name: &str) -> Result<(), BackupError> {
        let path = self.partial.join(name);
        let removed = if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(BackupError::io(format!("remove {}", path.display()))(error))
            }
            _ => Ok(()),
        }
    }

    /// Moves everything up, `last` as the last, which makes it whole. All of it is on disk when this returns.
    pub(super) fn finish(mut self, last: &str) -> Result<(), BackupError> {
        let doing = format!("give {} its files", self.directory.display());
        self.move_up(last).map_err(BackupError::io(doing))?;
        self.done = true;
        Ok(())
    }

    fn move_up(&mut self, last: &str) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.partial)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                File::open(entry.path())?.sync_all()?;
            }
            names.push(entry.file_name());
        }
        for name in names.iter().filter(|name| *name != last) {
            self.rename(name)?;
        }
        File::open(&self.directory)?.sync_all()?;
        self.rename(OsStr::new(last))?;
        fs::remove_dir(&self.partial)?;
        File::open(&self.directory)?.sync_all()?;
        // The directory's own name, if it is one that was made here.
        if let Some(parent) = self.directory.canonicalize()?.parent().filter(|_| self.made) {
            File::open(parent)?.sync_all()?;
        }
        Ok(())
    }

    fn rename(&mut self, name: &OsStr) -> io::Result<()> {
        let to = self.directory.join(name);
        fs::rename(self.partial.join(name), &to)?;
        self.moved.push(to);
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        // Whatever cannot be taken away is named as what it is, or lacks what would make it count.
        for path in self.moved.iter().rev() {
            let gone = if path.is_dir() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            };
            drop(gone);
        }
        drop(fs::remove_dir_all(&self.partial));
        if self.made {
            drop(fs::remove_dir(&self.directory));
        }
    }
}
