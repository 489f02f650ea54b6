//! `import` as a command: what it says, what it leaves, and what becomes of one that was killed.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

use tempfile::TempDir;

use super::exported;
use crate::faults::{FaultDisk, Workload, open, small};
use crate::process::{Served, binary};

/// A store with a bit of everything, and its export: the folder with both, and the text. Made on a disk in memory: the
/// lock of a directory lives on in a process that another test is just starting.
fn kept() -> (TempDir, String) {
    let (folder, disk) = (tempfile::tempdir().unwrap(), FaultDisk::default());
    let store = open(small(&disk));
    for batch in Workload::new(43, 60).batches {
        store.ask_all(batch);
    }
    store.close();
    let text = exported(&disk);
    for name in disk.files() {
        let file = folder.path().join("first").join(&name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, disk.content(&name)).unwrap();
    }
    fs::write(folder.path().join("history.ndjson"), &text).unwrap();
    (folder, text)
}

fn at(folder: &Path, name: &str) -> String {
    format!("embedded:{}", folder.join(name).display())
}

fn run(arguments: &[&str]) -> Output {
    binary(arguments).output().unwrap()
}

fn import(folder: &Path, store: &str, file: &str) -> Output {
    let file = folder.join(file);
    run(&["import", "--store", &at(folder, store), file.to_str().unwrap()])
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_becomes_a_store_that_serves_and_whose_export_is_that_file() {
    let (folder, text) = kept();
    let output = import(folder.path(), "second/", "history.ndjson");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let root = text.lines().last().unwrap().split('"').nth(3).unwrap();
    assert!(
        said.contains("3 accounts") && said.ends_with(&format!("root {root}\n")),
        "{said}"
    );
    assert_eq!(names(folder.path()), ["first", "history.ndjson", "second"]);
    let store = at(folder.path(), "second");
    assert_eq!(run(&["export", "--store", &store]).stdout, text.as_bytes());
    let verified = run(&["verify", "--store", &store, "--against", root]);
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
    assert_eq!(Served::start("127.0.0.1:0", &store, &[]).stop(), Some(0));
}

#[test]
fn standard_input_is_read_where_no_file_is_named() {
    let (folder, text) = kept();
    let store = at(folder.path(), "second");
    let mut child = binary(&["import", "--store", &store])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(run(&["export", "--store", &store]).stdout, text.as_bytes());
}

#[test]
fn a_refused_export_is_named_with_its_line_and_leaves_nothing() {
    let (folder, text) = kept();
    let changed = text.replacen(r#""delta":-"#, r#""delta":-1"#, 1);
    let line = text
        .lines()
        .zip(changed.lines())
        .position(|(a, b)| a != b)
        .unwrap()
        + 1;
    let file = folder.path().join("changed.ndjson");
    fs::write(&file, changed).unwrap();
    let output = import(folder.path(), "second", "changed.ndjson");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let place = format!("wallet-backend: {}:{line}: request.receipt", file.display());
    assert!(stderr(&output).starts_with(&place), "{}", stderr(&output));
    assert_eq!(
        names(folder.path()),
        ["changed.ndjson", "first", "history.ndjson"]
    );
}

#[test]
fn a_root_that_was_kept_elsewhere_is_held_against_the_file() {
    let (folder, text) = kept();
    let count = text.lines().count() - 1;
    let other = format!("{count}:{}", "ab".repeat(32));
    let file = folder.path().join("history.ndjson");
    let store = at(folder.path(), "second");
    let output = run(&[
        "import",
        "--store",
        &store,
        "--against",
        &other,
        file.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        stderr(&output).contains("are not what they were"),
        "{}",
        stderr(&output)
    );
    assert_eq!(names(folder.path()), ["first", "history.ndjson"]);
}

#[test]
fn a_directory_that_is_not_empty_is_left_as_it_is() {
    let (folder, text) = kept();
    let output = import(folder.path(), "first", "history.ndjson");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("not empty"), "{}", stderr(&output));
    let store = at(folder.path(), "first");
    assert_eq!(run(&["export", "--store", &store]).stdout, text.as_bytes());
    // An empty one is as good as none.
    fs::create_dir(folder.path().join("second")).unwrap();
    let output = import(folder.path(), "second", "history.ndjson");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let memory = run(&["import", "--store", "memory:"]);
    assert_eq!(memory.status.code(), Some(2), "{memory:?}");
}

#[test]
fn what_a_killed_import_left_is_told_and_taken_away_by_the_next() {
    let (folder, text) = kept();
    let store = at(folder.path(), "second");
    let mut child = binary(&["import", "--store", &store])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // Without its last line, so that it waits for more; it has read this once another cannot begin.
    input
        .write_all(text.as_bytes().get(..text.len() / 2).unwrap())
        .unwrap();
    let building = folder.path().join("second.importing");
    while !building.join("log").exists() {
        std::thread::yield_now();
    }
    let second = import(folder.path(), "second", "history.ndjson");
    assert_eq!(second.status.code(), Some(2), "{second:?}");
    assert!(
        stderr(&second).contains("another import is at work"),
        "{}",
        stderr(&second)
    );
    child.kill().unwrap();
    child.wait().unwrap();
    drop(input);
    assert_eq!(
        names(folder.path()),
        ["first", "history.ndjson", "second.importing"]
    );
    let again = import(folder.path(), "second", "history.ndjson");
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    assert!(
        stderr(&again).contains("was left by an import that did not end"),
        "{}",
        stderr(&again)
    );
    assert_eq!(names(folder.path()), ["first", "history.ndjson", "second"]);
    assert_eq!(run(&["export", "--store", &store]).stdout, text.as_bytes());
}

#[test]
fn a_directory_in_the_way_that_no_import_has_made_is_left_as_it_is() {
    let (folder, _) = kept();
    let mine = folder.path().join("second.importing");
    fs::create_dir(&mine).unwrap();
    fs::write(mine.join("mine"), "mine").unwrap();
    let output = import(folder.path(), "second", "history.ndjson");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("is in the way"), "{}", stderr(&output));
    assert_eq!(names(&mine), ["mine"]);
}
