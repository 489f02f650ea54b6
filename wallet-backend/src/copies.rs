//! `backup` and `restore`: a ledger's copy, made and proved without a server.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use wallet_backend::clock::Clock;
use wallet_backend::http::webhooks;
use wallet_backend::store::embedded::disk::{Disk, RealDisk};
use wallet_backend::store::embedded::{self, BackupError, Phase};

use crate::config::StoreLocation;
use crate::config::offline::{Backup, Restore};
use crate::offline::{kept, progress};
use crate::say;

/// Copies a ledger that may be in use. Exit 0: it is whole, 1: the ledger is damaged.
///
/// # Errors
/// It could not run, or not to the end.
pub(crate) fn backup(args: &Backup) -> anyhow::Result<ExitCode> {
    let directory = kept(&args.store)?;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::for_reading(directory));
    let now = Clock::default().now();
    let made = embedded::backup(&disk, &[webhooks::FILE], &args.to, now, phases());
    let whose = || format!("cannot back up the ledger in {}", directory.display());
    told(made, whose)
}

/// Makes a data directory of a backup. Exit 0: done, 1: the backup is not as it was made, or does not prove itself.
///
/// # Errors
/// It could not run, or not to the end.
pub(crate) fn restore(args: &Restore) -> anyhow::Result<ExitCode> {
    let roots = args.against.roots()?;
    let StoreLocation::Embedded(directory) = &args.store else {
        anyhow::bail!("only a store that is kept has files: embedded:DIR");
    };
    let restored = embedded::restore(&args.from, directory, &roots, phases());
    let whose = || {
        let (from, to) = (args.from.display(), directory.display());
        format!("cannot restore {from} to {to}")
    };
    told(restored, whose)
}

fn told(outcome: Result<impl ToString, BackupError>, whose: impl Fn() -> String) -> anyhow::Result<ExitCode> {
    match outcome {
        Ok(done) => {
            say(&done.to_string());
            Ok(ExitCode::SUCCESS)
        }
        Err(error) if error.is_damage() => {
            eprintln!("wallet-backend: {}: {error}", whose());
            Ok(ExitCode::from(1))
        }
        Err(error) => Err(error).with_context(whose),
    }
}

fn phases() -> impl FnMut(Phase, u64, u64) {
    let (mut copying, mut proving) = (progress("copied"), progress("proved"));
    move |phase, done, of| match phase {
        Phase::Copying => copying(done, of),
        Phase::Proving => proving(done, of),
    }
}
