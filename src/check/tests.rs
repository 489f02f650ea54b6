//! Every file and folder of `tests/rules` is a case: `valid` ones load, `invalid/x.yaml` (or the folder `invalid/x`) is
//! refused with exactly the lines of `invalid/x.txt`. `BLESS=1 cargo test` writes those files anew; read the difference.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::rules::Source;

fn cases(kind: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/rules")
        .join(kind);
    let mut cases: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.retain(|path| path.extension().is_none_or(|end| end != "txt"));
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

/// Loads a case with the bare names of its files, so that messages are the same on every machine.
fn load(case: &Path) -> Result<RuleSet, Vec<RuleError>> {
    let mut files = if case.is_dir() {
        fs::read_dir(case)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect()
    } else {
        vec![case.to_path_buf()]
    };
    files.sort();
    let source = |path: &PathBuf| Source {
        path: path.file_name().unwrap().into(),
        bytes: fs::read(path).unwrap(),
    };
    compile::compile(Path::new("rules"), &files.iter().map(source).collect::<Vec<_>>())
}

#[test]
fn every_valid_case_loads() {
    for case in cases("valid") {
        let mut out = Vec::new();
        write_findings(&load(&case), Format::Text, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.ends_with(" are good\n"), "{}: {out}", case.display());
    }
}

#[test]
fn every_invalid_case_is_refused_with_its_message() {
    for case in cases("invalid") {
        let checked = load(&case);
        assert!(checked.is_err(), "{} loads", case.display());
        let mut out = Vec::new();
        write_findings(&checked, Format::Text, &mut out).unwrap();
        let said = String::from_utf8(out).unwrap();
        let expected = case.with_extension("txt");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&expected, &said).unwrap();
        }
        assert_eq!(
            said,
            fs::read_to_string(&expected).unwrap_or_default(),
            "{}",
            case.display()
        );
    }
}

#[test]
fn a_folder_is_good_or_bad_by_its_exit_status() {
    let dir = tempfile::tempdir().unwrap();
    let mut out = Vec::new();
    assert_eq!(run(dir.path(), Format::Text, &mut out).unwrap(), BAD);
    fs::write(dir.path().join("a.yaml"), "allowEmpty: true").unwrap();
    out.clear();
    assert_eq!(run(dir.path(), Format::Text, &mut out).unwrap(), GOOD);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "1 file: 0 resources and 0 rules are good\n"
    );
}

#[test]
fn json_has_the_same_facts_in_fields() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.yaml");
    fs::write(&file, "flw: 1").unwrap();
    let mut out = Vec::new();
    assert_eq!(run(dir.path(), Format::Json, &mut out).unwrap(), BAD);
    let found: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let message = "`flw` is not a key of a rule file, did you mean `flow`?";
    let error = serde_json::json!({ "file": file, "line": 1, "column": 1, "message": message });
    assert_eq!(
        found,
        serde_json::json!({ "ok": false, "resources": 0, "rules": 0, "errors": [error] })
    );
}
