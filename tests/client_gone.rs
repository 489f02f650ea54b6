//! Clients that hang up while the wallet works.

use crate::support::{Client, Options, Proxy, Reply, Upstream, settles};

const ONE: &str = "
resources:
  - { name: write, match: { method: POST, path: /write } }
  - { name: read, match: { method: GET, path: /read } }
isolation:
  - { resource: write, maxConcurrentRequests: 1 }
  - { resource: read, maxConcurrentRequests: 1 }
";

const WRITE: &str = "POST /write HTTP/1.1\nHost: h\nContent-Length: 0\n\n";
const READ: &str = "GET /read HTTP/1.1\nHost: h\n\n";

async fn started() -> (Upstream, Proxy) {
    let upstream = Upstream::start(|_| Reply::held(201, "done")).await;
    let proxy = Proxy::start(&Options {
        upstream: upstream.url(),
        rules: ONE,
        flags: &[],
    });
    (upstream, proxy)
}

#[tokio::test]
async fn a_debit_whose_client_left_is_finished_and_keeps_its_place_until_then() {
    let (upstream, proxy) = started().await;
    let mut client = Client::connect(proxy.address()).await;
    client.send(WRITE).await;
    upstream.arrived(1).await;
    drop(client);
    // The reset of a read that is sent later shows that the hang-up has been seen by then.
    settles("the connection to be gone", || async {
        proxy.metrics().await.contains("sluice_connections 0")
    })
    .await;
    assert_eq!(
        Client::once(proxy.address(), WRITE)
            .await
            .header("x-sluice-block"),
        Some("isolation")
    );
    assert_eq!(proxy.resource("write").await["inFlight"], 1);
    upstream.release(1);
    settles("the permit to fall", || async {
        proxy.resource("write").await["inFlight"] == 0
    })
    .await;
    assert_eq!(upstream.seen().len(), 1);
    assert_eq!(upstream.most_in_flight(), 1);
}

#[tokio::test]
async fn a_read_whose_client_left_is_cancelled() {
    let (upstream, proxy) = started().await;
    let mut client = Client::connect(proxy.address()).await;
    client.send(READ).await;
    upstream.arrived(1).await;
    drop(client);
    // The stub sees its connection close, without ever having answered.
    upstream.in_flight(0).await;
    settles("the permit to fall", || async {
        proxy.resource("read").await["inFlight"] == 0
    })
    .await;
    let resource = proxy.resource("read").await;
    assert_eq!(resource["exceptions"], 0);
}

#[tokio::test]
async fn an_upload_that_breaks_off_is_not_held_against_the_wallet() {
    let (upstream, proxy) = started().await;
    let mut client = Client::connect(proxy.address()).await;
    client
        .send("POST /write HTTP/1.1\nHost: h\nContent-Length: 10\n\nhalf")
        .await;
    settles("the upload to be under way", || async {
        proxy.resource("write").await["inFlight"] == 1 && upstream.connections() == 1
    })
    .await;
    drop(client);
    settles("the permit to fall", || async {
        proxy.resource("write").await["inFlight"] == 0
    })
    .await;
    assert_eq!(proxy.resource("write").await["exceptions"], 0);
    assert!(upstream.seen().is_empty(), "the wallet never had the whole of it");
}
