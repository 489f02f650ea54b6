//! Rules that are edited while traffic runs through the real binary.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};

use crate::shipped::{AN_HOUR, COUNT, DURATION, TAKE_MONEY, replace, shipped};
use crate::support::proxy::http;
use crate::support::{Options, Proxy, Reply, Upstream, settles};

/// An edit is in force so soon.
const SOON: Duration = Duration::from_secs(1);

/// Debits of one account, one after another by each of a few clients, until they are stopped.
struct Traffic {
    stop: Arc<AtomicBool>,
    clients: JoinSet<BTreeMap<u16, u64>>,
}

impl Traffic {
    fn start(proxy: &Proxy) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for _ in 0..4 {
            let (stop, url) = (Arc::clone(&stop), proxy.url("/v1/accounts/alice/debits"));
            clients.spawn(async move {
                let (client, mut answers) = (http(), BTreeMap::new());
                while !stop.load(Ordering::Relaxed) {
                    let response = client.post(&url).body("{}").send().await.unwrap();
                    *answers.entry(response.status().as_u16()).or_default() += 1;
                }
                answers
            });
        }
        Self { stop, clients }
    }

    /// By status, what was answered.
    async fn stop(mut self) -> BTreeMap<u16, u64> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = BTreeMap::new();
        while let Some(answers) = self.clients.join_next().await {
            for (status, count) in answers.unwrap() {
                *all.entry(status).or_default() += count;
            }
        }
        all
    }
}

/// In front of a wallet that grants everything, with a window of an hour.
async fn started(count: &str) -> (Upstream, Proxy) {
    let upstream = Upstream::start(|_| Reply::status(201, "{}")).await;
    let folder = shipped(&[(DURATION, AN_HOUR), (COUNT, count)]);
    let options = Options {
        upstream: upstream.url(),
        flags: &["--access-log", "off"],
        ..Options::default()
    };
    (upstream, Proxy::start_in(folder, &options))
}

/// The count of `hot-account` in force, and which set that is.
async fn in_force(proxy: &Proxy) -> (u64, u64) {
    let rules = proxy.admin("/api/rules").await;
    let resources = rules["resources"].as_array().unwrap();
    let mut all = resources
        .iter()
        .flat_map(|each| each["rules"].as_array().unwrap());
    let hot = all.find(|rule| rule["id"] == "hot-account").unwrap();
    (
        hot["count"].as_u64().unwrap(),
        rules["generation"].as_u64().unwrap(),
    )
}

/// Edits, and waits until the count is in force.
async fn edit(proxy: &Proxy, from: &str, to: &str, count: u64) {
    replace(&proxy.rule_file(TAKE_MONEY), from, to);
    let saved = Instant::now();
    settles("the edit", || async { in_force(proxy).await.0 == count }).await;
    let took = saved.elapsed();
    assert!(took < SOON, "in force after {took:?}");
}

async fn passed(upstream: &Upstream, count: usize) {
    settles("the count to be used up", || async {
        upstream.seen().len() == count
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_count_edited_under_traffic_is_in_force_at_once_loses_no_request_and_keeps_what_was_used() {
    let (upstream, proxy) = started("    count: 50\n").await;
    let traffic = Traffic::start(&proxy);
    passed(&upstream, 50).await;
    edit(&proxy, "    count: 50\n", "    count: 80\n", 80).await;
    passed(&upstream, 80).await;
    edit(&proxy, "    count: 80\n", "    count: 20\n", 20).await;
    edit(&proxy, "    count: 20\n", "    count: 90\n", 90).await;
    passed(&upstream, 90).await;
    let answers = traffic.stop().await;
    assert_eq!(answers[&201], 90, "{answers:?}");
    assert_eq!(answers.keys().copied().collect::<Vec<_>>(), [201, 429]);
    assert_eq!(upstream.seen().len(), 90);
}

/// The lines of the process log that are about a file of rules.
fn complaints(proxy: &Proxy) -> Vec<Value> {
    let lines = proxy.errors();
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter(|line| line.to_string().contains(TAKE_MONEY))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_file_changes_nothing_is_named_with_its_line_and_mended_is_in_force() {
    let (upstream, proxy) = started("    count: 10\n").await;
    let path = proxy.rule_file(TAKE_MONEY);
    let good = fs::read_to_string(&path).unwrap();
    let line = 1 + good.lines().position(|line| line == "    count: 10").unwrap();
    let traffic = Traffic::start(&proxy);
    passed(&upstream, 10).await;
    let before = in_force(&proxy).await;

    replace(&path, "    count: 10\n", "    cuont: 20\n");
    settles("the mistake to be seen", || async {
        proxy.admin("/readyz").await["rules"]["ok"] == false
    })
    .await;
    let ready = proxy.admin("/readyz").await;
    assert_eq!(ready["ready"], true);
    let mut faults = ready["rules"]["files"].as_array().unwrap().iter();
    let fault = faults
        .find(|fault| fault["line"] == line)
        .expect("the line is named");
    assert!(fault["file"].as_str().unwrap().ends_with(TAKE_MONEY), "{fault}");
    assert!(fault["error"].as_str().unwrap().contains("cuont"), "{fault}");
    settles("the log", || async {
        complaints(&proxy)
            .iter()
            .any(|told| told["line"] == line && told["error"] == fault["error"])
    })
    .await;
    assert_eq!(in_force(&proxy).await, before);

    replace(&path, "    cuont: 20\n", "    count: 20\n");
    settles("the mended file", || async { in_force(&proxy).await.0 == 20 }).await;
    assert_eq!(
        proxy.admin("/readyz").await["rules"],
        json!({ "ok": true, "files": [] })
    );
    passed(&upstream, 20).await;
    let answers = traffic.stop().await;
    assert_eq!(answers[&201], 20, "{answers:?}");
    assert_eq!(answers.keys().copied().collect::<Vec<_>>(), [201, 429]);
}
