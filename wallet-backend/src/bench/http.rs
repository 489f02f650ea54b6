//! The service over real loopback connections: as many operations a call as it takes; and one a call, beside the same
//! server answering a constant.
//!
//! The clients have a thread to themselves, whose processor time is taken off: what is left is the server's.

use std::fmt::Write as _;
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
use wallet_backend::command::MAX_BATCH;
use wallet_backend::http::serve::{Listen, Server};
use wallet_backend::http::{HttpOptions, router};

use super::Row;
use super::folder::Folder;
use super::measure::{Latencies, Span, process_cpu, thread_cpu};
use super::traffic::{Ask, Told, Traffic, read_again};
use crate::config::bench::Engine;

/// Keep-alive connections for single operations, each with one call at a time.
const CONNECTIONS: u32 = 64;
/// And for batches: one is read while another is decided, a third is synced and a fourth answered.
const BATCH_CONNECTIONS: u32 = 4;
/// As long as a receipt.
const CONSTANT: &str = "{\"request_id\":\"11111111-2222-3333-4444-555555555555\",\"account_id\":\"hot\",\"type\":\
    \"credit\",\"amount\":300,\"currency\":\"EUR\",\"status\":\"posted\",\"at\":\"2030-01-01T00:00:00.000000Z\",\
    \"entries\":[{\"account_id\":\"hot\",\"slot\":0,\"version\":100000,\"delta\":300,\"balance_after\":10000000}]}";

/// What a connection is used for.
#[derive(Clone, Copy, Debug)]
enum Calls {
    Single,
    Batches,
}

/// The server when there is no wallet behind it.
pub(super) fn constant(args: &Engine) -> anyhow::Result<Row> {
    let router = Router::new().route("/v1/accounts/{account_id}/{way}", post(answer));
    let row = measure("http-constant", args, router, &Told::default(), Calls::Single)?;
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

/// The wallet as it is served, an operation a call.
pub(super) fn single(args: &Engine) -> anyhow::Result<Row> {
    wallet("http-single", args, Calls::Single)
}

/// The same, a full batch a call.
pub(super) fn batches(args: &Engine) -> anyhow::Result<Row> {
    wallet("http-batch", args, Calls::Batches)
}

fn wallet(work: &'static str, args: &Engine, calls: Calls) -> anyhow::Result<Row> {
    let folder = Folder::new(&args.dir, work)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let wallet = folder.wallet(CONNECTIONS)?;
    let account = runtime.block_on(Traffic::open(&wallet))?;
    let told = Told::default();
    let router = router(wallet.clone(), HttpOptions::default());
    let row = measure(work, args, router, &told, calls)?;
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
fn measure(
    work: &'static str,
    args: &Engine,
    router: Router,
    told: &Told,
    calls: Calls,
) -> anyhow::Result<Row> {
    let server = tokio::runtime::Runtime::new()?;
    let bound = server.block_on(Server::bind(&Listen::Tcp(([127, 0, 0, 1], 0).into())))?;
    let address = bound.address().trim_start_matches("http://").to_owned();
    let (stop, stopped) = oneshot::channel::<()>();
    let measured = thread::scope(|scope| {
        scope.spawn(|| server.block_on(bound.run(router, async { drop(stopped.await) })));
        let measured = scope.spawn(|| clients(work, args, &address, told, calls)).join();
        // Gone already where the server has ended by itself.
        let _ = stop.send(());
        measured
    });
    measured.map_err(|_| anyhow::anyhow!("the clients panicked"))?
}

fn clients(
    work: &'static str,
    args: &Engine,
    address: &str,
    told: &Told,
    calls: Calls,
) -> anyhow::Result<Row> {
    let count = match calls {
        Calls::Single => CONNECTIONS,
        Calls::Batches => BATCH_CONNECTIONS,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut connections = Vec::new();
        let mut tasks = JoinSet::new();
        for _ in 0..count {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) = handshake(TokioIo::new(stream)).await?;
            tasks.spawn(connection);
            connections.push(sender);
        }
        let latencies = Latencies::new()?;
        let (began, cpu, own) = (Instant::now(), process_cpu(), thread_cpu());
        let mut under_way = JoinSet::new();
        for (number, connection) in (0..).zip(connections) {
            let client = Client {
                connection,
                address: address.to_owned(),
                traffic: Traffic::of(number)?,
                told: told.clone(),
                latencies: latencies.clone(),
            };
            under_way.spawn(client.call(calls, began + args.seconds));
        }
        while let Some(ended) = under_way.join_next().await {
            ended??;
        }
        let span = Span {
            elapsed: began.elapsed(),
            cpu: process_cpu()
                .saturating_sub(cpu)
                .saturating_sub(thread_cpu().saturating_sub(own)),
        };
        tasks.shutdown().await;
        Ok(span.row(work, count, told.posted(), &latencies))
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
    /// Calls until `end`, one after the other. Every operation must get a receipt.
    async fn call(mut self, calls: Calls, end: Instant) -> anyhow::Result<()> {
        while Instant::now() < end {
            match calls {
                Calls::Single => self.single().await?,
                Calls::Batches => self.batch().await?,
            }
        }
        Ok(())
    }

    async fn single(&mut self) -> anyhow::Result<()> {
        let Ask { credit, amount, id } = self.traffic.next();
        let way = if credit { "credits" } else { "debits" };
        let path = format!("/v1/accounts/{}/{way}", Traffic::ACCOUNT);
        let body = format!("{{\"request_id\":\"{id}\",\"amount\":{amount}}}");
        self.post(path, body, StatusCode::CREATED).await?;
        self.told.done(credit, amount);
        Ok(())
    }

    async fn batch(&mut self) -> anyhow::Result<()> {
        let asked: Vec<Ask> = (0..MAX_BATCH).map(|_| self.traffic.next()).collect();
        let mut body = "{\"operations\":[".to_owned();
        for (place, Ask { credit, amount, id }) in asked.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let op = if *credit { "credit" } else { "debit" };
            let account = Traffic::ACCOUNT;
            write!(
                body,
                "{comma}{{\"op\":\"{op}\",\"account_id\":\"{account}\",\"request_id\":\"{id}\",\"amount\":{amount}}}"
            )?;
        }
        body.push_str("]}");
        let answer = self.post("/v1/batches".to_owned(), body, StatusCode::OK).await?;
        let results = answer.split(|byte| *byte == b'{');
        let posted = results
            .filter(|begin| begin.starts_with(b"\"status\":201,"))
            .count();
        anyhow::ensure!(
            posted == MAX_BATCH,
            "{posted} of {MAX_BATCH} operations were posted"
        );
        for Ask { credit, amount, .. } in asked {
            self.told.done(credit, amount);
        }
        Ok(())
    }

    /// One call, whose answer must have this status.
    async fn post(&mut self, path: String, body: String, expected: StatusCode) -> anyhow::Result<Bytes> {
        let request = Request::post(path)
            .header(HOST, &self.address)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))?;
        let since = Instant::now();
        let response = self.connection.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        self.latencies.end(since);
        anyhow::ensure!(status == expected, "{status}: {}", String::from_utf8_lossy(&body));
        Ok(body)
    }
}
