//! The data folder of a new MariaDB server: made once for each version of it, then copied.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;

/// Arguments that the folder and the server that works in it must agree on.
pub(super) fn layout() -> Vec<String> {
    let mut layout = vec![
        "--no-defaults".to_owned(),
        "--innodb-log-file-size=16M".to_owned(),
        "--skip-name-resolve".to_owned(),
    ];
    if geteuid().is_root() {
        // Without it the server refuses to run as root.
        layout.push("--user=root".to_owned());
    }
    layout
}

/// Fills an empty folder as a data folder.
pub(super) fn copy_to(folder: &Path) {
    copy(&template(), folder);
}

/// Below the build's own folder for such things: other test binaries and other runs find it there.
fn template() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let version: String = version()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let template = place.join(version.trim_end_matches('-'));
    let lock = File::create(template.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if !template.exists() {
        let unfinished = template.with_extension("unfinished");
        drop(fs::remove_dir_all(&unfinished));
        install(&unfinished);
        fs::rename(&unfinished, &template).unwrap();
    }
    template
}

fn version() -> String {
    let output = Command::new("mariadbd")
        .args(["--no-defaults", "--version"])
        .output()
        .expect("mariadbd is not to be found: tests/run installs it");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn install(folder: &Path) {
    let output = Command::new("mariadb-install-db")
        .args(layout())
        .arg(format!("--datadir={}", folder.display()))
        .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
        .output()
        .expect("mariadb-install-db is not to be found: tests/run installs it");
    assert!(output.status.success(), "{output:?}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
