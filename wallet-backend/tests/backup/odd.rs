//! A disk that is only read, and on which what is read may be seen otherwise.

use std::fmt;
use std::io;
use std::sync::Arc;

use wallet_backend::store::embedded::disk::{Disk, DiskFile, Lock};

use crate::faults::FaultDisk;

/// Given a file's name, what was read of it, and from where.
pub(super) type Look = dyn Fn(&str, &mut [u8], u64) -> io::Result<()> + Send + Sync;

/// The disk.
#[derive(Clone)]
pub(super) struct Odd {
    pub(super) disk: FaultDisk,
    pub(super) look: Arc<Look>,
}

struct OddFile {
    file: Arc<dyn DiskFile>,
    name: String,
    look: Arc<Look>,
}

impl fmt::Debug for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Odd")
    }
}

impl fmt::Debug for OddFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl DiskFile for OddFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(buffer, offset)?;
        (self.look)(&self.name, buffer, offset)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        panic!("nothing may be written");
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn cut(&self, _: u64) -> io::Result<()> {
        panic!("nothing may be cut");
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

impl Disk for Odd {
    fn lock(&self) -> io::Result<Box<dyn Lock>> {
        panic!("nobody may be locked out");
    }

    fn create_folder(&self, _: &str) -> io::Result<()> {
        panic!("nothing may be made");
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.disk.list(folder)
    }

    fn create(&self, _: &str) -> io::Result<Arc<dyn DiskFile>> {
        panic!("nothing may be made");
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(OddFile {
            file: self.disk.open(name)?,
            name: name.to_owned(),
            look: Arc::clone(&self.look),
        }))
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        panic!("nothing may be renamed");
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        panic!("nothing may be taken away");
    }

    fn sync_folder(&self, _: &str) -> io::Result<()> {
        panic!("no name may change");
    }
}
