//! Who may call, and what for. Checked before anything else of a request is looked at; `/healthz` and `/readyz` are
//! exempt.
//!
//! A caller is known by a bearer token. One of the token file may do everything; an API key ([`Keys`]) may do what its
//! scopes say, and what each route needs is in `routes`. Where nothing is configured nobody is asked: the listener is
//! loopback or a Unix socket then, or the router runs inside another process.

use std::fmt;
use std::hint::black_box;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderMap;
use http::header::AUTHORIZATION;

mod guard;
mod key;
mod scope;

pub(super) use guard::Guard;
pub use key::{Key, KeyFault, KeyFileError, Keys, Secret};
pub(super) use scope::Needs;
pub use scope::{Scope, Scopes, ScopesError};

/// Who may call a router. Clones are one: what is put in place counts for all of them.
#[derive(Clone, Debug, Default)]
pub struct Access(Option<Arc<ArcSwap<Callers>>>);

/// Those who are let in.
#[derive(Clone, Debug, Default)]
pub struct Callers {
    /// May do everything.
    pub tokens: Tokens,
    /// May do what their scopes say.
    pub keys: Keys,
}

impl Access {
    /// Whoever can reach it.
    #[must_use]
    pub const fn anyone() -> Self {
        Self(None)
    }

    /// These and nobody else.
    #[must_use]
    pub fn only(callers: Callers) -> Self {
        Self(Some(Arc::new(ArcSwap::from_pointee(callers))))
    }

    /// Lets in these instead, from the next request on. `false` where anyone is let in: that stays so.
    pub fn replace(&self, callers: Callers) -> bool {
        let Some(place) = &self.0 else { return false };
        place.store(Arc::new(callers));
        true
    }

    /// What the sender of these headers may do; `None` for a stranger.
    fn scopes(&self, headers: &HeaderMap) -> Option<Scopes> {
        let Some(callers) = &self.0 else {
            return Some(Scopes::EVERYTHING);
        };
        let given = bearer(headers)?;
        let callers = callers.load();
        let (token, key) = (callers.tokens.contain(given), callers.keys.scopes(given));
        if token { Some(Scopes::EVERYTHING) } else { key }
    }
}

impl From<Tokens> for Access {
    fn from(tokens: Tokens) -> Self {
        let keys = Keys::default();
        Self::only(Callers { tokens, keys })
    }
}

/// Tokens that may do everything. Each is 1 to 256 visible ASCII characters.
#[derive(Clone, Default)]
pub struct Tokens(Vec<Box<[u8]>>);

/// Why a token file is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFileError {
    #[error("it has no token; write one a line (blank lines and lines that begin with # are skipped)")]
    Empty,
    /// The token itself is a secret and not repeated.
    #[error("line {0} is not a token: 1 to 256 visible ASCII characters without a space")]
    Line(usize),
}

const MAX_TOKEN_BYTES: usize = 256;

impl Tokens {
    /// Reads the text of a token file: one token a line, several for rotation.
    ///
    /// # Errors
    /// [`TokenFileError`] for a file without a token, or a line that can't be sent in a header.
    pub fn parse(file: &str) -> Result<Self, TokenFileError> {
        let mut tokens = Vec::new();
        for (number, line) in (1..).zip(file.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.len() > MAX_TOKEN_BYTES || !line.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(TokenFileError::Line(number));
            }
            tokens.push(line.as_bytes().into());
        }
        if tokens.is_empty() {
            return Err(TokenFileError::Empty);
        }
        Ok(Self(tokens))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Looks at every token and at every byte: how long it takes says nothing but the lengths.
    fn contain(&self, given: &[u8]) -> bool {
        self.0
            .iter()
            .fold(false, |found, token| found | black_box(same(token, given)))
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

fn same(token: &[u8], given: &[u8]) -> bool {
    let different = token
        .iter()
        .zip(given)
        .fold(0, |different, (a, b)| different | black_box(a ^ b));
    (token.len() == given.len()) & (different == 0)
}

/// The token of the only `Authorization` header; the scheme is compared without regard to case (RFC 9110).
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?.as_bytes(), values.next()) else {
        return None;
    };
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(tokens: &str) -> Access {
        Access::from(Tokens::parse(tokens).unwrap())
    }

    fn admits(tokens: &str, header: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, header.parse().unwrap());
        only(tokens).scopes(&headers).is_some()
    }

    #[test]
    fn every_line_is_a_token_except_blank_ones_and_comments() {
        let file = "# rotated in may\nold-token\r\n\n  new-token  \n";
        assert!(admits(file, "Bearer old-token"));
        assert!(admits(file, "bearer new-token"));
        for bad in [
            "Bearer ",
            "Bearer # rotated in may",
            "old-token",
            "Basic old-token",
            "Bearer old-token2",
            "Bearer old-toke",
        ] {
            assert!(!admits(file, bad), "{bad}");
        }
    }

    #[test]
    fn two_authorization_headers_are_refused() {
        let mut headers = HeaderMap::new();
        headers.append(AUTHORIZATION, "Bearer a".parse().unwrap());
        headers.append(AUTHORIZATION, "Bearer a".parse().unwrap());
        assert_eq!(only("a").scopes(&headers), None);
    }

    #[test]
    fn nobody_is_let_in_where_no_key_is_left_and_anyone_where_nobody_is_asked() {
        let (nobody, anyone) = (Access::only(Callers::default()), Access::anyone());
        assert_eq!(nobody.scopes(&HeaderMap::new()), None);
        assert_eq!(anyone.scopes(&HeaderMap::new()), Some(Scopes::EVERYTHING));
        assert!(!anyone.replace(Callers::default()));
        assert_eq!(anyone.scopes(&HeaderMap::new()), Some(Scopes::EVERYTHING));
    }

    #[test]
    fn a_file_without_a_token_is_refused() {
        assert_eq!(Tokens::parse("\n# none\n").unwrap_err(), TokenFileError::Empty);
        assert_eq!(Tokens::parse("a\nb c\n").unwrap_err(), TokenFileError::Line(2));
    }

    #[test]
    fn tokens_are_not_shown() {
        assert_eq!(format!("{:?}", Tokens::parse("secret").unwrap()), "Tokens(1)");
    }
}
