//! One client connection: HTTP/1.1, with a deadline for heads, until it closes or the process drains.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::Future as _;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service as HyperService;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWrite as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::Service as _;

use super::accept::Accepted;
use crate::lifecycle::Phase;
use crate::proxy::Proxy;
use crate::proxy::body::{Body, RequestBody};
use crate::proxy::stack::Stack;

/// How long a client may go on sending what nobody reads, after its last answer (nginx: 5 s between two reads).
const LINGER: Duration = Duration::from_secs(2);

/// How connections are served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    pub(super) header_timeout: Duration,
    pub(super) half_close: bool,
}

/// Counts a connection for as long as it is served.
struct Counted(Arc<Proxy>);

impl Counted {
    fn new(proxy: Arc<Proxy>) -> Self {
        proxy.telemetry.metrics.connections.inc();
        Self(proxy)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.telemetry.metrics.connections.dec();
    }
}

/// Serves `accepted` to its end. While the process drains, the connection closes after the answer under way.
pub(super) async fn serve(accepted: Accepted, stack: Stack, serving: Serving, proxy: Arc<Proxy>) {
    let Accepted { stream, permit, .. } = accepted;
    let _permit = permit;
    let lifecycle = proxy.lifecycle.clone();
    let _counted = Counted::new(proxy);
    let stream = match TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => {
            tracing::warn!(%error, "a connection could not be served");
            return;
        }
    };
    let mut connection = http1::Builder::new()
        // Without a timer the header timeout would do nothing.
        .timer(TokioTimer::new())
        .header_read_timeout(serving.header_timeout)
        .half_close(serving.half_close)
        .serve_connection(TokioIo::new(stream), PerRequest(RefCell::new(stack)));
    let mut closing = pin!(lifecycle.reached(Phase::Closing));
    let mut told = false;
    let served = poll_fn(|cx| {
        // Looked at and not only waited for: an answer that becomes ready before the wake-up says close as well.
        if !told && (lifecycle.phase() >= Phase::Closing || closing.as_mut().poll(cx).is_ready()) {
            told = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        connection.poll_without_shutdown(cx)
    })
    .await;
    match served {
        Ok(()) => linger(connection.into_parts().io.into_inner(), told).await,
        // Clients come and go; what matters of it is in the access log and the metrics.
        Err(error) => tracing::debug!(%error, "a client connection ended"),
    }
}

/// Ends a connection so that the client sees its last answer: says that no more will come, then reads and forgets what
/// the client is still sending. Closing on unread bytes makes the kernel send a reset, and a reset may take the answer
/// to a refused upload away from its client. While the process drains there is no time for that.
async fn linger(mut stream: TcpStream, draining: bool) {
    let closed = poll_fn(|cx| Pin::new(&mut stream).poll_shutdown(cx)).await;
    if closed.is_err() || draining {
        return;
    }
    let until_closed = async {
        let mut forgotten = vec![0; 16 * 1024];
        while stream.readable().await.is_ok() {
            match stream.try_read(&mut forgotten) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    };
    drop(timeout(LINGER, until_closed).await);
}

/// The stack as hyper wants it: called by shared reference. A connection has one request at a time and a call does not
/// come back to it, so the borrow never meets another.
struct PerRequest(RefCell<Stack>);

impl HyperService<Request<Incoming>> for PerRequest {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = <Stack as tower::Service<Request<RequestBody>>>::Future;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        // The stack is always ready: its innermost service is, and the layers only delegate.
        self.0.borrow_mut().call(request.map(RequestBody::incoming))
    }
}
