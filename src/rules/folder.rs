//! The rules folder: which files in it are rule files, and what is in them now.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::wire::{MAX_FILE_LEN, Source};

/// The most rule files in one folder.
pub(super) const MAX_FILES: usize = 1_000;

/// Every rule file directly in `dir`, in name order: `*.yaml`, `*.yml`, `*.json`, no dot files. Links are followed, so
/// that Kubernetes' `rules.yaml -> ..data/rules.yaml` is read. A file that is gone by the time it is read is not there.
///
/// # Errors
/// When the folder or a file in it cannot be read, or holds more than [`MAX_FILES`].
pub(super) fn read(dir: &Path) -> io::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if !is_rule_file(&path) {
            continue;
        }
        match read_file(&path) {
            Ok(Some(bytes)) => sources.push(Source { path, bytes }),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(io::Error::new(
                    error.kind(),
                    format!("{}: {error}", path.display()),
                ));
            }
        }
        if sources.len() > MAX_FILES {
            return Err(io::Error::other(format!("more than {MAX_FILES} rule files")));
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn is_rule_file(path: &Path) -> bool {
    let hidden = path
        .file_name()
        .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden
        && path
            .extension()
            .is_some_and(|end| end == "yaml" || end == "yml" || end == "json")
}

/// The file's bytes, at most one more than are read as rules; nothing for a folder, a pipe or a device.
fn read_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if !fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    let most = u64::try_from(MAX_FILE_LEN).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}
