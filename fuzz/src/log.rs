//! The log reader: segments that are anything at all, a data directory with changes, and good pages around bad contents.
//!
//! The first byte says which. In the second and third kind checksums are right where the input says so, since no
//! mutation would hit upon one: what a checksum lets through is what the code behind it must be ready for.

use wallet_backend::store::embedded::fuzzing::{mend, write_log};

use crate::disk::MemoryDisk;
use crate::input::Input;
use crate::judge::judge;
use crate::kept::{FILES, PAYLOADS, STORE};

/// The first segment's file.
const FIRST: &str = "log/0000000001.seg";
/// A batch that is no kept one.
const NEW_BATCH: u8 = 0xFF;
/// No input makes more batches.
const MOST_BATCHES: usize = 64;

/// # Panics
/// Where something is wrong with the wallet.
pub fn check(bytes: &[u8]) {
    let mut input = Input(bytes);
    match input.byte() % 3 {
        0 => judge(&MemoryDisk::with([(FIRST, input.0.to_vec())])),
        1 => edited(&mut input),
        _ => batches(&mut input),
    }
}

/// Files of the kept directory with edits, without what was derived from the log where the input says so.
fn edited(input: &mut Input<'_>) {
    let with_derived = input.byte() % 2 == 0;
    let files = FILES
        .iter()
        .filter(|(name, _)| with_derived || name.starts_with("log/"));
    let files: Vec<_> = files
        .map(|(name, bytes)| (name.as_str(), bytes.clone()))
        .collect();
    let disk = MemoryDisk::with(files.clone());
    while !input.is_empty() {
        let (name, mut file) = input.choose(&files).clone();
        let (mended, edits) = (input.byte(), input.byte());
        input.edit(&mut file, edits % 16);
        // A bit for each of the first pages, and one for all the others.
        mend(name, *STORE, &mut file, |page| mended >> page.min(7) & 1 == 1);
        disk.put(name, file);
    }
    judge(&disk);
}

/// A log of kept batches, edited ones and new ones.
fn batches(input: &mut Input<'_>) {
    let mut payloads = Vec::new();
    while !input.is_empty() && payloads.len() < MOST_BATCHES {
        match input.byte() {
            NEW_BATCH => {
                let length = input.short();
                payloads.push(input.take(length).to_vec());
            }
            kept => {
                let edits = input.byte();
                let mut payload = PAYLOADS[usize::from(kept) % PAYLOADS.len()].clone();
                input.edit(&mut payload, edits % 16);
                payloads.push(payload);
            }
        }
    }
    let disk = MemoryDisk::default();
    write_log(&disk, *STORE, &payloads).expect("nothing fails on this disk");
    judge(&disk);
}
