//! The memory of an idle account: what the process grows by when many are opened.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::task::JoinSet;
use tokio::time::Instant;
use wallet_backend::Wallet;
use wallet_backend::account::{Account, AccountId};
use wallet_backend::money::Currency;

use super::Row;
use super::folder::Folder;
use super::measure::{Latencies, Span, process_cpu, resident};
use super::traffic::read_again;
use crate::config::bench::Engine;

/// Enough to fill batches without becoming what is measured.
const CLIENTS: u32 = 512;

pub(super) fn run(args: &Engine) -> anyhow::Result<Row> {
    let folder = Folder::new(&args.dir, "accounts")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let count = args.accounts.get();
    let row = runtime.block_on(measure(count, &folder))?;
    let report = read_again(&folder)?;
    Ok(Row {
        batch: f64::from(count) / report.batches.max(1) as f64,
        invariants_ok: report.is_clean() && report.accounts == u64::from(count),
        ..row
    })
}

async fn measure(count: u32, folder: &Folder) -> anyhow::Result<Row> {
    let wallet = folder.wallet(CLIENTS)?;
    let latencies = Latencies::new()?;
    let before = resident()?;
    let (began, cpu) = (Instant::now(), process_cpu());
    let next = Arc::new(AtomicU32::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS.min(count) {
        clients.spawn(open_some(
            wallet.clone(),
            Arc::clone(&next),
            count,
            latencies.clone(),
        ));
    }
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    let span = Span {
        elapsed: began.elapsed(),
        cpu: process_cpu().saturating_sub(cpu),
    };
    let grown = resident()?.saturating_sub(before);
    wallet.close().await;
    Ok(Row {
        bytes_per_account: Some(grown as f64 / f64::from(count)),
        ..span.row("accounts", CLIENTS.min(count), count.into(), &latencies)
    })
}

async fn open_some(
    wallet: Wallet,
    next: Arc<AtomicU32>,
    count: u32,
    latencies: Latencies,
) -> anyhow::Result<()> {
    let currency = Currency::new("EUR")?;
    loop {
        // A counter that nothing else is published with.
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return Ok(());
        }
        let id = AccountId::new(&format!("customer-{number:010}"))?;
        let since = Instant::now();
        wallet.open(Account::new(id, currency)).await?;
        latencies.end(since);
    }
}
