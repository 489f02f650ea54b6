//! A request that has been handed to a connection and has no answer yet.
//!
//! [`InFlight`] is polled in place, so the common path spawns nothing. Only if it is dropped before it is done, because
//! the client left or the deadline passed, does it move: a read's exchange is dropped, which closes the connection; a
//! write's, once the client has sent all of it, goes on in the background and keeps its permit until the upstream has ended or `abandonAfter`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::{Request, Response};
use tokio::time::timeout_at;

use super::held::Held;
use super::pool::Lease;
use super::streamed::{self, Source};
use crate::proxy::body::RequestBody;

/// How handing a request to a connection ended.
pub(super) enum Sent {
    /// The head of the answer, and the connection it came on.
    Answer(Response<Source>, Option<Lease>),
    /// The connection was closed before the request was written; nothing has left.
    Unsent(Request<RequestBody>),
    /// The connection broke with the request at least partly written.
    Failed,
}

/// See the module.
pub(super) struct InFlight {
    /// Both are there until the exchange is done.
    parts: Option<(BoxFuture<'static, Sent>, Held)>,
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight")
            .field("done", &self.parts.is_none())
            .finish()
    }
}

impl InFlight {
    pub(super) fn new(exchange: BoxFuture<'static, Sent>, held: Held) -> Self {
        Self {
            parts: Some((exchange, held)),
        }
    }

    /// The deadline has passed while the exchange goes on. Whether that is the upstream's fault.
    pub(super) fn late(&mut self) -> bool {
        self.parts.as_mut().is_none_or(|(_, held)| held.late())
    }
}

impl Future for InFlight {
    type Output = (Sent, Held);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some((mut exchange, held)) = self.parts.take() else {
            return Poll::Pending;
        };
        match exchange.as_mut().poll(cx) {
            Poll::Ready(sent) => Poll::Ready((sent, held)),
            Poll::Pending => {
                self.parts = Some((exchange, held));
                Poll::Pending
            }
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some((exchange, held)) = self.parts.take()
            && held.goes_on()
        {
            let exchanges = held.worker.proxy().exchanges.clone();
            exchanges.try_spawn("write without a client", finish(exchange, held));
        }
    }
}

/// Waits for the upstream to end, as long as the permit may be kept.
async fn finish(exchange: BoxFuture<'static, Sent>, mut held: Held) {
    match timeout_at(held.abandon_at, exchange).await {
        Ok(Sent::Answer(response, lease)) => {
            held.head(response.status());
            streamed::drain(response.into_body(), lease, held).await;
        }
        // Nothing was sent, and nobody waits for it any more.
        Ok(Sent::Unsent(_)) => drop(held),
        Ok(Sent::Failed) => {
            held.failed();
        }
        Err(_elapsed) => held.abandon(),
    }
}
