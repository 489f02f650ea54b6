//! `sluice load`: a small open-loop load client for credits and debits.
//!
//! Open loop: requests leave by the clock, whether or not earlier ones were answered, so a slow server shows as
//! latency and refusals and never as a lower rate. Every request has a request_id of its own. The answer is one JSON
//! line: `{"sent": 300, "by_code": {"201": 100, "429": 200}, "p50_ms": 0.9, "p99_ms": 4.1}`; a request without any
//! answer counts under `error`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use hdrhistogram::Histogram;
use reqwest::Url;
use serde::Serialize;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};

use crate::config::parse_duration;
use crate::tasks::Tasks;

/// Flags of `sluice load`.
#[derive(Clone, Debug, Args)]
pub struct LoadArgs {
    /// The account to credit or debit
    #[arg(long, default_value = "alice")]
    pub account: String,
    /// Requests a second; with --requests and --for, the rate follows from them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rate: Option<u32>,
    /// How long to send [default: 1s; with --requests and --rate, it follows from them]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// How many to send, spread evenly over --for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub requests: Option<u32>,
    /// Where to send
    #[arg(long, default_value = "http://127.0.0.1:8080", value_parser = parse_url)]
    pub url: Url,
    /// What to do to the account
    #[arg(long, value_enum, default_value_t = Operation::Debit)]
    pub op: Operation,
    /// The amount of each, in minor units
    #[arg(long, default_value_t = 1)]
    pub amount: u64,
}

/// What a request does to the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    Debit,
    Credit,
}

impl Operation {
    const fn path(self) -> &'static str {
        match self {
            Self::Debit => "debits",
            Self::Credit => "credits",
        }
    }
}

/// The most requests that may be without an answer; past it the clock waits.
const MAX_OPEN: usize = 4_096;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was answered.
#[derive(Debug, Serialize)]
pub struct Report {
    pub sent: u64,
    pub by_code: BTreeMap<String, u64>,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// When each request leaves: `count` of them, `every` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Schedule {
    count: u32,
    every: Duration,
}

impl Schedule {
    fn of(args: &LoadArgs) -> Self {
        let second = Duration::from_secs(1);
        match (args.requests, args.duration, args.rate) {
            (Some(count), Some(duration), _) => Self {
                count,
                every: duration / count.max(1),
            },
            (Some(count), None, Some(rate)) => Self {
                count,
                every: second / rate.max(1),
            },
            (Some(count), None, None) => Self {
                count,
                every: second / count.max(1),
            },
            (None, duration, rate) => {
                let rate = rate.unwrap_or(100).max(1);
                let millis = duration.unwrap_or(second).as_millis();
                let count = u32::try_from(millis * u128::from(rate) / 1000).unwrap_or(u32::MAX);
                Self {
                    count,
                    every: second / rate,
                }
            }
        }
    }
}

/// Sends the load and collects the answers.
///
/// # Errors
/// The client cannot be set up. Requests that fail are part of the report.
pub async fn run(args: &LoadArgs) -> Result<Report, reqwest::Error> {
    let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
    let url = target(args);
    let schedule = Schedule::of(args);
    let run = run_id();
    let tasks = Tasks::new();
    let open = Arc::new(Semaphore::new(MAX_OPEN));
    let (answers, mut answered) = mpsc::channel(MAX_OPEN);
    let amount = args.amount;
    let begun = Instant::now();
    tasks.spawn("load", {
        let tasks = tasks.clone();
        async move {
            for number in 0..schedule.count {
                sleep_until(begun + schedule.every * number).await;
                let Ok(permit) = Arc::clone(&open).acquire_owned().await else {
                    return;
                };
                let body = format!(r#"{{"request_id":"load-{run}-{number}","amount":{amount}}}"#);
                let request = client
                    .post(url.clone())
                    .header("content-type", "application/json")
                    .body(body);
                let answers = answers.clone();
                tasks.spawn("load request", async move {
                    let sent = Instant::now();
                    let code = send(request).await;
                    drop(permit);
                    // The receiver is only gone when the command itself is.
                    drop(answers.send((code, sent.elapsed())).await);
                });
            }
        }
    });
    let mut tally = Tally::default();
    while let Some((code, took)) = answered.recv().await {
        tally.add(code, took);
    }
    Ok(tally.report())
}

/// Where each request goes. An account is one segment of the path, whatever is in it.
fn target(args: &LoadArgs) -> Url {
    let mut url = args.url.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty()
            .extend(["v1", "accounts", &args.account, args.op.path()]);
    }
    url
}

