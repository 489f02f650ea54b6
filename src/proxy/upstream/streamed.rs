//! The body of the wallet's answer, with what the request holds until its end.
//!
//! [`Streamed`] is the common case: polled in place, most often once. An answer that takes longer becomes [`Long`]: it
//! is shared with a timer, because a client that stops reading stops the polling too, and the permit has to fall at the
//! deadline all the same. Dropped before its end, a write's answer is drained in the background.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::task::AbortHandle;
use tokio::time::{sleep_until, timeout_at};

use super::held::Held;
use super::pool::Lease;
use crate::admission::Outcome;
use crate::proxy::body::BoxError;

/// Where an answer's bytes come from.
#[derive(Debug)]
pub(in crate::proxy) enum Source {
    Connection(Incoming),
    InProcess(axum::body::Body),
}

impl Source {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self {
            Self::Connection(body) => Pin::new(body).poll_frame(cx).map_err(BoxError::from),
            Self::InProcess(body) => Pin::new(body).poll_frame(cx).map_err(BoxError::from),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Connection(body) => body.is_end_stream(),
            Self::InProcess(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Connection(body) => body.size_hint(),
            Self::InProcess(body) => body.size_hint(),
        }
    }

    /// Reads and forgets the rest. Whether it ended well.
    async fn drain(&mut self) -> bool {
        loop {
            let frame = match self {
                Self::Connection(body) => body.frame().await.map(|frame| frame.is_ok()),
                Self::InProcess(body) => body.frame().await.map(|frame| frame.is_ok()),
            };
            match frame {
                Some(true) => {}
                Some(false) => return false,
                None => return true,
            }
        }
    }
}

/// What one poll of an answer gave.
#[derive(Debug)]
pub(in crate::proxy) enum Step {
    More(Frame<Bytes>),
    Waiting,
    /// The end, with the last frame if it came together with one. What was held is given back.
    Last(Option<Frame<Bytes>>),
    /// The answer broke off or its time was up. What was held is given back.
    Broken(BoxError),
}

/// An answer under way.
pub(in crate::proxy) struct Streamed {
    /// There until the answer has ended.
    parts: Option<Parts>,
}

struct Parts {
    source: Source,
    lease: Option<Lease>,
    held: Held,
}

impl fmt::Debug for Streamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streamed")
            .field("ended", &self.parts.is_none())
            .finish()
    }
}

impl Streamed {
    pub(super) const fn new(source: Source, lease: Option<Lease>, held: Held) -> Self {
        Self {
            parts: Some(Parts { source, lease, held }),
        }
    }

    pub(in crate::proxy) fn is_end_stream(&self) -> bool {
        self.parts
            .as_ref()
            .is_none_or(|parts| parts.source.is_end_stream())
    }

    pub(in crate::proxy) fn size_hint(&self) -> SizeHint {
        self.parts
            .as_ref()
            .map_or_else(SizeHint::default, |parts| parts.source.size_hint())
    }

    /// The answer has ended well: its connection and its permit go back.
    pub(in crate::proxy) fn ended(&mut self) {
        if let Some(Parts { lease, held, .. }) = self.parts.take() {
            if let Some(lease) = lease {
                lease.give_back();
            }
            held.finish();
        }
    }

    /// The answer has ended badly: the connection is closed, the permit falls.
    fn broke(&mut self, outcome: Outcome) {
        if let Some(Parts { mut held, .. }) = self.parts.take() {
            held.report(outcome);
            held.end();
        }
    }

    pub(in crate::proxy) fn step(&mut self, cx: &mut Context<'_>) -> Step {
        let Some(parts) = &mut self.parts else {
            return Step::Last(None);
        };
        match parts.source.poll_frame(cx) {
            Poll::Pending => Step::Waiting,
            Poll::Ready(Some(Ok(frame))) if parts.source.is_end_stream() => {
                self.ended();
                Step::Last(Some(frame))
            }
            Poll::Ready(Some(Ok(frame))) => Step::More(frame),
            Poll::Ready(None) => {
                self.ended();
                Step::Last(None)
            }
            Poll::Ready(Some(Err(error))) => {
                self.broke(Outcome::Failure);
                Step::Broken(error)
            }
        }
    }

