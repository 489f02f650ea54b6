//! Statements as NDJSON and CSV: everything that is there, once, a page at a time, and never a part taken for the whole.

use axum::body::Body;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;
use wallet_backend::Wallet;
use wallet_backend::clock::Clock;
use wallet_backend::combiner::Limits;
use wallet_backend::http::{HttpOptions, router};
use wallet_backend::store::any::AnyStore;
use wallet_backend::store::memory::Memory;
use wallet_backend::store::{Cursor, Preference};

use super::support::{Api, Reply};
use crate::support::{amount, id, request, slotted};

const LINES: &str = "application/x-ndjson";
const CSV: &str = "text/csv";

async fn fetch(api: &Api, path: &str, accept: &str) -> Reply {
    let reply = api.send(Request::get(path).header("accept", accept), "").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply
}

fn lines(reply: &Reply) -> Vec<Value> {
    let text = std::str::from_utf8(&reply.body).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The address in a `Link` header with `rel="next"`.
fn next(reply: &Reply) -> String {
    let link = reply.header("link").unwrap();
    let address = link.strip_suffix(">; rel=\"next\"").unwrap();
    address.strip_prefix('<').unwrap().to_owned()
}

/// A wallet with `hot` in 3 slots.
async fn hot() -> Wallet {
    let wallet = Wallet::memory().unwrap();
    wallet.open(slotted("hot", 3)).await.unwrap();
    wallet
}

/// `count` credits at once.
async fn pay(wallet: &Wallet, name: &str, count: usize) {
    let (account, one) = (id("hot"), amount(1));
    let pay = |number| {
        let (account, request) = (&account, request(&format!("{name}{number}")));
        async move { wallet.credit(account, &request, one, None).await.unwrap() }
    };
    let paid = (0..count).map(pay).collect::<FuturesUnordered<_>>();
    assert_eq!(paid.count().await, count);
}

#[tokio::test]
async fn as_ndjson_the_whole_statement_comes_an_entry_a_line_as_in_json() {
    let api = Api::funded().await;
    api.post("/v1/accounts/alice/debits", r#"{"request_id":"=d","amount":5}"#)
        .await;
    let page = api.get("/v1/accounts/alice/entries").await.json();
    let reply = fetch(&api, "/v1/accounts/alice/entries", LINES).await;
    assert_eq!(reply.header("content-type"), Some(LINES));
    assert_eq!(Value::from(lines(&reply)), page["entries"]);
}

#[tokio::test]
async fn as_csv_the_whole_statement_comes_under_a_header_row_with_no_cell_that_is_a_formula() {
    let api = Api::funded().await;
    api.post("/v1/accounts/alice/debits", r#"{"request_id":"=1+1","amount":5}"#)
        .await;
    let reply = fetch(&api, "/v1/accounts/alice/entries", CSV).await;
    assert_eq!(
        reply.header("content-type"),
        Some("text/csv; charset=utf-8; header=present")
    );
    let text = String::from_utf8(reply.body.to_vec()).unwrap();
    let rows: Vec<&str> = text.split_terminator("\r\n").collect();
    assert_eq!(
        rows[0],
        "slot,version,type,request_id,delta,held_delta,balance_after,at,link_kind,link_id"
    );
    assert!(
        rows[1].starts_with("0,1,credit,opening,100,0,100,"),
        "{}",
        rows[1]
    );
    assert!(rows[2].starts_with("0,2,debit,\"'=1+1\",-5,0,95,"), "{}", rows[2]);
    assert_eq!(rows.len(), 3);
}

#[tokio::test]
async fn a_stream_of_many_pages_has_every_entry_once_in_the_order_of_each_slot() {
    let wallet = hot().await;
    pay(&wallet, "r", 2_500).await;
    let api = Api::over(wallet);
    let reply = fetch(&api, "/v1/accounts/hot/entries", LINES).await;
    let mut versions = [0; 3];
    for entry in lines(&reply) {
        let slot = usize::try_from(entry["slot"].as_u64().unwrap()).unwrap();
        versions[slot] += 1;
        assert_eq!(entry["version"], versions[slot]);
    }
    assert_eq!(versions.iter().sum::<u64>(), 2_500);
}

#[tokio::test]
async fn a_stream_ends_where_the_account_was_when_it_was_asked_for_and_its_link_leads_on() {
    let wallet = hot().await;
    pay(&wallet, "before", 1_500).await;
    let mut statement = wallet.statement(&id("hot"), Cursor::default()).await.unwrap();
    let mut count = statement.next().await.unwrap().unwrap().len();
    // Written meanwhile: later than the end, before the last page is read.
    pay(&wallet, "after", 1_500).await;
    while let Some(entries) = statement.next().await.unwrap() {
        for entry in &entries {
            assert!(entry.request.as_ref().unwrap().as_str().starts_with("before"));
        }
        count += entries.len();
    }
    assert_eq!(count, 1_500);

    let mut rest = wallet
        .statement(&id("hot"), statement.end().clone())
        .await
        .unwrap();
    let mut later = 0;
    while let Some(entries) = rest.next().await.unwrap() {
        later += entries.len();
    }
    assert_eq!(later, 1_500);
}

#[tokio::test]
async fn the_link_of_a_stream_leads_to_what_comes_after_it() {
    let api = Api::funded().await;
    let first = fetch(&api, "/v1/accounts/alice/entries", LINES).await;
    assert_eq!(lines(&fetch(&api, &next(&first), LINES).await), [] as [Value; 0]);
    api.post("/v1/accounts/alice/debits", r#"{"request_id":"d","amount":5}"#)
        .await;
    let rest = lines(&fetch(&api, &next(&first), LINES).await);
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0]["request_id"], "d");
}

#[tokio::test]
async fn with_a_limit_a_stream_is_one_page_and_its_link_asks_for_the_next_of_that_size() {
    let api = Api::funded().await;
    for number in 0..4 {
        let body = format!(r#"{{"request_id":"r{number}","amount":1}}"#);
        api.post("/v1/accounts/alice/debits", &body).await;
    }
    let (mut path, mut sizes) = ("/v1/accounts/alice/entries?limit=2".to_owned(), Vec::new());
    for _ in 0..4 {
        let page = fetch(&api, &path, LINES).await;
        sizes.push(lines(&page).len());
        path = next(&page);
    }
    assert_eq!(sizes, [2, 2, 1, 0]);
}

#[tokio::test]
async fn what_can_be_said_before_a_stream_begins_is_a_problem() {
    let api = Api::funded().await;
    for (path, status) in [
        ("/v1/accounts/nobody/entries", 404),
        ("/v1/accounts/alice/entries?after=00", 400),
        ("/v1/accounts/alice/entries?limit=0", 400),
    ] {
        let reply = api.send(Request::get(path).header("accept", LINES), "").await;
        assert_eq!(reply.status, status, "{path}");
        reply.problem();
    }
    let image = Request::get("/v1/accounts/alice/entries").header("accept", "image/png");
    let reply = api.send(image, "").await;
    assert_eq!(reply.problem().0, "not_acceptable");
}

#[tokio::test]
async fn a_stream_that_fails_half_way_is_broken_off_and_not_ended() {
    let wallet = hot().await;
    pay(&wallet, "r", 1_500).await;
    let routes = router(wallet.clone(), HttpOptions::default());
    let asked = Request::get("/v1/accounts/hot/entries").header("accept", LINES);
    let response = routes.oneshot(asked.body(Body::empty()).unwrap()).await.unwrap();
    let mut body = response.into_body();
    assert!(body.frame().await.unwrap().is_ok());
    wallet.close().await;
    assert!(body.frame().await.unwrap().is_err());
}

#[tokio::test]
async fn a_thousand_flows_of_one_microsecond_paged_by_7_while_others_write_show_no_repeat_and_no_gap() {
    // The clock stands still: paging by time would repeat or skip (GaloyMoney/blink#1638, ccxt/ccxt#23793).
    let memory = Memory::new(Clock::Set(Default::default()), Preference::default());
    let wallet = Wallet::over(AnyStore::Memory(memory), Limits::default()).unwrap();
    wallet.open(slotted("hot", 3)).await.unwrap();
    pay(&wallet, "r", 1_000).await;
    let (mut after, mut seen, mut written) = (Cursor::default(), Vec::new(), 1_000);
    loop {
        let page = wallet.entries(&id("hot"), &after, 7).await.unwrap();
        if page.entries.is_empty() {
            break;
        }
        seen.extend(page.entries.iter().map(|entry| (entry.slot, entry.version)));
        after = page.next;
        if written < 1_050 {
            pay(&wallet, &format!("more{written}-"), 1).await;
            written += 1;
        }
    }
    let mut expected = [0; 3];
    for (slot, version) in &seen {
        let last = &mut expected[usize::from(slot.get())];
        *last += 1;
        assert_eq!(version, last);
    }
    assert_eq!(seen.len(), written);
}
