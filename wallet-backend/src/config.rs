//! The command line and its environment: flags win over `WALLET_*`. Parsed once, into types that can't be wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, bail};
use clap::{Args, Parser, Subcommand};
use wallet_backend::clock::Clock;
use wallet_backend::http::auth::{Access, Callers, Keys, Scopes, Tokens};
use wallet_backend::http::serve::Listen;
use wallet_backend::http::webhooks::{self, Rounds, Secret, Target, WebhookOptions};
use wallet_backend::store::embedded::Options;

pub(crate) mod bench;
pub(crate) mod explain;
pub(crate) mod offline;

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
    Verify(offline::Verify),
    /// Open a ledger as serve would, and hold what it would serve against its log: every account, and the books of every
    /// currency. Exit 0: no difference, 1: differences or damage, 2: could not run.
    Reconcile(offline::Reconcile),
    /// Write the whole history out, as lines of JSON or a database. Exit 0: all of it, 1: damage, 2: could not run.
    Export(offline::Export),
    /// Make a new store of an export, and prove every line of it. Exit 0: all of it, 1: it was refused, 2: could not run.
    Import(offline::Import),
    /// Copy a ledger, in use or not, and prove the copy. Exit 0: it is whole, 1: damage, 2: could not run.
    Backup(offline::Backup),
    /// Make a data directory of a backup, once it has proved itself. Exit 0: done, 1: damage, 2: could not run.
    Restore(offline::Restore),
    /// Say why an account has what it has, and what became of a request. Exit 0: said, 1: no such account, or damage, 2:
    /// could not run.
    Explain(explain::Explain),
    /// Bring the tables of a ledger in a database up to date. Exit 0: they are, 1: they are newer than this build, 2: could
    /// not run.
    #[cfg(feature = "mysql")]
    Migrate(Migrate),
    /// Make API keys.
    #[command(subcommand)]
    Key(KeyAction),
    /// Measure this build on this machine.
    #[command(subcommand)]
    Bench(bench::Bench),
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyAction {
    /// Print a secret, which is kept nowhere, and the line that makes it good in the keys file.
    New(KeyNew),
}

#[cfg(feature = "mysql")]
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// mysql://USER:PASSWORD@HOST:PORT/DATABASE
    #[arg(long, env = "WALLET_STORE", value_name = "STORE", hide_env_values = true)]
    pub(crate) store: wallet_backend::store::mysql::Address,
}

#[derive(Debug, Args)]
pub(crate) struct KeyNew {
    /// Whose key it is: 1 to 64 of A-Z a-z 0-9 . _ -
    pub(crate) name: String,
    /// What it is for: read, credit, debit, admin, with commas between them.
    #[arg(long, value_name = "SCOPES")]
    pub(crate) scopes: Scopes,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// IP:PORT (port 0 takes a free one) or unix:PATH (made with mode 0660). Off loopback a token or keys file is needed.
    #[arg(
        long,
        env = "WALLET_LISTEN",
        value_name = "ADDR",
        default_value = "127.0.0.1:8081"
    )]
    pub(crate) listen: Listen,
    /// embedded:DIR, mysql://USER:PASSWORD@HOST:PORT/DATABASE, or memory: (gone at the end).
    #[arg(
        long,
        env = "WALLET_STORE",
        value_name = "STORE",
        default_value = "embedded:./data"
    )]
    pub(crate) store: StoreLocation,
    /// Bring an older schema of the database up to date. An empty database is set up anyhow.
    #[cfg(feature = "mysql")]
    #[arg(long)]
    pub(crate) migrate: bool,
    /// Who may do everything: one bearer token a line; blank lines and lines that begin with # are skipped. SIGHUP
    /// reads it again.
    #[arg(long, env = "WALLET_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Who may do what its scopes say: one API key a line, as `wallet-backend key new` prints it. SIGHUP reads it
    /// again.
    #[arg(long, env = "WALLET_KEYS_FILE", value_name = "FILE")]
    keys_file: Option<PathBuf>,
    /// Send every event to this address (http://HOST:PORT/PATH) as a signed POST, until it has arrived; from the
    /// ledger's first one on, where nothing was sent before.
    #[arg(
        long,
        env = "WALLET_WEBHOOK",
        value_name = "URL",
        requires = "webhook_secret_file"
    )]
    webhook: Option<Target>,
    /// The secret that webhooks are signed with: one line of at least 16 bytes.
    #[arg(
        long,
        env = "WALLET_WEBHOOK_SECRET_FILE",
        value_name = "FILE",
        requires = "webhook"
    )]
    webhook_secret_file: Option<PathBuf>,
    /// Size of a segment of the embedded store's log. Small ones let a test see many come and go.
    #[arg(long, hide = true, value_name = "BYTES")]
    segment_bytes: Option<u64>,
    /// The embedded store writes a checkpoint after so many bytes of log.
    #[arg(long, hide = true, value_name = "BYTES")]
    checkpoint_bytes: Option<u64>,
}

/// Where a ledger is kept.
#[derive(Clone, Debug)]
pub(crate) enum StoreLocation {
    Embedded(PathBuf),
    Memory,
    #[cfg(feature = "mysql")]
    Mysql(wallet_backend::store::mysql::Address),
}

