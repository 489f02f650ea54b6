//! A data directory in memory. Nothing fails on it, and all is durable at once.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wallet_backend::store::embedded::disk::{Disk, DiskFile, Lock};

/// Clones are one disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryDisk {
    files: Arc<Mutex<BTreeMap<String, Arc<MemoryFile>>>>,
    locked: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct MemoryFile(Mutex<Vec<u8>>);

#[derive(Debug)]
struct Held(Arc<AtomicBool>);

impl Lock for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl MemoryDisk {
    /// A disk with these files, by names as in a data directory.
    pub(crate) fn with<'a>(files: impl IntoIterator<Item = (&'a str, Vec<u8>)>) -> Self {
        let disk = Self::default();
        for (name, bytes) in files {
            disk.put(name, bytes);
        }
        disk
    }

    pub(crate) fn put(&self, name: &str, bytes: Vec<u8>) {
        let file = Arc::new(MemoryFile(Mutex::new(bytes)));
        self.files().insert(name.to_owned(), file);
    }

    pub(crate) fn shared(&self) -> Arc<dyn Disk> {
        Arc::new(self.clone())
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Arc<MemoryFile>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryFile {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_found() -> io::Error {
    ErrorKind::NotFound.into()
}

fn place(offset: u64, length: usize) -> io::Result<std::ops::Range<usize>> {
    let start = usize::try_from(offset).map_err(io::Error::other)?;
    let end = start.checked_add(length).ok_or(ErrorKind::InvalidInput)?;
    Ok(start..end)
}

impl Disk for MemoryDisk {
    fn lock(&self) -> io::Result<Box<dyn Lock>> {
        if self.locked.swap(true, Ordering::AcqRel) {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(Held(Arc::clone(&self.locked))))
    }

    fn create_folder(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let files = self.files();
        let below = files
            .keys()
            .filter_map(|name| name.strip_prefix(folder)?.strip_prefix('/'));
        Ok(below.map(ToOwned::to_owned).collect())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        if self.files().contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        self.put(name, Vec::new());
        self.open(name)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        match self.files().get(name) {
            Some(file) => Ok(Arc::clone(file) as Arc<dyn DiskFile>),
            None => Err(not_found()),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.files();
        let file = files.remove(from).ok_or_else(not_found)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files().remove(name).map(drop).ok_or_else(not_found)
    }

    fn sync_folder(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.bytes();
        let found = bytes.get(place(offset, buffer.len())?);
        buffer.copy_from_slice(found.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, written: &[u8], offset: u64) -> io::Result<()> {
        let mut bytes = self.bytes();
        let place = place(offset, written.len())?;
        if bytes.len() < place.end {
            bytes.resize(place.end, 0);
        }
        bytes[place].copy_from_slice(written);
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        u64::try_from(self.bytes().len()).map_err(io::Error::other)
    }

    fn cut(&self, size: u64) -> io::Result<()> {
        let size = usize::try_from(size).map_err(io::Error::other)?;
        self.bytes().truncate(size);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
