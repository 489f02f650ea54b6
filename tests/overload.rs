//! More than the wallet can take, and a wallet that is down.

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::support::{Client, Options, Proxy, Reply, Upstream, settles};

const FIFTY: &str = "
resources:
  - name: debit
    match: { method: POST, path: '/accounts/{id}/debits' }
    params: [ { name: id, from: path } ]
    timeout: 20s
isolation:
  - { resource: debit, maxConcurrentRequests: 50 }
";

const DEBIT: &str = "POST /accounts/alice/debits HTTP/1.1\nHost: h\nContent-Length: 2\n\n{}";

/// The main promise of isolation, over sockets: fifty means fifty, and it means them all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_debits_at_once_are_fifty_for_the_wallet_and_hang_ups_leak_nothing() {
    let upstream = Upstream::start(|_| Reply::held(201, "done")).await;
    let proxy = Proxy::start(&Options {
        upstream: upstream.url(),
        rules: FIFTY,
        flags: &["--workers", "2"],
    });
    let address: Arc<str> = proxy.address().into();
    let mut clients = JoinSet::new();
    for _ in 0..1_000 {
        let address = Arc::clone(&address);
        clients.spawn(async move {
            let mut client = Client::connect(&address).await;
            client.send(DEBIT).await;
            client.answer().await.status
        });
    }
    let mut refused = 0;
    while refused < 950 {
        assert_eq!(clients.join_next().await.unwrap().unwrap(), 503);
        refused += 1;
    }
    upstream.in_flight(50).await;
    assert_eq!(upstream.most_in_flight(), 50);
    // All that wait hang up; their debits go on.
    let mut waiting = clients.len();
    assert_eq!(waiting, 50);
    clients.abort_all();
    while clients.join_next().await.is_some() {
        waiting -= 1;
    }
    assert_eq!(waiting, 0);
    settles("the hang-ups to be seen", || async {
        proxy.metrics().await.contains("sluice_connections 0")
    })
    .await;
    assert_eq!(proxy.resource("debit").await["inFlight"], 50);
    upstream.release(50);
    settles("every permit to fall", || async {
        proxy.resource("debit").await["inFlight"] == 0
    })
    .await;
    assert_eq!((upstream.seen().len(), upstream.most_in_flight()), (50, 50));
}

const BREAKER: &str = "
resources:
  - name: debit
    match: { method: POST, path: '/accounts/{id}/debits' }
degrade:
  - { id: brk, resource: debit, grade: exceptionRatio, count: 0.3, timeWindow: 1, minRequestAmount: 5, statIntervalMs: 60000 }
";

#[tokio::test]
async fn a_wallet_that_is_down_opens_the_breaker_and_one_probe_closes_it() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    drop(taken);
    let proxy = Proxy::start(&Options {
        upstream: format!("http://{address}"),
        rules: BREAKER,
        flags: &[],
    });
    for _ in 0..5 {
        let answer = Client::once(proxy.address(), DEBIT).await;
        assert_eq!(
            (answer.status, answer.json()["code"].as_str()),
            (502, Some("upstream_unreachable"))
        );
    }
    let refused = Client::once(proxy.address(), DEBIT).await;
    assert_eq!(
        (refused.status, refused.header("x-sluice-block")),
        (503, Some("degrade"))
    );
    assert_eq!(proxy.resource("debit").await["breakers"][0]["state"], "open");
    assert!(
        proxy
            .metrics()
            .await
            .contains("sluice_breaker_state{resource=\"debit\",rule=\"brk\"} 2")
    );
    let upstream = Upstream::serve(TcpListener::bind(address).await.unwrap(), |_| {
        Reply::status(201, "done")
    });
    // What the breaker refuses is refused until its second is over; then the first one through is the probe.
    settles("the probe", || async {
        Client::once(proxy.address(), DEBIT).await.status == 201
    })
    .await;
    assert_eq!(proxy.resource("debit").await["breakers"][0]["state"], "closed");
    assert_eq!(upstream.seen().len(), 1);
}