fn parse_url(text: &str) -> Result<Url, String> {
    let expected = || "expected http://host:port".to_owned();
    let url = Url::parse(text).map_err(|_| expected())?;
    if url.scheme() == "http" {
        Ok(url)
    } else {
        Err(expected())
    }
}

/// The status of the answer, after its body has been read; `error` without one.
async fn send(request: reqwest::RequestBuilder) -> String {
    match request.send().await {
        Ok(response) => {
            let code = response.status().as_u16().to_string();
            response
                .bytes()
                .await
                .map_or_else(|_| "error".to_owned(), |_| code)
        }
        Err(_) => "error".to_owned(),
    }
}

/// Told apart from every other run, so that request ids are fresh: nanoseconds of the wall clock and the process id.
fn run_id() -> String {
    let now = jiff::Timestamp::now().as_nanosecond();
    format!("{now:x}-{:x}", std::process::id())
}

#[derive(Debug, Default)]
struct Tally {
    by_code: BTreeMap<String, u64>,
    /// Microseconds, for percentiles.
    micros: Option<Histogram<u64>>,
}

impl Tally {
    fn add(&mut self, code: String, took: Duration) {
        *self.by_code.entry(code).or_default() += 1;
        if self.micros.is_none() {
            // Three digits is within what the histogram supports.
            self.micros = Histogram::new(3).ok();
        }
        if let Some(micros) = &mut self.micros {
            // Grows as needed; a value beyond its reach (hours) is left out.
            let _ = micros.record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        }
    }

    fn report(self) -> Report {
        let millis = |percent| {
            let micros = self
                .micros
                .as_ref()
                .map_or(0, |micros| micros.value_at_percentile(percent));
            // Below 2^53 microseconds, which is 285 years, this is exact to the last digit shown.
            Duration::from_micros(micros).as_micros() as f64 / 1e3
        };
        Report {
            p50_ms: millis(50.0),
            p99_ms: millis(99.0),
            sent: self.by_code.values().sum(),
            by_code: self.by_code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(requests: Option<u32>, millis: Option<u64>, rate: Option<u32>) -> LoadArgs {
        LoadArgs {
            account: "alice".to_owned(),
            rate,
            duration: millis.map(Duration::from_millis),
            requests,
            url: parse_url("http://127.0.0.1:8080").unwrap(),
            op: Operation::Debit,
            amount: 1,
        }
    }

    #[test]
    fn an_account_is_one_segment_and_a_url_is_http() {
        let mut args = args(None, None, None);
        args.account = "a/b c".to_owned();
        assert_eq!(target(&args).path(), "/v1/accounts/a%2Fb%20c/debits");
        for bad in ["nonsense", "https://wallet", "unix:/w.sock"] {
            assert!(parse_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn requests_are_spread_evenly_over_the_time() {
        let schedule = Schedule::of(&args(Some(300), Some(600), None));
        assert_eq!(
            schedule,
            Schedule {
                count: 300,
                every: Duration::from_millis(2)
            }
        );
    }

    #[test]
    fn a_rate_for_a_time_gives_the_count() {
        let schedule = Schedule::of(&args(None, Some(2_000), Some(300)));
        assert_eq!(schedule.count, 600);
    }

    #[test]
    fn the_report_sums_what_was_answered() {
        let mut tally = Tally::default();
        tally.add("201".to_owned(), Duration::from_millis(1));
        tally.add("201".to_owned(), Duration::from_millis(1));
        tally.add("429".to_owned(), Duration::from_millis(9));
        let report = tally.report();
        assert_eq!(report.sent, 3);
        assert_eq!(report.by_code["201"], 2);
        assert!(report.p99_ms >= 8.9 && report.p50_ms < 1.1, "{report:?}");
    }
}
