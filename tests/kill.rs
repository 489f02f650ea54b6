//! kill -9 of the whole thing, sidecar and wallet in one process, in the middle of a load.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::shipped::{COUNT, shipped};
use crate::support::proxy::http;
use crate::support::{Options, Proxy};
use crate::wallet::verify;

const ACCOUNTS: [&str; 3] = ["alice", "bob", "carol"];
const CLIENTS: usize = 8;
/// Each round kills after so many answers: early, in full swing, and in between.
const ROUNDS: [u64; 5] = [3, 250, 40, 120, 77];

/// Limits that this load never meets: what is watched here is the books.
const NO_LIMIT: &str = "    count: 1000000\n";

/// One request, and what came back.
#[derive(Clone)]
struct Sent {
    account: &'static str,
    path: String,
    body: String,
    delta: i64,
    /// `None`: the process was gone before it answered.
    receipt: Option<String>,
}

/// Names requests, and says how they go.
#[derive(Default)]
struct Ids(AtomicU64);

impl Ids {
    /// Every fourth takes, the others give.
    fn next(&self) -> Sent {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let account = ACCOUNTS[usize::try_from(number).unwrap() % ACCOUNTS.len()];
        let amount = i64::try_from(number % 7).unwrap() + 1;
        let delta = if number % 4 == 3 { -amount } else { amount };
        Sent::new(account, &format!("r{number}"), delta)
    }
}

impl Sent {
    fn new(account: &'static str, request: &str, delta: i64) -> Self {
        let kind = if delta < 0 { "debits" } else { "credits" };
        Self {
            account,
            path: format!("/v1/accounts/{account}/{kind}"),
            body: json!({ "request_id": request, "amount": delta.abs() }).to_string(),
            delta,
            receipt: None,
        }
    }
}

/// Status and body; `None` when the connection broke.
async fn post(client: &reqwest::Client, proxy: &Proxy, path: &str, body: &str) -> Option<(u16, String)> {
    let request = client
        .post(proxy.url(path))
        .header("content-type", "application/json");
    let response = request.body(body.to_owned()).send().await.ok()?;
    Some((response.status().as_u16(), response.text().await.ok()?))
}

async fn get(proxy: &Proxy, path: &str) -> Value {
    let response = http().get(proxy.url(path)).send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response.text().await.unwrap().parse().unwrap()
}

/// Sends until the process is gone; what was sent, in order.
async fn client(proxy: Arc<Proxy>, ids: Arc<Ids>, answers: Arc<watch::Sender<u64>>) -> Vec<Sent> {
    let (client, mut log) = (http(), Vec::new());
    loop {
        let mut sent = ids.next();
        match post(&client, &proxy, &sent.path, &sent.body).await {
            Some((201, receipt)) => sent.receipt = Some(receipt),
            Some(other) => panic!("{}: {other:?}", sent.body),
            None => {
                log.push(sent);
                return log;
            }
        }
        log.push(sent);
        answers.send_modify(|answers| *answers += 1);
    }
}

/// Loads the process, kills it after so many answers, and says what was sent.
async fn load_and_kill(proxy: Proxy, ids: &Arc<Ids>, after: u64) -> (Vec<Sent>, tempfile::TempDir) {
    let (answers, mut answered) = watch::channel(0);
    let (proxy, answers) = (Arc::new(proxy), Arc::new(answers));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(client(Arc::clone(&proxy), Arc::clone(ids), Arc::clone(&answers)));
    }
    tokio::select! {
        enough = answered.wait_for(|answers| *answers >= after) => drop(enough.unwrap()),
        Some(ended) = clients.join_next() => panic!("a client ended: {:?}", ended.map(|log| log.len())),
    }
    proxy.signal("KILL");
    let mut sent = Vec::new();
    while let Some(log) = clients.join_next().await {
        sent.extend(log.unwrap());
    }
    let proxy = Arc::into_inner(proxy).expect("the clients are gone");
    (sent, proxy.kill())
}

/// Sends in order: what was acknowledged is answered byte for byte as before, what was not is decided now.
async fn ask_again(proxy: &Proxy, sent: &mut [Sent]) {
    let client = http();
    for each in sent {
        let (status, receipt) = post(&client, proxy, &each.path, &each.body).await.unwrap();
        match &each.receipt {
            Some(first) => assert_eq!((status, &receipt), (200, first)),
            None => assert!(matches!(status, 200 | 201), "{status} {receipt}"),
        }
        each.receipt = Some(receipt);
    }
}

/// Each balance is what the clients were told, and the statement says how it came to be: every request once.
async fn check_books(proxy: &Proxy, sent: &[Sent]) {
    for account in ACCOUNTS {
        let of_account = || sent.iter().filter(|sent| sent.account == account);
        let balance: i64 = of_account().map(|sent| sent.delta).sum();
        assert_eq!(
            get(proxy, &format!("/v1/accounts/{account}")).await["balance"],
            balance,
            "{account}"
        );
        let mut effects = BTreeMap::new();
        let (mut after, mut replayed) = (String::new(), 0);
        loop {
            let page = get(
                proxy,
                &format!("/v1/accounts/{account}/entries?limit=1000{after}"),
            )
            .await;
            let entries = page["entries"].as_array().unwrap();
            for entry in entries {
                replayed += entry["delta"].as_i64().unwrap();
                assert_eq!(entry["balance_after"], replayed, "{entry}");
                *effects
                    .entry(entry["request_id"].as_str().unwrap().to_owned())
                    .or_insert(0) += 1;
                assert_eq!(entry["version"], effects.len(), "{entry}");
            }
            if entries.is_empty() {
                break;
            }
            after = format!("&after={}", page["next"].as_str().unwrap());
        }
        assert_eq!(effects.len(), of_account().count());
        assert!(effects.values().all(|times| *times == 1), "{effects:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_in_the_middle_of_a_load_the_books_agree_with_every_answer_and_verify_passes() {
    let options = Options {
        flags: &["--access-log", "off"],
        ..Options::default()
    };
    let mut proxy = Proxy::start_in(shipped(&[(COUNT, NO_LIMIT)]), &options);
    for account in ACCOUNTS {
        let body = json!({ "account_id": account, "currency": "EUR" }).to_string();
        assert_eq!(post(&http(), &proxy, "/v1/accounts", &body).await.unwrap().0, 201);
    }
    // Enough that whatever is taken first is there.
    let mut all = ACCOUNTS
        .map(|account| Sent::new(account, "first", 1_000))
        .to_vec();
    ask_again(&proxy, &mut all).await;
    let ids = Arc::new(Ids::default());
    for after in ROUNDS {
        let (sent, folder) = load_and_kill(proxy, &ids, after).await;
        all.extend(sent);
        proxy = Proxy::start_in(folder, &options);
        ask_again(&proxy, &mut all).await;
        check_books(&proxy, &all).await;
    }
    let (status, folder) = proxy.stop().await;
    assert_eq!(status.code(), Some(0));
    let proof = verify(&folder.path().join("data"));
    let said = String::from_utf8_lossy(&proof.stdout).into_owned() + &String::from_utf8_lossy(&proof.stderr);
    assert_eq!(proof.status.code(), Some(0), "{said}");
}
