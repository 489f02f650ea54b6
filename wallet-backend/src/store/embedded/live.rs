//! The log of a store that another process may be writing to: read without the lock, up to its last whole batch.
//!
//! Two things make that sound. What lies before the end of a whole batch never changes: it is only ever replaced, in
//! another file, by an opening. And whatever was acknowledged before reading began is whole in the files by then, so
//! that the end that is found lies behind it.
//!
//! What is being written meanwhile may look like anything: a page of which a part is there, a segment without its head,
//! a batch behind one that seemed torn, a file that an opening took away. So what looks like damage is looked at again,
//! a bounded number of times; damage is what stays.

use std::io;
use std::thread;
use std::time::Duration;

use crate::store::embedded::disk::Disk;
use crate::store::embedded::error::{Damage, OpenError};
use crate::store::embedded::layout::{Layout, read_page};
use crate::store::embedded::page::{self, Found};
use crate::store::embedded::scan::Scan;
use crate::store::embedded::segment::{Mark, Place};

/// How often the log is looked at before what is wrong with it counts.
const LOOKS: u32 = 10;
/// The first pause between two of them, in all some 0.9 seconds: writing a page takes microseconds, but whoever writes
/// it may have to wait for a processor.
const PAUSE: Duration = Duration::from_millis(20);

/// A log and how far it is whole.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) layout: Layout,
    pub(super) end: Mark,
}

/// Reads the log's layout, and finds its end. What is before the end is on the disk when this returns.
///
/// # Errors
/// Damage, another format version, or what the disk says.
pub(super) fn read(disk: &dyn Disk) -> Result<Live, OpenError> {
    patiently(|| look(disk))
}

/// Tries again as long as it fails in a way that somebody who writes meanwhile would explain.
///
/// # Errors
/// What still fails at the last attempt, or any other failure.
pub(super) fn patiently<T>(mut attempt: impl FnMut() -> Result<T, OpenError>) -> Result<T, OpenError> {
    for look in 1..LOOKS {
        match attempt() {
            Err(error) if may_pass(&error) => thread::sleep(PAUSE.saturating_mul(look)),
            done => return done,
        }
    }
    attempt()
}

/// Whether it may be the doing of somebody who writes meanwhile.
pub(super) fn may_pass(error: &OpenError) -> bool {
    match error {
        OpenError::Damaged(_) | OpenError::Version { .. } => true,
        OpenError::Io { source, .. } => {
            matches!(
                source.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof
            )
        }
        OpenError::InUse | OpenError::NoLedger { .. } => false,
    }
}

fn look(disk: &dyn Disk) -> Result<Live, OpenError> {
    let layout = Layout::read(disk)?;
    let mut end = last_beginning(&layout)?;
    let mut scan = Scan::after(&layout, end)?;
    while let Some(batch) = scan.next()? {
        end = batch.end;
    }
    let mut extents = layout.extents.iter();
    if let Some(extent) = extents.find(|extent| extent.head.number == end.place.segment) {
        // What was read may be in the page cache only, and a power cut could still take it from the log.
        extent
            .file
            .sync()
            .map_err(OpenError::io("sync the end of the log"))?;
    }
    Ok(Live { layout, end })
}

/// The beginning of the newest segment that has a page of a batch: what comes before it need not be read to find the
/// end.
fn last_beginning(layout: &Layout) -> Result<Mark, OpenError> {
    for extent in layout.extents.iter().rev() {
        let (segment, page) = (extent.head.number, extent.head.first_page());
        if page >= extent.end {
            continue;
        }
        let buffer = read_page(segment, extent.file.as_ref(), page)?;
        match page::inspect(extent.id(page), &buffer) {
            Found::Empty | Found::Torn => {}
            Found::Damaged { expected, found } => {
                return Err(Damage::checksum(segment, page, expected, found).into());
            }
            Found::Good { head, .. } => {
                let before = head.batch.checked_sub(1);
                let nothing = || Damage::at(segment, page, "a page of no batch");
                return Ok(Mark {
                    place: Place { segment, page },
                    batch: before.ok_or_else(nothing)?,
                    chain: head.chain,
                });
            }
        }
    }
    Ok(Mark::default())
}
