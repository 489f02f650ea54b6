//! The whole history as text: every record's canonical line, in order, and in the last line the root that they have.

use std::io::{self, Write};
use std::sync::Arc;

use crate::command::Changes;
use crate::journal::{Heads, Lines, Root};
use crate::store::embedded::disk::Disk;
use crate::store::embedded::error::OpenError;
use crate::store::embedded::history::read_all;
use crate::store::embedded::layout::Layout;
use crate::store::embedded::open::refuse_without_log;
use crate::store::embedded::open::take_lock;

/// Why a history was not written out, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("there is no store in this directory")]
    NoStore,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("cannot write the export")]
    Write(#[from] io::Error),
    #[cfg(feature = "sqlite")]
    #[error("cannot write the database")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Writes every record of a log that is not in use, a line each, as [`Lines`] has it, and behind them the line
/// `{"root":"RECORDS:DIGEST"}`. `progress` hears how many pages of how many have been read. Returns the root, too. Blocks;
/// takes as long as reading the whole log.
///
/// # Errors
/// [`ExportError`]; then what was written is not all.
pub fn export(
    disk: &Arc<dyn Disk>,
    out: &mut dyn Write,
    mut progress: impl FnMut(u64, u64),
) -> Result<Root, ExportError> {
    let mut lines = Lines::default();
    let root = each_record(disk, &mut progress, |changes| {
        out.write_all(lines.write(changes).text())?;
        Ok(out.write_all(b"\n")?)
    })?;
    writeln!(out, r#"{{"root":"{root}"}}"#)?;
    out.flush()?;
    Ok(root)
}

/// Hands every record of a log that is not in use to `each`, in order, and says which root they have.
pub(super) fn each_record(
    disk: &Arc<dyn Disk>,
    progress: &mut dyn FnMut(u64, u64),
    mut each: impl FnMut(&Changes) -> Result<(), ExportError>,
) -> Result<Root, ExportError> {
    let lock = take_lock(disk.as_ref())?;
    let layout = Layout::read(disk.as_ref())?;
    if layout.extents.is_empty() {
        refuse_without_log(disk.as_ref())?;
        return Err(ExportError::NoStore);
    }
    let mut heads = Heads::default();
    read_all(&layout, progress, |changes| {
        each(changes)?;
        heads.extend(changes);
        Ok::<_, ExportError>(())
    })?;
    drop(lock);
    Ok(heads.root())
}
