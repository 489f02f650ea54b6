//! The lines of an export: anything at all, read strictly; and a history of them, taken into a new store.
//!
//! The input is an export without its last line. A line that is read is written as it was. A history of such lines, with
//! the root that it has, is refused with its line, or it becomes a store that `verify` finds nothing wrong with, and
//! whose export it is.

use std::io::Cursor;

use wallet_backend::journal::{Heads, Lines, Reader};
use wallet_backend::store::embedded::{ImportError, Options, export, import, verify_on};

use crate::disk::MemoryDisk;

/// # Panics
/// Where something is wrong with the wallet.
pub fn check(bytes: &[u8]) {
    let (mut reader, mut lines, mut heads) = (Reader::default(), Lines::default(), Heads::default());
    let mut text = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let Ok(changes) = reader.read(line) else { return };
        assert_eq!(lines.write(&changes).text(), line);
        heads.extend(&changes);
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text.extend_from_slice(format!("{{\"root\":\"{}\"}}\n", heads.root()).as_bytes());
    let disk = MemoryDisk::default();
    let options = Options {
        segment_bytes: 64 << 10,
        fresh_bytes: 4 << 10,
        checkpoint_bytes: 16 << 10,
        ..Options::on(disk.shared())
    };
    match import(options, &mut Cursor::new(&text), &[], |_| ()) {
        Ok(imported) => {
            assert_eq!(imported.root, heads.root());
            let mut out = Vec::new();
            export(&disk.shared(), &mut out, |_, _| ()).expect("what was imported is exported");
            assert!(out == text, "an export of it is what was imported");
            let report = verify_on(&disk.shared(), |_, _| ()).expect("it is a store");
            assert!(report.is_clean(), "{report}");
        }
        Err(ImportError::Refused { line, .. }) => assert!(line >= 1),
        Err(error) => panic!("{error}"),
    }
}
