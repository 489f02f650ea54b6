//! What a backup has: written last, and what makes it one.
//!
//! `backup.manifest`, lines of words, so that people and `sha256sum` can read it:
//!
//! ```text
//! sluice-backup 1
//! store 00c0ffee00c0ffee
//! made 2026-07-01T00:00:07.120043Z
//! end segment 3 page 17 batch 204
//! root 1048576:9f86d081…
//! file SHA256 BYTES log/0000000001.seg          one for each file, by name
//! sha256 SHA256                                 of all the lines before it
//! ```
//!
//! There is one way to write it: whatever else is read is refused.

use std::fs;
use std::io;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::error::BackupError;
use super::place::Copied;
use crate::account::Timestamp;
use crate::journal::{Digest, Root};

/// The name of the file.
pub(super) const FILE: &str = "backup.manifest";
const FIRST: &str = "sluice-backup 1";
/// A manifest of a million files is shorter.
const MOST_BYTES: u64 = 1 << 28;

/// Where a log ends, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) segment: u64,
    pub(super) page: u32,
    pub(super) batch: u64,
}

/// What a backup has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store::embedded) struct Manifest {
    pub(super) store: u64,
    pub(super) made: Timestamp,
    pub(super) end: End,
    pub(super) root: Root,
    /// By name.
    pub(in crate::store::embedded) files: Vec<Copied>,
}

impl Manifest {
    /// Reads that of the backup in `directory`.
    pub(super) fn read(directory: &Path) -> Result<Self, BackupError> {
        let path = directory.join(FILE);
        let size = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(BackupError::NoBackup {
                    directory: directory.to_owned(),
                    file: FILE,
                });
            }
            metadata => metadata.map(|metadata| metadata.len()),
        };
        let cannot = || BackupError::io(format!("read {}", path.display()));
        if size.map_err(cannot())? > MOST_BYTES {
            return Err(BackupError::changed(FILE, "it is too long"));
        }
        let bytes = fs::read(&path).map_err(cannot())?;
        let read = String::from_utf8(bytes).ok().and_then(|text| Self::parse(&text));
        read.ok_or_else(|| BackupError::changed(FILE, "it is not what was written, or of another version"))
    }

    pub(super) fn text(&self) -> String {
        let Self {
            store,
            made,
            end: End { segment, page, batch },
            root,
            files,
        } = self;
        let mut text = format!("{FIRST}\nstore {store:016x}\nmade {made}\n");
        text += &format!("end segment {segment} page {page} batch {batch}\nroot {root}\n");
        for Copied { name, bytes, sha256 } in files {
            text += &format!("file {sha256} {bytes} {name}\n");
        }
        sealed(text)
    }

    /// Reads it in the one way in which it is written.
    pub(in crate::store::embedded) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().skip(1);
        let mut words = |first: &str| lines.next()?.strip_prefix(first)?.strip_prefix(' ');
        let store = u64::from_str_radix(words("store")?, 16).ok()?;
        let made: jiff::Timestamp = words("made")?.parse().ok()?;
        let mut end = words("end")?.split(' ').skip(1).step_by(2);
        let manifest = Self {
            store,
            made: Timestamp(made.as_microsecond()),
            end: End {
                segment: end.next()?.parse().ok()?,
                page: end.next()?.parse().ok()?,
                batch: end.next()?.parse().ok()?,
            },
            root: words("root")?.parse().ok()?,
            files: lines.map_while(read_file).collect(),
        };
        (manifest.text() == text).then_some(manifest)
    }
}

/// The lines, and behind them the one with their sum.
pub(in crate::store::embedded) fn sealed(lines: String) -> String {
    let sum = Digest(Sha256::digest(&lines).into());
    lines + &format!("sha256 {sum}\n")
}

/// A line about a file; `None` at the first that is about something else.
fn read_file(line: &str) -> Option<Copied> {
    let mut words = line.strip_prefix("file ")?.splitn(3, ' ');
    let (sha256, bytes, name) = (words.next()?, words.next()?, words.next()?);
    is_plain(name).then_some(Copied {
        name: name.to_owned(),
        bytes: bytes.parse().ok()?,
        sha256: sha256.parse().ok()?,
    })
}

/// A file, or a file in a folder: nothing that leads out of a directory.
fn is_plain(name: &str) -> bool {
    let plain = |part: &str| {
        let mut characters = part.chars();
        characters
            .next()
            .is_some_and(|first| first.is_ascii_alphanumeric())
            && characters.all(|next| next.is_ascii_alphanumeric() || matches!(next, '.' | '-' | '_'))
    };
    match name.split_once('/') {
        Some((folder, file)) => plain(folder) && plain(file),
        None => plain(name) && name != FILE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let file = |name: &str| Copied {
            name: name.to_owned(),
            bytes: 8192,
            sha256: Digest([7; 32]),
        };
        Manifest {
            store: 0xC0FFEE,
            made: Timestamp(1_700_000_000_000_001),
            end: End {
                segment: 3,
                page: 17,
                batch: 204,
            },
            root: Root {
                records: 99,
                digest: Digest([9; 32]),
            },
            files: ["log/0000000003.seg", "roots/2026-07-01.ndjson", "webhooks.json"]
                .map(file)
                .into(),
        }
    }

    #[test]
    fn a_manifest_is_read_back_and_any_flipped_bit_of_it_is_refused() {
        let text = manifest().text();
        assert_eq!(Manifest::parse(&text), Some(manifest()));
        let mut bytes = text.into_bytes();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let read = std::str::from_utf8(&bytes).ok().and_then(Manifest::parse);
            assert_eq!(read, None, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for length in 0..bytes.len() {
            let read = Manifest::parse(std::str::from_utf8(&bytes[..length]).unwrap());
            assert_eq!(read, None, "{length} bytes");
        }
    }

    #[test]
    fn a_name_that_leads_out_of_the_directory_is_no_name() {
        for name in ["../x", "/x", "log/../x", "a/b/c", ".x", "log/", "", "a b", FILE] {
            let mut manifest = manifest();
            name.clone_into(&mut manifest.files[0].name);
            assert_eq!(Manifest::parse(&manifest.text()), None, "{name}");
        }
    }
}
