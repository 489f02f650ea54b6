//! `explain`: why an account has what it has, and what became of a request, for a person on call.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use wallet_backend::clock::Clock;
use wallet_backend::store::embedded::disk::{Disk, RealDisk};
use wallet_backend::store::embedded::{self, ExplainError, Explained, OpenError};

use crate::config::explain::Explain;
use crate::offline::{kept, progress};
use crate::say;

mod json;
mod proof;
mod text;
mod words;

/// Prints it. Exit 0: explained, 1: no such account, or the log is damaged.
///
/// # Errors
/// It could not run.
pub(crate) fn explain(args: &Explain) -> anyhow::Result<ExitCode> {
    let directory = kept(&args.store)?;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::for_reading(directory));
    let (now, account) = (Clock::default().now(), &args.account);
    let (request, last) = (args.request.as_ref(), usize::from(args.entries));
    let found = embedded::explain(&disk, account, request, (now, last), progress("read"));
    let whose = || format!("cannot explain from the ledger in {}", directory.display());
    match found {
        Ok(Some(explained)) => {
            say(&shown(args, &explained)?);
            Ok(ExitCode::SUCCESS)
        }
        Ok(None) => {
            eprintln!(
                "wallet-backend: there is no account {account} in {}",
                directory.display()
            );
            Ok(ExitCode::from(1))
        }
        Err(ExplainError::Open(OpenError::Damaged(damage))) => {
            eprintln!("wallet-backend: {}: {damage}", whose());
            Ok(ExitCode::from(1))
        }
        Err(error) => Err(error).with_context(whose),
    }
}

fn shown(args: &Explain, explained: &Explained) -> anyhow::Result<String> {
    let request = args.request.as_ref().zip(explained.request.as_ref());
    if args.json {
        return Ok(serde_json::to_string(&json::explained(explained, request)?)?);
    }
    let mut lines = text::account(explained);
    if let Some((id, found)) = request {
        lines.push(String::new());
        lines.extend(text::request(explained, id, found));
    }
    Ok(lines.join("\n"))
}
