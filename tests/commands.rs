//! The commands beside `run`, and what `run` says when it cannot start.

use std::process::Output;

use crate::support::proxy::command;
use crate::support::{Options, Proxy, Reply, Upstream};

const RULES: &str = "
resources:
  - name: pay
    match: { method: POST, path: '/v1/accounts/{id}/debits' }
    params: [ { name: id, from: path } ]
paramFlow:
  - { id: hot, resource: pay, param: id, count: 100, durationInSec: 60 }
";

async fn ran(args: &[&str]) -> Output {
    let mut command = command();
    command.args(args);
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

#[tokio::test]
async fn load_reports_what_was_answered() {
    let upstream = Upstream::start(|_| Reply::status(201, "{}")).await;
    let proxy = Proxy::start(&Options {
        upstream: upstream.url(),
        rules: RULES,
        flags: &[],
    });
    let output = ran(&[
        "load",
        "--requests",
        "300",
        "--for",
        "300ms",
        "--url",
        &proxy.url(""),
    ])
    .await;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["sent"], 300);
    assert_eq!(report["by_code"], serde_json::json!({ "201": 100, "429": 200 }));
    assert!(report["p50_ms"].as_f64().unwrap() > 0.0);
    let mut ids: Vec<_> = upstream.seen().into_iter().map(|seen| seen.body).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 100);
}

#[tokio::test]
async fn healthcheck_tells_a_ready_sidecar_from_none() {
    let proxy = Proxy::start(&Options {
        upstream: "http://127.0.0.1:1".to_owned(),
        rules: RULES,
        flags: &[],
    });
    assert!(
        ran(&["healthcheck", "--admin", proxy.admin_address()])
            .await
            .status
            .success()
    );
    let none = ran(&["healthcheck", "--admin", "127.0.0.1:1"]).await;
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("sluice run"));
}

/// The admin address is where a second sidecar on one machine fails first: both have the same default.
#[tokio::test]
async fn a_port_that_is_taken_is_named_once_with_a_way_out() {
    let proxy = Proxy::start(&Options {
        upstream: "http://127.0.0.1:1".to_owned(),
        rules: RULES,
        flags: &[],
    });
    let rules = proxy.rule_file("");
    let free = "127.0.0.1:0";
    for (flag, taken, listen, admin) in [
        ("--listen", proxy.address(), proxy.address(), free),
        ("--admin", proxy.admin_address(), free, proxy.admin_address()),
    ] {
        let output = ran(&[
            "run",
            "--listen",
            listen,
            "--admin",
            admin,
            "--upstream",
            "http://127.0.0.1:1",
            "--rules",
            rules.to_str().unwrap(),
            "--data",
            rules.join("data").to_str().unwrap(),
        ])
        .await;
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains(&format!("cannot listen on {taken} ({flag})")),
            "{said}"
        );
        assert_eq!(said.matches("in use").count(), 1, "{said}");
        assert!(said.contains("port 0"), "{said}");
    }
}

#[tokio::test]
async fn broken_rules_keep_a_new_sidecar_from_starting_and_are_named_by_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.yaml"), "resources:\n  - { nam: pay }\n").unwrap();
    let data = folder.path().join("data");
    let output = ran(&[
        "--rules",
        folder.path().to_str().unwrap(),
        "--data",
        data.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--upstream",
        "http://127.0.0.1:1",
    ])
    .await;
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("bad.yaml:2:"), "{said}");
}
