//! One try: the event as a signed POST.
//!
//! Delivered is what is answered by 2xx. Redirects are not followed (the body would go where nobody signed for it), no
//! proxy of the environment is asked, and a try ends after [`TRY_WITHIN`].

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderName};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use super::signature::Secret;
use crate::account::Timestamp;

/// How long a receiver may take, from the first packet to the last byte of its answer.
pub const TRY_WITHIN: Duration = Duration::from_secs(10);
/// How much of an answer is read, so that its connection can be used again.
const MAX_ANSWER: usize = 64 << 10;
const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");
const EVENT_ID: HeaderName = HeaderName::from_static("x-event-id");

/// Where events are sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Target(Url);

/// Why a text is no [`Target`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be an address such as http://127.0.0.1:9000/events; for https put a proxy that speaks it on this machine"
)]
pub struct TargetError;

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let url = Url::parse(text).map_err(|_| TargetError)?;
        let usable = url.scheme() == "http" && url.has_host() && url.fragment().is_none();
        if usable { Ok(Self(url)) } else { Err(TargetError) }
    }
}

/// Without path and query, which may be secret.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.origin().ascii_serialization())
    }
}

/// Sends events to one target.
#[derive(Debug)]
pub(super) struct Sender {
    client: Client,
    target: Target,
    secret: Secret,
}

impl Sender {
    /// # Errors
    /// Where the system has no resources for a client.
    pub(super) fn new(target: Target, secret: Secret) -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            .no_proxy()
            .redirect(Policy::none())
            .timeout(TRY_WITHIN)
            .user_agent(concat!("wallet-backend/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self {
            client,
            target,
            secret,
        })
    }

    /// Sends an event once, under its opaque id.
    ///
    /// # Errors
    /// Why it is not delivered, for people.
    pub(super) async fn send(&self, id: &str, body: String, now: Timestamp) -> Result<(), String> {
        let at = Duration::from_micros(u64::try_from(now.0).unwrap_or(0));
        let request = self
            .client
            .post(self.target.0.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(EVENT_ID, id)
            .header(SIGNATURE, self.secret.sign(at, &body))
            .body(body);
        let mut response = request.send().await.map_err(told)?;
        let (status, mut read) = (response.status(), 0_usize);
        while read < MAX_ANSWER
            && let Ok(Some(chunk)) = response.chunk().await
        {
            read = read.saturating_add(chunk.len());
        }
        if status.is_success() {
            Ok(())
        } else {
            Err(format!("answered {}", status.as_u16()))
        }
    }
}

/// In one line with its causes, and without the address.
fn told(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_an_http_address_and_its_path_is_not_shown() {
        let target: Target = "http://hooks.example:8080/secret?token=x".parse().unwrap();
        assert_eq!(format!("{target:?}"), "http://hooks.example:8080");
        for bad in [
            "",
            "hooks.example",
            "https://hooks.example",
            "ftp://x",
            "http:/x#y",
            "file:///x",
        ] {
            assert_eq!(bad.parse::<Target>(), Err(TargetError), "{bad}");
        }
    }
}
