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

/// Unchanged on purpose: edits are picked up without a signal too, but only a signal judges the same files again.
#[tokio::test]
async fn sighup_reads_the_rules_again() {
    let (_upstream, proxy) = started(&[]).await;
    proxy.signal("HUP");
    settles("another load", || async {
        proxy
            .metrics()
            .await
            .contains("sluice_rules_reloads_total{result=\"ok\"} 2")
    })
    .await;
}
