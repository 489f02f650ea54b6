//! `import`: a new data directory out of an export, all of it or nothing.
//!
//! The store is made in a directory beside its own, `DIR.importing`, and gets its name once everything is proven and
//! on the disk. What a killed import left there is taken away by the next one.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use wallet_backend::store::embedded::disk::{Disk as _, Lock, RealDisk};
use wallet_backend::store::embedded::{self, ImportError, Imported, OpenError, Options};

use super::progress;
use crate::config::StoreLocation;
use crate::config::offline::Import;
use crate::say;

/// What a data directory consists of.
const PARTS: [&str; 5] = ["log", "state", "index", "roots", "heads"];

/// Makes a store of an export. Exit 0: all of it, 1: it was refused, and nothing is left.
///
/// # Errors
/// It could not run; then nothing is left either.
pub(crate) fn import(args: &Import) -> anyhow::Result<ExitCode> {
    let roots = args.roots()?;
    let StoreLocation::Embedded(target) = &args.store else {
        bail!("only into a store that is kept: embedded:DIR");
    };
    ensure!(
        is_free(target)?,
        "{} is there already and not empty: an import makes a new store",
        target.display()
    );
    let (mut from, bytes) = source(&args.file)?;
    let building = Building::begin(target)?;
    let mut tell = progress("imported");
    let imported = embedded::import(Options::at(&building.path), from.as_mut(), &roots, |read| {
        if bytes > 0 {
            tell(read, bytes);
        }
    });
    match imported {
        Ok(imported) => {
            building.publish(target)?;
            tell_of(&imported);
            Ok(ExitCode::SUCCESS)
        }
        Err(ImportError::Refused { line, fault }) => {
            building.take_away()?;
            let name = match args.file.to_str() {
                Some("-") => "standard input".to_owned(),
                _ => args.file.display().to_string(),
            };
            eprintln!("wallet-backend: {name}:{line}: {fault}");
            Ok(ExitCode::from(1))
        }
        Err(error) => {
            building.take_away()?;
            Err(error).with_context(|| format!("cannot import into {}", target.display()))
        }
    }
}

fn tell_of(imported: &Imported) {
    let Imported {
        records,
        entries,
        requests,
        accounts,
        totals,
        root,
    } = imported;
    say(&format!(
        "{records} records: {accounts} accounts, {entries} entries, {requests} requests"
    ));
    for (currency, minor) in totals {
        say(&format!(
            "{minor} minor units of {} in all accounts",
            currency.as_str()
        ));
    }
    say(&format!("root {root}"));
}

/// The export, and its size; 0 where that is not known.
fn source(path: &Path) -> anyhow::Result<(Box<dyn BufRead>, u64)> {
    if path.as_os_str() == "-" {
        return Ok((Box::new(BufReader::new(io::stdin())), 0));
    }
    let cannot = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(cannot)?;
    let bytes = file.metadata().with_context(cannot)?.len();
    Ok((Box::new(BufReader::with_capacity(1 << 20, file)), bytes))
}

/// Whether a store can be made under this name.
fn is_free(target: &Path) -> anyhow::Result<bool> {
    match fs::read_dir(target) {
        Ok(mut files) => Ok(files.next().is_none()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error).with_context(|| format!("cannot look into {}", target.display())),
    }
}

/// The directory in which the store is made.
struct Building {
    path: PathBuf,
}

impl Building {
    /// Makes it, having taken away what a killed import left.
    fn begin(target: &Path) -> anyhow::Result<Self> {
        // With its last name, however the name is spelt: `data/` has the same neighbour as `data`.
        let mut name = target
            .file_name()
            .with_context(|| format!("{} has no name of its own", target.display()))?
            .to_owned();
        name.push(".importing");
        let building = Self {
            path: target.with_file_name(name),
        };
        if building.path.exists() {
            building.take_left_away()?;
        }
        let cannot = || format!("cannot make {}", building.path.display());
        let parent = parent(&building.path);
        fs::create_dir_all(parent).with_context(cannot)?;
        fs::create_dir(&building.path).with_context(cannot)?;
        Ok(building)
    }

    /// Only what an import can have made, and only if that has ended.
    fn take_left_away(&self) -> anyhow::Result<()> {
        let shown = self.path.display();
        let lock = lock(&self.path)?;
        ensure!(lock.is_some(), "another import is at work in {shown}");
        for file in fs::read_dir(&self.path).with_context(|| format!("cannot look into {shown}"))? {
            let name = file
                .with_context(|| format!("cannot look into {shown}"))?
                .file_name();
            ensure!(
                PARTS.iter().any(|part| name == *part),
                "{shown} is in the way, and no import has made {}",
                name.display()
            );
        }
        eprintln!("{shown} was left by an import that did not end, and is taken away");
        self.take_away()
    }

    fn take_away(&self) -> anyhow::Result<()> {
        fs::remove_dir_all(&self.path).with_context(|| format!("cannot take {} away", self.path.display()))
    }

    /// Gives the store its name, durably. Nobody else has begun one there: the name is locked, and empty, until then.
    fn publish(&self, target: &Path) -> anyhow::Result<()> {
        let named = self.name_it(target);
        if named.is_err() {
            self.take_away()?;
        }
        named
    }

    fn name_it(&self, target: &Path) -> anyhow::Result<()> {
        let cannot = || format!("cannot make {}", target.display());
        match fs::create_dir(target) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error).with_context(cannot),
            Ok(()) | Err(_) => {}
        }
        let held = lock(target)?;
        ensure!(
            held.is_some() && is_free(target)?,
            "somebody has made a store in {} meanwhile",
            target.display()
        );
        fs::rename(&self.path, target).with_context(cannot)?;
        let parent = parent(target);
        let synced = File::open(parent).and_then(|folder| folder.sync_all());
        synced.with_context(|| format!("cannot sync {}", parent.display()))
    }
}

/// Where the name is.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// `None` while another process has the directory.
fn lock(directory: &Path) -> anyhow::Result<Option<Box<dyn Lock>>> {
    match RealDisk::new(directory).lock() {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(OpenError::Io {
            doing: format!("lock {}", directory.display()),
            source: error,
        }
        .into()),
    }
}