    /// The deadline has passed. If the upstream was being waited for, it failed; if the client did not read, nobody
    /// did. A write's rest is drained in the background.
    fn expire(mut self, waiting: bool) {
        if let Some(parts) = &mut self.parts {
            if waiting {
                parts.held.late();
            } else {
                parts.held.report(Outcome::Gone);
            }
        }
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take()
            && parts.held.goes_on()
        {
            let exchanges = parts.held.worker.proxy().exchanges.clone();
            exchanges.try_spawn("answer without a client", parts.drain());
        }
    }
}

impl Parts {
    /// Reads the rest for nobody, as long as the permit may be kept. Works on what has no `Drop` of its own: dropped
    /// by a runtime that stops, it must not start again.
    async fn drain(mut self) {
        let drained = timeout_at(self.held.abandon_at, self.source.drain()).await;
        match drained {
            Ok(true) => Streamed { parts: Some(self) }.ended(),
            Ok(false) => Streamed { parts: Some(self) }.broke(Outcome::Failure),
            Err(_elapsed) => self.held.abandon(),
        }
    }
}

/// Reads the answer to a write that nobody waits for, as long as its permit may be kept.
pub(super) async fn drain(source: Source, lease: Option<Lease>, held: Held) {
    Parts { source, lease, held }.drain().await;
}

/// An answer that a timer shares.
#[derive(Debug)]
pub(in crate::proxy) struct Long {
    shared: Arc<Mutex<Shared>>,
    timer: Option<AbortHandle>,
}

#[derive(Debug)]
struct Shared {
    /// `None` once the answer has ended or its deadline has passed.
    streamed: Option<Streamed>,
    /// Set while the upstream is waited for.
    waiting: Option<Waker>,
}

impl Long {
    /// Shares `streamed` with a timer that ends it at its deadline. The next poll comes at once or by its waker.
    pub(in crate::proxy) fn new(streamed: Streamed, waiting: Option<Waker>) -> Self {
        let limits = streamed
            .parts
            .as_ref()
            .map(|parts| (parts.held.deadline, parts.held.worker.background().clone()));
        let shared = Arc::new(Mutex::new(Shared {
            streamed: Some(streamed),
            waiting,
        }));
        let timer = limits.and_then(|(deadline, background)| {
            let shared = Arc::clone(&shared);
            background.try_spawn("deadline of an answer", async move {
                sleep_until(deadline).await;
                expire(&shared);
            })
        });
        Self { shared, timer }
    }

    pub(in crate::proxy) fn step(&mut self, cx: &mut Context<'_>) -> Step {
        let mut shared = lock(&self.shared);
        let Some(streamed) = &mut shared.streamed else {
            return Step::Broken("the answer took longer than the resource's timeout".into());
        };
        let step = streamed.step(cx);
        shared.waiting = matches!(step, Step::Waiting).then(|| cx.waker().clone());
        step
    }

    pub(in crate::proxy) fn size_hint(&self) -> SizeHint {
        lock(&self.shared)
            .streamed
            .as_ref()
            .map_or_else(SizeHint::default, Streamed::size_hint)
    }
}

impl Drop for Long {
    fn drop(&mut self) {
        if let Some(timer) = &self.timer {
            timer.abort();
        }
        // Taken out first: dropping it may spawn, which is not done under a lock.
        let streamed = lock(&self.shared).streamed.take();
        drop(streamed);
    }
}

fn expire(shared: &Mutex<Shared>) {
    let (streamed, waiting) = {
        let mut shared = lock(shared);
        (shared.streamed.take(), shared.waiting.take())
    };
    if let Some(streamed) = streamed {
        streamed.expire(waiting.is_some());
    }
    if let Some(waker) = waiting {
        waker.wake();
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
