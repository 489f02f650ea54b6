//! `GET /v1/events`: events as they are committed, as a stream of server-sent events (WHATWG HTML, 9.2).
//!
//! ```text
//! id: 0107…                                   opaque: where to go on
//! data: {"account_id":"alice","slot":0,…}     an entry with its account_id
//! ```
//!
//! What a reconciliation finds is told in between ([`alarms`]).
//!
//! A stream holds one page of events and nothing else: how far a client is behind is read from the ledger, as fast as
//! the client takes it. While there is nothing to send, a comment shows every [`KEEP_ALIVE`] that the connection
//! lives, with an `id` of its own where others' events were passed over, so that a client that comes back later need
//! not have them passed over again. There are [`MAX_STREAMS`] at once; one that is told to end ([`Ending`]), or whose
//! ledger ends, ends between two events, and the client goes on elsewhere from its last `id`.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until};

use self::alarms::Alarms;
use super::accept;
use super::cursor;
use super::error::{Code, Problem};
use super::extract::EventsQuery;
use super::view::EventJson;
use crate::Wallet;
use crate::command::LedgerError;
use crate::store::Event;
use crate::wallet::Events;

mod alarms;

/// The most event streams at once. The next one is told to come back.
pub const MAX_STREAMS: usize = 256;
/// A stream is not silent for longer: well under the minute after which proxies take a connection for dead.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A stream reads the ledger no more often: on a busy ledger several batches are one reading.
const READ_EVERY: Duration = Duration::from_millis(10);
/// Events in memory for a stream, and in one piece of it.
const PAGE: usize = 256;
const MEDIA: &str = "text/event-stream";
/// Tells nginx and those that copied it not to collect the stream.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Ends what would go on for ever: event streams, before the server drains. Clones are one.
#[derive(Clone, Debug)]
pub struct Ending(Arc<watch::Sender<bool>>);

impl Default for Ending {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Ending {
    /// From now on streams send what they have read, and end; later ones send one page.
    pub fn end(&self) {
        self.0.send_replace(true);
    }

    fn has_come(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it has been told.
    pub(super) async fn come(&self) {
        // An error is a sender that is gone, which this one is not.
        drop(self.0.subscribe().wait_for(|ended| *ended).await);
    }
}

/// The streams of one router.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    places: Arc<Semaphore>,
    ending: Ending,
}

impl Streams {
    pub(super) fn new(ending: Ending) -> Self {
        Self {
            places: Arc::new(Semaphore::new(MAX_STREAMS)),
            ending,
        }
    }

    /// How many there are.
    pub(super) fn open(&self) -> usize {
        MAX_STREAMS.saturating_sub(self.places.available_permits())
    }

    fn place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            let detail = format!("{MAX_STREAMS} event streams are open, and no more are served at once");
            Problem::new(Code::StoreOverloaded, detail)
        })
    }
}

/// A stream, or why there is none.
pub(super) async fn respond(
    wallet: &Wallet,
    streams: &Streams,
    query: EventsQuery,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    if !accept::takes(headers, MEDIA) {
        let detail = format!("events are served as {MEDIA}");
        return Err(Problem::new(Code::NotAcceptable, detail));
    }
    let ledger = wallet.ledger();
    let start = Start::asked_for(headers, query.after)?;
    let after = start.number(ledger)?;
    let place = streams.place()?;
    let alarms = Alarms::new(wallet, query.account.clone());
    let mut events = wallet.events(after, query.account);
    let first = events.read(PAGE).await;
    let first = first.map_err(|error| start.or_account_to_blame(error))?;
    let now = Instant::now();
    let left = Left {
        ledger,
        first: Some(first),
        read_at: now,
        behind: false,
        heard_at: now,
        told: after,
        events,
        alarms,
        ending: streams.ending.clone(),
        _place: place,
    };
    let body = stream::unfold(left, async |mut left| {
        let piece = left.piece().await?;
        Some((Ok::<_, LedgerError>(Bytes::from(piece)), left))
    });
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(MEDIA)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (UNBUFFERED, HeaderValue::from_static("no")),
    ];
    Ok((headers, Body::from_stream(body)).into_response())
}

/// Where a client wants to begin, and where it said so.
struct Start {
    field: &'static str,
    position: Option<String>,
}

