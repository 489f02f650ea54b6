//! `export`: the whole history as lines whose root anybody can compute, or a refusal that says why.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use wallet_backend::store::embedded::{Options, verify};

use crate::faults::{Workload, open};
use crate::process::{Served, binary};

/// A store with a bit of everything, closed: its folder, and its name on the command line.
fn kept() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let store = open(Options::at(&data));
    for batch in Workload::new(41, 60).batches {
        store.ask_all(batch);
    }
    store.close();
    (folder, format!("embedded:{}", data.display()))
}

fn export(store: &str, out: Option<&Path>) -> Output {
    let mut command = binary(&["export", "--store", store]);
    if let Some(out) = out {
        command.arg("--out").arg(out);
    }
    command.output().unwrap()
}

/// The root that the export told.
fn told(output: &Output) -> String {
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    let line = stderr.lines().last().unwrap_or_default();
    line.strip_prefix("root ")
        .unwrap_or_else(|| panic!("{stderr}"))
        .to_owned()
}

#[test]
fn every_record_is_a_line_of_json_and_the_root_is_the_one_that_verify_tells() {
    let (folder, store) = kept();
    let file = folder.path().join("history.ndjson");
    let output = export(&store, Some(&file));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = verify(folder.path().join("data")).unwrap();
    assert_eq!(told(&output), report.root.unwrap().to_string());
    let text = fs::read_to_string(&file).unwrap();
    let (records, last) = text.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(last, format!(r#"{{"root":"{}"}}"#, told(&output)));
    let lines: Vec<Value> = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let count = |name: &str| lines.iter().filter(|line| line.get(name).is_some()).count();
    assert_eq!(u64::try_from(lines.len()).unwrap(), report.records);
    assert_eq!(u64::try_from(count("request")).unwrap(), report.requests);
    let entries = lines.iter().filter_map(|line| line["entries"].as_array());
    assert_eq!(
        u64::try_from(entries.map(Vec::len).sum::<usize>()).unwrap(),
        report.entries
    );
    let printed = export(&store, None);
    assert_eq!(printed.stdout, text.as_bytes());
    assert_eq!(told(&printed), told(&output));
}

#[test]
fn a_file_that_is_there_is_not_written_over() {
    let (folder, store) = kept();
    let file = folder.path().join("history.ndjson");
    fs::write(&file, "mine").unwrap();
    let output = export(&store, Some(&file));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn a_store_that_is_in_use_or_none_is_not_exported() {
    let folder = tempfile::tempdir().unwrap();
    let missing = format!("embedded:{}", folder.path().join("none").display());
    assert_eq!(export(&missing, None).status.code(), Some(2));
    let empty = format!("embedded:{}", folder.path().display());
    let output = export(&empty, None);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("no store"));
    let store = format!("embedded:{}", folder.path().join("data").display());
    let _served = Served::start("127.0.0.1:0", &store, &[]);
    let output = export(&store, None);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("in use"));
}

#[test]
fn damage_ends_an_export_with_its_place_and_leaves_no_file() {
    let (folder, store) = kept();
    let log = folder.path().join("data/log");
    let mut names: Vec<_> = fs::read_dir(&log)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    names.sort();
    let segment = names
        .into_iter()
        .find(|name| {
            fs::read(name).unwrap()[3 * 4096..4 * 4096]
                .iter()
                .any(|byte| *byte != 0)
        })
        .unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    bytes[3 * 4096 + 99] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let file = folder.path().join("history.ndjson");
    let output = export(&store, Some(&file));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("segment") && stderr.contains("at byte 12288"),
        "{stderr}"
    );
    let left = fs::read_dir(folder.path()).unwrap();
    let left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["data"]);
}

/// The script as it stands in the documentation.
#[test]
#[ignore = "needs python3: tests/run"]
fn the_documented_script_computes_the_root_of_an_export() {
    let page = include_str!("../../docs/tamper-evidence.md");
    let (_, rest) = page.split_once("```python\n").unwrap();
    let (script, _) = rest.split_once("```").unwrap();
    let (_folder, store) = kept();
    let exported = export(&store, None);
    let mut python = Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(&exported.stdout).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), told(&exported));
}
