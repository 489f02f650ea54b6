//! `GET /v1/events`: every entry once, from any id on, for as long as somebody listens and no longer.

use axum::Router;
use axum::body::Body;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use wallet_backend::Wallet;
use wallet_backend::http::{Ending, HttpOptions, MAX_STREAMS, router};

use super::support::{Api, Reply};
use crate::faults::{FaultDisk, small};
use crate::process::Served;
use crate::support::{amount, id, ordinary, request};

/// The events of a text, each an id and its data; an id without data has none.
fn events(text: &str) -> Vec<(String, Option<Value>)> {
    let block = |block: &str| {
        let field = |name: &str| {
            let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(": ")?.to_owned());
            block.lines().find_map(value)
        };
        let data = field("data").map(|data| serde_json::from_str(&data).unwrap());
        field("id").map(|id| (id, data))
    };
    text.split("\n\n").filter_map(block).collect()
}

fn of(reply: &Reply) -> Vec<(String, Value)> {
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    let found = events(std::str::from_utf8(&reply.body).unwrap());
    let with_data = |(id, data): (String, Option<Value>)| (id, data.unwrap());
    found.into_iter().map(with_data).collect()
}

/// `alice` and `bob`, and three entries of the first and one of the second.
async fn busy() -> Api {
    let api = Api::funded().await;
    let debit = r#"{"request_id":"d","amount":5}"#;
    api.post("/v1/accounts/alice/debits", debit).await;
    let transfer = r#"{"request_id":"t","from":"alice","to":"bob","amount":5}"#;
    api.post("/v1/transfers", transfer).await;
    api
}

#[tokio::test]
async fn every_entry_is_an_event_with_its_account_id() {
    let api = busy().await;
    let reply = api.get("/v1/events").await;
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let mut told: Vec<Value> = of(&reply).into_iter().map(|(_, data)| data).collect();
    let accounts: Vec<Value> = told.iter().map(|data| data["account_id"].clone()).collect();
    assert_eq!(accounts, ["alice", "alice", "alice", "bob"]);
    for data in &mut told {
        data.as_object_mut().unwrap().remove("account_id");
    }
    let mut entries = Vec::new();
    for account in ["alice", "bob"] {
        let page = api.get(&format!("/v1/accounts/{account}/entries")).await.json();
        entries.extend(page["entries"].as_array().unwrap().clone());
    }
    assert_eq!(told, entries);
}

#[tokio::test]
async fn after_any_id_the_rest_follows_and_the_header_stands_over_the_parameter() {
    let api = busy().await;
    let all = of(&api.get("/v1/events").await);
    for (at, (id, _)) in all.iter().enumerate() {
        let rest = &all[at + 1..];
        assert_eq!(of(&api.get(&format!("/v1/events?after={id}")).await), rest);
        let first = &all[0].0;
        let reconnected = Request::get(format!("/v1/events?after={first}")).header("last-event-id", id);
        assert_eq!(of(&api.send(reconnected, "").await), rest);
    }
    let empty = Request::get("/v1/events?after=&account=").header("last-event-id", "");
    assert_eq!(api.send(empty, "").await.problem().1, Some("account".to_owned()));
    let empty = Request::get("/v1/events?after=").header("last-event-id", "");
    assert_eq!(of(&api.send(empty, "").await), all);
}

