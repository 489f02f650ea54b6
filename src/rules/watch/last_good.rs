//! The last good copy of the rule files, for a start with a broken folder.
//!
//! One file, `rules-last-good.json` in the data folder, replaced by a rename once it is on disk: a crash leaves the old
//! copy or the new one, never half of one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::Source;

const NAME: &str = "rules-last-good.json";

#[derive(Serialize, Deserialize)]
struct Copy {
    files: Vec<CopiedFile>,
}

#[derive(Serialize, Deserialize)]
struct CopiedFile {
    path: PathBuf,
    text: String,
}

/// Replaces the copy.
///
/// # Errors
/// When the data folder cannot be written to, or a path or file is not UTF-8. The old copy is still there then.
pub(super) fn keep(data: &Path, sources: &[Source]) -> io::Result<()> {
    let copied = |source: &Source| {
        let text = String::from_utf8(source.bytes.clone()).map_err(io::Error::other)?;
        Ok(CopiedFile {
            path: source.path.clone(),
            text,
        })
    };
    let copy = Copy {
        files: sources.iter().map(copied).collect::<io::Result<_>>()?,
    };
    let text = serde_json::to_vec(&copy).map_err(io::Error::other)?;
    fs::create_dir_all(data)?;
    let new = data.join(format!(".{NAME}.new"));
    let mut file = File::create(&new)?;
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&new, data.join(NAME))?;
    File::open(data)?.sync_all()
}

/// The copy, or nothing if none was ever kept.
///
/// # Errors
/// When there is one that cannot be read.
pub(super) fn read(data: &Path) -> io::Result<Option<Vec<Source>>> {
    let text = match fs::read(data.join(NAME)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let copy: Copy = serde_json::from_slice(&text).map_err(io::Error::other)?;
    let source = |file: CopiedFile| Source {
        path: file.path,
        bytes: file.text.into_bytes(),
    };
    Ok(Some(copy.files.into_iter().map(source).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_last_is_read() {
        let data = tempfile::tempdir().unwrap();
        let inner = data.path().join("data");
        assert!(read(&inner).unwrap().is_none());
        let source = |text: &str| {
            vec![Source {
                path: "rules/a.yaml".into(),
                bytes: text.into(),
            }]
        };
        keep(&inner, &source("old")).unwrap();
        keep(&inner, &source("系统")).unwrap();
        assert_eq!(read(&inner).unwrap(), Some(source("系统")));
        fs::write(inner.join(NAME), "{").unwrap();
        assert!(read(&inner).is_err());
    }
}
