//! The command line and its environment: flags win over `WALLET_*`. Parsed once, into types that can't be wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, bail};
use clap::{Args, Parser, Subcommand};
use wallet_backend::http::auth::Tokens;
use wallet_backend::http::serve::Listen;
use wallet_backend::store::embedded::Options;

/// A slot-split ledger for hot accounts, over HTTP.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Action,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Serve the wallet until SIGTERM or SIGINT; requests in flight are finished first.
    Serve(Serve),
    /// Read a whole ledger and prove its chains and sums. Exit 0: clean, 1: found something, 2: could not run.
    Verify(Verify),
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// IP:PORT (port 0 takes a free one) or unix:PATH (made with mode 0660). Off loopback a token file is needed.
    #[arg(
        long,
        env = "WALLET_LISTEN",
        value_name = "ADDR",
        default_value = "127.0.0.1:8081"
    )]
    pub(crate) listen: Listen,
    /// embedded:DIR, or memory: (gone at the end).
    #[arg(
        long,
        env = "WALLET_STORE",
        value_name = "STORE",
        default_value = "embedded:./data"
    )]
    pub(crate) store: StoreLocation,
    /// Who may call: one bearer token a line; blank lines and lines that begin with # are skipped.
    #[arg(long, env = "WALLET_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Size of a segment of the embedded store's log. Small ones let a test see many come and go.
    #[arg(long, hide = true, value_name = "BYTES")]
    segment_bytes: Option<u64>,
    /// The embedded store writes a checkpoint after so many bytes of log.
    #[arg(long, hide = true, value_name = "BYTES")]
    checkpoint_bytes: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// embedded:DIR. No process may be using it.
    #[arg(
        long,
        env = "WALLET_STORE",
        value_name = "STORE",
        default_value = "embedded:./data"
    )]
    pub(crate) store: StoreLocation,
}

/// Where a ledger is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreLocation {
    Embedded(PathBuf),
    Memory,
}

impl FromStr for StoreLocation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("embedded", dir)) if !dir.is_empty() => Ok(Self::Embedded(dir.into())),
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("mysql", _)) => {
                Err("this build has no MySQL store; use embedded:DIR or memory:".to_owned())
            }
            _ => Err("must be embedded:DIR or memory:".to_owned()),
        }
    }
}

impl Serve {
    /// How the embedded store in `directory` is opened.
    pub(crate) fn options(&self, directory: &Path) -> Options {
        let defaults = Options::at(directory);
        let segment_bytes = self.segment_bytes.unwrap_or(defaults.segment_bytes);
        Options {
            segment_bytes,
            fresh_bytes: defaults.fresh_bytes.min(segment_bytes),
            checkpoint_bytes: self.checkpoint_bytes.unwrap_or(defaults.checkpoint_bytes),
            ..defaults
        }
    }

    /// Who may call.
    ///
    /// # Errors
    /// A token file that is missing, empty or malformed; none at all where others than this machine can reach the
    /// listener.
    pub(crate) fn tokens(&self) -> anyhow::Result<Tokens> {
        match &self.token_file {
            Some(path) => read_tokens(path),
            None if self.listen.is_local() => Ok(Tokens::default()),
            None => bail!(
                "refusing to listen off loopback without tokens: whoever reaches it could move money. \
                 Pass --token-file FILE with one token a line, or listen on 127.0.0.1:PORT or unix:PATH"
            ),
        }
    }
}

fn read_tokens(path: &Path) -> anyhow::Result<Tokens> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read the token file {}", path.display()))?;
    Tokens::parse(&text).with_context(|| format!("the token file {} is refused", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serve(arguments: &[&str]) -> Result<Serve, clap::Error> {
        let cli = Cli::try_parse_from(["wallet-backend", "serve"].iter().chain(arguments))?;
        let Action::Serve(serve) = cli.command else {
            panic!("serve was asked for");
        };
        Ok(serve)
    }

    #[test]
    fn a_store_is_a_directory_or_memory() {
        assert_eq!(
            "embedded:./data".parse(),
            Ok(StoreLocation::Embedded("./data".into()))
        );
        assert_eq!("memory:".parse(), Ok(StoreLocation::Memory));
        for bad in [
            "",
            "embedded:",
            "embedded",
            "memory",
            "memory:x",
            "redis:x",
            "./data",
        ] {
            assert!(bad.parse::<StoreLocation>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_store_that_this_build_lacks_is_named() {
        let error = serve(&["--store", "mysql://root@127.0.0.1/w"])
            .unwrap_err()
            .to_string();
        assert!(error.contains("this build has no MySQL store"), "{error}");
    }

    #[test]
    fn loopback_needs_no_token_file_and_anything_else_does() {
        assert!(serve(&["--listen", "127.0.0.1:0"]).unwrap().tokens().is_ok());
        assert!(serve(&["--listen", "unix:w.sock"]).unwrap().tokens().is_ok());
        let error = serve(&["--listen", "0.0.0.0:0"]).unwrap().tokens().unwrap_err();
        assert!(error.to_string().contains("--token-file"), "{error}");
    }

    #[test]
    fn a_token_file_without_a_token_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        fs::write(&path, "# none yet\n").unwrap();
        let path = path.to_str().unwrap();
        let error = serve(&["--token-file", path]).unwrap().tokens().unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains(path) && error.contains("no token"), "{error}");
    }
}
