//! The `wallet-backend` command: the wallet as a service, and its verifier.
//!
//! The only anyhow, and the only exit codes: `serve` 0 after a graceful stop, 1 when it could not start; `verify` 0
//! clean, 1 found something, 2 could not run.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;
use wallet_backend::Wallet;
use wallet_backend::combiner::Limits;
use wallet_backend::http::serve::Server;
use wallet_backend::http::{HttpOptions, router};
use wallet_backend::store::any::AnyStore;
use wallet_backend::store::embedded::Embedded;
use wallet_backend::store::memory::Memory;

use self::config::{Action, Cli, Serve, StoreLocation};

mod config;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (outcome, failed) = match cli.command {
        Action::Serve(args) => (serve(&args), ExitCode::from(1)),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("wallet-backend: {error:#}");
        failed
    })
}

#[tokio::main]
async fn serve(args: &Serve) -> anyhow::Result<ExitCode> {
    let filter = EnvFilter::try_from_env("WALLET_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .json()
        // A reader of stderr that has gone away is no reason to stop.
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();

    let tokens = args.tokens()?;
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let wallet = open(args)?;
    let server = Server::bind(&args.listen).await.context("cannot listen")?;
    say(&format!("listening on {}", server.address()));
    let stop = async {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        tracing::info!("stopping: finishing what is in flight");
    };
    server
        .run(router(wallet.clone(), HttpOptions { tokens }), stop)
        .await;
    wallet.close().await;
    Ok(ExitCode::SUCCESS)
}

/// Opens the ledger. Blocks, which nobody minds before the listener is there.
fn open(args: &Serve) -> anyhow::Result<Wallet> {
    let store = match &args.store {
        StoreLocation::Embedded(directory) => {
            let opened = Embedded::open(args.options(directory));
            let context = || format!("cannot open the ledger in {}", directory.display());
            AnyStore::Embedded(opened.with_context(context)?)
        }
        StoreLocation::Memory => AnyStore::Memory(Memory::default()),
    };
    Wallet::over(store, Limits::default()).context("cannot start the wallet")
}

/// Prints a line; a reader that has gone away is no reason to stop.
fn say(line: &str) {
    let mut stdout = std::io::stdout();
    drop(writeln!(stdout, "{line}").and_then(|()| stdout.flush()));
}
