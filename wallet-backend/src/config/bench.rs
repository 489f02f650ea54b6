//! The arguments of `bench`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};

#[cfg(feature = "mysql")]
pub(crate) mod hot;

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// What the engine does for one hot account, durable and with everything on, beside a bare log on the same disk.
    /// Exit 0: measured, 1: an invariant did not hold, 2: could not run.
    Engine(Engine),
    /// Designs for one hot account on MySQL or MariaDB and the wallet itself, beside each other. Exit 0: measured, 1: an invariant did not hold, 2: could not run.
    #[cfg(feature = "mysql")]
    HotAccount(hot::HotAccount),
    /// A process of clients of hot-account, which starts it.
    #[cfg(feature = "mysql")]
    #[command(hide = true)]
    HotClients,
}

#[derive(Debug, Args)]
pub(crate) struct Engine {
    /// How long each row is measured.
    #[arg(long, value_name = "N", default_value = "5", value_parser = seconds)]
    pub(crate) seconds: Duration,
    /// A JSON object a line for each row, instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// What is measured: raw (a bare log), library (batches), library-single (lone callers), http-batch, http-single,
    /// accounts (the memory of idle ones).
    #[arg(
        long,
        value_name = "WORK,..",
        value_delimiter = ',',
        default_value = "raw,library,library-single,http-batch,http-single,accounts"
    )]
    pub(crate) work: Vec<Work>,
    /// Batch sizes for raw, library and library-single.
    #[arg(
        long,
        value_name = "N,..",
        value_delimiter = ',',
        default_value = "16,256,4096",
        value_parser = batch
    )]
    pub(crate) batch: Vec<u32>,
    /// How many accounts are opened for accounts.
    #[arg(long, value_name = "N", default_value = "1000000")]
    pub(crate) accounts: NonZeroU32,
    /// Where the ledgers are made, and taken away again: the disk that is measured.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
}

/// One thing to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Raw,
    Library,
    LibrarySingle,
    HttpBatch,
    HttpSingle,
    Accounts,
}

impl FromStr for Work {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "raw" => Ok(Self::Raw),
            "library" => Ok(Self::Library),
            "library-single" => Ok(Self::LibrarySingle),
            "http-batch" => Ok(Self::HttpBatch),
            "http-single" => Ok(Self::HttpSingle),
            "accounts" => Ok(Self::Accounts),
            _ => Err("must be raw, library, library-single, http-batch, http-single or accounts".to_owned()),
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds @ 1..=3_600) => Ok(Duration::from_secs(seconds)),
        _ => Err("must be 1 to 3600 whole seconds".to_owned()),
    }
}

/// Twice as many callers wait as a batch has, and a batch of the log takes 8 192 at most.
fn batch(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(size @ 1..=4_096) => Ok(size),
        _ => Err("must be 1 to 4096".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::config::{Action, Cli};

    fn engine(arguments: &[&str]) -> Result<Engine, String> {
        let arguments = ["wallet-backend", "bench", "engine"].iter().chain(arguments);
        match Cli::try_parse_from(arguments) {
            Ok(Cli {
                command: Action::Bench(Bench::Engine(engine)),
            }) => Ok(engine),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn everything_there_is_gets_measured_unless_told_otherwise() {
        let engine = engine(&[]).unwrap();
        assert_eq!(
            engine.work,
            [
                Work::Raw,
                Work::Library,
                Work::LibrarySingle,
                Work::HttpBatch,
                Work::HttpSingle,
                Work::Accounts
            ]
        );
        assert_eq!(engine.batch, [16, 256, 4_096]);
        assert_eq!(engine.seconds, Duration::from_secs(5));
        assert!(!engine.json);
    }

    #[test]
    fn works_are_named_with_commas_between() {
        let engine = engine(&[
            "--work",
            "library,raw",
            "--batch",
            "7",
            "--seconds",
            "1",
            "--json",
        ])
        .unwrap();
        assert_eq!(engine.work, [Work::Library, Work::Raw]);
        assert_eq!((engine.batch, engine.json), (vec![7], true));
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        for bad in [
            ["--work", "redis"],
            ["--work", ""],
            ["--seconds", "0"],
            ["--seconds", "3601"],
            ["--batch", "0"],
            ["--batch", "4097"],
            ["--accounts", "0"],
        ] {
            assert!(engine(&bad).is_err(), "{bad:?}");
        }
    }
}
