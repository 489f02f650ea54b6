//! Signed webhooks against a real receiver: that they arrive, whole, in order and proven, whatever it answers and
//! whenever this side is killed.

mod dead_letters;
mod receiver;
mod served;

use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use wallet_backend::Wallet;
use wallet_backend::clock::Clock;
use wallet_backend::http::Ending;
use wallet_backend::http::webhooks::{Rounds, Secret, WebhookOptions, Webhooks};

use self::receiver::{Got, Receiver};
use crate::support::{amount, id, ordinary, request};

const SECRET: &str = "a secret that both sides know";

/// Rounds that are over before anybody has to wait.
fn quick(count: u32) -> Rounds {
    Rounds {
        within: vec![Duration::from_millis(1)],
        first: Duration::from_millis(2),
        longest: Duration::from_millis(5),
        count,
    }
}

fn webhooks(wallet: &Wallet, receiver: &Receiver, rounds: Rounds) -> Webhooks {
    let options = WebhookOptions {
        target: receiver.address("/hook").parse().unwrap(),
        secret: Secret::parse(SECRET).unwrap(),
        kept: None,
        rounds,
        clock: Clock::default(),
    };
    Webhooks::new(wallet.clone(), options).unwrap()
}

/// Delivers until `done`.
async fn deliver<T>(webhooks: &Webhooks, done: impl Future<Output = T>) -> T {
    let ending = Ending::default();
    let done = async {
        let result = done.await;
        ending.end();
        result
    };
    let ((), result) = tokio::join!(webhooks.run(&ending), done);
    result
}

async fn wallet(accounts: &[&str]) -> Wallet {
    let wallet = Wallet::memory().unwrap();
    for name in accounts {
        wallet.open(ordinary(name)).await.unwrap();
    }
    wallet
}

async fn credit(wallet: &Wallet, account: &str, name: &str) {
    let (account, request) = (id(account), request(name));
    wallet.credit(&account, &request, amount(5), None).await.unwrap();
}

/// Whether the signature is that of the body under the secret.
fn is_proven(got: &Got) -> bool {
    let (t, v1) = got.signature.split_once(',').unwrap();
    let (t, v1) = (t.strip_prefix("t=").unwrap(), v1.strip_prefix("v1=").unwrap());
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(format!("{t}.{}", got.body).as_bytes());
    let expected: String = mac
        .finalize()
        .into_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    // Seconds since 1970, of this century.
    t.parse::<u64>().unwrap() / 100_000_000 < 42 && expected == v1
}

/// Of each account, the versions in the order in which they first arrived.
fn versions(got: &[Got], account: &str) -> Vec<u64> {
    let mut versions = Vec::new();
    for got in got.iter().filter(|got| got.account() == account) {
        if !versions.contains(&got.version()) {
            versions.push(got.version());
        }
    }
    versions
}

