//! Taking in what was decided elsewhere: a record of a history that is imported.

use super::deciding::NotWritten;
use super::{NoPlace, State};
use crate::command::{Changes, LedgerError};
use crate::store::embedded::record::decode;

/// Why changes were not taken in; nothing more can be taken in then.
#[derive(Debug)]
pub(in crate::store::embedded) enum NotAdopted {
    /// They do not follow what is in the books.
    Changes(String),
    Store(LedgerError),
}

impl State {
    /// Applies changes and puts their record into the open batch. `false`, and nothing done, where that has to wait
    /// for room.
    pub(in crate::store::embedded) fn adopt(&mut self, changes: &Changes) -> Result<bool, NotAdopted> {
        if self.is_full() {
            return Ok(false);
        }
        match self.write(changes) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(NotWritten::Broken(violation)) => return Err(NotAdopted::Changes(violation.to_string())),
            Err(NotWritten::NoPlace(NoPlace::TooLong(bytes))) => {
                let reason = format!("its record has {bytes} bytes, and no segment has room for it");
                return Err(NotAdopted::Changes(reason));
            }
            Err(NotWritten::NoPlace(failed @ NoPlace::Failed(_))) => {
                return Err(NotAdopted::Store(failed.into()));
            }
        }
        // A record leaves out what follows from the rest of it, and here nobody has decided that it does.
        match decode(&self.scratch.bytes) {
            Ok(record) if record.changes == *changes => Ok(true),
            Ok(_) | Err(_) => Err(NotAdopted::Changes(
                "says what no record of a ledger says".to_owned(),
            )),
        }
    }
}
