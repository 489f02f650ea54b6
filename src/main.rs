//! The `sluice` command: arguments in, exit code out.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;
use sluice::config::{Args, Command, Config, RunArgs};
use sluice::{check, healthcheck, load, run, telemetry};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let Args { command, run } = Args::parse();
    let done = match command {
        None => serve(run),
        Some(Command::Run(args)) => serve(*args),
        Some(Command::Check(args)) => check::run(&args.rules, args.format, &mut std::io::stdout())
            .map(ExitCode::from)
            .map_err(anyhow::Error::from),
        Some(Command::Load(args)) => {
            block_on(async move { print(&serde_json::to_string(&load::run(&args).await?)?) })
        }
        Some(Command::Healthcheck(args)) => block_on(async move { Ok(healthcheck::run(&args).await?) }),
    };
    done.unwrap_or_else(|error| {
        eprintln!("sluice: {error:#}");
        ExitCode::FAILURE
    })
}

fn serve(args: RunArgs) -> anyhow::Result<ExitCode> {
    telemetry::init_log();
    let config = Config::load(args)?;
    // A closed stdout is no reason to stop serving.
    run::run(config, |line| drop(print(line)))?;
    Ok(ExitCode::SUCCESS)
}

fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<ExitCode> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work)?;
    Ok(ExitCode::SUCCESS)
}

fn print(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
}
