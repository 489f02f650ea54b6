//! The README's own lines, as they stand there, but for the ports.

use std::process::Output;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::page;
use crate::shipped::shipped;
use crate::support::{Options, Proxy};

const README: &str = include_str!("../README.md");

/// The lines of the first block of shell after a mark.
fn block_after(mark: &str) -> Vec<&'static str> {
    page::block_after(README, mark)
}

/// Runs a line as a reader would, against this process instead of one on the usual ports.
async fn run(proxy: &Proxy, line: &str) -> Output {
    let replaced = [
        ("127.0.0.1:8080", proxy.address()),
        ("127.0.0.1:8719", proxy.admin_address()),
        ("cargo run --release --", env!("CARGO_BIN_EXE_sluice")),
    ];
    page::run(line, &replaced, None).await
}

async fn told(proxy: &Proxy, line: &str) -> Value {
    let output = run(proxy, line).await;
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[tokio::test]
#[ignore = "needs curl: tests/run"]
async fn its_lines_open_an_account_credit_debit_and_read_the_balance() {
    let proxy = Proxy::start_in(shipped(&[]), &Options::default());
    let mut answers = Vec::new();
    for line in block_after("<!-- try -->") {
        answers.push(told(&proxy, line).await);
    }
    let [opened, credited, debited, account] = &answers[..] else {
        panic!("four lines, not {answers:?}");
    };
    assert_eq!(
        (&opened["account_id"], &opened["balance"]),
        (&json!("alice"), &json!(0))
    );
    assert_eq!(
        (&credited["type"], &credited["amount"]),
        (&json!("credit"), &json!(100_000))
    );
    assert_eq!(
        (&debited["type"], &debited["amount"]),
        (&json!("debit"), &json!(65_000))
    );
    assert_eq!(account["balance"], 35_000);
    let again = told(&proxy, block_after("<!-- try -->")[2]).await;
    assert_eq!(&again, debited);
    let ready = told(&proxy, "curl -s http://127.0.0.1:8719/readyz").await;
    assert_eq!(ready["rules"]["ok"], true);
}

#[tokio::test]
#[ignore = "needs curl: tests/run"]
async fn its_load_of_one_account_gets_exactly_its_hundred() {
    let proxy = Proxy::start_in(shipped(&[]), &Options::default());
    for line in &block_after("<!-- try -->")[..2] {
        run(&proxy, line).await;
    }
    let line = block_after("than the account may take")[0];
    let line = format!("{line} --url {}", proxy.url(""));
    let begun = Instant::now();
    let report = told(&proxy, &line).await;
    assert_eq!(report["sent"], 300);
    let of = |code: &str| report["by_code"][code].as_u64().unwrap_or(0);
    // Isolation refuses where a machine is so busy that fifty wait for its disk.
    assert_eq!(of("201") + of("429") + of("503"), 300, "{report}");
    // And what takes over a second to send meets a second window.
    if begun.elapsed() < Duration::from_secs(1) {
        assert_eq!(of("201"), 100, "{report}");
    }
}

#[tokio::test]
async fn the_rules_that_it_tells_to_check_are_good() {
    let proxy = Proxy::start_in(shipped(&[]), &Options::default());
    let line = "cargo run --release -- check";
    assert!(README.contains(line));
    run(&proxy, line).await;
}
