//! Flags over environment over file, parsed once.
//!
//! [`Args`] is the command line; [`Config`] is what `sluice run` works with: every address parsed, every token read,
//! every bound set. Nothing after this module looks at flags, environment or files of settings again.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand};
use http::HeaderValue;
use wallet_backend::http::auth::Tokens as WalletTokens;

mod file;
mod value;

pub use value::{AccessLog, ConfigError, Tokens, UpstreamAddress};

pub(crate) use value::parse_duration;
use value::{parse_access_log, parse_upstream};

/// The command line of `sluice`.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, about, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub run: RunArgs,
}

/// What `sluice` can do. Without a command it runs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the sidecar (the default)
    Run(Box<RunArgs>),
    /// Validate rule files; exit 1 and `file:line:col: message` for each mistake
    Check(crate::check::CheckArgs),
    /// Send an open-loop load of credits or debits and print what was answered
    Load(crate::load::LoadArgs),
    /// Exit 0 if the sidecar is ready, for Docker and scripts
    Healthcheck(crate::healthcheck::HealthcheckArgs),
}

/// Flags of `sluice run`. Each may come from the environment or, by the same name in camelCase, from `--config`.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct RunArgs {
    /// Settings file (YAML); flags and environment win over it
    #[arg(long, value_name = "FILE", env = "SLUICE_CONFIG")]
    pub config: Option<PathBuf>,
    /// Where requests come in [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR", env = "SLUICE_LISTEN")]
    pub listen: Option<SocketAddr>,
    /// Health, metrics and rules; loopback unless a token is configured [default: 127.0.0.1:8719]
    #[arg(long, value_name = "ADDR", env = "SLUICE_ADMIN")]
    pub admin: Option<SocketAddr>,
    /// A second listener with healthz, readyz and metrics only, without a token
    #[arg(long, value_name = "ADDR", env = "SLUICE_STATUS")]
    pub status: Option<SocketAddr>,
    /// `http://host:port` or `unix:/path`; without it the bundled wallet serves
    #[arg(long, value_name = "URL", env = "SLUICE_UPSTREAM", value_parser = parse_upstream)]
    pub upstream: Option<UpstreamAddress>,
    /// Folder of rule files [default: rules]
    #[arg(long, value_name = "DIR", env = "SLUICE_RULES")]
    pub rules: Option<PathBuf>,
    /// Folder for the bundled wallet's books and the last good rules [default: data]
    #[arg(long, value_name = "DIR", env = "SLUICE_DATA")]
    pub data: Option<PathBuf>,
    /// File of bearer tokens, one a line, that open the admin API
    #[arg(long, value_name = "FILE", env = "SLUICE_ADMIN_TOKEN_FILE")]
    pub admin_token_file: Option<PathBuf>,
    /// File with the bearer token that is added where a request carries no Authorization
    #[arg(long, value_name = "FILE", env = "SLUICE_UPSTREAM_TOKEN_FILE")]
    pub upstream_token_file: Option<PathBuf>,
    /// File of bearer tokens, one a line, that the bundled wallet asks for
    #[arg(long, value_name = "FILE", env = "SLUICE_WALLET_TOKEN_FILE")]
    pub wallet_token_file: Option<PathBuf>,
    /// How long connections are still accepted after SIGTERM [default: 5s]
    #[arg(long, value_name = "TIME", env = "SLUICE_ACCEPT_GRACE", value_parser = parse_duration)]
    pub accept_grace: Option<Duration>,
    /// From SIGTERM to the hard stop [default: 30s]
    #[arg(long, value_name = "TIME", env = "SLUICE_DRAIN_TIMEOUT", value_parser = parse_duration)]
    pub drain_timeout: Option<Duration>,
    /// How long a client may take for a request's head [default: 10s]
    #[arg(long, value_name = "TIME", env = "SLUICE_HEADER_TIMEOUT", value_parser = parse_duration)]
    pub header_timeout: Option<Duration>,
    /// The most client connections at once; more wait to be accepted [default: 10000]
    #[arg(long, value_name = "N", env = "SLUICE_MAX_CONNECTIONS")]
    pub max_connections: Option<usize>,
    /// Threads that serve requests [default: one per core]
    #[arg(long, value_name = "N", env = "SLUICE_WORKERS")]
    pub workers: Option<usize>,
    /// Serve clients that close their sending side and still want the answer
    #[arg(long, env = "SLUICE_HALF_CLOSE", num_args = 0..=1, default_missing_value = "true")]
    pub half_close: Option<bool>,
    /// `stdout`, `off` or a file that is appended to [default: stdout]
    #[arg(long, value_name = "FILE", env = "SLUICE_ACCESS_LOG", value_parser = parse_access_log)]
    pub access_log: Option<AccessLog>,
    /// One in N answered requests is logged; 0 = none. Refusals always are [default: 100]
    #[arg(long, value_name = "N", env = "SLUICE_ACCESS_LOG_SAMPLE")]
    pub access_log_sample: Option<u32>,
}

