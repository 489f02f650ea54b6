//! Leaving, reloading and starting: what signals do.

use crate::support::{Client, Options, Proxy, Reply, Upstream, settles};

const OPEN: &str = "
resources:
  - { name: all, match: { path: /a }, timeout: 20s }
isolation:
  - { id: cap, resource: all, maxConcurrentRequests: 100 }
";

const GET: &str = "GET /a HTTP/1.1\nHost: h\n\n";

async fn started(flags: &[&str]) -> (Upstream, Proxy) {
    let upstream = Upstream::start(|_| Reply::held(200, "done")).await;
    let proxy = Proxy::start(&Options {
        upstream: upstream.url(),
        rules: OPEN,
        flags,
    });
    (upstream, proxy)
}

async fn not_ready(proxy: &Proxy) -> bool {
    proxy.admin("/readyz").await["ready"] == false
}

#[tokio::test]
async fn a_process_that_leaves_is_not_ready_still_accepts_and_finishes_what_it_began() {
    let (upstream, proxy) = started(&["--accept-grace", "10s"]).await;
    let mut early = Client::connect(proxy.address()).await;
    early.send(GET).await;
    upstream.arrived(1).await;
    proxy.signal("TERM");
    settles("unreadiness", || not_ready(&proxy)).await;
    let mut late = Client::connect(proxy.address()).await;
    late.send(GET).await;
    upstream.arrived(2).await;
    upstream.release(2);
    assert_eq!(early.answer().await.text(), "done");
    assert_eq!(late.answer().await.text(), "done");
    // The last connections close: the grace ends at once.
    drop((early, late));
    assert_eq!(proxy.exit().await.code(), Some(0));
}

#[tokio::test]
async fn after_the_grace_idle_connections_close_and_the_answer_under_way_says_close() {
    // One worker: once it has closed the idle connections, it has told the busy one as well.
    let (upstream, proxy) = started(&["--accept-grace", "0s", "--workers", "1"]).await;
    let mut idle = Client::connect(proxy.address()).await;
    idle.send(GET).await;
    upstream.arrived(1).await;
    upstream.release(1);
    idle.answer().await;
    let mut silent = Client::connect(proxy.address()).await;
    let mut busy = Client::connect(proxy.address()).await;
    busy.send(GET).await;
    upstream.arrived(2).await;
    proxy.signal("TERM");
    idle.closed().await;
    silent.closed().await;
    upstream.release(1);
    let answer = busy.answer().await;
    assert_eq!(
        (answer.text(), answer.header("connection")),
        ("done", Some("close"))
    );
    assert_eq!(proxy.exit().await.code(), Some(0));
}

#[tokio::test]
async fn an_idle_process_leaves_at_once() {
    let (_upstream, proxy) = started(&["--accept-grace", "1m", "--drain-timeout", "2m"]).await;
    proxy.signal("TERM");
    assert_eq!(proxy.exit().await.code(), Some(0));
}

#[tokio::test]
async fn what_does_not_end_is_dropped_at_the_hard_stop() {
    let (upstream, proxy) = started(&["--accept-grace", "0s", "--drain-timeout", "100ms"]).await;
    let mut client = Client::connect(proxy.address()).await;
    client.send(GET).await;
    upstream.arrived(1).await;
    proxy.signal("TERM");
    client.closed().await;
    assert_eq!(proxy.exit().await.code(), Some(0));
}

#[tokio::test]
async fn a_second_signal_stops_at_once() {
    let (upstream, proxy) = started(&["--accept-grace", "1m", "--drain-timeout", "2m"]).await;
    let mut client = Client::connect(proxy.address()).await;
    client.send(GET).await;
    upstream.arrived(1).await;
    proxy.signal("TERM");
    settles("unreadiness", || not_ready(&proxy)).await;
    proxy.signal("TERM");
    assert_eq!(proxy.exit().await.code(), Some(0));
}

#[tokio::test]
async fn sighup_reloads_the_rules_and_broken_ones_change_nothing_but_the_status() {
    let (_upstream, proxy) = started(&[]).await;
    std::fs::write(proxy.rule_file("test.yaml"), "resources: [\n").unwrap();
    proxy.signal("HUP");
    settles("the error", || async {
        proxy.admin("/readyz").await["rules"]["ok"] == false
    })
    .await;
    let readiness = proxy.admin("/readyz").await;
    assert_eq!(readiness["ready"], true);
    assert!(
        readiness["rules"]["files"][0]["file"]
            .as_str()
            .unwrap()
            .ends_with("test.yaml")
    );
    assert!(readiness["rules"]["files"][0]["line"].as_u64().unwrap() >= 1);
    std::fs::write(proxy.rule_file("test.yaml"), OPEN.replace("100", "7")).unwrap();
    proxy.signal("HUP");
    settles("the new rules", || async {
        proxy.admin("/readyz").await["rules"]["ok"] == true
    })
    .await;
    let rules = proxy.admin("/api/rules").await;
    assert_eq!(rules["resources"][0]["rules"][0]["maxConcurrentRequests"], 7);
}
