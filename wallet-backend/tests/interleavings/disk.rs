//! A disk in memory that knows what is durable, and of which every operation is a point where others may go on.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::store::embedded::disk::{Disk, DiskFile, Lock};
use crate::sync::{self, Condvar, switch};

/// What becomes of a sync of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syncing {
    Honest,
    /// It returns before it is done: the fault of answering before the sync, as seen from outside.
    Early,
    /// The one with this number fails, from 0 at opening, and every one after it.
    FailsFrom(usize),
}

#[derive(Debug, Default)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
}

#[derive(Debug, Default)]
struct Inner {
    files: BTreeMap<String, Content>,
    syncs: usize,
    /// Files whose sync has returned and is still to be done.
    owed: Vec<String>,
}

/// Clones are the same disk.
#[derive(Clone, Debug)]
pub(crate) struct Platter {
    syncing: Syncing,
    inner: Arc<Mutex<Inner>>,
    /// Checkpoints that have been given their names.
    checkpoints: Arc<(sync::Mutex<usize>, Condvar)>,
}

impl Default for Platter {
    fn default() -> Self {
        Self::new(Syncing::Honest)
    }
}

impl Platter {
    pub(crate) fn new(syncing: Syncing) -> Self {
        Self {
            syncing,
            inner: Arc::default(),
            checkpoints: Arc::new((sync::Mutex::new(0), Condvar::new())),
        }
    }

    /// Waits for the first checkpoint.
    pub(crate) fn await_checkpoint(&self) {
        let (count, published) = &*self.checkpoints;
        let mut count = count.lock().unwrap();
        while *count == 0 {
            count = published.wait(count).unwrap();
        }
    }

    /// Never held at a point where others may go on.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Whether the bytes are durable in the log.
    pub(crate) fn has_durably(&self, bytes: &[u8]) -> bool {
        let inner = self.inner();
        let mut logs = inner.files.iter().filter(|(name, _)| name.starts_with("log/"));
        logs.any(|(_, content)| content.durable.windows(bytes.len()).any(|window| window == bytes))
    }

    fn file(&self, name: &str) -> Arc<dyn DiskFile> {
        Arc::new(PlatterFile {
            disk: self.clone(),
            name: name.to_owned(),
        })
    }
}

#[derive(Debug)]
struct Unlocked;

impl Lock for Unlocked {}

impl Disk for Platter {
    fn lock(&self) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(Unlocked))
    }

    fn create_folder(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let inside = |name: &String| Some(name.strip_prefix(folder)?.strip_prefix('/')?.to_owned());
        Ok(self.inner().files.keys().filter_map(inside).collect())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.inner().files.insert(name.to_owned(), Content::default());
        Ok(self.file(name))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let there = self.inner().files.contains_key(name);
        there
            .then(|| self.file(name))
            .ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.inner();
        let content = inner.files.remove(from).ok_or(ErrorKind::NotFound)?;
        inner.files.insert(to.to_owned(), content);
        drop(inner);
        if to.ends_with(".ckpt") {
            let (count, published) = &*self.checkpoints;
            *count.lock().unwrap() += 1;
            published.notify_all();
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner().files.remove(name);
        Ok(())
    }

    fn sync_folder(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct PlatterFile {
    disk: Platter,
    name: String,
}

impl PlatterFile {
    /// Something with the file's content. Syncs that are owed are done first.
    fn with<T>(&self, work: impl FnOnce(&mut Content) -> io::Result<T>) -> io::Result<T> {
        switch();
        let mut inner = self.disk.inner();
        for name in std::mem::take(&mut inner.owed) {
            if let Some(content) = inner.files.get_mut(&name) {
                content.durable = content.now.clone();
            }
        }
        work(inner.files.get_mut(&self.name).ok_or(ErrorKind::NotFound)?)
    }
}

impl DiskFile for PlatterFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let from = usize::try_from(offset).unwrap();
        self.with(|content| {
            let bytes = content.now.get(from..from + buffer.len());
            buffer.copy_from_slice(bytes.ok_or(ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let from = usize::try_from(offset).unwrap();
        self.with(|content| {
            let end = from + bytes.len();
            content.now.resize(content.now.len().max(end), 0);
            content.now[from..end].copy_from_slice(bytes);
            Ok(())
        })
    }

    fn size(&self) -> io::Result<u64> {
        self.with(|content| Ok(u64::try_from(content.now.len()).unwrap()))
    }

    fn cut(&self, size: u64) -> io::Result<()> {
        self.with(|content| {
            content.now.truncate(usize::try_from(size).unwrap());
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        switch();
        let log = self.name.starts_with("log/");
        let mut inner = self.disk.inner();
        let number = inner.syncs;
        inner.syncs += usize::from(log);
        match self.disk.syncing {
            Syncing::FailsFrom(first) if log && number >= first => return Err(io::Error::other("no disk")),
            Syncing::Early if log => {
                inner.owed.push(self.name.clone());
                return Ok(());
            }
            Syncing::Honest | Syncing::Early | Syncing::FailsFrom(_) => {}
        }
        drop(inner);
        self.with(|content| {
            content.durable = content.now.clone();
            Ok(())
        })?;
        switch();
        Ok(())
    }
}
