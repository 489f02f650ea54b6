//! What was given up: listed, counted, sent once more when somebody asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::Body;
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use wallet_backend::Wallet;
use wallet_backend::http::webhooks::Webhooks;
use wallet_backend::http::{HttpOptions, router};

use super::receiver::{Got, Receiver};
use super::{credit, deliver, quick, versions, wallet, webhooks};

fn routes(wallet: &Wallet, hooks: Option<Webhooks>) -> Router {
    let options = HttpOptions {
        webhooks: hooks,
        ..HttpOptions::default()
    };
    router(wallet.clone(), options)
}

async fn send(routes: &Router, request: Request<Body>) -> (u16, String) {
    let response = routes.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn get(routes: &Router, path: &str) -> Value {
    let (status, body) = send(routes, Request::get(path).body(Body::empty()).unwrap()).await;
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

const LIST: &str = "/v1/webhooks/dead-letters";

async fn redeliver(routes: &Router, body: Value) -> (u16, Value) {
    let request = Request::post(format!("{LIST}/redeliver")).header(CONTENT_TYPE, "application/json");
    let (status, body) = send(routes, request.body(body.to_string().into()).unwrap()).await;
    (status, serde_json::from_str(&body).unwrap())
}

/// Alice has two events that are refused until somebody mends it, and one behind them; bob has one.
struct Broken {
    mended: Arc<AtomicBool>,
    receiver: Receiver,
    routes: Router,
    hooks: Webhooks,
}

async fn broken() -> Broken {
    let mended = Arc::new(AtomicBool::new(false));
    let is_mended = Arc::clone(&mended);
    let receiver = Receiver::start(move |tries| {
        let bad = tries.account == "alice" && tries.version < 3;
        if bad && !is_mended.load(Ordering::Relaxed) {
            503
        } else {
            200
        }
    });
    let receiver = receiver.await;
    let wallet = wallet(&["alice", "bob"]).await;
    for name in ["one", "two", "three"] {
        credit(&wallet, "alice", name).await;
    }
    credit(&wallet, "bob", "one").await;
    let hooks = webhooks(&wallet, &receiver, quick(3));
    Broken {
        mended,
        receiver,
        routes: routes(&wallet, Some(hooks.clone())),
        hooks,
    }
}

impl Broken {
    /// Waits until alice's account has gone on.
    async fn gone_on(&self) -> Vec<Got> {
        let third = |got: &Got| got.account() == "alice" && got.version() == 3;
        self.receiver.until(|got| got.iter().any(third)).await
    }

    /// All dead letters, read one by one.
    async fn listed(&self) -> Vec<Value> {
        let (mut letters, mut after) = (Vec::new(), String::new());
        loop {
            let page = get(&self.routes, &format!("{LIST}?limit=1&after={after}")).await;
            let Some(letter) = page["dead_letters"].as_array().unwrap().first() else {
                return letters;
            };
            letters.push(letter.clone());
            page["next"].as_str().unwrap().clone_into(&mut after);
        }
    }
}

#[tokio::test]
async fn what_never_arrives_is_listed_and_counted_and_its_account_goes_on() {
    let broken = broken().await;
    deliver(&broken.hooks, async {
        let got = broken.gone_on().await;
        // Three rounds of two tries each.
        let failed: Vec<&Got> = got.iter().filter(|got| got.answered == 503).collect();
        assert_eq!(failed.len(), 12);
        let letters = broken.listed().await;
        assert_eq!(letters.len(), 2);
        for (letter, first_try) in letters.iter().zip([failed[0], failed[6]]) {
            assert_eq!(letter["id"], first_try.event_id);
            assert_eq!(
                (&letter["account_id"], &letter["slot"]),
                (&json!("alice"), &json!(0))
            );
            assert_eq!(letter["version"], first_try.version());
            assert_eq!(letter["reason"], "answered 503");
            assert_eq!(letter["status"], "dead");
        }
        let (_, metrics) = send(
            &broken.routes,
            Request::get("/metrics").body(Body::empty()).unwrap(),
        )
        .await;
        for line in [
            "wallet_webhook_dead_letters 2",
            r#"wallet_webhook_tries_total{result="failed"} 12"#,
            "wallet_webhook_waiting_accounts 0",
        ] {
            assert!(
                metrics.lines().any(|found| found == line),
                "{line} is not in\n{metrics}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_dead_letter_is_sent_once_more_when_it_is_asked_for_and_then_gone() {
    let broken = broken().await;
    let routes = &broken.routes;
    deliver(&broken.hooks, async {
        broken.gone_on().await;
        broken.mended.store(true, Ordering::Relaxed);
        for letter in broken.listed().await {
            let asked = redeliver(routes, json!({"ids": [letter["id"]]})).await;
            assert_eq!(asked, (202, json!({"redelivering": 1})));
        }
        let all = |got: &[Got]| got.iter().filter(|got| got.answered == 200).count() == 4;
        let got = broken.receiver.until(all).await;
        assert_eq!(versions(&got, "bob"), [1]);
    })
    .await;
    assert_eq!(broken.listed().await, [] as [Value; 0]);
    let delivered = &broken.receiver.got()[0].event_id;
    let (status, problem) = redeliver(routes, json!({"ids": [delivered]})).await;
    assert_eq!(
        (status, &problem["code"], &problem["field"]),
        (404, &json!("not_found"), &json!("ids"))
    );
}

#[tokio::test]
async fn what_is_wrong_with_asking_for_dead_letters_is_named() {
    let wallet = wallet(&[]).await;
    let without = routes(&wallet, None);
    assert_eq!(get(&without, LIST).await["dead_letters"], json!([]));
    assert_eq!(
        redeliver(&without, json!({})).await,
        (202, json!({"redelivering": 0}))
    );
    for (body, field) in [
        (json!({"ids": []}), "ids"),
        (json!({"ids": [7]}), "ids"),
        (json!({"id": "00"}), "id"),
    ] {
        let (status, problem) = redeliver(&without, body).await;
        assert_eq!((status, problem["field"].as_str()), (400, Some(field)));
    }
    let (status, problem) = redeliver(&without, json!({"ids": ["00"]})).await;
    assert_eq!(
        (status, &problem["code"], &problem["field"]),
        (404, &json!("not_found"), &json!("ids"))
    );
    for query in ["?after=00", "?limit=0", "?account=a"] {
        let asked = Request::get(format!("{LIST}{query}"))
            .body(Body::empty())
            .unwrap();
        assert_eq!(send(&without, asked).await.0, 400, "{query}");
    }
}
