//! The real binary on real sockets: wiring, start-up, the end. Nothing here measures time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use reqwest::Client;
use serde_json::{Value, json};
use wallet_backend::http::MAX_BATCH_BYTES;

use crate::process::{Served, binary};
use crate::support::{amount, id, ordinary, request};

async fn post(client: &(Client, String), path: &str, body: Value) -> (u16, Value) {
    let url = format!("{}{path}", client.1);
    let response = client.0.post(url).json(&body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn get(client: &(Client, String), path: &str) -> (u16, Value) {
    let response = client.0.get(format!("{}{path}", client.1)).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// Opens an account, credits, debits and reads it.
async fn open_credit_debit_read(served: &Served) {
    let (client, alice) = (served.wallet(), id("alice"));
    assert!(client.open(&ordinary("alice")).await.unwrap().1);
    let credit = client.credit(&alice, &request("c"), amount(100), None).await;
    assert!(credit.unwrap().done().is_ok());
    let debit = client.debit(&alice, &request("d"), amount(30), None).await;
    assert_eq!(debit.unwrap().done().unwrap().legs[0].balance_after, 70);
    assert_eq!(client.account(&alice).await.unwrap().balance, 70);
}

#[tokio::test]
async fn on_tcp_an_account_is_opened_credited_debited_and_read() {
    let mut served = Served::start("127.0.0.1:0", "memory:", &[]);
    assert!(served.address.starts_with("http://127.0.0.1:") && !served.address.ends_with(":0"));
    open_credit_debit_read(&served).await;
    served.terminate();
    assert_eq!(served.exit(), (Some(0), String::new()));
}

#[tokio::test]
async fn on_the_embedded_store_everything_is_there_after_a_stop_and_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", dir.path().join("data").display());
    let mut stopped = Served::start("127.0.0.1:0", &store, &[]);
    open_credit_debit_read(&stopped).await;
    let receipt = debit_again(&stopped).await;
    stopped.terminate();
    assert_eq!(stopped.exit().0, Some(0));

    let mut killed = Served::start("127.0.0.1:0", &store, &[]);
    assert_eq!(debit_again(&killed).await, receipt);
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();

    let served = Served::start("127.0.0.1:0", &store, &[]);
    assert_eq!(debit_again(&served).await, receipt);
    assert_eq!(get(&served.client(), "/v1/accounts/alice").await.1["balance"], 70);
    let entries = get(&served.client(), "/v1/accounts/alice/entries").await.1;
    assert_eq!(entries["entries"].as_array().unwrap().len(), 2);
}

/// Sends the debit of [`open_credit_debit_read`] again: a replay, whose body this is.
async fn debit_again(served: &Served) -> String {
    let (client, base) = served.client();
    let debit = json!({"request_id": "d", "amount": 30});
    let url = format!("{base}/v1/accounts/alice/debits");
    let response = client.post(url).json(&debit).send().await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    assert_eq!(response.headers()["idempotent-replayed"], "true");
    response.text().await.unwrap()
}

#[tokio::test]
async fn a_second_process_on_the_same_directory_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", dir.path().display());
    let _served = Served::start("127.0.0.1:0", &store, &[]);
    let output = binary(&["serve", "--listen", "127.0.0.1:0", "--store", &store])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains(text(dir.path())) && stderr.contains("in use"),
        "{stderr}"
    );
}

#[tokio::test]
async fn verify_exits_0_on_a_clean_ledger_1_on_a_damaged_one_and_2_where_it_cannot_run() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let store = format!("embedded:{}", data.display());
    let verify = || {
        let output = binary(&["verify", "--store", &store]).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    };
    assert_eq!(verify().0, Some(2), "no such directory");
    assert!(!data.exists());

    let mut served = Served::start("127.0.0.1:0", &store, &[]);
    open_credit_debit_read(&served).await;
    let (code, said) = verify();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("in use"), "{said}");
    served.terminate();
    assert_eq!(served.exit().0, Some(0));

    let (code, said) = verify();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 accounts, 2 entries, 2 requests"), "{said}");

    // The root that it told holds, and goes on to hold as the history goes on; another one does not.
    let root = said.split("root ").nth(1).unwrap().split(';').next().unwrap();
    let served = Served::start("127.0.0.1:0", &store, &[]);
    let more = json!({"request_id": "more", "amount": 1});
    assert_eq!(
        post(&served.client(), "/v1/accounts/alice/credits", more).await.0,
        201
    );
    assert_eq!(served.stop(), Some(0));
    let against = |root: &str| {
        let output = binary(&["verify", "--store", &store, "--against", root])
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    };
    let (code, said) = against(root);
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("; 0 earlier ones agree"), "{said}");
    let (records, digest) = root.split_once(':').unwrap();
    let reversed: String = digest.chars().rev().collect();
    let (code, said) = against(&format!("{records}:{reversed}"));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("are not what they were"), "{said}");
    assert_eq!(against("yesterday").0, Some(2));

    // One flipped bit in the page of the first batch.
    let segment = first_segment(&data.join("log"));
    let mut bytes = fs::read(&segment).unwrap();
    bytes[4096 + 64] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let (code, said) = verify();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("segment"), "{said}");
}