#[tokio::test]
async fn of_one_account_there_are_its_own_events_with_the_ids_that_they_have_among_all() {
    let api = busy().await;
    let all = of(&api.get("/v1/events").await);
    let bobs = of(&api.get("/v1/events?account=bob").await);
    assert_eq!(bobs, all[3..]);
    let after = &all[0].0;
    let alices = api.get(&format!("/v1/events?account=alice&after={after}")).await;
    assert_eq!(of(&alices), all[1..3]);
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_named() {
    let api = busy().await;
    let foreign = of(&busy().await.get("/v1/events").await)[0].0.clone();
    let next = api.get("/v1/accounts/alice/entries").await.json()["next"].clone();
    let next = next.as_str().unwrap();
    for (query, status, field) in [
        ("after=00".to_owned(), 400, "after"),
        (format!("after={foreign}"), 400, "after"),
        (format!("after={next}"), 400, "after"),
        ("account=nobody".to_owned(), 404, "account"),
        ("account=a/b".to_owned(), 400, "account"),
        ("account=alice&account=bob".to_owned(), 400, "account"),
        ("limit=5".to_owned(), 400, "limit"),
    ] {
        let reply = api.get(&format!("/v1/events?{query}")).await;
        assert_eq!(reply.status, status, "{query}");
        assert_eq!(reply.problem().1.as_deref(), Some(field), "{query}");
    }
    let header = |value: &str| Request::get("/v1/events").header("last-event-id", value);
    let id = of(&api.get("/v1/events").await)[0].0.clone();
    for request in [
        header(&foreign),
        header("é"),
        header(&id).header("last-event-id", &id),
    ] {
        let reply = api.send(request, "").await;
        let problem = ("invalid_request".to_owned(), Some("Last-Event-ID".to_owned()));
        assert_eq!(reply.problem(), problem);
    }
    let json = Request::get("/v1/events").header("accept", "application/json");
    let reply = api.send(json, "").await;
    assert_eq!(
        (reply.status.as_u16(), reply.problem().0),
        (406, "not_acceptable".to_owned())
    );
    let browser = Request::get("/v1/events").header("accept", "text/event-stream");
    assert_eq!(api.send(browser, "").await.status, 200);
}

/// A backup that was put back knows less than those who listened: they must hear of it, and not wait for what they have
/// seen already.
#[tokio::test]
async fn an_id_that_is_ahead_of_the_ledger_is_refused() {
    let disk = FaultDisk::default();
    let wallet = Wallet::embedded(small(&disk)).unwrap();
    wallet.open(ordinary("alice")).await.unwrap();
    let api = Api::over(wallet.clone());
    let backup = disk.copy();
    api.post("/v1/accounts/alice/credits", r#"{"request_id":"c","amount":5}"#)
        .await;
    let seen = of(&api.get("/v1/events").await)[0].0.clone();
    wallet.close().await;
    let restored = Api::over(Wallet::embedded(small(&backup)).unwrap());
    let reply = restored.get(&format!("/v1/events?after={seen}")).await;
    assert_eq!(
        reply.problem(),
        ("invalid_request".to_owned(), Some("after".to_owned()))
    );
    let header = Request::get("/v1/events").header("last-event-id", &seen);
    let reply = restored.send(header, "").await;
    assert_eq!(reply.problem().1.as_deref(), Some("Last-Event-ID"));
}

/// A wallet with `alice`, and a router whose streams go on.
async fn listening(ending: &Ending) -> (Wallet, Router) {
    let wallet = Wallet::memory().unwrap();
    wallet.open(ordinary("alice")).await.unwrap();
    let options = HttpOptions {
        ending: ending.clone(),
        ..HttpOptions::default()
    };
    (wallet.clone(), router(wallet, options))
}

async fn listen(routes: &Router, path: &str) -> (StatusCode, Body) {
    let asked = Request::get(path).body(Body::empty()).unwrap();
    let response = routes.clone().oneshot(asked).await.unwrap();
    (response.status(), response.into_body())
}

/// The next piece of a stream.
async fn piece(body: &mut Body) -> Option<String> {
    let frame = body.frame().await?.unwrap();
    Some(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap())
}

async fn pay(wallet: &Wallet, name: &str, count: usize) {
    let (account, one) = (id("alice"), amount(1));
    let pay = |number| {
        let (account, request) = (&account, request(&format!("{name}{number}")));
        async move { wallet.credit(account, &request, one, None).await.unwrap() }
    };
    let paid = (0..count).map(pay).collect::<FuturesUnordered<_>>();
    assert_eq!(paid.count().await, count);
}

#[tokio::test]
async fn a_stream_brings_what_is_committed_while_it_is_open() {
    let (wallet, routes) = listening(&Ending::default()).await;
    let (_, mut body) = listen(&routes, "/v1/events").await;
    for number in 0..5 {
        pay(&wallet, &format!("r{number}-"), 1).await;
        let told = events(&piece(&mut body).await.unwrap());
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].1.as_ref().unwrap()["version"], number + 1);
    }
}

#[tokio::test]
async fn a_client_that_reads_slowly_gets_everything_once_and_in_pieces_of_bounded_size() {
    let (wallet, routes) = listening(&Ending::default()).await;
    let (_, mut body) = listen(&routes, "/v1/events").await;
    pay(&wallet, "r", 3_000).await;
    let mut versions = 0;
    while versions < 3_000 {
        let told = events(&piece(&mut body).await.unwrap());
        assert!(told.len() <= 256, "{}", told.len());
        for (_, data) in told {
            versions += 1;
            assert_eq!(data.unwrap()["version"], versions);
        }
    }
}

