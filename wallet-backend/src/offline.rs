//! The commands that work on a ledger's files, without a server.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use wallet_backend::store::embedded;
use wallet_backend::store::embedded::disk::{Disk, RealDisk};

use crate::config::StoreLocation;
use crate::config::offline::Verify;
use crate::say;

/// Reads everything and proves it. Exit 0: clean, 1: found something.
///
/// # Errors
/// It could not run.
pub(crate) fn verify(args: &Verify) -> anyhow::Result<ExitCode> {
    let roots = args.roots()?;
    let directory = kept(&args.store)?;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(directory));
    let report = embedded::verify_against(&disk, &roots, progress("verified"))
        .with_context(|| format!("cannot verify the ledger in {}", directory.display()))?;
    say(&report.to_string());
    Ok(ExitCode::from(u8::from(!report.is_clean())))
}

/// The directory of a store that is there.
fn kept(store: &StoreLocation) -> anyhow::Result<&Path> {
    let StoreLocation::Embedded(directory) = store else {
        anyhow::bail!("only a store that is kept has files: embedded:DIR");
    };
    // Without this check a mistyped name would be made, and found to be without fault.
    anyhow::ensure!(
        directory.is_dir(),
        "there is no directory {}",
        directory.display()
    );
    Ok(directory)
}

/// Shows on a terminal how far a long job is; on anything else it keeps quiet.
fn progress(done_so_far: &'static str) -> impl FnMut(u64, u64) {
    let shown = std::io::stderr().is_terminal();
    let mut last = 0;
    move |done, of| {
        let percent = done.saturating_mul(100).checked_div(of).unwrap_or(100);
        if shown && percent > last {
            last = percent;
            let end = if percent < 100 { '\r' } else { '\n' };
            eprint!("{done_so_far} {percent} %{end}");
        }
    }
}
