//! Events through the client: each once and in order, however often the connection is lost.

use wallet_backend::client::{CallError, Event, Events};

use super::faults::{ELSEWHERE, NEXT_YEAR, funded};
use super::proxy::{Fault, Proxy};
use super::service::{Service, patient, quick};
use crate::support::{amount, id, ordinary, request};

/// So many credits of 1, by turns to two accounts.
async fn pay(service: &Service, count: usize) {
    for number in 0..count {
        let (account, request) = (id(["alice", "bob"][number % 2]), request(&format!("c{number}")));
        let credit = service.wallet.credit(&account, &request, amount(1), None);
        credit.await.unwrap();
    }
}

async fn take(events: &mut Events, count: usize) -> Vec<Event> {
    let mut taken = Vec::new();
    for _ in 0..count {
        taken.push(events.next().await.unwrap());
    }
    taken
}

fn requests(events: &[Event]) -> Vec<String> {
    let request = |event: &Event| event.entry.request.as_ref().unwrap().to_string();
    events.iter().map(request).collect()
}

async fn two_accounts() -> Service {
    let service = funded().await;
    service.wallet.open(ordinary("bob")).await.unwrap();
    service
}

#[tokio::test]
async fn events_come_in_order_and_go_on_after_the_id_of_any_of_them() {
    let service = two_accounts().await;
    pay(&service, 6).await;
    let client = service.client();
    let all = take(&mut client.events(None, None), 7).await;
    assert_eq!(requests(&all), ["opening", "c0", "c1", "c2", "c3", "c4", "c5"]);
    let rest = take(&mut client.events(None, Some(&all[3].id)), 3).await;
    assert_eq!(rest, all[4..]);
    let of_bob = take(&mut client.events(Some(&id("bob")), Some(&all[2].id)), 2).await;
    assert_eq!(of_bob, [all[4].clone(), all[6].clone()]);
    let statement = client.entries(&id("bob"), None, 10).await.unwrap();
    assert_eq!(of_bob[0].entry, statement.entries[1]);
}

#[tokio::test]
async fn an_event_comes_once_it_is_there() {
    let service = two_accounts().await;
    let mut events = service.client().events(None, None);
    assert_eq!(requests(&take(&mut events, 1).await), ["opening"]);
    let (next, ()) = tokio::join!(events.next(), pay(&service, 1));
    assert_eq!(requests(&[next.unwrap()]), ["c0"]);
}

#[tokio::test]
async fn a_stream_that_is_lost_again_and_again_shows_every_event_once_and_in_order() {
    let service = two_accounts().await;
    pay(&service, 60).await;
    // Within a head, an id, an event; and one that ends at once.
    let cuts = (0..40).map(|number| Fault::CutStream(number * 97 % 1_500));
    let faults = cuts.chain([Fault::LoseAnswer, Fault::LoseRequest, Fault::Stream]);
    let proxy = Proxy::start(&service.address, faults).await;
    let mut events = patient(&proxy.address, quick()).events(None, None);
    let all = take(&mut events, 61).await;
    let expected = (0..60).map(|number| format!("c{number}"));
    let expected: Vec<String> = std::iter::once("opening".to_owned()).chain(expected).collect();
    assert_eq!(requests(&all), expected);
    assert!(proxy.seen().len() > 10);
}

#[tokio::test]
async fn a_place_that_is_none_an_account_that_is_not_there_and_another_server_are_told() {
    let service = two_accounts().await;
    let client = service.client();
    for mut events in [
        client.events(None, Some("00")),
        client.events(Some(&id("nobody")), None),
    ] {
        let error = events.next().await.unwrap_err();
        assert!(matches!(error, CallError::Rejected(_)), "{error}");
    }
    let proxy = Proxy::start(&service.address, [ELSEWHERE]).await;
    let error = patient(&proxy.address, quick()).events(None, None).next().await;
    assert!(matches!(error, Err(CallError::Unreadable { .. })), "{error:?}");
}

#[tokio::test]
async fn after_an_outage_longer_than_patience_events_go_on_where_they_were() {
    let service = two_accounts().await;
    pay(&service, 3).await;
    let faults = [Fault::CutStream(600), NEXT_YEAR, Fault::Stream];
    let proxy = Proxy::start(&service.address, faults).await;
    let mut events = patient(&proxy.address, quick()).events(None, None);
    let mut taken = Vec::new();
    let error = loop {
        match events.next().await {
            Ok(event) => taken.push(event),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, CallError::Unknown { .. } | CallError::NotDone { .. }),
        "{error}"
    );
    let before = taken.len();
    assert!(before < 4);
    taken.extend(take(&mut events, 4 - before).await);
    assert_eq!(requests(&taken), ["opening", "c0", "c1", "c2"]);
}
