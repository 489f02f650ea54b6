//! The rules as they ship, over the bundled wallet: what one hot account meets, and what the others do not notice.

use std::collections::BTreeMap;

use serde_json::Value;
use tokio::task::JoinSet;

use crate::shipped::{AN_HOUR, DURATION, shipped};
use crate::support::proxy::http;
use crate::support::{Options, Proxy};

async fn post(url: String, body: String) -> (u16, Option<String>, Value) {
    let request = http()
        .post(url)
        .header("content-type", "application/json")
        .body(body);
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let wait = response
        .headers()
        .get("retry-after")
        .map(|value| value.to_str().unwrap().to_owned());
    (status, wait, response.text().await.unwrap().parse().unwrap())
}

/// Debits of one account, a few at a time: fewer than isolation lets through.
async fn debits(proxy: &Proxy, account: &str, count: usize) -> Vec<(u16, Option<String>, Value)> {
    let (mut clients, mut answers) = (JoinSet::new(), Vec::new());
    for number in 0..count {
        if clients.len() == 16 {
            answers.push(clients.join_next().await.unwrap().unwrap());
        }
        let url = proxy.url(&format!("/v1/accounts/{account}/debits"));
        clients.spawn(post(url, format!(r#"{{"request_id":"d{number}","amount":1}}"#)));
    }
    answers.extend(clients.join_all().await);
    answers
}

#[tokio::test]
async fn a_hot_account_gets_its_hundred_the_rest_hear_how_long_to_wait_and_another_is_untouched() {
    let proxy = Proxy::start_in(shipped(&[(DURATION, AN_HOUR)]), &Options::default());
    for account in ["alice", "bob"] {
        let open = format!(r#"{{"account_id":"{account}","currency":"EUR"}}"#);
        assert_eq!(post(proxy.url("/v1/accounts"), open).await.0, 201);
        let credit = r#"{"request_id":"c","amount":1000}"#.to_owned();
        assert_eq!(
            post(proxy.url(&format!("/v1/accounts/{account}/credits")), credit)
                .await
                .0,
            201
        );
    }
    let (alice, bob) = tokio::join!(debits(&proxy, "alice", 150), debits(&proxy, "bob", 50));
    let mut statuses = BTreeMap::new();
    for (status, wait, body) in &alice {
        *statuses.entry(*status).or_insert(0) += 1;
        if *status == 429 {
            assert_eq!(
                (&body["code"], &body["rule"]),
                (&"param_flow".into(), &"hot-account".into())
            );
            assert_eq!(body["resource"], "takeMoney");
            let seconds: u64 = wait.as_deref().unwrap().parse().unwrap();
            // An hour and a 64th of it.
            assert!((1..=3657).contains(&seconds), "{seconds}");
        }
    }
    assert_eq!(statuses, BTreeMap::from([(201, 100), (429, 50)]));
    assert!(bob.iter().all(|(status, ..)| *status == 201), "{bob:?}");
    let account = http().get(proxy.url("/v1/accounts/alice")).send().await.unwrap();
    let account: Value = account.text().await.unwrap().parse().unwrap();
    assert_eq!(account["balance"], 900);
}
