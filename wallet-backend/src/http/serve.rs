//! The serving side: one listener, TCP or Unix socket, a bounded number of connections, a graceful end.
//!
//! A connection's permit is taken before the connection is accepted, so that a flood waits in the kernel's backlog
//! instead of in memory, and a client that takes nothing of its answer loses it after [`TAKE_TIMEOUT`]. On stop: no more accepts, every request that has begun is answered, keep-alive connections
//! are closed between requests, and after [`DRAIN`] what is left is cut.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

mod descriptors;
mod patience;
mod socket_file;

pub use self::patience::TAKE_TIMEOUT;

use self::patience::Patient;
use self::socket_file::SocketFile;

/// The most connections at once, if the process may open so many files; the next one waits to be accepted.
pub const MAX_CONNECTIONS: usize = 4096;
/// How long a request head may take to arrive, and an idle keep-alive connection may stay. A client's pool must let
/// go of an idle connection sooner.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// How long requests in flight may take once the server is told to stop.
pub const DRAIN: Duration = Duration::from_secs(10);
/// After a failed accept (out of file descriptors) the next try waits this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Where to listen: `HOST:PORT` (an IP address or `localhost`; port 0 takes a free one) or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// Why a text is no [`Listen`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an address such as 127.0.0.1:8081, or unix:PATH, not {0:?}")]
pub struct ListenError(String);

impl Listen {
    /// Whether only this machine can reach it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        let invalid = || ListenError(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() {
                Err(invalid())
            } else {
                Ok(Self::Unix(path.into()))
            };
        }
        let address = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => text.to_owned(),
        };
        address.parse().map(Self::Tcp).map_err(|_| invalid())
    }
}

/// A bound listener. A Unix socket's file is removed when this is dropped.
#[derive(Debug)]
pub struct Server {
    /// Before the listener: while the socket is open, its inode can't become another file's.
    _file: Option<SocketFile>,
    listener: Listener,
    address: String,
}

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Server {
    /// Binds.
    ///
    /// # Errors
    /// What the system says: the address is taken, the folder is missing, another process serves the socket.
    pub async fn bind(listen: &Listen) -> io::Result<Self> {
        match listen {
            Listen::Tcp(address) => {
                let listener = TcpListener::bind(address).await?;
                let address = format!("http://{}", listener.local_addr()?);
                Ok(Self {
                    _file: None,
                    listener: Listener::Tcp(listener),
                    address,
                })
            }
            Listen::Unix(path) => {
                let (listener, file) = socket_file::bind(path).await?;
                let address = listen.to_string();
                Ok(Self {
                    _file: Some(file),
                    listener: Listener::Unix(listener),
                    address,
                })
            }
        }
    }

    /// Where it listens: `http://127.0.0.1:PORT`, with the port taken, or `unix:PATH`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Serves until `stop` resolves, then drains for at most [`DRAIN`].
    ///
    /// Dropped before that, connections are cut; what they had sent to the wallet is decided all the same.
    pub async fn run(self, router: Router, stop: impl Future<Output = ()>) {
        let permits = Arc::new(Semaphore::new(descriptors::connections_within(MAX_CONNECTIONS)));
        let (stopping, stopped) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stop => break,
                Some(_) = connections.join_next() => continue,
                accepted = self.accept(&permits) => accepted,
            };
            match accepted {
                Ok((stream, permit)) => {
                    connections.spawn(stream.serve(router.clone(), stopped.clone(), permit));
                }
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self);
        stopping.send_replace(true);
        let drained = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN, drained).await.is_err() {
            tracing::warn!(connections = connections.len(), "cut at the end of the drain");
        }
        connections.shutdown().await;
    }

    async fn accept(&self, permits: &Arc<Semaphore>) -> io::Result<(Stream, OwnedSemaphorePermit)> {
        let permit = Arc::clone(permits)
            .acquire_owned()
            .await
            .map_err(io::Error::other)?;
        let stream = match &self.listener {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
            Listener::Unix(listener) => Stream::Unix(listener.accept().await?.0),
        };
        Ok((stream, permit))
    }
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    async fn serve(self, router: Router, stopped: watch::Receiver<bool>, permit: OwnedSemaphorePermit) {
        match self {
            Self::Tcp(stream) => connection(stream, router, stopped).await,
            Self::Unix(stream) => connection(stream, router, stopped).await,
        }
        drop(permit);
    }
}

async fn connection<I>(stream: I, router: Router, mut stopped: watch::Receiver<bool>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(
            TokioIo::new(Patient::new(stream)),
            TowerToHyperService::new(router),
        );
    let mut connection = pin!(connection);
    // A sender that is gone means the same.
    let stop = async { drop(stopped.wait_for(|stopped| *stopped).await) };
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = stop => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_an_ip_with_a_port_localhost_or_a_socket_path() {
        let tcp = |text: &str| text.parse().map(Listen::Tcp).unwrap();
        assert_eq!("127.0.0.1:0".parse(), Ok(tcp("127.0.0.1:0")));
        assert_eq!("localhost:8081".parse(), Ok(tcp("127.0.0.1:8081")));
        assert_eq!("[::1]:8081".parse(), Ok(tcp("[::1]:8081")));
        assert_eq!("unix:/run/w.sock".parse(), Ok(Listen::Unix("/run/w.sock".into())));
        for bad in ["", "8081", "unix:", "wallet:8081", "http://127.0.0.1:1"] {
            assert!(bad.parse::<Listen>().is_err(), "{bad}");
        }
    }

    #[test]
    fn loopback_and_unix_sockets_are_local_and_nothing_else_is() {
        for (text, local) in [
            ("127.0.0.1:1", true),
            ("127.8.0.1:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("unix:x", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("10.0.0.1:1", false),
        ] {
            assert_eq!(text.parse::<Listen>().unwrap().is_local(), local, "{text}");
        }
    }
}
