//! A client of the wallet service that can be told to move money and believed when it says what became of it.
//!
//! Every command is tried again, **always under the same request id**, until it is answered or the deadline is over:
//! after what says that nothing happened (no connection, 429, 503) and after what says nothing (a broken connection, a
//! time-out, 504). Pauses grow and differ from client to client, and are never shorter than `Retry-After` asks for. What
//! the wallet decided is an [`Outcome`]; how a call ends without one is a [`CallError`], which keeps apart what was not
//! done, what is not allowed, and what nobody knows. Who gives up on the last asks [`Client::abandon`], and is sure.
//!
//! A dropped call may have been done. No redirect is followed and no proxy used: money is asked of who was named.
//!
//! ```no_run
//! # async fn pay() -> Result<(), Box<dyn std::error::Error>> {
//! use wallet_backend::account::{AccountId, RequestId};
//! use wallet_backend::client::{CallError, Client, Options, Outcome};
//! use wallet_backend::money::Amount;
//!
//! let client = Client::new("http://127.0.0.1:8081", Options::default())?;
//! let (alice, order) = (AccountId::new("alice")?, RequestId::new("order-17")?);
//! let paid = match client.debit(&alice, &order, Amount::new(120)?, None).await {
//!     Err(CallError::Unknown { .. }) => {
//!         // Out of patience: from here on either it was done, or it never will be.
//!         matches!(client.abandon(&alice, &order).await?, Outcome::Done { .. })
//!     }
//!     other => matches!(other?, Outcome::Done { .. }),
//! };
//! # Ok(()) }
//! ```

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, Url};

use self::exchange::Line;

mod batch;
mod calls;
mod error;
mod events;
mod exchange;
mod patience;
mod request;
mod sse;
mod told;
mod verdict;
mod wire;

pub use calls::Moment;
pub use error::{CallError, Problem, Trouble};
pub use events::{Event, Events};
pub use patience::Patience;
pub use told::{AccountPage, AccountState, Batched, Done, Outcome, Past, RequestState, StatementPage};

/// An idle connection is let go after this long: sooner than the wallet closes it.
const IDLE: Duration = Duration::from_secs(30);

/// How a client is set up.
#[derive(Clone, Default)]
pub struct Options {
    /// The token or API key, without `Bearer`.
    pub token: Option<String>,
    pub patience: Patience,
}

/// Speaks to one wallet. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Client(Arc<Line>);

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("token", &self.token.as_ref().map(|_| "a secret"))
            .field("patience", &self.patience)
            .finish()
    }
}

impl Client {
    /// A client of the wallet at `http://HOST:PORT`, with a path in front of the routes or none, or at `unix:PATH`.
    /// Nothing is asked yet.
    ///
    /// # Errors
    /// `Invalid` for another address, and for a token that no header can carry.
    pub fn new(address: &str, options: Options) -> Result<Self, CallError> {
        // So that a machine that does not answer is known not to have been asked anything.
        let connecting = options.patience.attempt.checked_div(2).unwrap_or_default();
        let mut builder = ClientBuilder::new()
            .redirect(Policy::none())
            .no_proxy()
            .referer(false)
            .pool_idle_timeout(IDLE)
            .connect_timeout(connecting);
        if let Some(token) = &options.token {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, bearer(token)?);
            builder = builder.default_headers(headers);
        }
        let base = match address.strip_prefix("unix:") {
            Some("") => return Err(no_address(address)),
            Some(path) => {
                builder = builder.unix_socket(std::path::PathBuf::from(path));
                "http://wallet"
            }
            None => address,
        };
        let base = Url::parse(base).ok();
        let base = base.filter(|url| url.scheme() == "http" && url.query().is_none());
        let base = base.ok_or_else(|| no_address(address))?;
        let http = builder.build().map_err(|error| CallError::Invalid {
            field: "options",
            reason: error.to_string(),
        })?;
        let patience = options.patience;
        Ok(Self(Arc::new(Line { http, base, patience })))
    }
}

fn bearer(token: &str) -> Result<HeaderValue, CallError> {
    let value = HeaderValue::try_from(format!("Bearer {token}"));
    let mut value = value.map_err(|_| CallError::Invalid {
        field: "token",
        reason: "must be visible ASCII characters".to_owned(),
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn no_address(address: &str) -> CallError {
    CallError::Invalid {
        field: "address",
        reason: format!("must be http://HOST:PORT or unix:PATH, not {address:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_http_or_a_socket_and_a_token_can_be_sent() {
        for good in [
            "http://127.0.0.1:8081",
            "http://[::1]:1/behind/a/path/",
            "unix:/run/w.sock",
        ] {
            assert!(Client::new(good, Options::default()).is_ok(), "{good}");
        }
        for bad in [
            "",
            "unix:",
            "127.0.0.1:8081",
            "https://wallet",
            "http://w/?a=b",
            "data:x",
        ] {
            let refused = Client::new(bad, Options::default());
            assert!(
                matches!(refused, Err(CallError::Invalid { field: "address", .. })),
                "{bad}"
            );
        }
        let options = Options {
            token: Some("two\nlines".to_owned()),
            ..Options::default()
        };
        assert!(!format!("{options:?}").contains("lines"));
        let refused = Client::new("http://w", options);
        assert!(matches!(refused, Err(CallError::Invalid { field: "token", .. })));
    }
}
