//! The file layer: everything the engine asks of a file system, and no more.
//!
//! One narrow seam, so that tests can put a disk under the engine that tears, drops, reorders and fails. Names are
//! relative to the data directory, with `/` between folder and file. Nothing is durable before [`DiskFile::sync`]
//! (its bytes and its length) and [`Disk::sync_folder`] (its name) have returned.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

/// A data directory.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Keeps every other process out until the guard falls.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] while another holds it.
    fn lock(&self) -> io::Result<Box<dyn Lock>>;

    /// Makes a folder, and the data directory itself, unless it is there; its name is durable when this returns.
    ///
    /// # Errors
    /// What the file system says.
    fn create_folder(&self, folder: &str) -> io::Result<()>;

    /// The names of the files in `folder`, without the folder; none if the folder is missing.
    ///
    /// # Errors
    /// What the file system says.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;

    /// A new, empty file.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`], or what the file system says.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// An existing file, for reading and, after a crash, for cutting.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], or what the file system says.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file its final name, replacing what had it.
    ///
    /// # Errors
    /// What the file system says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Takes a file away.
    ///
    /// # Errors
    /// What the file system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names in `folder` durable.
    ///
    /// # Errors
    /// What the file system says.
    fn sync_folder(&self, folder: &str) -> io::Result<()>;
}

/// Held while the directory is ours; dropping it lets the next process in.
pub trait Lock: fmt::Debug + Send + Sync {}

/// One open file. Positional, so that readers and the writer share it.
pub trait DiskFile: fmt::Debug + Send + Sync {
    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// [`ErrorKind::UnexpectedEof`] past the end, or what the file system says.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// What the file system says; any part may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Bytes.
    ///
    /// # Errors
    /// What the file system says.
    fn size(&self) -> io::Result<u64>;

    /// Cuts the file off.
    ///
    /// # Errors
    /// What the file system says.
    fn cut(&self, size: u64) -> io::Result<()>;

    /// `fdatasync`: bytes and length are durable when this returns.
    ///
    /// # Errors
    /// After any error nothing is known of any write since the last success; calling it again proves nothing.
    fn sync(&self) -> io::Result<()>;
}

/// A directory of the real file system.
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
    /// Whether files that are there are opened for writing too.
    writes: bool,
}

impl RealDisk {
    /// The directory need not exist yet.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { root, writes: true }
    }

    /// One that may belong to another process, and of which nothing but the right to read is needed: its files are
    /// opened for reading alone.
    #[must_use]
    pub fn for_reading(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { root, writes: false }
    }
}

#[derive(Debug)]
struct RealLock {
    directory: File,
}

impl Lock for RealLock {}

impl Drop for RealLock {
    fn drop(&mut self) {
        // Closing is not enough: `flock` lasts until the last copy of the descriptor is closed, and a process that is
        // being started has copies of all of them until its `exec`. Where this fails, closing has to do.
        drop(self.directory.unlock());
    }
}

impl Disk for RealDisk {
    fn lock(&self) -> io::Result<Box<dyn Lock>> {
        // The directory itself: a lock file in it would be taken for a stale one and removed, and then two processes
        // would write one log.
        let directory = File::open(&self.root)?;
        match directory.try_lock() {
            Ok(()) => Ok(Box::new(RealLock { directory })),
            Err(TryLockError::WouldBlock) => Err(ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn create_folder(&self, folder: &str) -> io::Result<()> {
        let path = self.root.join(folder);
        let known = path.is_dir();
        fs::create_dir_all(&path)?;
        // A new folder's name lives in its parent, and the data directory's own in the parent of that. Also for a
        // folder that is there: whoever made it may have died before this.
        for parent in path.canonicalize()?.ancestors().skip(1).take(2) {
            match File::open(parent).and_then(|folder| folder.sync_all()) {
                // Made for us by somebody who may write there; we may not even look.
                Err(error) if known && error.kind() == ErrorKind::PermissionDenied => {}
                other => other?,
            }
        }
        Ok(())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.root.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new()
            .create_new(true)
            .read(true)
            .write(true)
            .open(self.root.join(name))?;
        Ok(Arc::new(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(self.writes)
            .open(self.root.join(name))?;
        Ok(Arc::new(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.root.join(from), self.root.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.root.join(name))
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        File::open(self.root.join(folder))?.sync_all()
    }
}

impl DiskFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn cut(&self, size: u64) -> io::Result<()> {
        self.set_len(size)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_process_is_kept_out_until_the_first_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let first = RealDisk::new(folder.path()).lock().unwrap();
        let refused = RealDisk::new(folder.path()).lock().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::WouldBlock);
        drop(first);
        assert!(RealDisk::new(folder.path()).lock().is_ok());
    }

    #[test]
    fn a_copy_of_the_descriptor_in_a_process_that_is_just_starting_keeps_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        let directory = File::open(folder.path()).unwrap();
        directory.try_lock().unwrap();
        // As fork leaves it until exec.
        let copy = directory.try_clone().unwrap();
        drop(RealLock { directory });
        assert!(RealDisk::new(folder.path()).lock().is_ok());
        drop(copy);
    }

    /// A lock file was once removed as stale while its owner lived: the second process replaced the log under the
    /// first, whose acknowledged writes went to files without a name.
    #[test]
    fn there_is_no_lock_file_that_somebody_could_remove() {
        let folder = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(folder.path());
        let first = disk.lock().unwrap();
        for file in fs::read_dir(folder.path()).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        assert_eq!(disk.lock().unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(first);
    }

    #[test]
    fn a_file_is_read_where_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(folder.path().join("data"));
        disk.create_folder("log").unwrap();
        let file = disk.create("log/a").unwrap();
        file.write_at(b"money", 3).unwrap();
        file.sync().unwrap();
        let mut back = [0; 5];
        disk.open("log/a").unwrap().read_at(&mut back, 3).unwrap();
        assert_eq!(&back, b"money");
        assert_eq!(disk.list("log").unwrap(), ["a"]);
        assert_eq!(disk.create("log/a").unwrap_err().kind(), ErrorKind::AlreadyExists);
    }
}
