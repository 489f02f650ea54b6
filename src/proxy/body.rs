//! Bodies, both ways, streamed without copying.
//!
//! A [`RequestBody`] knows whether its client has sent all of it, so that a slow or broken upload is not held against
//! the upstream. A [`Body`] keeps what the request holds (`held`) until its last byte leaves; how it ended is
//! the outcome. Dropped early, a read ends and a write is drained in the background with its permit.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;

use super::observe::Record;
use super::upstream::streamed::{Long, Step, Streamed};

/// Any error of a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What a client sends.
#[derive(Debug)]
pub struct RequestBody {
    source: RequestSource,
}

#[derive(Debug)]
enum RequestSource {
    /// Read already, or empty (`None`).
    Whole(Option<Bytes>),
    /// From the client's connection.
    Incoming(Incoming, Arc<Upload>),
    /// From a caller in this process.
    Local(axum::body::Body, Arc<Upload>),
}

/// How far a client is with sending a body.
#[derive(Debug, Default)]
pub struct Upload(AtomicU8);

const SENDING: u8 = 0;
const DONE: u8 = 1;
const BROKEN: u8 = 2;

impl Upload {
    // Relaxed: the flag is written and read by tasks of one thread, and orders nothing else.
    fn set(&self, state: u8) {
        self.0.store(state, Ordering::Relaxed);
    }

    /// Whether the client still has bytes to send.
    #[must_use]
    pub fn is_sending(&self) -> bool {
        self.0.load(Ordering::Relaxed) == SENDING
    }

    /// Whether the client's body broke off.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.0.load(Ordering::Relaxed) == BROKEN
    }
}

impl RequestBody {
    /// No body.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            source: RequestSource::Whole(None),
        }
    }

    /// A body that is in memory.
    #[must_use]
    pub fn whole(bytes: Bytes) -> Self {
        Self {
            source: RequestSource::Whole((!bytes.is_empty()).then_some(bytes)),
        }
    }

    /// What follows a head on a connection.
    #[must_use]
    pub fn incoming(body: Incoming) -> Self {
        if body.is_end_stream() {
            return Self::empty();
        }
        Self {
            source: RequestSource::Incoming(body, Arc::default()),
        }
    }

    /// A body from within this process.
    #[must_use]
    pub fn local(body: axum::body::Body) -> Self {
        Self {
            source: RequestSource::Local(body, Arc::default()),
        }
    }

    /// The progress of the upload; `None` if all is here.
    #[must_use]
    pub fn upload(&self) -> Option<Arc<Upload>> {
        match &self.source {
            RequestSource::Whole(_) => None,
            RequestSource::Incoming(_, upload) | RequestSource::Local(_, upload) => Some(Arc::clone(upload)),
        }
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let (polled, upload, at_end) = match &mut self.source {
            RequestSource::Whole(bytes) => {
                return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))));
            }
            RequestSource::Incoming(body, upload) => {
                let polled = Pin::new(&mut *body).poll_frame(cx).map_err(BoxError::from);
                (polled, &*upload, body.is_end_stream())
            }
            RequestSource::Local(body, upload) => {
                let polled = Pin::new(&mut *body).poll_frame(cx).map_err(BoxError::from);
                (polled, &*upload, body.is_end_stream())
            }
        };
        match &polled {
            Poll::Ready(Some(Err(_))) => upload.set(BROKEN),
            Poll::Ready(None) => upload.set(DONE),
            Poll::Ready(Some(Ok(_))) if at_end => upload.set(DONE),
            Poll::Ready(Some(Ok(_))) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            RequestSource::Whole(bytes) => bytes.is_none(),
            RequestSource::Incoming(body, _) => body.is_end_stream(),
            RequestSource::Local(body, _) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            RequestSource::Whole(bytes) => whole_size(bytes.as_ref()),
            RequestSource::Incoming(body, _) => body.size_hint(),
            RequestSource::Local(body, _) => body.size_hint(),
        }
    }
}

fn whole_size(bytes: Option<&Bytes>) -> SizeHint {
    SizeHint::with_exact(bytes.map_or(0, |bytes| u64::try_from(bytes.len()).unwrap_or(u64::MAX)))
}

/// What a client gets.
#[derive(Debug)]
pub struct Body {
    flow: Flow,
    /// Told when the body is gone, whichever way.
    record: Option<Box<Record>>,
}

#[derive(Debug)]
enum Flow {
    /// The sidecar's own answer, or nothing (left).
    Whole(Option<Bytes>),
    /// Nothing, under a head that names the length of what it stands for.
    Hollow(u64),
    /// The wallet's answer, most often all here already.
    Streamed(Streamed),
    /// The wallet's answer, still coming: a timer shares it.
    Long(Long),
}

impl Body {
    /// No body.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            flow: Flow::Whole(None),
            record: None,
        }
    }

    /// The sidecar's own answer.
    #[must_use]
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self {
            flow: Flow::Whole((!bytes.is_empty()).then_some(bytes)),
            record: None,
        }
    }

    /// The wallet's answer. What the request holds is given back at once if there is no body.
    pub(super) fn streamed(mut streamed: Streamed) -> Self {
        if streamed.is_end_stream() {
            streamed.ended();
            return Self::empty();
        }
        Self {
            flow: Flow::Streamed(streamed),
            record: None,
        }
    }

    /// No body for a 304 whose head names the length of what was not modified. hyper sends a declared length without
    /// bytes only for HEAD, and for a body that claims to have it.
    pub(super) fn or_hollow(mut self, status: StatusCode, headers: &HeaderMap) -> Self {
        let length = headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        if let (StatusCode::NOT_MODIFIED, Flow::Whole(None), Some(length)) = (status, &self.flow, length) {
            self.flow = Flow::Hollow(length);
        }
        self
    }

    /// Has `record` told when the body is gone.
    pub(super) fn watched(mut self, record: Box<Record>) -> Self {
        self.record = Some(record);
        self
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let step = match &mut self.flow {
            Flow::Whole(bytes) => return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Flow::Hollow(_) => return Poll::Ready(None),
            Flow::Streamed(streamed) => streamed.step(cx),
            Flow::Long(long) => long.step(cx),
        };
        match step {
            Step::More(frame) => {
                self.share(None);
                Poll::Ready(Some(Ok(frame)))
            }
            Step::Waiting => {
                self.share(Some(cx));
                Poll::Pending
            }
            Step::Last(frame) => {
                self.flow = Flow::Whole(None);
                Poll::Ready(frame.map(Ok))
            }
            Step::Broken(error) => {
                self.flow = Flow::Whole(None);
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.flow {
            Flow::Whole(bytes) => bytes.is_none(),
            // An ended stream has become `Whole`.
            Flow::Hollow(_) | Flow::Streamed(_) | Flow::Long(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.flow {
            Flow::Whole(bytes) => whole_size(bytes.as_ref()),
            Flow::Hollow(length) => SizeHint::with_exact(*length),
            Flow::Streamed(streamed) => streamed.size_hint(),
            Flow::Long(long) => long.size_hint(),
        }
    }
}

impl Body {
    /// There is more to come than one poll gave: from now on a timer watches the deadline, since a client that does
    /// not read keeps hyper from polling.
    fn share(&mut self, waiting: Option<&Context<'_>>) {
        if let Flow::Streamed(_) = self.flow
            && let Flow::Streamed(streamed) = std::mem::replace(&mut self.flow, Flow::Whole(None))
        {
            self.flow = Flow::Long(Long::new(streamed, waiting.map(|cx| cx.waker().clone())));
        }
    }
}
