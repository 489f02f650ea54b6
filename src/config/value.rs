//! Settings that are more than a word: addresses, durations, tokens, and what can be wrong with them.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What keeps `sluice run` from starting. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{at}: {reason}")]
    File { at: String, reason: String },
    #[error(
        "admin address {0} is not on loopback: give --admin-token-file, or keep --admin on 127.0.0.1 and open --status for probes"
    )]
    AdminOffLoopback(SocketAddr),
    #[error("the token file {} cannot be read", path.display())]
    TokenFile {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{}: holds no token: put one on a line of its own", .0.display())]
    NoToken(PathBuf),
    #[error("{}: a token must be visible ASCII", .0.display())]
    BadToken(PathBuf),
    #[error("the token file {} is refused", path.display())]
    WalletTokens {
        path: PathBuf,
        #[source]
        source: wallet_backend::http::auth::TokenFileError,
    },
    #[error(
        "--wallet-token-file is for the bundled wallet: the wallet behind --upstream has tokens of its own"
    )]
    NoBundledWallet,
}

/// Where the wallet listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamAddress {
    /// Plain HTTP/1.1 over TCP. The host may be a name; it is looked up at every connect.
    Tcp { host: String, port: u16 },
    /// HTTP/1.1 over a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for UpstreamAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "http://[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "http://{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Where the access log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLog {
    Stdout,
    Off,
    /// Opened for appending; created if it is not there.
    File(PathBuf),
}

/// Bearer tokens of one file, one a line. Never empty; never shown.
#[derive(Clone)]
pub struct Tokens {
    first: String,
    rest: Vec<String>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({} hidden)", self.rest.len() + 1)
    }
}

impl Tokens {
    /// Reads a token file; blank lines and lines that begin with # are skipped, space around a token is trimmed.
    ///
    /// # Errors
    /// A file that cannot be read, holds no token, or one that could not stand in a header.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = read_token_file(path)?;
        let mut lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(str::to_owned);
        let first = lines
            .next()
            .ok_or_else(|| ConfigError::NoToken(path.to_owned()))?;
        let tokens = Self {
            first,
            rest: lines.collect(),
        };
        let visible = |token: &String| token.bytes().all(|byte| byte.is_ascii_graphic());
        if tokens.all().all(visible) {
            Ok(tokens)
        } else {
            Err(ConfigError::BadToken(path.to_owned()))
        }
    }

    /// The token that is sent where only one can be.
    #[must_use]
    pub fn first(&self) -> &str {
        &self.first
    }

    /// Whether `token` is one of them, compared in a time that does not depend on where they differ.
    #[must_use]
    pub fn contain(&self, token: &str) -> bool {
        self.all().fold(false, |found, known| {
            found | same(known.as_bytes(), token.as_bytes())
        })
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.first).chain(&self.rest)
    }
}

pub(super) fn read_token_file(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::TokenFile {
        path: path.to_owned(),
        source,
    })
}

fn same(known: &[u8], given: &[u8]) -> bool {
    known.len() == given.len() && known.iter().zip(given).fold(0, |diff, (a, b)| diff | (a ^ b)) == 0
}

/// Parses `http://host:port` or `unix:/path`.
pub(super) fn parse_upstream(text: &str) -> Result<UpstreamAddress, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return if path.starts_with('/') || path.starts_with('.') {
            Ok(UpstreamAddress::Unix(path.into()))
        } else {
            Err("a Unix socket is written unix:/path".to_owned())
        };
    }
    let expected = || "expected http://host:port or unix:/path".to_owned();
    let uri: http::Uri = text.parse().map_err(|_| expected())?;
    if uri.scheme_str() != Some("http") {
        return Err(expected());
    }
    if uri.path_and_query().is_some_and(|path| path.as_str() != "/") {
        return Err("an upstream has no path: requests keep their own".to_owned());
    }
    let host = uri
        .host()
        .ok_or_else(expected)?
        .trim_start_matches('[')
        .trim_end_matches(']');
    Ok(UpstreamAddress::Tcp {
        host: host.to_owned(),
        port: uri.port_u16().unwrap_or(80),
    })
}

/// Parses `250ms`, `5s`, `2m`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("expected a time like 250ms, 5s or 2m, found `{text}`");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| expected())?;
    let millis = match unit {
        "ms" => Some(number),
        "s" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        _ => None,
    };
    // A day is longer than any sensible deadline, and short enough that adding it to a time cannot overflow.
    millis
        .filter(|millis| *millis <= 86_400_000)
        .map(Duration::from_millis)
        .ok_or_else(expected)
}

/// Parses `stdout`, `off` or a path.
#[expect(
    clippy::unnecessary_wraps,
    reason = "clap's and the settings file's parsers all have this shape"
)]
pub(super) fn parse_access_log(text: &str) -> Result<AccessLog, String> {
    Ok(match text {
        "stdout" | "-" => AccessLog::Stdout,
        "off" => AccessLog::Off,
        path => AccessLog::File(path.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_are_http_or_unix() {
        let tcp = |host: &str, port| {
            Ok(UpstreamAddress::Tcp {
                host: host.to_owned(),
                port,
            })
        };
        assert_eq!(parse_upstream("http://wallet:8081"), tcp("wallet", 8081));
        assert_eq!(parse_upstream("http://[::1]:8081/"), tcp("::1", 8081));
        assert_eq!(parse_upstream("http://wallet"), tcp("wallet", 80));
        assert_eq!(
            parse_upstream("unix:/run/w.sock"),
            Ok(UpstreamAddress::Unix("/run/w.sock".into()))
        );
        for bad in [
            "https://wallet:1",
            "wallet:1",
            "http://wallet:1/base",
            "unix:sock",
            "",
        ] {
            assert!(parse_upstream(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_name_their_unit() {
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        for bad in ["5", "s", "-1s", "1h30", "99999999999999s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_token_of_the_file_is_known_and_none_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        std::fs::write(&path, "#old\none\n\n  two \n").unwrap();
        let tokens = Tokens::read(&path).unwrap();
        assert!(!tokens.contain("#old"));
        assert!(tokens.contain("one") && tokens.contain("two"));
        assert!(!tokens.contain("on") && !tokens.contain(""));
        assert!(!format!("{tokens:?}").contains("one"));
    }
}
