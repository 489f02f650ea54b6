//! One thread's idle connections to the upstream. Last in, first out, bounded, retired before the upstream does.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::SendRequest;
use tokio::time::{Instant, timeout};

use crate::proxy::Worker;
use crate::proxy::body::RequestBody;

/// How long a connection may be idle. Shorter than the usual keep-alive of backends (Node 5 s, nginx 75 s), so that
/// the upstream seldom closes one as a request leaves.
pub const IDLE: Duration = Duration::from_secs(4);

/// The most idle connections of one thread; more are closed.
const MAX_IDLE: usize = 256;

/// How long a connection may take after an answer to get ready for the next request.
const SETTLE: Duration = Duration::from_secs(1);

/// Idle connections, the oldest at the front.
#[derive(Default)]
pub struct Pool {
    idle: Mutex<VecDeque<Idle>>,
}

struct Idle {
    sender: SendRequest<RequestBody>,
    since: Instant,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("idle", &self.lock().len()).finish()
    }
}

impl Pool {
    /// The connection that was used last, if it is open and fresh enough.
    pub(super) fn take(&self, now: Instant) -> Option<SendRequest<RequestBody>> {
        let mut idle = self.lock();
        while let Some(newest) = idle.pop_back() {
            if now.duration_since(newest.since) >= IDLE {
                // The others are older still.
                idle.clear();
                return None;
            }
            if !newest.sender.is_closed() {
                return Some(newest.sender);
            }
        }
        None
    }

    fn put(&self, sender: SendRequest<RequestBody>, since: Instant) {
        if sender.is_closed() {
            return;
        }
        let mut idle = self.lock();
        if idle.len() < MAX_IDLE {
            idle.push_back(Idle { sender, since });
        }
    }

    /// Closes what has been idle for [`IDLE`].
    pub(in crate::proxy) fn retire(&self, now: Instant) {
        let mut idle = self.lock();
        while idle
            .front()
            .is_some_and(|oldest| now.duration_since(oldest.since) >= IDLE)
        {
            idle.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that serves one exchange and goes back to its pool afterwards. Dropped, it closes.
#[derive(Debug)]
pub(in crate::proxy) struct Lease {
    sender: SendRequest<RequestBody>,
    worker: Worker,
}

impl Lease {
    pub(super) const fn new(sender: SendRequest<RequestBody>, worker: Worker) -> Self {
        Self { sender, worker }
    }

    pub(super) fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<RequestBody>>>> + use<> {
        self.sender.try_send_request(request)
    }

    /// Puts the connection back once it is ready for another request; its answer has been read to the end.
    pub(super) fn give_back(self) {
        let Self { mut sender, worker } = self;
        if sender.is_ready() {
            worker.pool().put(sender, Instant::now());
            return;
        }
        // The answer came before the whole request had been sent, or the driver has not been polled yet.
        let background = worker.background().clone();
        background.try_spawn("upstream connection settles", async move {
            if let Ok(Ok(())) = timeout(SETTLE, sender.ready()).await {
                worker.pool().put(sender, Instant::now());
            }
        });
    }
}
