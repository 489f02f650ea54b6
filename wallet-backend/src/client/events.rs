//! Events as they are committed, over any number of connections: each once, in order, from any of them on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use tokio::time::timeout;

use super::Client;
use super::error::{CallError, excerpt};
use super::exchange::Line;
use super::request::Asked;
use super::sse::{Message, Parser};
use super::wire;
use crate::account::{AccountId, Entry};

/// A connection that says nothing for so long is given up: three times what the wallet lets pass without a comment.
const SILENCE: Duration = Duration::from_secs(45);

/// An entry as it was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its place among all entries, for ever: goes into `after`. Opaque.
    pub id: String,
    pub entry: Entry,
}

/// The events after a place. Connects when it is asked for one, and again whenever the connection is lost.
#[derive(Debug)]
pub struct Events {
    line: Arc<Line>,
    account: Option<AccountId>,
    /// Behind the last message that was taken in.
    place: Option<String>,
    stream: Option<Response>,
    parser: Parser,
    ready: VecDeque<Event>,
}

impl Client {
    /// Every event after the one with the id `after`, or from the first on; of one account, or of all.
    #[must_use]
    pub fn events(&self, account: Option<&AccountId>, after: Option<&str>) -> Events {
        Events {
            line: Arc::clone(&self.0),
            account: account.cloned(),
            place: after.map(str::to_owned),
            stream: None,
            parser: Parser::default(),
            ready: VecDeque::new(),
        }
    }
}

impl Events {
    /// The next event, however long that takes. Dropped while it waits, nothing is lost.
    ///
    /// # Errors
    /// `Rejected` where the caller may not, the account is not there, or `after` is no event's id; `NotDone` or `Unknown`
    /// where there was no connection for as long as a call's deadline, after which it may be asked again;
    /// `Unreadable`.
    pub async fn next(&mut self) -> Result<Event, CallError> {
        let mut outage = None;
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            let Some(stream) = &mut self.stream else {
                let call = outage.get_or_insert_with(|| self.line.begin());
                let stream = call.open(self.asked()?).await?;
                self.stream = Some(event_stream(stream)?);
                continue;
            };
            let lost = match timeout(SILENCE, stream.chunk()).await {
                Ok(Ok(Some(piece))) => {
                    outage = None;
                    self.take(&piece)?;
                    continue;
                }
                Ok(Ok(None)) => "the stream ended".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("nothing came for {} s", SILENCE.as_secs()),
            };
            self.stream = None;
            self.parser = Parser::default();
            outage.get_or_insert_with(|| self.line.begin()).lost(lost).await?;
        }
    }

    fn asked(&self) -> Result<Asked, CallError> {
        let mut asked = Asked::get(["v1", "events"])?;
        if let Some(account) = &self.account {
            asked = asked.with("account", account);
        }
        if let Some(place) = &self.place {
            asked = asked.with("after", place);
        }
        Ok(asked)
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), CallError> {
        let messages = self.parser.push(piece);
        for Message { id, data } in messages.map_err(|what| CallError::Unreadable { what })? {
            if let (Some(id), Some(data)) = (&id, data) {
                let (id, entry) = (id.clone(), wire::read_event(data.as_bytes())?);
                self.ready.push_back(Event { id, entry });
            }
            self.place = id.or(self.place.take());
        }
        Ok(())
    }
}

fn event_stream(response: Response) -> Result<Response, CallError> {
    let media = response.headers().get(CONTENT_TYPE);
    let media = media.map_or(&[][..], |media| media.as_bytes());
    if media.starts_with(b"text/event-stream") {
        return Ok(response);
    }
    let what = format!("events as {}", excerpt(media));
    Err(CallError::Unreadable { what })
}
