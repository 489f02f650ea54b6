//! The real binary with `--webhook`: kills, stops, and what keeps it from starting.

use std::path::Path;

use serde_json::json;

use super::receiver::{Got, Receiver};
use super::{SECRET, is_proven, versions};
use crate::process::{Served, binary};

/// What a webhook needs on the command line.
fn arguments(folder: &Path, url: &str) -> [String; 4] {
    let secret = folder.join("secret");
    std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
    let secret = secret.to_str().unwrap().to_owned();
    [
        "--webhook".to_owned(),
        url.to_owned(),
        "--webhook-secret-file".to_owned(),
        secret,
    ]
}

fn start(folder: &Path, receiver: &Receiver) -> Served {
    let store = format!("embedded:{}", folder.join("data").display());
    let more = arguments(folder, &receiver.address("/hook"));
    let mut command = binary(&["serve", "--listen", "127.0.0.1:0", "--store", &store]);
    // A proxy of the environment would see what is none of its business.
    command
        .args(&more)
        .env("HTTP_PROXY", "http://127.0.0.1:9")
        .env("http_proxy", "http://127.0.0.1:9");
    Served::run(command)
}

async fn open(served: &Served) {
    let (client, base) = served.client();
    for name in ["alice", "bob"] {
        let body = json!({"account_id": name, "currency": "EUR"});
        client
            .post(format!("{base}/v1/accounts"))
            .json(&body)
            .send()
            .await
            .unwrap();
    }
}

async fn credit(served: &Served, account: &str, name: &str) {
    let (client, base) = served.client();
    let body = json!({"request_id": name, "amount": 5});
    let sent = client
        .post(format!("{base}/v1/accounts/{account}/credits"))
        .json(&body)
        .send();
    assert_eq!(sent.await.unwrap().status(), 201);
}

#[tokio::test]
async fn killed_again_and_again_it_sends_everything_at_least_once_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(|tries| if tries.before % 20 == 3 { 500 } else { 200 }).await;
    let (rounds, each) = (4, 15);
    for round in 0..rounds {
        let served = start(folder.path(), &receiver);
        open(&served).await;
        for number in 0..each {
            credit(&served, "alice", &format!("r{round}-{number}")).await;
            credit(&served, "bob", &format!("r{round}-{number}")).await;
        }
        // In the middle of it, wherever that is.
        let some = receiver.got().len() + 5;
        receiver.until(|got| got.len() >= some).await;
        served.kill();
    }
    let served = start(folder.path(), &receiver);
    let all = rounds * each;
    let arrived = |got: &[Got], account: &str| {
        let good: Vec<Got> = got.iter().filter(|got| got.answered == 200).cloned().collect();
        versions(&good, account)
    };
    let got = receiver
        .until(|got| {
            ["alice", "bob"]
                .iter()
                .all(|name| arrived(got, name).len() == all)
        })
        .await;
    for account in ["alice", "bob"] {
        assert!(
            arrived(&got, account)
                .into_iter()
                .eq(1..=u64::try_from(all).unwrap()),
            "{account}"
        );
    }
    assert!(got.iter().all(is_proven));
    assert_eq!(served.stop(), Some(0));
}

#[tokio::test]
async fn after_a_stop_it_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(|_| 200).await;
    let served = start(folder.path(), &receiver);
    open(&served).await;
    for number in 0..10 {
        credit(&served, "alice", &format!("a{number}")).await;
    }
    receiver.until(|got| got.len() == 10).await;
    assert_eq!(served.stop(), Some(0));
    let served = start(folder.path(), &receiver);
    credit(&served, "alice", "later").await;
    let got = receiver.until(|got| got.len() > 10).await;
    assert_eq!((got.len(), got[10].version()), (11, 11));
    assert_eq!(served.stop(), Some(0));
}

#[test]
fn what_keeps_webhooks_from_beginning_is_said_and_nothing_starts() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let store = format!("embedded:{}", data.display());
    let start = |more: &[&str]| {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--store", &store];
        let output = binary(&[&arguments, more].concat()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let good = arguments(folder.path(), "http://127.0.0.1:9/hook");
    let good: Vec<&str> = good.iter().map(String::as_str).collect();
    let (code, said) = start(&good[..2]);
    assert!(
        code == Some(2) && said.contains("--webhook-secret-file"),
        "{said}"
    );
    let (code, said) = start(&["--webhook", "https://example.com", good[2], good[3]]);
    assert!(
        code == Some(2) && said.contains("http://127.0.0.1:9000"),
        "{said}"
    );
    let short = folder.path().join("short");
    std::fs::write(&short, "short\n").unwrap();
    let (code, said) = start(&[good[0], good[1], good[2], short.to_str().unwrap()]);
    assert!(
        code == Some(1) && said.contains("short is refused") && said.contains("at least 16")
            || said.contains("16 to"),
        "{said}"
    );
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("webhooks.json"), "{").unwrap();
    let (code, said) = start(&good);
    assert!(
        code == Some(1) && said.contains("webhooks.json") && said.contains("is damaged"),
        "{said}"
    );
}
