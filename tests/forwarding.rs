//! What passes through, and as what.

use crate::support::{Client, Options, Proxy, Reply, Upstream, soon};

/// Everything passes, nothing is limited.
const OPEN: &str = "
resources:
  - { name: all, match: { path: /a }, timeout: 10s }
isolation:
  - { resource: all, maxConcurrentRequests: 10000 }
";

fn in_front_of(upstream: &Upstream) -> Proxy {
    start(upstream, &["--workers", "1"])
}

fn start(upstream: &Upstream, flags: &[&str]) -> Proxy {
    Proxy::start(&Options {
        upstream: upstream.url(),
        rules: OPEN,
        flags,
    })
}

#[tokio::test]
async fn a_request_arrives_with_nothing_lost_and_only_the_forwarding_fields_added() {
    let upstream = Upstream::start(|_| Reply::status(201, "made")).await;
    let proxy = in_front_of(&upstream);
    let request = "POST /a?x=%2F&y HTTP/1.1\nHost: wallet.test\nX-Request-Id: r-1\ntraceparent: 00-ab-cd-01\n\
        Connection: keep-alive, X-Secret\nX-Secret: 1\nKeep-Alive: timeout=5\nTE: trailers\nX-Forwarded-For: 6.6.6.6\n\
        Content-Length: 5\n\nhello";
    let answer = Client::once(proxy.address(), request).await;
    assert_eq!((answer.status, answer.text()), (201, "made"));
    let seen = &upstream.seen()[0];
    assert_eq!(seen.line(), "POST /a?x=%2F&y");
    assert_eq!(seen.body, b"hello");
    let mut fields: Vec<&str> = seen.head.lines().skip(1).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "content-length: 5",
            "host: wallet.test",
            "traceparent: 00-ab-cd-01",
            "via: 1.1 sluice",
            "x-forwarded-for: 127.0.0.1",
            "x-forwarded-host: wallet.test",
            "x-forwarded-proto: http",
            "x-request-id: r-1",
        ]
    );
}

#[tokio::test]
async fn an_answer_passes_with_its_own_fields_and_without_those_of_the_hop() {
    let upstream = Upstream::start(|_| {
        Reply::Answer(
            "HTTP/1.1 307 Elsewhere\nLocation: http://trap/\nContent-Encoding: gzip\nETag: \"e\"\nKeep-Alive: timeout=9\n\
            Connection: X-Hop\nX-Hop: 1\nContent-Length: 3\n\n\u{1f}xx"
                .to_owned(),
        )
    })
    .await;
    let proxy = in_front_of(&upstream);
    let answer = Client::once(proxy.address(), "GET /a HTTP/1.1\nHost: h\n\n").await;
    assert_eq!(answer.status, 307);
    assert_eq!(answer.header("location"), Some("http://trap/"));
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    assert_eq!(answer.header("etag"), Some("\"e\""));
    assert_eq!(answer.header("keep-alive"), None);
    assert_eq!(answer.header("x-hop"), None);
    assert_eq!(answer.body, b"\x1fxx");
}

