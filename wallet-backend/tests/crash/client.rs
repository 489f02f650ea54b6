//! One life of the service, as its clients see it.

use reqwest::Method;

use super::asked::Asked;
use crate::process::Served;

/// Sends to one process. Clones share its connections. Commands go out once and come back as bytes, since that is what
/// is compared; all else is left to the published client.
#[derive(Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    base: String,
    wallet: wallet_backend::client::Client,
}

/// An answer that came whole.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) replayed: bool,
    pub(super) body: String,
}

impl Client {
    pub(super) fn new(served: &Served) -> Self {
        let (http, base) = served.client();
        let wallet = served.wallet();
        Self { http, base, wallet }
    }

    /// `None` when the connection broke: it may have happened or not.
    pub(super) async fn send(&self, asked: &Asked) -> Option<Reply> {
        let method = if asked.patches() {
            Method::PATCH
        } else {
            Method::POST
        };
        self.ask(method, &asked.path(), asked.body()).await
    }

    /// The same of a batch.
    pub(super) async fn send_batch(&self, body: String) -> Option<Reply> {
        self.ask(Method::POST, "/v1/batches", body).await
    }

    async fn ask(&self, method: Method, path: &str, body: String) -> Option<Reply> {
        let request = self.http.request(method, format!("{}{path}", self.base));
        let request = request.header("content-type", "application/json").body(body);
        let response = request.send().await.ok()?;
        let replayed = response.headers().contains_key("idempotent-replayed");
        Some(Reply {
            status: response.status().as_u16(),
            replayed,
            body: response.text().await.ok()?,
        })
    }

    /// What is told to whoever moves money here: the published client, which asks again where an answer is lost.
    pub(super) fn wallet(&self) -> &wallet_backend::client::Client {
        &self.wallet
    }
}
