//! A receiver of webhooks on a real socket, which answers as a test says and keeps what it got.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// One try, as it arrived, and how it was answered.
#[derive(Clone, Debug)]
pub(super) struct Got {
    pub(super) path: String,
    pub(super) event_id: String,
    pub(super) signature: String,
    pub(super) content_type: String,
    pub(super) body: String,
    pub(super) answered: u16,
}

impl Got {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(super) fn account(&self) -> String {
        self.json()["account_id"].as_str().unwrap().to_owned()
    }

    pub(super) fn version(&self) -> u64 {
        self.json()["version"].as_u64().unwrap()
    }
}

/// What an answer may depend on.
pub(super) struct Tries {
    pub(super) account: String,
    pub(super) version: u64,
    /// Tries of this account's events that came before, all of them.
    pub(super) before: usize,
}

type Answers = dyn Fn(&Tries) -> u16 + Send + Sync;

struct Shared {
    answers: Box<Answers>,
    tries: Mutex<HashMap<String, usize>>,
    got: watch::Sender<Vec<Got>>,
}

pub(super) struct Receiver {
    address: String,
    shared: Arc<Shared>,
    serving: JoinSet<()>,
}

impl Receiver {
    /// On a free port.
    pub(super) async fn start(answers: impl Fn(&Tries) -> u16 + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", answers).await
    }

    pub(super) async fn start_at(
        address: &str,
        answers: impl Fn(&Tries) -> u16 + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Shared {
            answers: Box::new(answers),
            tries: Mutex::default(),
            got: watch::Sender::new(Vec::new()),
        });
        let routes = Router::new().fallback(take).with_state(Arc::clone(&shared));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self {
            address,
            shared,
            serving,
        }
    }

    pub(super) fn address(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits until what it got is enough, and gives it.
    pub(super) async fn until(&self, enough: impl Fn(&[Got]) -> bool) -> Vec<Got> {
        let mut got = self.shared.got.subscribe();
        got.wait_for(|got| enough(got)).await.unwrap().clone()
    }

    /// Everything so far.
    pub(super) fn got(&self) -> Vec<Got> {
        self.shared.got.borrow().clone()
    }

    /// Stops listening; says where it did.
    pub(super) async fn stop(mut self) -> String {
        self.serving.shutdown().await;
        self.address.clone()
    }
}

async fn take(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let header = |headers: &HeaderMap, name: &str| {
        let value = headers.get(name).map(|value| value.to_str().unwrap());
        value.unwrap_or_default().to_owned()
    };
    let mut got = Got {
        path: parts.uri.path().to_owned(),
        event_id: header(&parts.headers, "x-event-id"),
        signature: header(&parts.headers, "x-signature"),
        content_type: header(&parts.headers, "content-type"),
        body: String::from_utf8(body.to_vec()).unwrap(),
        answered: 0,
    };
    let (account, version) = (got.account(), got.version());
    let before = {
        let mut tries = shared.tries.lock().unwrap();
        let tries = tries.entry(account.clone()).or_default();
        *tries += 1;
        *tries - 1
    };
    let tries = Tries {
        account,
        version,
        before,
    };
    got.answered = (shared.answers)(&tries);
    let status = StatusCode::from_u16(got.answered).unwrap();
    shared.got.send_modify(|all| all.push(got));
    (status, [(LOCATION, "/elsewhere")]).into_response()
}