impl FromStr for StoreLocation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("embedded", dir)) if !dir.is_empty() => Ok(Self::Embedded(dir.into())),
            Some(("memory", "")) => Ok(Self::Memory),
            #[cfg(feature = "mysql")]
            Some(("mysql", _)) => {
                let address = text.parse().map(Self::Mysql);
                address.map_err(|error: wallet_backend::store::mysql::AddressError| error.to_string())
            }
            #[cfg(not(feature = "mysql"))]
            Some(("mysql", _)) => {
                Err("this build has no MySQL store; use embedded:DIR or memory:".to_owned())
            }
            _ => Err("must be embedded:DIR, mysql://USER:PASSWORD@HOST:PORT/DATABASE or memory:".to_owned()),
        }
    }
}

impl Serve {
    /// How webhooks are sent, if they are.
    ///
    /// # Errors
    /// A secret file that is missing or no secret.
    pub(crate) fn webhooks(&self) -> anyhow::Result<Option<WebhookOptions>> {
        let Some((target, path)) = self.webhook.as_ref().zip(self.webhook_secret_file.as_ref()) else {
            return Ok(None);
        };
        let text = fs::read_to_string(path)
            .with_context(|| format!("cannot read the webhook secret file {}", path.display()))?;
        let refused = || format!("the webhook secret file {} is refused", path.display());
        Ok(Some(WebhookOptions {
            target: target.clone(),
            secret: Secret::parse(&text).with_context(refused)?,
            kept: match &self.store {
                StoreLocation::Embedded(directory) => Some(directory.join(webhooks::FILE)),
                StoreLocation::Memory => None,
                #[cfg(feature = "mysql")]
                StoreLocation::Mysql(_) => bail!("webhooks are sent from an embedded store only"),
            },
            rounds: Rounds::default(),
            clock: Clock::default(),
        }))
    }

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
    /// As [`Serve::callers`]; no file at all where others than this machine can reach the listener.
    pub(crate) fn access(&self) -> anyhow::Result<Access> {
        match self.callers()? {
            Some(callers) => Ok(Access::only(callers)),
            None if self.listen.is_local() => Ok(Access::anyone()),
            None => bail!(
                "refusing to listen off loopback without tokens: whoever reaches it could move money. \
                 Pass --token-file FILE with one token a line, or --keys-file FILE, or listen on 127.0.0.1:PORT or \
                 unix:PATH"
            ),
        }
    }

    /// Those whom the files name, as they are now; `None` without a file.
    ///
    /// # Errors
    /// A file that is missing or malformed; a token file that is empty.
    pub(crate) fn callers(&self) -> anyhow::Result<Option<Callers>> {
        if self.token_file.is_none() && self.keys_file.is_none() {
            return Ok(None);
        }
        let tokens = self.token_file.as_deref().map(read_tokens).transpose()?;
        let keys = self.keys_file.as_deref().map(read_keys).transpose()?;
        Ok(Some(Callers {
            tokens: tokens.unwrap_or_default(),
            keys: keys.unwrap_or_default(),
        }))
    }
}

fn read_keys(path: &Path) -> anyhow::Result<Keys> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read the keys file {}", path.display()))?;
    Keys::parse(&text).with_context(|| format!("the keys file {} is refused", path.display()))
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
        let embedded = "embedded:./data".parse().unwrap();
        assert!(matches!(embedded, StoreLocation::Embedded(directory) if directory == Path::new("./data")));
        assert!(matches!("memory:".parse(), Ok(StoreLocation::Memory)));
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
    #[cfg(feature = "mysql")]
    fn a_database_is_a_store_where_its_address_names_it() {
        let named = serve(&["--store", "mysql://root@127.0.0.1/w"]).unwrap().store;
        assert!(matches!(named, StoreLocation::Mysql(_)));
        let error = serve(&["--store", "mysql://root@127.0.0.1"]).unwrap_err();
        assert!(error.to_string().contains("names no database"), "{error}");
    }

    #[test]
    #[cfg(not(feature = "mysql"))]
    fn a_store_that_this_build_lacks_is_named() {
        let error = serve(&["--store", "mysql://root@127.0.0.1/w"])
            .unwrap_err()
            .to_string();
        assert!(error.contains("this build has no MySQL store"), "{error}");
    }

    #[test]
    fn loopback_needs_no_token_file_and_anything_else_does() {
        assert!(serve(&["--listen", "127.0.0.1:0"]).unwrap().access().is_ok());
        assert!(serve(&["--listen", "unix:w.sock"]).unwrap().access().is_ok());
        let error = serve(&["--listen", "0.0.0.0:0"]).unwrap().access().unwrap_err();
        assert!(error.to_string().contains("--token-file"), "{error}");
    }

    #[test]
    fn a_keys_file_is_enough_off_loopback_also_without_a_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        fs::write(&path, "# none yet\n").unwrap();
        let path = path.to_str().unwrap();
        let arguments = ["--listen", "0.0.0.0:0", "--keys-file", path];
        let callers = serve(&arguments).unwrap().callers().unwrap().unwrap();
        assert!(callers.keys.is_empty() && callers.tokens.is_empty());
    }

    #[test]
    fn a_line_of_a_keys_file_that_is_no_key_is_refused_by_name_and_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        fs::write(&path, "\ntill read\n").unwrap();
        let path = path.to_str().unwrap();
        let error = serve(&["--keys-file", path]).unwrap().access().unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains(path) && error.contains("line 2"), "{error}");
    }

    #[test]
    fn a_token_file_without_a_token_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        fs::write(&path, "# none yet\n").unwrap();
        let path = path.to_str().unwrap();
        let error = serve(&["--token-file", path]).unwrap().access().unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains(path) && error.contains("no token"), "{error}");
    }
}
