//! The commands that work on a ledger's files, without a server.

use std::fs::{self, File};
use std::io::{BufWriter, IsTerminal as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use wallet_backend::clock::Clock;
use wallet_backend::combiner::{Combiner, Limits};
use wallet_backend::jobs::reconcile::{Pass, Reconciler};
use wallet_backend::journal::Root;
use wallet_backend::store::Store;
use wallet_backend::store::embedded::disk::{Disk, RealDisk};
use wallet_backend::store::embedded::{self, Embedded, ExportError, OpenError, Options};

use crate::config::StoreLocation;
use crate::config::offline::{Export, Format, Reconcile, Verify};
use crate::say;

#[cfg(feature = "mysql")]
mod database;
pub(crate) mod import;

/// Reads everything and proves it. Exit 0: clean, 1: found something.
///
/// # Errors
/// It could not run.
pub(crate) fn verify(args: &Verify) -> anyhow::Result<ExitCode> {
    let roots = args.against.roots()?;
    #[cfg(feature = "mysql")]
    if let StoreLocation::Mysql(address) = &args.store {
        anyhow::ensure!(
            roots.is_empty(),
            "a ledger in a database has no roots: --against is for embedded:DIR"
        );
        return database::verify(address);
    }
    let directory = kept(&args.store)?;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(directory));
    let report = embedded::verify_against(&disk, &roots, progress("verified"))
        .with_context(|| format!("cannot verify the ledger in {}", directory.display()))?;
    say(&report.to_string());
    Ok(ExitCode::from(u8::from(!report.is_clean())))
}

/// Opens the ledger and holds what it would serve against its log. Exit 0: no difference, 1: differences or damage.
///
/// # Errors
/// It could not run, or not to the end.
pub(crate) fn reconcile(args: &Reconcile) -> anyhow::Result<ExitCode> {
    #[cfg(feature = "mysql")]
    if let StoreLocation::Mysql(address) = &args.store {
        return database::reconcile(address);
    }
    let directory = kept(&args.store)?;
    let whose = || format!("cannot reconcile the ledger in {}", directory.display());
    let options = Options {
        daily_root: None,
        ..Options::at(directory)
    };
    // Opening would make one.
    let store = match embedded::is_there(options.disk.as_ref()) {
        Ok(true) => Embedded::open(options),
        Ok(false) => anyhow::bail!("there is no ledger in {}", directory.display()),
        Err(error) => Err(error),
    };
    let store = match store {
        Ok(store) => store,
        Err(OpenError::Damaged(damage)) => {
            say(&format!("FOUND {damage}"));
            return Ok(ExitCode::from(1));
        }
        Err(error) => return Err(error).with_context(whose),
    };
    proven(store).with_context(whose)
}

/// Holds the whole of a store against what it has written, and says what differs.
fn proven<S: Store>(store: S) -> anyhow::Result<ExitCode> {
    let reconciler = Reconciler::new(Clock::default(), store.newest_event());
    // Nothing is tidied meanwhile: what is there is what is looked at.
    let combiner = Combiner::start(store, Limits::default(), async |_| {})?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(async {
        let ended = reconciler.once(&combiner.queue(), Pass::GeneralLedger).await;
        combiner.close().await;
        ended
    });
    let report = reconciler.report();
    say(&report.to_string());
    ended?;
    Ok(ExitCode::from(u8::from(!report.is_ok())))
}

/// Writes the history out, and tells its root on standard error. Exit 0: all of it, 1: the log is damaged.
///
/// # Errors
/// It could not run, or not to the end.
pub(crate) fn export(args: &Export) -> anyhow::Result<ExitCode> {
    let directory = kept(&args.store)?;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(directory));
    let exported = match (&args.out, args.format) {
        (None, Format::Ndjson) => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            embedded::export(&disk, &mut out, progress("exported"))
        }
        #[cfg(feature = "sqlite")]
        (None, Format::Sqlite) => anyhow::bail!("a database is a file: --out FILE"),
        (Some(path), format) => export_to(&disk, path, format)?,
    };
    let whose = || format!("cannot export the ledger in {}", directory.display());
    match exported {
        Ok(root) => {
            eprintln!("root {root}");
            Ok(ExitCode::SUCCESS)
        }
        Err(ExportError::Open(OpenError::Damaged(damage))) => {
            eprintln!("wallet-backend: {}: {damage}", whose());
            Ok(ExitCode::from(1))
        }
        Err(error) => Err(error).with_context(whose),
    }
}

/// The file has its name once it is whole and on the disk.
fn export_to(disk: &Arc<dyn Disk>, path: &Path, format: Format) -> anyhow::Result<Result<Root, ExportError>> {
    anyhow::ensure!(!path.exists(), "{} is there already", path.display());
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let cannot = |doing: &str| format!("cannot {doing} {}", temporary.display());
    let file = File::create(&temporary).with_context(|| cannot("make"))?;
    let exported = match format {
        Format::Ndjson => embedded::export(disk, &mut BufWriter::new(&file), progress("exported")),
        #[cfg(feature = "sqlite")]
        Format::Sqlite => embedded::export_database(disk, Path::new(&temporary), progress("exported")),
    };
    if exported.is_err() {
        fs::remove_file(&temporary).with_context(|| cannot("remove"))?;
        return Ok(exported);
    }
    file.sync_all().with_context(|| cannot("sync"))?;
    fs::rename(&temporary, path).with_context(|| cannot("rename"))?;
    Ok(exported)
}

/// The directory of a store that is there.
pub(crate) fn kept(store: &StoreLocation) -> anyhow::Result<&Path> {
    let StoreLocation::Embedded(directory) = store else {
        anyhow::bail!("this is done with the files of a store: embedded:DIR");
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
pub(crate) fn progress(done_so_far: &'static str) -> impl FnMut(u64, u64) {
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
