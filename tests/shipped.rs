//! The rules that ship, in a folder of their own, with what a test needs changed in them.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

/// One account's window.
pub(crate) const COUNT: &str = "    count: 100\n";
/// How long it is.
pub(crate) const DURATION: &str = "    durationInSec: 1\n";
/// A window that outlasts any test, so that counts do not depend on how fast a machine is.
pub(crate) const AN_HOUR: &str = "    durationInSec: 3600\n";
/// Where both are.
pub(crate) const TAKE_MONEY: &str = "take-money.yaml";

/// A folder with `rules/`, in which each `(from, to)` was replaced in `take-money.yaml`, where `from` stands once.
pub(crate) fn shipped(changes: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules");
    fs::create_dir(&rules).unwrap();
    for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("rules")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), rules.join(file.file_name())).unwrap();
    }
    let path = rules.join(TAKE_MONEY);
    for (from, to) in changes {
        replace(&path, from, to);
    }
    folder
}

/// Replaces what stands once in a file.
pub(crate) fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert_eq!(text.matches(from).count(), 1, "{from:?} in {}", path.display());
    fs::write(path, text.replace(from, to)).unwrap();
}
