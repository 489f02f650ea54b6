//! One call over the wire: attempts until it is answered, or patience ends.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Request, Response, Url};
use tokio::time::{Instant, sleep, timeout};

use super::error::{CallError, Problem};
use super::patience::{Attempts, Patience, Step};
use super::request::Asked;
use super::verdict::{Attempt, Reply};

/// No answer is longer: a page of a thousand accounts with 64 slots has some 5 MiB.
const MAX_ANSWER_BYTES: usize = 32 << 20;

/// Where the wallet is, and how to reach it.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) http: reqwest::Client,
    pub(super) base: Url,
    pub(super) patience: Patience,
}

impl Line {
    /// # Errors
    /// Whatever ends the call without an answer.
    pub(super) async fn ask(&self, asked: Asked) -> Result<Reply, CallError> {
        self.begin().ask(asked).await
    }

    /// Begins a call, whose deadline counts from here on.
    pub(super) fn begin(&self) -> Call<'_> {
        let seed = RandomState::new().build_hasher().finish();
        Call {
            line: self,
            begun: Instant::now(),
            attempts: Attempts::new(self.patience, seed),
        }
    }

    fn request(&self, asked: Asked) -> Result<Request, CallError> {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(&asked.path);
        }
        if !asked.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&asked.query);
        }
        let mut request = self.http.request(asked.method, url);
        if let Some(body) = asked.body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string());
        }
        request.build().map_err(|error| CallError::Invalid {
            field: "request",
            reason: causes(&error),
        })
    }
}

/// A call under way.
#[derive(Debug)]
pub(super) struct Call<'a> {
    line: &'a Line,
    begun: Instant,
    attempts: Attempts,
}

impl Call<'_> {
    /// # Errors
    /// Whatever ends the call without an answer.
    pub(super) async fn ask(&mut self, asked: Asked) -> Result<Reply, CallError> {
        let request = self.line.request(asked)?;
        loop {
            let timeout = self.attempts.timeout(self.begun.elapsed());
            let attempt = match request.try_clone() {
                Some(request) => attempt(&self.line.http, request, timeout).await,
                None => not_repeatable(),
            };
            if let Some(reply) = self.after(attempt).await? {
                return Ok(reply);
            }
        }
    }

    /// Opens a stream. Its head comes in an attempt's time; its body may go on for ever.
    ///
    /// # Errors
    /// Whatever ends the call without a stream.
    pub(super) async fn open(&mut self, asked: Asked) -> Result<Response, CallError> {
        let request = self.line.request(asked)?;
        loop {
            let patience = self.attempts.timeout(self.begun.elapsed());
            let attempt = match request.try_clone() {
                Some(request) => match timeout(patience, self.line.http.execute(request)).await {
                    Ok(Ok(response)) if response.status().is_success() => return Ok(response),
                    Ok(Ok(response)) => timeout(patience, answered(response))
                        .await
                        .unwrap_or_else(|_| Attempt::Broken("the answer broke off".to_owned())),
                    Ok(Err(error)) => failed(&error),
                    Err(_) => Attempt::Broken("no answer came in time".to_owned()),
                },
                None => not_repeatable(),
            };
            if let Some(reply) = self.after(attempt).await? {
                let problem = Problem::read(reply.status, &reply.body);
                return Err(CallError::Rejected(problem));
            }
        }
    }

    /// Waits after a stream was lost.
    ///
    /// # Errors
    /// Where there is no time for more.
    pub(super) async fn lost(&mut self, what: String) -> Result<(), CallError> {
        self.after(Attempt::Broken(what)).await.map(drop)
    }

    /// The answer, or `None` once it is time for another attempt.
    async fn after(&mut self, attempt: Attempt) -> Result<Option<Reply>, CallError> {
        match self.attempts.after(attempt, self.begun.elapsed()) {
            Step::Answered(reply) => Ok(Some(reply)),
            Step::Pause(pause) => {
                sleep(pause).await;
                Ok(None)
            }
            Step::GiveUp(error) => Err(error),
        }
    }

    /// Waits before more is asked of an answer that left something open. `false` where there is no time for more.
    pub(super) async fn pause(&mut self) -> bool {
        match self.attempts.next(None, self.begun.elapsed()) {
            Some(pause) => {
                sleep(pause).await;
                true
            }
            None => false,
        }
    }

    /// Attempts so far.
    pub(super) const fn attempts(&self) -> u32 {
        self.attempts.count()
    }
}

fn not_repeatable() -> Attempt {
    Attempt::NotSent("the request cannot be repeated".to_owned())
}

async fn attempt(http: &reqwest::Client, mut request: Request, timeout: Duration) -> Attempt {
    *request.timeout_mut() = Some(timeout);
    match http.execute(request).await {
        Ok(response) => answered(response).await,
        Err(error) => failed(&error),
    }
}

fn failed(error: &reqwest::Error) -> Attempt {
    if error.is_connect() || error.is_builder() {
        Attempt::NotSent(causes(error))
    } else {
        Attempt::Broken(causes(error))
    }
}

async fn answered(response: Response) -> Attempt {
    let status = response.status().as_u16();
    let replayed = response.headers().contains_key("idempotent-replayed");
    let retry_after = response.headers().get(RETRY_AFTER);
    // The other form, a date, would need this machine's clock to be right.
    let seconds = retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
    match body(response).await {
        Ok(body) => Attempt::Answered(Reply {
            status,
            replayed,
            retry_after: seconds.map(Duration::from_secs),
            body,
        }),
        Err(what) => Attempt::Broken(what),
    }
}

async fn body(mut response: Response) -> Result<Bytes, String> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| causes(&error))? {
        if body.len().saturating_add(chunk.len()) > MAX_ANSWER_BYTES {
            return Err(format!("the answer has over {MAX_ANSWER_BYTES} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// An error with what caused it: reqwest's own text leaves that out.
fn causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