impl Start {
    /// A browser that reconnects asks for the same address once more: its header is the later word.
    fn asked_for(headers: &HeaderMap, after: Option<String>) -> Result<Self, Problem> {
        let field = "Last-Event-ID";
        let mut values = headers.get_all("last-event-id").iter();
        let Some(value) = values.next().filter(|value| !value.is_empty()) else {
            let (field, position) = ("after", after);
            return Ok(Self { field, position });
        };
        if values.next().is_some() {
            return Err(Problem::invalid(field, "must be given once"));
        }
        let position = String::from_utf8_lossy(value.as_bytes()).into_owned();
        Ok(Self {
            field,
            position: Some(position),
        })
    }

    fn number(&self, ledger: u64) -> Result<u64, Problem> {
        let Some(position) = &self.position else {
            return Ok(0);
        };
        cursor::decode_event(ledger, position)
            .ok_or_else(|| self.refused("must be the id of an event of this ledger"))
    }

    /// The fields have other names here than in the ledger.
    fn or_account_to_blame(&self, error: LedgerError) -> Problem {
        if matches!(error, LedgerError::Invalid { field: "after", .. }) {
            return self.refused("is ahead of this ledger");
        }
        if let LedgerError::AccountNotFound { account, .. } = error {
            let field = "account";
            return LedgerError::AccountNotFound { account, field }.into();
        }
        error.into()
    }

    fn refused(&self, rule: &str) -> Problem {
        Problem::invalid(self.field, rule)
    }
}

/// What a stream goes on from.
struct Left {
    ledger: u64,
    /// The page that was read before the answer began.
    first: Option<Vec<Event>>,
    events: Events,
    alarms: Alarms,
    read_at: Instant,
    /// The last page was full: more is there.
    behind: bool,
    /// When the client last got something.
    heard_at: Instant,
    /// The position that the client knows.
    told: u64,
    ending: Ending,
    _place: OwnedSemaphorePermit,
}

impl Left {
    /// What to send next; `None` where the stream ends.
    async fn piece(&mut self) -> Option<String> {
        let page = match self.first.take() {
            Some(page) => page,
            None if self.ending.has_come() => return None,
            None => Vec::new(),
        };
        if !page.is_empty() {
            return Some(self.written(&page));
        }
        let ending = self.ending.clone();
        let silence = self.heard_at.checked_add(KEEP_ALIVE).unwrap_or(self.heard_at);
        loop {
            let alarm = self.alarms.come();
            tokio::select! {
                () = ending.come() => return None,
                page = self.read_some() => return Some(self.written(&page?)),
                () = sleep_until(silence) => return Some(self.comment()),
                () = alarm => {}
            }
            let piece = self.alarms.piece();
            if !piece.is_empty() {
                self.heard_at = Instant::now();
                return Some(piece);
            }
        }
    }

    /// The next events, however long that takes; `None` where there will be none. May be dropped at any moment.
    async fn read_some(&mut self) -> Option<Vec<Event>> {
        loop {
            let waited = self.events.wait().await;
            if !self.behind {
                // Not before the rest of a busy moment has come too.
                sleep_until(self.read_at.checked_add(READ_EVERY).unwrap_or(self.read_at)).await;
            }
            self.read_at = Instant::now();
            let read = match waited {
                Ok(()) => self.events.read(PAGE).await,
                Err(error) => Err(error),
            };
            match read {
                Ok(page) if page.is_empty() => {}
                Ok(page) => return Some(page),
                Err(error) => {
                    tracing::info!(%error, "an event stream ended");
                    return None;
                }
            }
        }
    }

    fn written(&mut self, page: &[Event]) -> String {
        let mut piece = String::new();
        self.behind = page.len() == PAGE;
        for event in page {
            self.told = event.number;
            let id = cursor::encode_event(self.ledger, event.number);
            // Into memory, from plain structs of numbers and strings: nothing in it can fail to be written.
            let data = serde_json::to_string(&EventJson::from(&event.entry)).unwrap_or_default();
            let _ = write!(piece, "id: {id}\ndata: {data}\n\n");
        }
        self.heard_at = Instant::now();
        piece
    }

    /// An event without data is none, but its id counts.
    fn comment(&mut self) -> String {
        self.heard_at = Instant::now();
        let passed = self.events.number();
        if passed == self.told {
            return ": keep-alive\n\n".to_owned();
        }
        self.told = passed;
        format!(
            ": keep-alive\nid: {}\n\n",
            cursor::encode_event(self.ledger, passed)
        )
    }
}
