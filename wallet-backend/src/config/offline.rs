//! The command lines of what works on a ledger's files.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Deserialize;
use wallet_backend::journal::Root;

use super::StoreLocation;

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// embedded:DIR, which no process may be using, or mysql://USER:PASSWORD@HOST:PORT/DATABASE.
    #[arg(
        long,
        env = "WALLET_STORE",
        value_name = "STORE",
        default_value = "embedded:./data"
    )]
    pub(crate) store: StoreLocation,
    #[command(flatten)]
    pub(crate) against: KeptRoots,
}

#[derive(Debug, Args)]
pub(crate) struct KeptRoots {
    /// A root that was kept elsewhere, RECORDS:DIGEST, or a file of them, one a line, bare or as in the store's roots/.
    /// Exit 1 if anything that one covers is not what it was. Can be given more than once.
    #[arg(long, value_name = "ROOT|FILE")]
    against: Vec<Against>,
}

#[derive(Debug, Args)]
pub(crate) struct Reconcile {
    /// embedded:DIR, which no process may be using, or mysql://USER:PASSWORD@HOST:PORT/DATABASE.
    #[arg(
        long,
        env = "WALLET_STORE",
        value_name = "STORE",
        default_value = "embedded:./data"
    )]
    pub(crate) store: StoreLocation,
}

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// embedded:DIR. A process may be using it, and goes on; only the right to read is needed.
    #[arg(
        long,
        env = "WALLET_STORE",
        value_name = "STORE",
        default_value = "embedded:./data"
    )]
    pub(crate) store: StoreLocation,
    /// Where to: a directory that is empty or not there yet. It is a backup once it has its backup.manifest.
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// A directory that `backup` made.
    #[arg(long, value_name = "DIR")]
    pub(crate) from: PathBuf,
    /// embedded:DIR, a directory that is empty or not there yet. Never serve it beside the ledger it is a copy of.
    #[arg(
        long,
        env = "WALLET_STORE",
        value_name = "STORE",
        default_value = "embedded:./data"
    )]
    pub(crate) store: StoreLocation,
    #[command(flatten)]
    pub(crate) against: KeptRoots,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// embedded:DIR. No process may be using it.
    #[arg(
        long,
        env = "WALLET_STORE",
        value_name = "STORE",
        default_value = "embedded:./data"
    )]
    pub(crate) store: StoreLocation,
    /// ndjson: the lines that docs/tamper-evidence.md describes, whose root is told at the end. sqlite: a database with
    /// tables of accounts, slots, entries, requests, holds and pending credits, which needs --out.
    #[arg(long, default_value = "ndjson")]
    pub(crate) format: Format,
    /// Where to, a file that is not there yet; standard output without it, if that can be.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// embedded:DIR, which is not there yet or empty.
    #[arg(
        long,
        env = "WALLET_STORE",
        value_name = "STORE",
        default_value = "embedded:./data"
    )]
    pub(crate) store: StoreLocation,
    /// What `export --format ndjson` has written. `-`: standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
    /// A root that was kept elsewhere, or a file of them, as for `verify`: exit 1 if the lines that one covers are not
    /// what they were. Can be given more than once.
    #[arg(long, value_name = "ROOT|FILE")]
    against: Vec<Against>,
}

/// In what form a history is written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Ndjson,
    #[cfg(feature = "sqlite")]
    Sqlite,
}

/// What `--against` names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Against {
    Root(Root),
    File(PathBuf),
}

impl FromStr for Against {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(root) => Ok(Self::Root(root)),
            Err(error) if Path::new(text).is_file() => {
                // The file's lines say what they are.
                drop(error);
                Ok(Self::File(text.into()))
            }
            Err(error) => Err(format!("{error}, and no file has this name")),
        }
    }
}

impl KeptRoots {
    /// Every root that was given, files read.
    ///
    /// # Errors
    /// A file that cannot be read, has no root, or has a line that is none.
    pub(crate) fn roots(&self) -> anyhow::Result<Vec<Root>> {
        all_roots(&self.against)
    }
}

impl Import {
    /// As [`Verify::roots`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn roots(&self) -> anyhow::Result<Vec<Root>> {
        all_roots(&self.against)
    }
}

fn all_roots(given: &[Against]) -> anyhow::Result<Vec<Root>> {
    let mut roots = Vec::new();
    for against in given {
        match against {
            Against::Root(root) => roots.push(*root),
            Against::File(path) => roots.extend(read_roots(path)?),
        }
    }
    Ok(roots)
}

/// A line of the store's roots/; what else it says is for people.
#[derive(Deserialize)]
struct RootLine {
    root: String,
}

fn read_roots(path: &Path) -> anyhow::Result<Vec<Root>> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read the roots in {shown}"))?;
    let mut roots = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let root = serde_json::from_str::<RootLine>(line).map_or_else(|_| line.to_owned(), |line| line.root);
        let root = root.parse().with_context(|| format!("{shown} line {number}"))?;
        roots.push(root);
    }
    if roots.is_empty() {
        bail!("there is no root in {shown}");
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(digit: &str) -> String {
        format!("7:{}", digit.repeat(64))
    }

    fn kept(against: &[&str]) -> Result<KeptRoots, String> {
        let against = against.iter().map(|text| text.parse());
        Ok(KeptRoots {
            against: against.collect::<Result<_, String>>()?,
        })
    }

    #[test]
    fn roots_are_given_as_such_or_in_files_of_either_spelling() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kept");
        let published = format!(r#"{{"day":"2026-07-01","root":"{}","at":"x"}}"#, root("b"));
        fs::write(&path, format!("{published}\n\n {} \n", root("c"))).unwrap();
        let roots = kept(&[&root("a"), path.to_str().unwrap()])
            .unwrap()
            .roots()
            .unwrap();
        let shown: Vec<String> = roots.iter().map(ToString::to_string).collect();
        assert_eq!(shown, [root("a"), root("b"), root("c")]);
    }

    #[test]
    fn what_is_no_root_is_named_with_file_and_line() {
        let error = kept(&["7:abc"]).unwrap_err();
        assert!(error.contains("7:abc") && error.contains("no file"), "{error}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kept");
        let path = path.to_str().unwrap();
        for (content, told) in [
            ("", "no root"),
            ("\n7:abc\n", "line 2"),
            ("{\"root\":\"x\"}", "line 1"),
        ] {
            fs::write(path, content).unwrap();
            let error = format!("{:#}", kept(&[path]).unwrap().roots().unwrap_err());
            assert!(error.contains(path) && error.contains(told), "{error}");
        }
    }
}
