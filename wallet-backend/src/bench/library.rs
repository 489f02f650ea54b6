//! The wallet as a library, in two ways: two callers that send whole batches, so that one batch is decided while the
//! other is being synced; and as many lone callers as make batches of that size.

use std::future::Future;

use tokio::task::JoinSet;
use tokio::time::Instant;
use wallet_backend::Wallet;
use wallet_backend::command::{Batch, BatchMode};

use super::Row;
use super::folder::Folder;
use super::measure::{Latencies, Span, process_cpu};
use super::traffic::{Told, Traffic, read_again};
use crate::config::bench::Engine;

/// Two callers with `batch` operations a call: a row, and the bytes that an operation put into the log. Raw is measured
/// with as many.
pub(super) fn batches(args: &Engine, batch: u32) -> anyhow::Result<(Row, f64)> {
    measure("library", args, batch, 2, |caller, end| caller.send(batch, end))
}

/// Two callers for each operation of a batch, so that one batch fills while the other is being synced.
pub(super) fn single(args: &Engine, batch: u32) -> anyhow::Result<Row> {
    let callers = batch.saturating_mul(2);
    let (row, _) = measure("library-single", args, batch, callers, Caller::call)?;
    Ok(row)
}

struct Caller {
    wallet: Wallet,
    traffic: Traffic,
    told: Told,
    latencies: Latencies,
}

fn measure<F: Future<Output = anyhow::Result<()>> + Send + 'static>(
    work: &'static str,
    args: &Engine,
    batch: u32,
    callers: u32,
    call: impl Fn(Caller, Instant) -> F,
) -> anyhow::Result<(Row, f64)> {
    let folder = Folder::new(&args.dir, &format!("{work}-{batch}"))?;
    let wallet = folder.wallet(callers)?;
    let (told, latencies) = (Told::default(), Latencies::new()?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (span, agrees) = runtime.block_on(async {
        let account = Traffic::open(&wallet).await?;
        let (began, cpu) = (Instant::now(), process_cpu());
        let mut tasks = JoinSet::new();
        for number in 0..callers {
            let caller = Caller {
                wallet: wallet.clone(),
                traffic: Traffic::of(number)?,
                told: told.clone(),
                latencies: latencies.clone(),
            };
            tasks.spawn(call(caller, began + args.seconds));
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        let span = Span {
            elapsed: began.elapsed(),
            cpu: process_cpu().saturating_sub(cpu),
        };
        let agrees = told.agrees(&wallet, &account).await?;
        wallet.close().await;
        anyhow::Ok((span, agrees))
    })?;
    let report = read_again(&folder)?;
    let ops = told.posted().max(1) as f64;
    let row = Row {
        batch: ops / report.batches.max(1) as f64,
        invariants_ok: agrees && told.all_in(&report),
        ..span.row(work, callers, told.posted(), &latencies)
    };
    Ok((row, report.pages as f64 * 4_096.0 / ops))
}

impl Caller {
    /// Sends batches until `end`, one after the other.
    async fn send(mut self, batch: u32, end: Instant) -> anyhow::Result<()> {
        loop {
            let since = Instant::now();
            if since >= end {
                return Ok(());
            }
            let commands = (0..batch).map(|_| self.traffic.command());
            let batch = Batch::new(commands.collect::<anyhow::Result<_>>()?, BatchMode::Each)?;
            for result in self.wallet.batch(batch).await?.results {
                self.told.take(&result?);
            }
            self.latencies.end(since);
        }
    }

    /// Calls until `end`, one after the other.
    async fn call(mut self, end: Instant) -> anyhow::Result<()> {
        loop {
            let since = Instant::now();
            if since >= end {
                return Ok(());
            }
            let command = self.traffic.command()?;
            self.told.take(&self.wallet.run(command).await?);
            self.latencies.end(since);
        }
    }
}
