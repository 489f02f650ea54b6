//! Bearer tokens. Checked before anything else of a request is looked at; `/healthz` and `/readyz` are exempt.
//!
//! No token configured means that none is asked for: the listener is loopback or a Unix socket then, or the router
//! runs inside another process.

use std::fmt;
use std::hint::black_box;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::error::{Code, Problem};

/// Who may call. A token is 1 to 256 visible ASCII characters.
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

    /// Whether the request may pass.
    fn admit(&self, headers: &HeaderMap) -> bool {
        self.0.is_empty() || bearer(headers).is_some_and(|given| self.contain(given))
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

/// The middleware: 401 `unauthorized`, or on.
pub(super) async fn check(State(tokens): State<Tokens>, request: Request, next: Next) -> Response {
    let open = matches!(request.uri().path(), "/healthz" | "/readyz");
    if open || tokens.admit(request.headers()) {
        return next.run(request).await;
    }
    Problem::new(
        Code::Unauthorized,
        "send a token of the token file as Authorization: Bearer TOKEN",
    )
    .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(tokens: &str, header: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, header.parse().unwrap());
        Tokens::parse(tokens).unwrap().admit(&headers)
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
        assert!(!Tokens::parse("a").unwrap().admit(&headers));
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
