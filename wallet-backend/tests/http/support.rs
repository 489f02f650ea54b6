//! A wallet on the memory store behind the router, called in process.

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Builder;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;
use wallet_backend::Wallet;
use wallet_backend::http::{HttpOptions, router};

/// The router under test. Clones share the wallet.
#[derive(Clone)]
pub(super) struct Api(Router);

/// An answer, whole.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Api {
    pub(super) fn new() -> Self {
        Self::with(HttpOptions::default())
    }

    /// Streams send what is there and end, so that every answer can be read whole.
    pub(super) fn with(options: HttpOptions) -> Self {
        Self::of(Wallet::memory().unwrap(), options)
    }

    pub(super) fn over(wallet: Wallet) -> Self {
        Self::of(wallet, HttpOptions::default())
    }

    fn of(wallet: Wallet, options: HttpOptions) -> Self {
        options.ending.end();
        Self(router(wallet, options))
    }

    /// With the accounts `alice` and `bob` in EUR, and 100 minor units on the first.
    pub(super) async fn funded() -> Self {
        let api = Self::new();
        for account in ["alice", "bob"] {
            let body = format!(r#"{{"account_id":"{account}","currency":"EUR"}}"#);
            assert_eq!(api.post("/v1/accounts", &body).await.status, 201);
        }
        let credited = api
            .post(
                "/v1/accounts/alice/credits",
                r#"{"request_id":"opening","amount":100}"#,
            )
            .await;
        assert_eq!(credited.status, 201);
        api
    }

    pub(super) async fn get(&self, path: &str) -> Reply {
        self.send(Request::get(path), "").await
    }

    pub(super) async fn post(&self, path: &str, body: &str) -> Reply {
        let request = Request::post(path).header(CONTENT_TYPE, "application/json");
        self.send(request, body.to_owned()).await
    }

    pub(super) async fn patch(&self, path: &str, body: &str) -> Reply {
        let request = Request::patch(path).header(CONTENT_TYPE, "application/json");
        self.send(request, body.to_owned()).await
    }

    pub(super) async fn send(&self, request: Builder, body: impl Into<Body>) -> Reply {
        let request = request.body(body.into()).unwrap();
        let response = self.0.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        Reply {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    /// The balance of an account.
    pub(super) async fn balance(&self, account: &str) -> i64 {
        let view = self.get(&format!("/v1/accounts/{account}")).await.json();
        view["balance"].as_i64().unwrap()
    }
}

impl Reply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(super) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    pub(super) fn replayed(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }

    /// Checks that this is a problem, whole and consistent, and returns its code and field.
    pub(super) fn problem(&self) -> (String, Option<String>) {
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{self:?}"
        );
        let json = self.json();
        let known = ["type", "title", "status", "code", "detail", "field"];
        for key in json.as_object().unwrap().keys() {
            assert!(known.contains(&key.as_str()), "{key}");
        }
        assert_eq!(json["type"], "about:blank");
        assert_eq!(json["title"].as_str(), self.status.canonical_reason());
        assert_eq!(json["status"], self.status.as_u16());
        assert!(!json["detail"].as_str().unwrap().is_empty());
        let text = |key: &str| json.get(key).map(|text| text.as_str().unwrap().to_owned());
        (text("code").unwrap(), text("field"))
    }
}