fn first_segment(log: &Path) -> PathBuf {
    let files = fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|end| end == "seg"))
        .min()
        .unwrap()
}

#[tokio::test]
async fn on_a_unix_socket_it_is_the_same_and_the_file_is_removed_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wallet.sock");
    let mut served = Served::start(&format!("unix:{}", path.display()), "memory:", &[]);
    open_credit_debit_read(&served).await;
    served.terminate();
    assert_eq!(served.exit().0, Some(0));
    assert!(!path.exists());
}

#[tokio::test]
async fn a_socket_left_by_a_killed_process_is_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let listen = format!("unix:{}", dir.path().join("wallet.sock").display());
    let mut killed = Served::start(&listen, "memory:", &[]);
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    let served = Served::start(&listen, "memory:", &[]);
    assert_eq!(get(&served.client(), "/readyz").await.0, 200);
}

#[tokio::test]
async fn a_body_that_is_too_long_is_answered_and_not_cut() {
    let served = Served::start("127.0.0.1:0", "memory:", &[]);
    let memo = "x".repeat(500_000);
    let debit = json!({"request_id": "d", "amount": 30, "memo": memo});
    let (status, problem) = post(&served.client(), "/v1/accounts/alice/debits", debit).await;
    assert_eq!(status, 413);
    assert_eq!(problem["code"], "body_too_large");
}

#[tokio::test]
async fn a_request_in_flight_at_sigterm_is_answered_first() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let mut served = Served::start("127.0.0.1:0", "memory:", &[]);
    let address = served.address.strip_prefix("http://").unwrap().to_owned();
    let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let body = r#"{"account_id":"alice","currency":"EUR"}"#;
    let head = format!(
        "POST /v1/accounts HTTP/1.1\r\nhost: wallet\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nexpect: 100-continue\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server asks for the body: the request is in flight.
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).await.unwrap();
    assert!(asked.starts_with(b"HTTP/1.1 100 Continue"));

    served.terminate();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 Created"), "{answer}");
    assert_eq!(served.exit().0, Some(0));
}

#[tokio::test]
async fn a_batch_that_is_too_long_is_told_so_and_not_cut_off_while_it_is_sent() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let served = Served::start("127.0.0.1:0", "memory:", &[]);
    let address = served.address.strip_prefix("http://").unwrap();
    let body = vec![b' '; MAX_BATCH_BYTES + 1];
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/batches HTTP/1.1\r\nhost: wallet\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    // A client that writes all before it reads.
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("body_too_large"), "{answer}");
}

#[test]
fn off_loopback_it_refuses_to_start_without_a_token_file_and_says_what_to_do() {
    let arguments = ["serve", "--listen", "0.0.0.0:0", "--store", "memory:"];
    let output = binary(&arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("--token-file FILE"), "{stderr}");
}

#[tokio::test]
async fn with_a_token_file_it_asks_for_one_of_its_tokens() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens");
    fs::write(&path, "# ops\nfirst\n\nsecond\n").unwrap();
    let served = Served::start("127.0.0.1:0", "memory:", &["--token-file", text(&path)]);
    let (client, base) = served.client();
    assert_eq!(
        get(&(client.clone(), base.clone()), "/v1/accounts/alice").await.0,
        401
    );
    let request = client
        .get(format!("{base}/v1/accounts/alice"))
        .bearer_auth("second");
    assert_eq!(request.send().await.unwrap().status().as_u16(), 404);
}

#[test]
fn an_empty_token_file_is_refused_at_start() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens");
    fs::write(&path, "\n# nobody\n").unwrap();
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--store",
        "memory:",
        "--token-file",
        text(&path),
    ];
    let output = binary(&arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains(text(&path)) && stderr.contains("no token"),
        "{stderr}"
    );
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Idle connections once took every file that the process may open, and the log could not begin its next segment.
#[tokio::test]
async fn connections_that_do_nothing_keep_no_money_from_moving() {
    let dir = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", dir.path().join("data").display());
    let small = ["--segment-bytes", "65536", "--checkpoint-bytes", "65536"];
    let serve = ["serve", "--listen", "127.0.0.1:0", "--store", &store];
    let served = Served::run(within_files(100, &binary(&[&serve[..], &small].concat())));
    let client = served.client();
    let alice = json!({"account_id": "alice", "currency": "EUR"});
    assert_eq!(post(&client, "/v1/accounts", alice).await.0, 201);
    let address = served.address.strip_prefix("http://").unwrap();
    let idle: Vec<_> = (0..150)
        .map(|_| std::net::TcpStream::connect(address).unwrap())
        .collect();
    // A lone credit takes a page of 4 KiB: some five segments.
    for number in 0..80 {
        let credit = json!({"request_id": number.to_string(), "amount": 1});
        let (status, answer) = post(&client, "/v1/accounts/alice/credits", credit).await;
        assert_eq!(status, 201, "{number}: {answer}");
    }
    drop(idle);
}

/// The same command, which may have so many files open.
fn within_files(most: u32, command: &Command) -> Command {
    let mut limited = Command::new("sh");
    limited
        .arg("-c")
        .arg(format!("ulimit -n {most} && exec \"$0\" \"$@\""))
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited
}