#[tokio::test]
async fn there_are_so_many_streams_and_the_next_one_is_told_to_come_back() {
    let (_, routes) = listening(&Ending::default()).await;
    let mut streams = Vec::new();
    for _ in 0..MAX_STREAMS {
        let (status, body) = listen(&routes, "/v1/events").await;
        assert_eq!(status, 200);
        streams.push(body);
    }
    let asked = Request::get("/v1/events").body(Body::empty()).unwrap();
    let refused = routes.clone().oneshot(asked).await.unwrap();
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "1");
    let problem: Value =
        serde_json::from_slice(&refused.into_body().collect().await.unwrap().to_bytes()).unwrap();
    assert_eq!(problem["code"], "overloaded");
    let (_, metrics) = listen(&routes, "/metrics").await;
    let metrics = String::from_utf8(metrics.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    assert!(
        metrics.lines().any(|line| line == "wallet_event_streams 256"),
        "{metrics}"
    );
    drop(streams.pop());
    assert_eq!(listen(&routes, "/v1/events").await.0, 200);
}

#[tokio::test]
async fn a_stream_with_nothing_to_say_shows_that_it_lives_and_how_far_it_has_passed_over_others() {
    let (wallet, routes) = listening(&Ending::default()).await;
    wallet.open(ordinary("bob")).await.unwrap();
    pay(&wallet, "r", 3).await;
    tokio::time::pause();
    let (_, mut body) = listen(&routes, "/v1/events?account=bob").await;
    let comment = piece(&mut body).await.unwrap();
    assert!(comment.starts_with(": keep-alive\n"), "{comment}");
    let told = events(&comment);
    assert_eq!((told.len(), &told[0].1), (1, &None));
    assert_eq!(piece(&mut body).await.unwrap(), ": keep-alive\n\n");
    let (_, mut all) = listen(&routes, "/v1/events").await;
    assert_eq!(events(&piece(&mut all).await.unwrap())[2].0, told[0].0);
    assert_eq!(piece(&mut all).await.unwrap(), ": keep-alive\n\n");
}

#[tokio::test]
async fn a_stream_that_is_told_to_end_ends_between_two_events() {
    let ending = Ending::default();
    let (wallet, routes) = listening(&ending).await;
    pay(&wallet, "r", 600).await;
    let (_, mut behind) = listen(&routes, "/v1/events").await;
    let (_, mut waiting) = listen(&routes, "/v1/events?account=alice").await;
    for _ in 0..3 {
        piece(&mut waiting).await.unwrap();
    }
    ending.end();
    assert_eq!(piece(&mut waiting).await, None);
    assert!(piece(&mut behind).await.unwrap().ends_with("\n\n"));
    assert_eq!(piece(&mut behind).await, None);
}

#[tokio::test]
async fn a_stream_ends_with_its_ledger() {
    let (wallet, routes) = listening(&Ending::default()).await;
    pay(&wallet, "r", 1).await;
    let (_, mut body) = listen(&routes, "/v1/events").await;
    piece(&mut body).await.unwrap();
    wallet.close().await;
    assert_eq!(piece(&mut body).await, None);
    assert_eq!(listen(&routes, "/v1/events").await.0, 503);
}

async fn deposit(served: &Served, name: &str) {
    let (client, base) = served.client();
    let credit = json!({"request_id": name, "amount": 5});
    let response = client
        .post(format!("{base}/v1/accounts/alice/credits"))
        .json(&credit);
    assert_eq!(response.send().await.unwrap().status(), 201);
}

#[tokio::test]
async fn over_a_kill_a_client_goes_on_from_its_last_id_and_at_a_stop_its_stream_ends_well() {
    let dir = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", dir.path().display());
    let killed = Served::start("127.0.0.1:0", &store, &[]);
    let (client, base) = killed.client();
    let alice = json!({"account_id": "alice", "currency": "EUR"});
    client
        .post(format!("{base}/v1/accounts"))
        .json(&alice)
        .send()
        .await
        .unwrap();
    deposit(&killed, "one").await;
    let mut stream = client.get(format!("{base}/v1/events")).send().await.unwrap();
    let first = stream.chunk().await.unwrap().unwrap();
    let last = events(std::str::from_utf8(&first).unwrap())[0].0.clone();
    deposit(&killed, "two").await;
    killed.kill();

    let mut served = Served::start("127.0.0.1:0", &store, &[]);
    let (client, base) = served.client();
    deposit(&served, "three").await;
    let asked = client
        .get(format!("{base}/v1/events"))
        .header("last-event-id", last);
    let mut stream = asked.send().await.unwrap();
    let rest = stream.chunk().await.unwrap().unwrap();
    let rest = events(std::str::from_utf8(&rest).unwrap());
    let ids: Vec<Value> = rest
        .into_iter()
        .map(|(_, data)| data.unwrap()["request_id"].clone())
        .collect();
    assert_eq!(ids, ["two", "three"]);
    served.terminate();
    // Cut at the end of the drain this would be an error.
    assert_eq!(stream.chunk().await.unwrap(), None);
    assert_eq!(served.exit().0, Some(0));
}
