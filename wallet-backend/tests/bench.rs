//! `bench engine`, as short as it gets: what is printed can be read by a program, and the books it made hold.

use std::process::Output;

use serde_json::Value;

use crate::process::binary;

fn bench(directory: &str, arguments: &[&str]) -> Output {
    let all = [
        &["bench", "engine", "--seconds", "1", "--dir", directory],
        arguments,
    ]
    .concat();
    binary(&all).output().unwrap()
}

#[test]
fn every_work_is_a_row_whose_invariants_hold_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--json", "--batch", "16", "--accounts", "1000"];
    let output = bench(folder.path().to_str().unwrap(), &arguments);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}");
    let rows: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let works: Vec<&str> = rows.iter().map(|row| row["work"].as_str().unwrap()).collect();
    assert_eq!(
        works,
        [
            "accounts",
            "raw",
            "library",
            "library-single",
            "http-batch",
            "http-constant",
            "http-single"
        ]
    );
    for row in &rows {
        assert_eq!(row["invariants_ok"], true, "{row}");
        for field in [
            "batch",
            "clients",
            "ops_per_s",
            "cpu_us_per_op",
            "p50_ms",
            "p99_ms",
        ] {
            assert!(row[field].as_f64().unwrap() > 0.0, "{field} of {row}");
        }
    }
    assert!(rows[0]["bytes_per_account"].as_f64().unwrap() > 0.0);
    for row in &rows[2..5] {
        assert!(row["ratio_to_raw"].as_f64().unwrap() > 0.0, "{row}");
    }
    assert_eq!(
        (rows[2]["clients"].as_u64(), rows[4]["clients"].as_u64()),
        (Some(2), Some(4))
    );
    assert!(rows[6]["ratio_to_constant"].as_f64().unwrap() > 0.0);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
#[cfg(feature = "mysql")]
#[ignore = "needs MariaDB: tests/run"]
fn a_private_server_is_measured_in_two_processes_and_gone_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let chart = folder.path().join("chart.svg");
    let directory = folder.path().to_str().unwrap();
    let output = binary(
        &[
            &["bench", "hot-account", "--private", "mariadb", "--dir", directory],
            [
                "--json",
                "--seconds",
                "1",
                "--clients",
                "3,64",
                "--processes",
                "2",
            ]
            .as_slice(),
            ["--operation", "mixed", "--chart", chart.to_str().unwrap()].as_slice(),
        ]
        .concat(),
    )
    .output()
    .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let picture = std::fs::read_to_string(&chart).unwrap();
    assert_eq!(
        (&rows[0]["mode"], &rows[0]["clients"]),
        (&"single".into(), &64.into())
    );
    for row in &rows {
        let mode = row["mode"].as_str().unwrap();
        let published = mode.starts_with("published");
        assert!(published || row["invariants_ok"] == true, "{row}");
        assert!(published || row["ops_per_s"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["server_cpu_s"].as_f64().is_some(), "{row}");
        assert!(row["ratio_to_single_row"].as_f64().is_some(), "{row}");
        assert_eq!(row["processes"], 2);
        assert!(picture.contains(&format!(">{mode}</text>")), "{mode}");
    }
    // Every published mode breaks its books, sooner or later; none of the others.
    let broken = rows.iter().any(|row| row["invariants_ok"] == false);
    assert_eq!(output.status.code(), Some(i32::from(broken)));
    let left: Vec<_> = folder.path().read_dir().unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
#[cfg(feature = "mysql")]
#[ignore = "needs MariaDB: tests/run"]
fn the_published_load_test_lands_what_it_accepts_with_and_without_a_limit() {
    let sidecar = std::path::Path::new(env!("CARGO_BIN_EXE_wallet-backend")).with_file_name("sluice");
    assert!(
        sidecar.is_file(),
        "needs the whole workspace: cargo test --workspace"
    );
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().to_str().unwrap();
    let output = binary(&[
        "bench",
        "hot-account",
        "--private",
        "mariadb",
        "--dir",
        directory,
        "--json",
        "--scenario",
        "published",
        "--clients",
        "50",
        "--seconds",
        "3",
    ])
    .output()
    .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let runs: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let number = |run: &Value, field: &str| run[field].as_u64().unwrap();
    let [free, limited] = runs.as_slice() else {
        panic!("{stdout}");
    };
    assert!(free["limit_per_s"].is_null() && number(limited, "limit_per_s") == 100);
    assert!(
        number(free, "accepted") > 0 && number(free, "refused") == 0,
        "{free}"
    );
    // Of three seconds, wherever they begin in the window.
    assert!((100..=400).contains(&number(limited, "accepted")), "{limited}");
    assert!(number(limited, "refused") > 0, "{limited}");
    for run in [free, limited] {
        assert!(number(run, "landed") >= number(run, "accepted"), "{run}");
        assert_eq!(
            (number(run, "lag"), &run["invariants_ok"]),
            (0, &true.into()),
            "{run}"
        );
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn people_get_a_table_of_what_they_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let output = bench(
        folder.path().to_str().unwrap(),
        &["--work", "raw", "--batch", "7,9"],
    );
    let stdout = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<&str>> = stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let begin: Vec<&str> = lines.iter().map(|line| line[0]).collect();
    assert_eq!(begin, ["work", "raw", "raw"]);
    assert_eq!((lines[1][1], lines[2][1], lines[2][8]), ("7.0", "9.0", "ok"));
}

#[test]
fn a_place_that_is_not_there_is_named() {
    let output = bench("/nowhere/at/all", &["--work", "raw"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("/nowhere/at/all"), "{stderr}");
}