#[tokio::test]
async fn every_event_arrives_signed_as_the_stream_has_it_and_under_its_id() {
    let receiver = Receiver::start(|_| 200).await;
    let wallet = wallet(&["alice", "bob"]).await;
    let hooks = webhooks(&wallet, &receiver, Rounds::default());
    let got = deliver(&hooks, async {
        credit(&wallet, "alice", "before").await;
        receiver.until(|got| got.len() == 1).await;
        let (alice, bob, name) = (id("alice"), id("bob"), request("t"));
        wallet
            .transfer(&alice, &name, &bob, amount(2), None)
            .await
            .unwrap();
        receiver.until(|got| got.len() == 3).await
    })
    .await;
    for got in &got {
        assert!(is_proven(got), "{got:?}");
        assert_eq!(
            (got.path.as_str(), got.content_type.as_str()),
            ("/hook", "application/json")
        );
        let field = |name: &str| got.json().get(name).is_some();
        assert!(
            ["account_id", "slot", "version", "type", "delta", "at"]
                .into_iter()
                .all(field)
        );
    }
    let told: Vec<_> = got
        .iter()
        .map(|got| (got.account(), got.json()["type"].clone()))
        .collect();
    assert!(
        told.contains(&("alice".to_owned(), "transfer_out".into())),
        "{told:?}"
    );
    assert!(
        told.contains(&("bob".to_owned(), "transfer_in".into())),
        "{told:?}"
    );
    let mut ids: Vec<&String> = got.iter().map(|got| &got.event_id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[tokio::test]
async fn each_accounts_events_arrive_in_order_however_many_there_are() {
    let receiver = Receiver::start(|_| 204).await;
    let names = ["a", "b", "c", "d", "e"];
    let wallet = wallet(&names).await;
    for number in 0..80 {
        for name in names.iter().take(1 + number % 5) {
            credit(&wallet, name, &format!("r{number}")).await;
        }
    }
    let hooks = webhooks(&wallet, &receiver, Rounds::default());
    let got = deliver(&hooks, receiver.until(|got| got.len() == 240)).await;
    for (name, count) in names.iter().zip([80, 64, 48, 32, 16]) {
        assert_eq!(versions(&got, name), (1..=count).collect::<Vec<_>>(), "{name}");
    }
}

#[tokio::test]
async fn what_is_not_answered_by_2xx_is_sent_again_and_the_other_accounts_do_not_wait_for_it() {
    // Bad statuses, one that would lead elsewhere, and at last a good one.
    let receiver = Receiver::start(|tries| match (tries.account.as_str(), tries.before) {
        ("alice", 0) => 500,
        ("alice", 1) => 302,
        ("alice", 2) => 404,
        _ => 200,
    })
    .await;
    let wallet = wallet(&["alice", "bob"]).await;
    for name in ["one", "two", "three"] {
        credit(&wallet, "alice", name).await;
        credit(&wallet, "bob", name).await;
    }
    let slow = Rounds {
        first: Duration::from_millis(200),
        longest: Duration::from_millis(200),
        ..quick(10)
    };
    let hooks = webhooks(&wallet, &receiver, slow);
    let got = deliver(
        &hooks,
        receiver.until(|got| got.iter().filter(|got| got.answered == 200).count() == 6),
    )
    .await;
    let failed: Vec<&Got> = got.iter().filter(|got| got.answered != 200).collect();
    let statuses: Vec<u16> = failed.iter().map(|got| got.answered).collect();
    assert_eq!(statuses, [500, 302, 404]);
    let first = got
        .iter()
        .find(|got| got.account() == "alice" && got.answered == 200)
        .unwrap();
    for again in &failed {
        assert_eq!((&again.event_id, &again.body), (&first.event_id, &first.body));
        assert!(is_proven(again));
    }
    assert_eq!(versions(&got, "alice"), [1, 2, 3]);
    let last_of_bob = got.iter().rposition(|got| got.account() == "bob").unwrap();
    let first_of_alice = got
        .iter()
        .position(|got| got.event_id == first.event_id && got.answered == 200)
        .unwrap();
    assert!(last_of_bob < first_of_alice, "bob waited for alice");
    assert!(
        got.iter().all(|got| got.path == "/hook"),
        "a redirect was followed"
    );
}

#[tokio::test]
async fn a_receiver_that_is_not_there_yet_gets_everything_once_it_is() {
    let receiver = Receiver::start(|_| 200).await;
    let address = receiver.stop().await;
    let wallet = wallet(&["alice"]).await;
    for name in ["one", "two"] {
        credit(&wallet, "alice", name).await;
    }
    let options = WebhookOptions {
        target: format!("http://{address}/hook").parse().unwrap(),
        secret: Secret::parse(SECRET).unwrap(),
        kept: None,
        rounds: quick(10_000),
        clock: Clock::default(),
    };
    let hooks = Webhooks::new(wallet, options).unwrap();
    let got = deliver(&hooks, async {
        let receiver = Receiver::start_at(&address, |_| 200).await;
        receiver.until(|got| got.len() == 2).await
    })
    .await;
    assert_eq!(versions(&got, "alice"), [1, 2]);
}
