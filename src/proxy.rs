//! One request from its head to the last byte of its answer.
//!
//! [`stack`] is the path, readable top to bottom. A [`Proxy`] is what all requests of the process share; a [`Worker`]
//! is a thread's view of it, with that thread's own connections to the upstream; a stack belongs to one client
//! connection. Requests are matched normalised and forwarded raw, bodies are streamed, and a write is never sent twice.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

pub mod body;
pub mod failure;
mod headers;
mod identify;
mod observe;
mod respond;
pub mod stack;
pub mod upstream;

use crate::admission::Admission;
use crate::lifecycle::Lifecycle;
use crate::rules::watch::RuleStore;
use crate::tasks::Tasks;
use crate::telemetry::Telemetry;
use upstream::Destination;
use upstream::pool::Pool;

/// What all requests of the process share.
#[derive(Debug)]
pub struct Proxy {
    pub store: Arc<RuleStore>,
    pub admission: Arc<Admission>,
    pub telemetry: Arc<Telemetry>,
    pub lifecycle: Lifecycle,
    pub destination: Destination,
    /// Sent as Authorization where a request has none.
    pub authorization: Option<HeaderValue>,
    /// Connections, and writes that are finished after their client left. Draining waits for these.
    pub exchanges: Tasks,
}

/// One thread's view of the proxy.
#[derive(Clone, Debug)]
pub struct Worker(Arc<Thread>);

/// What belongs to one thread. Behind one `Arc`, whose count no other thread touches.
#[derive(Debug)]
struct Thread {
    proxy: Arc<Proxy>,
    pool: Pool,
    /// Drivers of upstream connections and timers. Nobody waits for these.
    background: Tasks,
}

/// The far end of one client connection, and the worker that serves it.
#[derive(Debug)]
pub struct Client {
    text: String,
    forwarded_for: HeaderValue,
    worker: Worker,
}

impl Worker {
    /// A worker without upstream connections.
    #[must_use]
    pub fn new(proxy: Arc<Proxy>) -> Self {
        Self(Arc::new(Thread {
            proxy,
            pool: Pool::default(),
            background: Tasks::new(),
        }))
    }

    /// The path for the requests of one connection.
    #[must_use]
    pub fn stack(&self, peer: SocketAddr) -> stack::Stack {
        stack::build(&Arc::new(Client::new(peer, self.clone())))
    }

    /// Closes upstream connections that were idle too long. To be called about once a second.
    pub fn retire_idle(&self) {
        self.pool().retire(tokio::time::Instant::now());
    }

    /// How often [`Worker::retire_idle`] wants to be called.
    pub const RETIRE_EVERY: Duration = Duration::from_secs(1);

    /// What all requests of the process share.
    #[must_use]
    pub fn proxy(&self) -> &Arc<Proxy> {
        &self.0.proxy
    }

    fn pool(&self) -> &Pool {
        &self.0.pool
    }

    fn background(&self) -> &Tasks {
        &self.0.background
    }
}

impl Client {
    fn telemetry(&self) -> &Telemetry {
        &self.worker.proxy().telemetry
    }

    fn new(peer: SocketAddr, worker: Worker) -> Self {
        let text = peer.ip().to_canonical().to_string();
        // An IP address is visible ASCII.
        let forwarded_for = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("unknown"));
        Self {
            text,
            forwarded_for,
            worker,
        }
    }
}

#[cfg(test)]
mod tests;
