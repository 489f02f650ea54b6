//! The clients of the scenario: each with a connection of its own, one debit after the other, whatever was answered.

use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::body::Bytes;
use hdrhistogram::Histogram;
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::bench::hot::ask::{Asks, Named};
use crate::bench::hot::client::histogram;
use crate::config::bench::hot::{Direction, Mode};

/// A client whose connection was closed makes another, not at once.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Connections that can't be made, one after the other, before the run is given up.
const MOST_IN_VAIN: u32 = 50;

/// What clients were answered.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) accepted: u64,
    pub(super) refused: u64,
    pub(super) failed: u64,
    /// Microseconds, of accepted ones.
    latencies: Histogram<u64>,
}

/// So many clients at `address` (`http://HOST:PORT`), for so long.
///
/// # Errors
/// Nobody listens there.
pub(super) async fn run(address: &str, clients: u32, seconds: Duration) -> anyhow::Result<Answers> {
    let host = address.trim_start_matches("http://").to_owned();
    let ends = Instant::now() + seconds;
    let mut tasks = JoinSet::new();
    for number in 0..clients {
        tasks.spawn(call(host.clone(), number, ends));
    }
    let mut all = Answers::none()?;
    while let Some(ended) = tasks.join_next().await {
        let answers = ended??;
        all.accepted = all.accepted.saturating_add(answers.accepted);
        all.refused = all.refused.saturating_add(answers.refused);
        all.failed = all.failed.saturating_add(answers.failed);
        all.latencies.add(&answers.latencies)?;
    }
    Ok(all)
}

async fn call(host: String, number: u32, ends: Instant) -> anyhow::Result<Answers> {
    let mut asks = Asks::of(number, Mode::Combined, Direction::Debit);
    let mut answers = Answers::none()?;
    let mut in_vain = 0_u32;
    while Instant::now() < ends {
        match connect(&host).await {
            Ok(sender) => {
                in_vain = 0;
                if answers
                    .until_closed(sender, &host, &mut asks, ends)
                    .await
                    .is_err()
                {
                    answers.failed = answers.failed.saturating_add(1);
                }
            }
            Err(error) if in_vain >= MOST_IN_VAIN => bail!("cannot connect to {host}: {error}"),
            Err(_) => in_vain = in_vain.saturating_add(1),
        }
        sleep(AGAIN_AFTER).await;
    }
    Ok(answers)
}

async fn connect(host: &str) -> anyhow::Result<Sender> {
    let stream = TcpStream::connect(host).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    Ok(Sender {
        sender,
        _driver: driver,
    })
}

/// A connection; dropped, it is closed.
struct Sender {
    sender: SendRequest<Full<Bytes>>,
    _driver: JoinSet<hyper::Result<()>>,
}

impl Answers {
    fn none() -> anyhow::Result<Self> {
        Ok(Self {
            accepted: 0,
            refused: 0,
            failed: 0,
            latencies: histogram()?,
        })
    }

    #[cfg(test)]
    pub(super) fn counted(accepted: u64, refused: u64, failed: u64) -> Self {
        Self {
            accepted,
            refused,
            failed,
            ..Self::none().unwrap()
        }
    }

    /// Milliseconds at a quantile.
    pub(super) fn at(&self, quantile: f64) -> f64 {
        self.latencies.value_at_quantile(quantile) as f64 / 1e3
    }

    /// Calls over one connection until the time is over.
    ///
    /// # Errors
    /// A call that was not answered.
    async fn until_closed(
        &mut self,
        mut connection: Sender,
        host: &str,
        asks: &mut Asks,
        ends: Instant,
    ) -> anyhow::Result<()> {
        loop {
            let since = Instant::now();
            if since >= ends {
                return Ok(());
            }
            let Named {
                account, id, amount, ..
            } = asks.named();
            let body = format!("{{\"request_id\":\"{id}\",\"amount\":{amount}}}");
            let request = Request::post(format!("/v1/accounts/{account}/debits"))
                .header(HOST, host)
                .header(CONTENT_TYPE, "application/json")
                .body(Full::new(Bytes::from(body)))?;
            let response = connection.sender.send_request(request).await?;
            let status = response.status();
            response
                .into_body()
                .collect()
                .await
                .context("an answer was cut off")?;
            match status {
                StatusCode::CREATED => {
                    self.accepted = self.accepted.saturating_add(1);
                    let micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
                    self.latencies.saturating_record(micros);
                }
                StatusCode::TOO_MANY_REQUESTS => self.refused = self.refused.saturating_add(1),
                _ => self.failed = self.failed.saturating_add(1),
            }
        }
    }
}
