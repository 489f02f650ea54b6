//! The real binary against its own `/openapi.json`, by schemathesis: requests made from the description, good ones and
//! bad ones, alone and in sequences. How they are made and judged is in `tests/schemathesis/`.

use std::path::Path;
use std::process::{Command, Stdio};

use reqwest::Client;
use serde_json::{Value, json};

use crate::process::{Served, binary};

const TOKEN: &str = "described";

async fn send(served: &Served, client: &Client, path: &str, body: Value) {
    let url = format!("{}{path}", served.address);
    let request = client.post(url).bearer_auth(TOKEN).json(&body);
    assert_eq!(request.send().await.unwrap().status(), 201, "{path}");
}

/// The accounts and ids that `schemathesis.toml` names.
async fn prepare(served: &Served, client: &Client) {
    for account in [
        json!({"account_id": "alice", "currency": "EUR"}),
        json!({"account_id": "bob", "currency": "EUR"}),
        json!({"account_id": "carol", "currency": "EUR", "slots": 4, "credit": "journal", "debit": "hashed"}),
    ] {
        send(served, client, "/v1/accounts", account).await;
    }
    for (path, body) in [
        (
            "/v1/accounts/alice/credits",
            json!({"request_id": "credit", "amount": 1_000_000_000_000_i64}),
        ),
        (
            "/v1/accounts/alice/debits",
            json!({"request_id": "debit", "amount": 7}),
        ),
        (
            "/v1/accounts/alice/holds",
            json!({"request_id": "hold", "amount": 700_000}),
        ),
        (
            "/v1/accounts/alice/holds",
            json!({"request_id": "hold-2", "amount": 700_000}),
        ),
        (
            "/v1/transfers",
            json!({"request_id": "transfer", "from": "alice", "to": "bob", "amount": 1_000_000}),
        ),
    ] {
        send(served, client, path, body).await;
    }
}

/// schemathesis in a folder of its own, over the description that is in there.
fn schemathesis(folder: &Path, address: &str) -> Command {
    let program = std::env::var_os("SCHEMATHESIS");
    let program = program.expect("SCHEMATHESIS names the program, which tests/run installs");
    let how = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis");
    let mut command = Command::new(program);
    command
        .args(["--no-color", "--config-file"])
        .arg(how.join("schemathesis.toml"))
        .args(["run", "openapi.json", "--url", address])
        .current_dir(folder)
        .env("PYTHONPATH", &how)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("NO_PROXY", "*")
        .env("WALLET_TOKEN", TOKEN)
        .stdin(Stdio::null());
    if std::env::var_os("SLUICE_LONG").is_some() {
        command.args(["--max-examples", "400"]);
    }
    command
}

/// What follows a label in the summary, on its line or on the next.
fn figure<'a>(said: &'a str, label: &str) -> &'a str {
    let (_, rest) = said
        .split_once(label)
        .unwrap_or_else(|| panic!("no {label:?} in {said}"));
    rest.trim_start().lines().next().unwrap()
}

#[tokio::test]
#[ignore = "needs schemathesis: tests/run"]
async fn whatever_is_asked_is_answered_as_described_never_by_a_5xx_and_the_books_hold() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, TOKEN).unwrap();
    let store = format!("embedded:{}", folder.path().join("data").display());
    let served = Served::start("127.0.0.1:0", &store, &["--token-file", token.to_str().unwrap()]);
    let (client, address) = served.client();
    prepare(&served, &client).await;
    let document = client.get(format!("{address}/openapi.json")).bearer_auth(TOKEN);
    let mut document: Value = document.send().await.unwrap().json().await.unwrap();
    // Its answer has no end.
    let events = document["paths"].as_object_mut().unwrap().remove("/v1/events");
    assert!(events.is_some());
    std::fs::write(folder.path().join("openapi.json"), document.to_string()).unwrap();

    let mut run = schemathesis(folder.path(), &address);
    let output = tokio::task::spawn_blocking(move || run.output().unwrap());
    let output = output.await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{failed}");
    let cases = figure(&said, "Test cases:");
    assert!(cases.contains(" passed"), "{said}");
    let (selected, tested) = (figure(&said, "Selected:"), figure(&said, "Tested:"));
    assert_eq!(selected, format!("{tested}/{tested}"));
    println!("schemathesis: {tested} operations, {cases}");

    assert_eq!(served.stop(), Some(0));
    let proof = binary(&["verify", "--store", &store]).output().unwrap();
    let said = String::from_utf8_lossy(&proof.stdout);
    assert!(proof.status.success(), "{said}");
}
