//! The service over real loopback connections, an operation a call, beside the same server answering a constant.
//!
//! The clients have a thread to themselves, whose processor time is taken off: what is left is the server's.

use std::thread;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderName, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;
use wallet_backend::http::serve::{Listen, Server};
use wallet_backend::http::{HttpOptions, router};

use super::Row;
use super::folder::Folder;
use super::measure::{Latencies, Span, process_cpu, thread_cpu};
use super::traffic::{Ask, Told, Traffic, read_again};
use crate::config::bench::Engine;

/// Keep-alive connections, each with one call at a time.
const CONNECTIONS: u32 = 64;
/// As long as a receipt.
const CONSTANT: &str = "{\"request_id\":\"11111111-2222-3333-4444-555555555555\",\"account_id\":\"hot\",\"type\":\
    \"credit\",\"amount\":300,\"currency\":\"EUR\",\"status\":\"posted\",\"at\":\"2030-01-01T00:00:00.000000Z\",\
    \"entries\":[{\"account_id\":\"hot\",\"slot\":0,\"version\":100000,\"delta\":300,\"balance_after\":10000000}]}";

/// The server when there is no wallet behind it.
pub(super) fn constant(args: &Engine) -> anyhow::Result<Row> {
    let router = Router::new().route("/v1/accounts/{account_id}/{way}", post(answer));
    let row = measure("http-constant", args, router, &Told::default())?;
    Ok(Row {
        invariants_ok: true,
        ..row
    })
}

/// Reads the call and answers what a receipt would look like.
async fn answer(body: Bytes) -> (StatusCode, [(HeaderName, &'static str); 1], &'static str) {
    drop(body);
    (
        StatusCode::CREATED,
        [(CONTENT_TYPE, "application/json")],
        CONSTANT,
    )
}

/// The wallet as it is served.
pub(super) fn single(args: &Engine) -> anyhow::Result<Row> {
    let folder = Folder::new(&args.dir, "http")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let wallet = folder.wallet(CONNECTIONS)?;
    let account = runtime.block_on(Traffic::open(&wallet))?;
    let told = Told::default();
    let router = router(wallet.clone(), HttpOptions::default());
    let row = measure("http-single", args, router, &told)?;
    let agrees = runtime.block_on(told.agrees(&wallet, &account))?;
    runtime.block_on(wallet.close());
    let report = read_again(&folder)?;
    Ok(Row {
        batch: told.posted() as f64 / report.batches.max(1) as f64,
        invariants_ok: agrees && told.all_in(&report),
        ..row
    })
}

/// Serves `router` on threads of its own, and calls it from one more.
fn measure(work: &'static str, args: &Engine, router: Router, told: &Told) -> anyhow::Result<Row> {
    let server = tokio::runtime::Runtime::new()?;
    let bound = server.block_on(Server::bind(&Listen::Tcp(([127, 0, 0, 1], 0).into())))?;
    let address = bound.address().trim_start_matches("http://").to_owned();
    let (stop, stopped) = oneshot::channel::<()>();
    let measured = thread::scope(|scope| {
        scope.spawn(|| server.block_on(bound.run(router, async { drop(stopped.await) })));
        let measured = scope.spawn(|| clients(work, args, &address, told)).join();
        // Gone already where the server has ended by itself.
        let _ = stop.send(());
        measured
    });
    measured.map_err(|_| anyhow::anyhow!("the clients panicked"))?
}

fn clients(work: &'static str, args: &Engine, address: &str, told: &Told) -> anyhow::Result<Row> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut connections = Vec::new();
        let mut tasks = JoinSet::new();
        for _ in 0..CONNECTIONS {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) = handshake(TokioIo::new(stream)).await?;
            tasks.spawn(connection);
            connections.push(sender);
        }
        let latencies = Latencies::new()?;
        let (began, cpu, own) = (Instant::now(), process_cpu(), thread_cpu());
        let mut calls = JoinSet::new();
        for (number, connection) in (0..).zip(connections) {
            let client = Client {
                connection,
                address: address.to_owned(),
                traffic: Traffic::of(number)?,
                told: told.clone(),
                latencies: latencies.clone(),
            };
            calls.spawn(client.call(began + args.seconds));
        }
        while let Some(ended) = calls.join_next().await {
            ended??;
        }
        let span = Span {
            elapsed: began.elapsed(),
            cpu: process_cpu()
                .saturating_sub(cpu)
                .saturating_sub(thread_cpu().saturating_sub(own)),
        };
        tasks.shutdown().await;
        Ok(span.row(work, CONNECTIONS, &latencies))
    })
}

struct Client {
    connection: SendRequest<Full<Bytes>>,
    address: String,
    traffic: Traffic,
    told: Told,
    latencies: Latencies,
}

impl Client {
    /// Calls until `end`, one after the other. Every answer must be a receipt.
    async fn call(mut self, end: Instant) -> anyhow::Result<()> {
        while Instant::now() < end {
            let Ask { credit, amount, id } = self.traffic.next();
            let way = if credit { "credits" } else { "debits" };
            let body = format!("{{\"request_id\":\"{id}\",\"amount\":{amount}}}");
            let request = Request::post(format!("/v1/accounts/{}/{way}", Traffic::ACCOUNT))
                .header(HOST, &self.address)
                .header(CONTENT_TYPE, "application/json")
                .body(Full::new(Bytes::from(body)))?;
            let since = Instant::now();
            let response = self.connection.send_request(request).await?;
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            self.latencies.end(since);
            anyhow::ensure!(
                status == StatusCode::CREATED,
                "{status}: {}",
                String::from_utf8_lossy(&body)
            );
            self.told.done(credit, amount);
        }
        Ok(())
    }
}