#[tokio::test]
async fn requests_share_one_upstream_connection() {
    let upstream = Upstream::start(|seen| Reply::status(200, seen.line())).await;
    let proxy = in_front_of(&upstream);
    for number in 0..20 {
        let request = format!("GET /a?{number} HTTP/1.1\nHost: h\n\n");
        assert_eq!(
            Client::once(proxy.address(), &request).await.text(),
            format!("GET /a?{number}")
        );
    }
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn a_unix_socket_serves_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::start_unix(&folder.path().join("wallet.sock"), |seen| {
        Reply::status(200, std::str::from_utf8(&seen.body).unwrap())
    });
    let proxy = in_front_of(&upstream);
    for _ in 0..3 {
        let answer = Client::once(
            proxy.address(),
            "POST /a HTTP/1.1\nHost: h\nContent-Length: 2\n\nhi",
        )
        .await;
        assert_eq!((answer.status, answer.text()), (200, "hi"));
    }
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn a_request_that_finds_its_connection_closed_goes_out_once_on_another() {
    let upstream =
        Upstream::start(|_| Reply::AnswerAndClose("HTTP/1.1 201 Made\nContent-Length: 2\n\nok".to_owned()))
            .await;
    let proxy = in_front_of(&upstream);
    let mut made = 0;
    for number in 1..=10 {
        let answer = Client::once(
            proxy.address(),
            "POST /a HTTP/1.1\nHost: h\nContent-Length: 2\n\nhi",
        )
        .await;
        made += usize::from(answer.status == 201);
        // A reset that crosses a request on the wire is the one honest exception; nothing is ever sent twice.
        assert!([201, 502].contains(&answer.status), "{}", answer.text());
        assert!(upstream.seen().len() <= number);
    }
    assert!(made > 1, "the first finds no connection that could be closed");
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_answer_is_502_and_the_write_is_not_repeated() {
    let upstream = Upstream::start(|_| Reply::Close).await;
    let proxy = in_front_of(&upstream);
    let answer = Client::once(
        proxy.address(),
        "POST /a HTTP/1.1\nHost: h\nContent-Length: 2\n\nhi",
    )
    .await;
    assert_eq!(answer.status, 502);
    assert_eq!(answer.json()["code"], "upstream_reset");
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn no_upstream_is_502_and_says_that_nothing_was_sent() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let proxy = Proxy::start(&Options {
        upstream: format!("http://{address}"),
        rules: OPEN,
        flags: &[],
    });
    let answer = Client::once(proxy.address(), "GET /a HTTP/1.1\nHost: h\n\n").await;
    assert_eq!(answer.status, 502);
    assert_eq!(answer.json()["code"], "upstream_unreachable");
    assert_eq!(
        answer.header("proxy-status"),
        Some("sluice; error=connection_refused; details=\"upstream_unreachable\"")
    );
    assert_eq!(answer.header("x-sluice-block"), None);
}

#[tokio::test]
async fn answers_without_a_body_keep_their_length_and_the_connection() {
    let upstream = Upstream::start(|seen| {
        Reply::Answer(
            match seen.line() {
                "HEAD /a" => "HTTP/1.1 200 OK\nContent-Length: 1234\n\n",
                "GET /a?304" => "HTTP/1.1 304 Same\nContent-Length: 1234\n\n",
                "GET /a?204" => "HTTP/1.1 204 Nothing\n\n",
                _ => "HTTP/1.1 200 OK\nContent-Length: 4\n\nlast",
            }
            .to_owned(),
        )
    })
    .await;
    let proxy = in_front_of(&upstream);
    let mut client = Client::connect(proxy.address()).await;
    client.send("HEAD /a HTTP/1.1\nHost: h\n\n").await;
    assert_eq!(
        client.answer_to_head().await.header("content-length"),
        Some("1234")
    );
    client.send("GET /a?304 HTTP/1.1\nHost: h\n\n").await;
    assert_eq!(client.answer().await.header("content-length"), Some("1234"));
    client.send("GET /a?204 HTTP/1.1\nHost: h\n\n").await;
    let nothing = client.answer().await;
    assert_eq!((nothing.status, nothing.header("content-length")), (204, None));
    client.send("GET /a HTTP/1.1\nHost: h\n\n").await;
    assert_eq!(client.answer().await.text(), "last");
}

#[tokio::test]
async fn chunked_bodies_stream_both_ways() {
    let upstream = Upstream::start(|_| {
        Reply::Answer(
            "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n".to_owned(),
        )
    })
    .await;
    let proxy = in_front_of(&upstream);
    let request = "POST /a HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n4\r\nwiki\r\n0\r\n\r\n";
    let answer = Client::once(proxy.address(), request).await;
    assert_eq!(answer.text(), "abcde");
    assert_eq!(upstream.seen()[0].body, b"4\r\nwiki\r\n0\r\n\r\n");
}

#[tokio::test]
async fn a_large_body_passes_whole() {
    let upstream = Upstream::start(|seen| Reply::status(200, std::str::from_utf8(&seen.body).unwrap())).await;
    let proxy = in_front_of(&upstream);
    let body = "0123456789abcdef".repeat(64 * 1024);
    let request = format!(
        "POST /a HTTP/1.1\nHost: h\nContent-Length: {}\n\n{body}",
        body.len()
    );
    let mut client = Client::connect(proxy.address()).await;
    client.send(&request).await;
    assert!(client.answer().await.text() == body);
}

#[tokio::test]
async fn expect_continue_ends_at_the_sidecar() {
    let upstream = Upstream::start(|_| Reply::status(201, "made")).await;
    let proxy = in_front_of(&upstream);
    let mut client = Client::connect(proxy.address()).await;
    client
        .send("POST /a HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Length: 2\n\n")
        .await;
    assert_eq!(client.head().await.0, 100);
    client.send("hi").await;
    assert_eq!(client.answer().await.status, 201);
    assert_eq!(upstream.seen()[0].header("expect"), None);
}

#[tokio::test]
async fn an_upgrade_is_not_passed_on() {
    let upstream = Upstream::start(|_| Reply::status(200, "plain")).await;
    let proxy = in_front_of(&upstream);
    let request = "GET /a HTTP/1.1\nHost: h\nConnection: Upgrade\nUpgrade: websocket\n\n";
    assert_eq!(Client::once(proxy.address(), request).await.text(), "plain");
    assert_eq!(upstream.seen()[0].header("upgrade"), None);
}

#[tokio::test]
async fn the_upstream_token_is_added_where_a_request_has_none() {
    let upstream = Upstream::start(|_| Reply::status(200, "")).await;
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("token");
    std::fs::write(&tokens, "secret\n").unwrap();
    let proxy = start(&upstream, &["--upstream-token-file", tokens.to_str().unwrap()]);
    Client::once(proxy.address(), "GET /a HTTP/1.1\nHost: h\n\n").await;
    Client::once(
        proxy.address(),
        "GET /a HTTP/1.1\nHost: h\nAuthorization: Bearer own\n\n",
    )
    .await;
    let seen: Vec<_> = upstream
        .seen()
        .iter()
        .map(|seen| seen.header("authorization").unwrap().to_owned())
        .collect();
    assert_eq!(seen, ["Bearer secret", "Bearer own"]);
}

#[tokio::test]
async fn a_client_that_half_closes_gets_its_answer_if_the_listener_says_so() {
    let upstream = Upstream::start(|_| Reply::held(200, "late")).await;
    let proxy = start(&upstream, &["--half-close"]);
    let mut client = Client::connect(proxy.address()).await;
    client.send("GET /a HTTP/1.1\nHost: h\n\n").await;
    client.half_close().await;
    upstream.arrived(1).await;
    upstream.release(1);
    assert_eq!(soon("the answer", client.answer()).await.text(), "late");
}

#[tokio::test]
async fn a_client_that_sends_no_head_is_let_go() {
    let upstream = Upstream::start(|_| Reply::status(200, "")).await;
    let proxy = start(&upstream, &["--header-timeout", "50ms"]);
    let mut silent = Client::connect(proxy.address()).await;
    silent.closed().await;
    let mut dribbling = Client::connect(proxy.address()).await;
    dribbling.send("GET /a HTT").await;
    dribbling.closed().await;
    assert!(upstream.seen().is_empty());
}

/// Whatever another server could read differently is refused, and its connection with it.
#[tokio::test]
async fn a_head_that_can_be_read_two_ways_is_400_and_never_forwarded() {
    let upstream = Upstream::start(|_| Reply::status(200, "")).await;
    let proxy = in_front_of(&upstream);
    for fields in [
        "",
        "Host: a\nHost: b",
        "Host: a b",
        "Host: user@a",
        "Host: a\nTransfer-Encoding: gzip, chunked",
        "Host: a\nTransfer-Encoding: chunked\nTransfer-Encoding: chunked",
        "Host: a\nTransfer-Encoding: chunked, identity",
        "Host: a\nContent-Length: 5\nContent-Length: 6",
        "Host: a\nContent-Length: +5",
        "Host: a\nContent-Length : 5",
        "Host: a\nX: b\n c",
    ] {
        let request = format!("POST /a HTTP/1.1\n{fields}\n\n0\r\n\r\n").replace("\n\n\n", "\n\n");
        let answer = Client::once(proxy.address(), &request).await;
        assert_eq!(answer.status, 400, "{fields}");
        assert_eq!(answer.header("connection"), Some("close"), "{fields}");
    }
    assert!(upstream.seen().is_empty());
}

#[tokio::test]
async fn an_answer_whose_end_is_uncertain_is_502() {
    for framing in [
        "Transfer-Encoding: gzip, chunked",
        "Content-Length: 3\nTransfer-Encoding: chunked",
        "Content-Length: 3\nContent-Length: 5",
    ] {
        let answer = format!("HTTP/1.1 200 OK\n{framing}\n\n5\r\nabcde\r\n0\r\n\r\n");
        let upstream = Upstream::start(move |_| Reply::Answer(answer.clone())).await;
        let proxy = in_front_of(&upstream);
        let answer = Client::once(proxy.address(), "GET /a HTTP/1.1\nHost: h\n\n").await;
        assert_eq!(answer.status, 502, "{framing}");
        assert_eq!(answer.json()["code"], "upstream_reset", "{framing}");
    }
}

#[tokio::test]
async fn an_old_upstream_does_not_make_the_sidecar_old() {
    let upstream = Upstream::start(|_| Reply::AnswerAndClose("HTTP/1.0 200 OK\n\nabcde".to_owned())).await;
    let proxy = in_front_of(&upstream);
    let mut client = Client::connect(proxy.address()).await;
    for _ in 0..2 {
        client.send("GET /a HTTP/1.1\nHost: h\n\n").await;
        assert_eq!(client.answer().await.text(), "abcde");
    }
}
