//! The settings file of `--config`: the flags of `sluice run` in camelCase.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::RunArgs;
use super::value::{ConfigError, parse_access_log, parse_duration, parse_upstream};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Settings {
    listen: Option<SocketAddr>,
    admin: Option<SocketAddr>,
    status: Option<SocketAddr>,
    upstream: Option<String>,
    rules: Option<PathBuf>,
    data: Option<PathBuf>,
    admin_token_file: Option<PathBuf>,
    upstream_token_file: Option<PathBuf>,
    wallet_token_file: Option<PathBuf>,
    accept_grace: Option<String>,
    drain_timeout: Option<String>,
    header_timeout: Option<String>,
    max_connections: Option<usize>,
    workers: Option<usize>,
    half_close: Option<bool>,
    access_log: Option<String>,
    access_log_sample: Option<u32>,
}

/// Reads the file into the same shape as the flags.
///
/// # Errors
/// [`ConfigError::File`] with the place if it cannot be read or says something unknown.
pub(super) fn read(path: &Path) -> Result<RunArgs, ConfigError> {
    let fail = |at: String, reason: String| ConfigError::File { at, reason };
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| fail(shown.clone(), e.to_string()))?;
    let settings: Settings = serde_yaml::from_str(&text).map_err(|error| {
        let error = error.without_snippet();
        let at = error.location().map_or_else(
            || shown.clone(),
            |place| format!("{shown}:{}:{}", place.line(), place.column()),
        );
        fail(at, error.to_string())
    })?;
    settings.into_args().map_err(|reason| fail(shown, reason))
}

impl Settings {
    fn into_args(self) -> Result<RunArgs, String> {
        let duration = |text: Option<String>| text.as_deref().map(parse_duration).transpose();
        Ok(RunArgs {
            config: None,
            listen: self.listen,
            admin: self.admin,
            status: self.status,
            upstream: self.upstream.as_deref().map(parse_upstream).transpose()?,
            rules: self.rules,
            data: self.data,
            admin_token_file: self.admin_token_file,
            upstream_token_file: self.upstream_token_file,
            wallet_token_file: self.wallet_token_file,
            accept_grace: duration(self.accept_grace)?,
            drain_timeout: duration(self.drain_timeout)?,
            header_timeout: duration(self.header_timeout)?,
            max_connections: self.max_connections,
            workers: self.workers,
            half_close: self.half_close,
            access_log: self.access_log.as_deref().map(parse_access_log).transpose()?,
            access_log_sample: self.access_log_sample,
        })
    }
}

impl RunArgs {
    /// `self` where `over` says nothing.
    pub(super) fn under(self, over: Self) -> Self {
        Self {
            config: over.config.or(self.config),
            listen: over.listen.or(self.listen),
            admin: over.admin.or(self.admin),
            status: over.status.or(self.status),
            upstream: over.upstream.or(self.upstream),
            rules: over.rules.or(self.rules),
            data: over.data.or(self.data),
            admin_token_file: over.admin_token_file.or(self.admin_token_file),
            upstream_token_file: over.upstream_token_file.or(self.upstream_token_file),
            wallet_token_file: over.wallet_token_file.or(self.wallet_token_file),
            accept_grace: over.accept_grace.or(self.accept_grace),
            drain_timeout: over.drain_timeout.or(self.drain_timeout),
            header_timeout: over.header_timeout.or(self.header_timeout),
            max_connections: over.max_connections.or(self.max_connections),
            workers: over.workers.or(self.workers),
            half_close: over.half_close.or(self.half_close),
            access_log: over.access_log.or(self.access_log),
            access_log_sample: over.access_log_sample.or(self.access_log_sample),
        }
    }
}