/// Everything `sluice run` needs, complete and checked.
#[derive(Debug)]
pub struct Config {
    pub listen: SocketAddr,
    pub admin: SocketAddr,
    pub status: Option<SocketAddr>,
    /// `None`: the bundled wallet, in process.
    pub upstream: Option<UpstreamAddress>,
    pub rules: PathBuf,
    pub data: PathBuf,
    pub admin_tokens: Option<Tokens>,
    /// The whole value of the Authorization field.
    pub upstream_authorization: Option<HeaderValue>,
    /// Who may call the bundled wallet; `None`: whoever reaches the sidecar.
    pub wallet_tokens: Option<WalletTokens>,
    pub accept_grace: Duration,
    pub drain_timeout: Duration,
    pub header_timeout: Duration,
    pub max_connections: usize,
    /// At least 1.
    pub workers: usize,
    pub half_close: bool,
    pub access_log: AccessLog,
    /// One in this many answered requests is logged; 0 = none.
    pub access_log_sample: u32,
}

impl Config {
    /// Completes `args` from the settings file and the defaults, and reads the token files.
    ///
    /// # Errors
    /// A file that cannot be read or parsed, or an admin address off loopback without a token.
    pub fn load(args: RunArgs) -> Result<Self, ConfigError> {
        let args = match &args.config {
            Some(path) => file::read(path)?.under(args),
            None => args,
        };
        let config = Self {
            listen: args.listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8080))),
            admin: args.admin.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8719))),
            status: args.status,
            upstream: args.upstream,
            rules: args.rules.unwrap_or_else(|| PathBuf::from("rules")),
            data: args.data.unwrap_or_else(|| PathBuf::from("data")),
            admin_tokens: args.admin_token_file.as_deref().map(Tokens::read).transpose()?,
            upstream_authorization: args
                .upstream_token_file
                .as_deref()
                .map(authorization)
                .transpose()?,
            wallet_tokens: args.wallet_token_file.as_deref().map(wallet_tokens).transpose()?,
            accept_grace: args.accept_grace.unwrap_or(Duration::from_secs(5)),
            drain_timeout: args.drain_timeout.unwrap_or(Duration::from_secs(30)),
            header_timeout: args.header_timeout.unwrap_or(Duration::from_secs(10)),
            max_connections: args.max_connections.unwrap_or(10_000).max(1),
            workers: args.workers.unwrap_or_else(cores).max(1),
            half_close: args.half_close.unwrap_or(false),
            access_log: args.access_log.unwrap_or(AccessLog::Stdout),
            access_log_sample: args.access_log_sample.unwrap_or(100),
        };
        if !config.admin.ip().is_loopback() && config.admin_tokens.is_none() {
            return Err(ConfigError::AdminOffLoopback(config.admin));
        }
        if config.upstream.is_some() && config.wallet_tokens.is_some() {
            return Err(ConfigError::NoBundledWallet);
        }
        Ok(config)
    }

    /// Whether other machines may be able to reach the bundled wallet without a token.
    #[must_use]
    pub fn opens_the_wallet(&self) -> bool {
        self.upstream.is_none() && self.wallet_tokens.is_none() && !self.listen.ip().is_loopback()
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The bundled wallet reads its token file as `wallet-backend serve` does.
fn wallet_tokens(path: &Path) -> Result<WalletTokens, ConfigError> {
    let text = value::read_token_file(path)?;
    WalletTokens::parse(&text).map_err(|source| ConfigError::WalletTokens {
        path: path.to_owned(),
        source,
    })
}

fn authorization(path: &Path) -> Result<HeaderValue, ConfigError> {
    let tokens = Tokens::read(path)?;
    let bearer = format!("Bearer {}", tokens.first());
    let mut value = HeaderValue::try_from(bearer).map_err(|_| ConfigError::BadToken(path.to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> RunArgs {
        Args::try_parse_from(words).unwrap().run
    }

    #[test]
    fn no_command_takes_the_flags_of_run() {
        let args = parse(&[
            "sluice",
            "--listen",
            "127.0.0.1:0",
            "--upstream",
            "unix:/run/wallet.sock",
        ]);
        assert_eq!(
            args.upstream,
            Some(UpstreamAddress::Unix("/run/wallet.sock".into()))
        );
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        let config = Config::load(RunArgs::default()).unwrap();
        assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(config.admin.to_string(), "127.0.0.1:8719");
        assert_eq!(config.accept_grace, Duration::from_secs(5));
        assert_eq!(config.drain_timeout, Duration::from_secs(30));
        assert!(config.upstream.is_none());
    }

    #[test]
    fn a_flag_wins_over_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sluice.yaml");
        std::fs::write(
            &path,
            "listen: 127.0.0.1:1\nadmin: 127.0.0.1:2\nacceptGrace: 250ms\n",
        )
        .unwrap();
        let args = RunArgs {
            config: Some(path),
            listen: Some("127.0.0.1:9".parse().unwrap()),
            ..RunArgs::default()
        };
        let config = Config::load(args).unwrap();
        assert_eq!(config.listen.port(), 9);
        assert_eq!(config.admin.port(), 2);
        assert_eq!(config.accept_grace, Duration::from_millis(250));
    }

    #[test]
    fn an_unknown_setting_names_file_and_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sluice.yaml");
        std::fs::write(&path, "listen: 127.0.0.1:1\nadmn: 127.0.0.1:2\n").unwrap();
        let args = RunArgs {
            config: Some(path),
            ..RunArgs::default()
        };
        let message = Config::load(args).unwrap_err().to_string();
        assert!(message.contains("sluice.yaml:2:"), "{message}");
        assert!(message.contains("admn"), "{message}");
    }

    #[test]
    fn the_bundled_wallet_is_open_off_loopback_unless_it_has_tokens() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        std::fs::write(&path, "# rotated\nsecret\n").unwrap();
        let off_loopback = RunArgs {
            listen: Some("0.0.0.0:0".parse().unwrap()),
            ..RunArgs::default()
        };
        let with_tokens = RunArgs {
            wallet_token_file: Some(path),
            ..off_loopback.clone()
        };
        let before_another = RunArgs {
            upstream: Some(UpstreamAddress::Unix("/w.sock".into())),
            ..off_loopback.clone()
        };
        let opens = |args| Config::load(args).unwrap().opens_the_wallet();
        assert!(opens(off_loopback));
        assert!(!opens(with_tokens.clone()));
        assert!(!opens(before_another.clone()));
        assert!(!opens(RunArgs::default()));
        let both = RunArgs {
            upstream: before_another.upstream,
            ..with_tokens
        };
        let message = Config::load(both).unwrap_err().to_string();
        assert!(message.contains("--wallet-token-file"), "{message}");
    }

    #[test]
    fn admin_off_loopback_needs_a_token() {
        let args = RunArgs {
            admin: Some("0.0.0.0:0".parse().unwrap()),
            ..RunArgs::default()
        };
        let message = Config::load(args).unwrap_err().to_string();
        assert!(message.contains("--admin-token-file"), "{message}");
    }
}
