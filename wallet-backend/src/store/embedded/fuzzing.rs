//! Entrances for the fuzz targets: files with right checksums around wrong contents, which no mutation would hit upon.
//!
//! Behind the feature `fuzzing`; no part of the API.

use std::io;

use crate::store::embedded::backup::manifest::{Manifest, sealed};
use crate::store::embedded::blocks::{self, FileId, Kind};
use crate::store::embedded::disk::Disk;
use crate::store::embedded::error::OpenError;
use crate::store::embedded::layout::Layout;
use crate::store::embedded::page::{self, PAGE, PageId};
use crate::store::embedded::scan::Scan;
use crate::store::embedded::segment::{self, FOLDER, Mark, Segment, SegmentHead, pages_for};
use crate::store::embedded::write::write_batch;

/// Where page 0 of a segment has the store's id: behind the page's own head, the magic number and the version.
const STORE_AT: usize = 48;

/// Gives a file the stamps and checksums that its contents call for. `name` says what it is, as in a data directory;
/// of a segment only the pages that `which` takes, counted from 0. `store` is the store's id, which a segment has in
/// itself.
pub fn mend(name: &str, store: u64, file: &mut [u8], which: impl Fn(usize) -> bool) {
    let Some((folder, file_name)) = name.split_once('/') else {
        return;
    };
    if folder == FOLDER {
        if let Some(segment) = segment::number(file_name) {
            mend_segment(segment, file, which);
        }
        return;
    }
    for kind in [Kind::Checkpoint, Kind::Run] {
        if let Some(number) = kind.number(file_name).filter(|_| folder == kind.folder()) {
            blocks::mend(FileId { store, kind, number }, file);
        }
    }
}

fn mend_segment(segment: u64, file: &mut [u8], which: impl Fn(usize) -> bool) {
    let own_store = store_of(file);
    let pages = file.chunks_exact_mut(PAGE).enumerate();
    for (at, bytes) in pages.filter(|(at, _)| which(*at)) {
        let id = PageId {
            store: if at == 0 { 0 } else { own_store },
            segment,
            page: u32::try_from(at).unwrap_or(u32::MAX),
        };
        if let Some(page) = bytes.first_chunk_mut() {
            page::mend(id, page);
        }
    }
}

/// The store's id, as a segment has it; 0 in what is too short for one.
#[must_use]
pub fn store_of(segment: &[u8]) -> u64 {
    let id = segment.get(STORE_AT..).and_then(|rest| rest.first_chunk());
    id.map_or(0, |id| u64::from_le_bytes(*id))
}

/// The contents of every batch in a log, in order.
///
/// # Errors
/// What is wrong with the log.
pub fn payloads(disk: &dyn Disk) -> Result<Vec<Vec<u8>>, OpenError> {
    let layout = Layout::read(disk)?;
    let mut scan = Scan::after(&layout, Mark::default())?;
    let mut payloads = Vec::new();
    while let Some(batch) = scan.next()? {
        payloads.push(batch.payload);
    }
    Ok(payloads)
}

/// Writes a log of one segment, whose batches have these contents. Empty ones are left out.
///
/// # Errors
/// What the disk says.
pub fn write_log(disk: &dyn Disk, store: u64, payloads: &[Vec<u8>]) -> io::Result<()> {
    disk.create_folder(FOLDER)?;
    let payloads = payloads.iter().filter(|payload| !payload.is_empty());
    let pages = payloads.clone().map(|payload| pages_for(payload.len()));
    let head = SegmentHead {
        store,
        number: 1,
        pages: pages.fold(2, u32::saturating_add),
        previous: 0,
        replaces: None,
    };
    let segment = Segment::prepare(disk, head)?;
    let (mut first, mut end) = (head.first_page(), Mark::default());
    for payload in payloads {
        end = write_batch(&segment, first, &end, 0, payload)?;
        first = end.place.page;
    }
    Ok(())
}

/// The files that a backup's manifest names, if it is one.
#[must_use]
pub fn manifest(text: &str) -> Option<Vec<String>> {
    let manifest = Manifest::parse(text)?;
    Some(manifest.files.into_iter().map(|file| file.name).collect())
}

/// A manifest of these lines, with the sum that they call for.
#[must_use]
pub fn seal_manifest(lines: &str) -> String {
    sealed(lines.to_owned())
}
