//! Reading one record at its position, from the log's files.
//!
//! Every page is checked as it is read, so that damage in an old part of the log is an error and never an answer.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::store::embedded::disk::{Disk, DiskFile};
use crate::store::embedded::error::{Damage, OpenError};
use crate::store::embedded::layout::read_page;
use crate::store::embedded::page::{self, Found, PAYLOAD, PageId};
use crate::store::embedded::record::{Record, decode};
use crate::store::embedded::scan::split_position;
use crate::store::embedded::segment;

/// Segments that are kept open for reading.
const OPEN_FILES: usize = 32;

/// The log, for reading by position.
#[derive(Debug)]
pub(super) struct Records {
    disk: Arc<dyn Disk>,
    store: u64,
    files: Mutex<VecDeque<(u64, Arc<dyn DiskFile>)>>,
}

impl Records {
    pub(super) fn new(disk: Arc<dyn Disk>, store: u64) -> Self {
        Self {
            disk,
            store,
            files: Mutex::default(),
        }
    }

    /// Where the files are.
    pub(super) fn disk(&self) -> &dyn Disk {
        self.disk.as_ref()
    }

    /// The store that the files belong to.
    pub(super) const fn store(&self) -> u64 {
        self.store
    }

    /// The record at `position`, which is durable.
    ///
    /// # Errors
    /// Damage, or what the disk says.
    pub(super) fn read(&self, position: u64) -> Result<Record, OpenError> {
        let (number, first, into) = split_position(position);
        let file = self.file(number)?;
        let mut payload = Vec::with_capacity(PAYLOAD);
        let mut wanted = into.saturating_add(4);
        let mut page = first;
        while payload.len() < wanted {
            self.append(number, file.as_ref(), page, &mut payload)?;
            if let Some(length) = payload.get(into..).and_then(<[u8]>::first_chunk) {
                let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
                wanted = into.saturating_add(4).saturating_add(length);
            }
            page = page.saturating_add(1);
        }
        let bytes = payload.get(into.saturating_add(4)..wanted).unwrap_or_default();
        decode(bytes).map_err(|error| Damage::record(number, first, &error).into())
    }

    fn append(
        &self,
        number: u64,
        file: &dyn DiskFile,
        page: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), OpenError> {
        let buffer = read_page(number, file, page)?;
        let id = PageId {
            store: self.store,
            segment: number,
            page,
        };
        match page::inspect(id, &buffer) {
            // A record never reaches into a page without payload, so every step brings it nearer to its end.
            Found::Good { head, .. } if head.len > 0 => {
                page::payload(&buffer, head.len, out);
                Ok(())
            }
            Found::Damaged { expected, found } => Err(Damage::checksum(number, page, expected, found).into()),
            Found::Good { .. } | Found::Empty | Found::Torn => {
                Err(Damage::at(number, page, "a record should be here").into())
            }
        }
    }

    /// A segment's file.
    ///
    /// # Errors
    /// Damage where it is missing, or what the disk says.
    pub(super) fn file(&self, number: u64) -> Result<Arc<dyn DiskFile>, OpenError> {
        // The cache is only a cache: whatever a panicking reader left in it is valid.
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, file)) = files.iter().find(|(known, _)| *known == number) {
            return Ok(Arc::clone(file));
        }
        let name = segment::name(number);
        let file = self.disk.open(&name).map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                Damage::at(number, 0, "the segment is missing").into()
            } else {
                OpenError::io(format!("open {name}"))(error)
            }
        })?;
        if files.len() >= OPEN_FILES {
            files.pop_front();
        }
        files.push_back((number, Arc::clone(&file)));
        Ok(file)
    }
}
