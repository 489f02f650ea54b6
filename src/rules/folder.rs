//! The rules folder: which files in it are rule files, and what is in them now.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::Place;
use super::report::RuleError;
use super::wire::{MAX_FILE_LEN, Source};

/// The most rule files in one folder.
const MAX_FILES: usize = 1_000;

/// The most bytes in all of them: the whole folder is read, and kept, at every look.
const MAX_FOLDER_LEN: usize = 64 << 20;

/// Every rule file directly in `dir`, in name order: `*.yaml`, `*.yml`, `*.json`, no dot files. Links are followed, so
/// that Kubernetes' `rules.yaml -> ..data/rules.yaml` is read. A file that is gone by the time it is read is not there.
///
/// # Errors
/// When the folder or a file in it cannot be read, or there are more than [`MAX_FILES`] or [`MAX_FOLDER_LEN`].
pub(super) fn read(dir: &Path) -> Result<Vec<Source>, RuleError> {
    let mut sources = Vec::new();
    let mut len = 0;
    for entry in fs::read_dir(dir).map_err(|error| unreadable(dir, &error))? {
        let path = entry.map_err(|error| unreadable(dir, &error))?.path();
        if !is_rule_file(&path) {
            continue;
        }
        match read_file(&path) {
            Ok(Some(bytes)) => {
                len += bytes.len();
                sources.push(Source { path, bytes });
            }
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(&path, &error)),
        }
        if sources.len() > MAX_FILES {
            return Err(whole(dir, format!("more than {MAX_FILES} rule files")));
        }
        if len > MAX_FOLDER_LEN {
            let most = MAX_FOLDER_LEN >> 20;
            return Err(whole(dir, format!("more than {most} MiB of rule files")));
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

/// Whether a file of this name is a rule file.
pub(super) fn is_rule_file(path: &Path) -> bool {
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

fn unreadable(path: &Path, error: &io::Error) -> RuleError {
    whole(path, format!("cannot be read: {error}"))
}

fn whole(path: &Path, message: String) -> RuleError {
    RuleError {
        place: Place::whole(&Arc::new(path.to_path_buf())),
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rule_files_directly_in_the_folder_are_read_in_name_order() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "b.yaml",
            "a.yml",
            "c.json",
            ".hidden.yaml",
            "d.yaml~",
            "README.md",
            "yaml",
        ] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        fs::create_dir(dir.path().join("e.yaml")).unwrap();
        fs::write(dir.path().join("e.yaml/inner.yaml"), "x").unwrap();
        let read = read(dir.path()).unwrap();
        let names: Vec<&str> = read
            .iter()
            .map(|s| s.path.file_name().unwrap().to_str().unwrap())
            .collect();
        assert_eq!(names, ["a.yml", "b.yaml", "c.json"]);
    }

    #[test]
    fn a_folder_that_is_far_too_large_is_refused_before_all_of_it_is_read() {
        let dir = tempfile::tempdir().unwrap();
        for name in 0..9 {
            let file = File::create(dir.path().join(format!("{name}.yaml"))).unwrap();
            file.set_len(u64::try_from(MAX_FILE_LEN).unwrap()).unwrap();
        }
        let error = read(dir.path()).unwrap_err().to_string();
        assert!(error.ends_with(": more than 64 MiB of rule files"), "{error}");
    }

    #[test]
    fn a_mounted_config_map_is_read_once_through_its_links() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("..ts1")).unwrap();
        fs::write(dir.path().join("..ts1/rules.yaml"), "x").unwrap();
        std::os::unix::fs::symlink("..ts1", dir.path().join("..data")).unwrap();
        std::os::unix::fs::symlink("..data/rules.yaml", dir.path().join("rules.yaml")).unwrap();
        let read = read(dir.path()).unwrap();
        assert_eq!(
            read,
            [Source {
                path: dir.path().join("rules.yaml"),
                bytes: b"x".to_vec()
            }]
        );
    }

    #[test]
    fn a_dangling_link_is_not_there_and_a_missing_folder_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("a.yaml")).unwrap();
        assert_eq!(read(dir.path()).unwrap(), []);
        let error = read(&dir.path().join("nowhere")).unwrap_err().to_string();
        assert!(error.contains("nowhere: cannot be read: "), "{error}");
    }
}
