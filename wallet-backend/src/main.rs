//! The `wallet-backend` command: the wallet as a service, its verifier and its benchmark.
//!
//! The only anyhow, and the only exit codes: `serve` 0 after a graceful stop, 1 when it could not start; `verify`,
//! `reconcile`, `export`, `import`, `backup`, `restore`, `explain`, `migrate` and `bench` 0 clean, 1 found something wrong, 2 could not
//! run; `key new` 0, or 1 for a name that is none.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;
use wallet_backend::Wallet;
use wallet_backend::http::auth::{Access, Secret};
use wallet_backend::http::serve::Server;
use wallet_backend::http::webhooks::Webhooks;
use wallet_backend::http::{Ending, HttpOptions, router};

#[cfg(feature = "mysql")]
use self::config::bench::hot::HotAccount;
use self::config::bench::{Bench, Engine};
use self::config::{Action, Cli, KeyAction, KeyNew, Serve, StoreLocation};

mod bench;
mod config;
mod copies;
mod explain;
mod offline;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (outcome, failed) = match cli.command {
        Action::Serve(args) => (serve(&args), ExitCode::from(1)),
        Action::Verify(args) => (offline::verify(&args), ExitCode::from(2)),
        Action::Reconcile(args) => (offline::reconcile(&args), ExitCode::from(2)),
        Action::Export(args) => (offline::export(&args), ExitCode::from(2)),
        Action::Import(args) => (offline::import::import(&args), ExitCode::from(2)),
        Action::Backup(args) => (copies::backup(&args), ExitCode::from(2)),
        Action::Restore(args) => (copies::restore(&args), ExitCode::from(2)),
        Action::Explain(args) => (explain::explain(&args), ExitCode::from(2)),
        #[cfg(feature = "mysql")]
        Action::Migrate(args) => (migrate(&args), ExitCode::from(2)),
        Action::Key(KeyAction::New(args)) => (new_key(&args), ExitCode::from(1)),
        Action::Bench(Bench::Engine(args)) => (bench(&args), ExitCode::from(2)),
        #[cfg(feature = "mysql")]
        Action::Bench(Bench::HotAccount(args)) => (hot_account(&args), ExitCode::from(2)),
        #[cfg(feature = "mysql")]
        Action::Bench(Bench::HotClients) => (
            bench::hot::client::run().map(|()| ExitCode::SUCCESS),
            ExitCode::from(2),
        ),
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

    let access = args.access()?;
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut hup = signal(SignalKind::hangup())?;
    let webhooks = args.webhooks()?;
    let wallet = open(args)?;
    let webhooks = webhooks.map(|options| Webhooks::new(wallet.clone(), options));
    let webhooks = webhooks.transpose().context("webhooks cannot begin")?;
    let server = Server::bind(&args.listen)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    say(&format!("listening on {}", server.address()));
    let ending = Ending::default();
    let stop = async {
        loop {
            tokio::select! {
                _ = term.recv() => break,
                _ = int.recv() => break,
                _ = hup.recv() => reload(args, &access),
            }
        }
        tracing::info!("stopping: finishing what is in flight");
        ending.end();
    };
    let options = HttpOptions {
        access: access.clone(),
        ending: ending.clone(),
        webhooks: webhooks.clone(),
    };
    let deliver = async {
        if let Some(webhooks) = webhooks {
            webhooks.run(&ending).await;
        }
    };
    tokio::join!(server.run(router(wallet.clone(), options), stop), deliver);
    wallet.close().await;
    Ok(ExitCode::SUCCESS)
}

/// Reads again who may call. A file that is refused changes nothing: whoever could call goes on, and the log says why.
fn reload(args: &Serve, access: &Access) {
    match args.callers() {
        Ok(Some(callers)) => {
            let (tokens, keys) = (callers.tokens.len(), callers.keys.len());
            access.replace(callers);
            tracing::info!(tokens, keys, "who may call was read again");
        }
        Ok(None) => tracing::info!("there is no token file and no keys file to read again"),
        Err(error) => {
            let error = format!("{error:#}");
            tracing::error!(error, "who may call stays as it was");
        }
    }
}

#[cfg(feature = "mysql")]
fn migrate(args: &config::Migrate) -> anyhow::Result<ExitCode> {
    use wallet_backend::store::mysql::{Migrated, OpenError, SchemaError, migrate};
    match migrate(&args.store) {
        Ok((probed, Migrated { from, to })) => {
            eprintln!("{probed}");
            match from {
                0 => say(&format!("schema {to}: set up")),
                from if from == to => say(&format!("schema {to}: up to date")),
                from => say(&format!("schema {to}: brought up from {from}")),
            }
        }
        Err(error @ (OpenError::Refused { .. } | OpenError::Schema(SchemaError::Newer { .. }))) => {
            eprintln!("wallet-backend: {error}");
            return Ok(ExitCode::from(1));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a secret and its line for the keys file, each behind its name.
fn new_key(args: &KeyNew) -> anyhow::Result<ExitCode> {
    let secret = Secret::new().context("the system gives no random numbers")?;
    let key = secret.key(&args.name, args.scopes)?;
    say(&format!("secret {}\nline   {key}", secret.reveal()));
    Ok(ExitCode::SUCCESS)
}

/// Opens the ledger. Blocks, which nobody minds before the listener is there.
fn open(args: &Serve) -> anyhow::Result<Wallet> {
    match &args.store {
        StoreLocation::Embedded(directory) => Wallet::embedded(args.options(directory))
            .with_context(|| format!("cannot open the ledger in {}", directory.display())),
        StoreLocation::Memory => Wallet::memory().context("cannot start the wallet"),
        #[cfg(feature = "mysql")]
        StoreLocation::Mysql(address) => {
            let options = wallet_backend::store::mysql::Options {
                migrate: args.migrate,
                ..wallet_backend::store::mysql::Options::at(address.clone())
            };
            Wallet::mysql(options).context("cannot open the ledger")
        }
    }
}

fn bench(args: &Engine) -> anyhow::Result<ExitCode> {
    if !args.json {
        say(bench::HEADINGS);
    }
    let mut sound = true;
    bench::engine(args, &mut |row| {
        sound &= row.invariants_ok;
        say(&if args.json {
            serde_json::to_string(&row)?
        } else {
            row.to_string()
        });
        Ok(())
    })?;
    Ok(ExitCode::from(u8::from(!sound)))
}

#[cfg(feature = "mysql")]
fn hot_account(args: &HotAccount) -> anyhow::Result<ExitCode> {
    let people = |lines: &[&str]| {
        if !args.json {
            lines.iter().for_each(|line| say(line));
        }
    };
    people(&[bench::hot::headings(args)]);
    let mut sound = true;
    bench::hot::run(args, &mut |measured| {
        sound &= measured.invariants_ok();
        say(&if args.json {
            serde_json::to_string(&measured)?
        } else {
            measured.to_string()
        });
        Ok(())
    })?;
    people(bench::hot::beside(args));
    Ok(ExitCode::from(u8::from(!sound)))
}

/// Prints a line; a reader that has gone away is no reason to stop.
fn say(line: &str) {
    let mut stdout = std::io::stdout();
    drop(writeln!(stdout, "{line}").and_then(|()| stdout.flush()));
}
