//! The wallet as a library: twice a batch of callers, so that one batch fills while the other is being synced.

use tokio::task::JoinSet;
use tokio::time::Instant;
use wallet_backend::Wallet;

use super::Row;
use super::folder::Folder;
use super::measure::{Latencies, Span, process_cpu};
use super::traffic::{Told, Traffic, read_again};
use crate::config::bench::Engine;

/// A row, and the bytes that one operation put into the log: raw is measured with as many.
pub(super) fn run(args: &Engine, batch: u32) -> anyhow::Result<(Row, f64)> {
    let folder = Folder::new(&args.dir, &format!("library-{batch}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let told = Told::default();
    let row = runtime.block_on(measure(args, batch, &folder, &told))?;
    let report = read_again(&folder)?;
    let ops = told.posted().max(1) as f64;
    let row = Row {
        batch: ops / report.batches.max(1) as f64,
        invariants_ok: row.invariants_ok && told.all_in(&report),
        ..row
    };
    Ok((row, report.pages as f64 * 4_096.0 / ops))
}

async fn measure(args: &Engine, batch: u32, folder: &Folder, told: &Told) -> anyhow::Result<Row> {
    let callers = batch.saturating_mul(2);
    let wallet = folder.wallet(callers)?;
    let account = Traffic::open(&wallet).await?;
    let latencies = Latencies::new()?;
    let (began, cpu) = (Instant::now(), process_cpu());
    let mut tasks = JoinSet::new();
    for number in 0..callers {
        let traffic = Traffic::of(number)?;
        let (wallet, told, latencies) = (wallet.clone(), told.clone(), latencies.clone());
        tasks.spawn(call(wallet, traffic, began + args.seconds, told, latencies));
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let span = Span {
        elapsed: began.elapsed(),
        cpu: process_cpu().saturating_sub(cpu),
    };
    let invariants_ok = told.agrees(&wallet, &account).await?;
    wallet.close().await;
    Ok(Row {
        invariants_ok,
        ..span.row("library", callers, &latencies)
    })
}

/// Calls until `end`, one after the other.
async fn call(
    wallet: Wallet,
    mut traffic: Traffic,
    end: Instant,
    told: Told,
    latencies: Latencies,
) -> anyhow::Result<()> {
    loop {
        let since = Instant::now();
        if since >= end {
            return Ok(());
        }
        told.take(&traffic.run(&wallet).await?);
        latencies.end(since);
    }
}
