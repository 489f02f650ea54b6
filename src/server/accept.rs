//! The accepting thread: takes a connection permit, accepts, deals to the next worker.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::lifecycle::{Lifecycle, Phase};

/// How long to wait after an error that more accepting would only repeat, such as too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// A bound listener that no runtime knows yet.
#[derive(Debug)]
pub(super) struct Listener(StdListener);

/// A connection with the permit that counts it.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) permit: OwnedSemaphorePermit,
}

impl Listener {
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        // std sets SO_REUSEADDR on Unix, so a restart does not wait for old connections.
        let listener = StdListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self(listener))
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// Accepts until the process closes its doors, then drops the listener and the channels.
pub(super) async fn deal(
    listener: Listener,
    workers: Vec<mpsc::Sender<Accepted>>,
    max_connections: usize,
    lifecycle: Lifecycle,
) {
    let permits = Arc::new(Semaphore::new(max_connections.min(Semaphore::MAX_PERMITS)));
    tokio::select! {
        () = lifecycle.reached(Phase::Closing) => {}
        () = accept_all(listener, &workers, &permits) => {}
    }
}

async fn accept_all(listener: Listener, workers: &[mpsc::Sender<Accepted>], permits: &Arc<Semaphore>) {
    let listener = match TcpListener::from_std(listener.0) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "the listener cannot be watched; nothing will be accepted");
            return;
        }
    };
    for worker in workers.iter().cycle() {
        // The semaphore is never closed, and a worker lives as long as the process.
        let Ok(permit) = Arc::clone(permits).acquire_owned().await else {
            return;
        };
        let (stream, peer) = next(&listener).await;
        if worker.send(Accepted { stream, peer, permit }).await.is_err() {
            return;
        }
    }
}

/// The next connection. Errors of one connection are skipped; errors of the process are logged and waited out.
async fn next(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // It goes to another runtime, so this one has to let go of it. It stays non-blocking.
                if let Ok(stream) = stream.set_nodelay(true).and_then(|()| stream.into_std()) {
                    return (stream, peer);
                }
            }
            Err(error) if is_about_one(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Whether only the connection at hand is concerned: it left before it was accepted.
fn is_about_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    [ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted].contains(&error.kind())
}
