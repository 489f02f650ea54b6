//! Accepting, serving and draining client connections.
//!
//! One thread accepts and deals connections round robin to the workers, each a current_thread runtime on a thread of
//! its own (source: measured cheapest, and even where SO_REUSEPORT is not). A connection permit is taken before
//! accepting, so that past the cap clients wait in the kernel's queue. Draining follows [`Lifecycle`]: see [`drain`].

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

mod accept;
mod connection;
mod descriptors;
pub mod drain;

use crate::lifecycle::{Lifecycle, Phase};
use crate::proxy::{Proxy, Worker};
use accept::{Accepted, Listener};
use connection::Serving;

/// Connections that may wait for a worker to pick them up. Bounded; past it the accepting thread waits.
const DEALT: usize = 256;

/// What the server needs to know.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub listen: SocketAddr,
    /// At least 1.
    pub workers: usize,
    /// Fewer if the process may not open enough files.
    pub max_connections: usize,
    pub header_timeout: Duration,
    pub half_close: bool,
}

/// The running threads.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Binds, and starts the workers and the accepting thread.
    ///
    /// # Errors
    /// An address that cannot be bound, or a thread that cannot start.
    pub fn start(options: &ServerOptions, proxy: &Arc<Proxy>) -> io::Result<Self> {
        let listener = Listener::bind(options.listen)?;
        let address = listener.address()?;
        let serving = Serving {
            header_timeout: options.header_timeout,
            half_close: options.half_close,
        };
        let mut threads = Vec::with_capacity(options.workers + 1);
        let mut workers = Vec::with_capacity(options.workers);
        for index in 0..options.workers {
            let (deal, dealt) = mpsc::channel(DEALT);
            let worker = Worker::new(Arc::clone(proxy));
            threads.push(thread(format!("worker-{index}"), move |runtime| {
                runtime.block_on(work(worker, serving, dealt));
            })?);
            workers.push(deal);
        }
        let lifecycle = proxy.lifecycle.clone();
        let max_connections = descriptors::connections_within(options.max_connections, options.workers);
        threads.push(thread("accept".to_owned(), move |runtime| {
            runtime.block_on(accept::deal(listener, workers, max_connections, lifecycle));
        })?);
        Ok(Self { address, threads })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the threads, which end with [`Phase::Stopping`].
    pub fn join(self) {
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a server thread panicked");
            }
        }
    }
}

/// Starts a thread with a runtime of its own.
fn thread(name: String, body: impl FnOnce(Runtime) + Send + 'static) -> io::Result<JoinHandle<()>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new()
        .name(name)
        .spawn(move || body(runtime))
}

/// One worker: serves what it is dealt until the process stops. Dropping its runtime then drops what is left.
async fn work(worker: Worker, serving: Serving, mut dealt: mpsc::Receiver<Accepted>) {
    let proxy = Arc::clone(worker.proxy());
    let lifecycle: Lifecycle = proxy.lifecycle.clone();
    let stopping = lifecycle.reached(Phase::Stopping);
    tokio::pin!(stopping);
    let mut retire = tokio::time::interval(Worker::RETIRE_EVERY);
    let mut open = true;
    loop {
        tokio::select! {
            () = &mut stopping => return,
            accepted = dealt.recv(), if open => match accepted {
                Some(accepted) => {
                    let stack = worker.stack(accepted.peer);
                    let connection = connection::serve(accepted, stack, serving, Arc::clone(&proxy));
                    proxy.exchanges.spawn("connection", connection);
                }
                None => open = false,
            },
            _ = retire.tick() => worker.retire_idle(),
        }
    }
}
