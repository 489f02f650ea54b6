//! Where requests go, and one way of getting there: over TCP, over a Unix socket, or into the wallet of this process.

use std::fmt;
use std::io;
use std::path::PathBuf;

use futures_util::future::BoxFuture;
use http::{HeaderValue, Request, Response};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tower::Service;

use super::in_flight::Sent;
use super::pool::Lease;
use super::streamed::Source;
use super::{host_value, never};
use crate::config::UpstreamAddress;
use crate::proxy::body::RequestBody;
use crate::proxy::{Worker, headers};
use crate::tasks::Tasks;

/// Where requests go.
#[derive(Clone)]
pub enum Destination {
    /// HTTP/1.1 over TCP.
    Tcp {
        host: String,
        port: u16,
        header: HeaderValue,
    },
    /// HTTP/1.1 over a Unix socket.
    Unix { path: PathBuf, header: HeaderValue },
    /// A service in this process, such as the bundled wallet.
    InProcess(axum::Router),
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port, .. } => write!(f, "Tcp({host}:{port})"),
            Self::Unix { path, .. } => write!(f, "Unix({})", path.display()),
            Self::InProcess(_) => f.write_str("InProcess"),
        }
    }
}

impl From<&UpstreamAddress> for Destination {
    fn from(address: &UpstreamAddress) -> Self {
        match address {
            UpstreamAddress::Tcp { host, port } => {
                let header = host_value(address.to_string().trim_start_matches("http://"));
                Self::Tcp {
                    host: host.clone(),
                    port: *port,
                    header,
                }
            }
            UpstreamAddress::Unix(path) => Self::Unix {
                path: path.clone(),
                header: host_value("localhost"),
            },
        }
    }
}

impl Destination {
    /// The Host of a request that came without one.
    pub(in crate::proxy) fn host(&self) -> &HeaderValue {
        static LOCAL: HeaderValue = HeaderValue::from_static("localhost");
        match self {
            Self::Tcp { header, .. } | Self::Unix { header, .. } => header,
            Self::InProcess(_) => &LOCAL,
        }
    }

    /// Opens a connection; its driver runs in `background`.
    pub(super) async fn connect(&self, background: &Tasks) -> io::Result<SendRequest<RequestBody>> {
        match self {
            Self::Tcp { host, port, .. } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                handshake(stream, background).await
            }
            Self::Unix { path, .. } => handshake(UnixStream::connect(path).await?, background).await,
            Self::InProcess(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

async fn handshake<T>(stream: T, background: &Tasks) -> io::Result<SendRequest<RequestBody>>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, driver) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    background.spawn("upstream connection", async move {
        // The exchange that runs on the connection learns of the error as well, and reports it.
        if let Err(error) = driver.await {
            tracing::debug!(%error, "an upstream connection ended");
        }
    });
    Ok(sender)
}

/// Whether what came is a whole answer that every reader would end at the same byte.
fn is_final<B>(response: &Response<B>) -> bool {
    !response.status().is_informational() && headers::is_framed_once(response.headers())
}

/// A way to send one request.
pub(super) enum Link {
    Connection { lease: Lease, idle: bool },
    InProcess(axum::Router),
}

impl Link {
    pub(super) const fn idle(sender: SendRequest<RequestBody>, worker: Worker) -> Self {
        Self::Connection {
            lease: Lease::new(sender, worker),
            idle: true,
        }
    }

    pub(super) const fn new(sender: SendRequest<RequestBody>, worker: Worker) -> Self {
        Self::Connection {
            lease: Lease::new(sender, worker),
            idle: false,
        }
    }

    /// Whether it had been idle, and may have been closed meanwhile.
    pub(super) const fn was_idle(&self) -> bool {
        matches!(self, Self::Connection { idle: true, .. })
    }

    /// Sends `request`. Dropping the future closes the connection.
    pub(super) fn send(self, request: Request<RequestBody>) -> BoxFuture<'static, Sent> {
        match self {
            Self::Connection { mut lease, .. } => Box::pin(async move {
                match lease.send(request).await {
                    Ok(response) if !is_final(&response) => Sent::Failed,
                    Ok(response) => Sent::Answer(response.map(Source::Connection), Some(lease)),
                    Err(mut error) => error.take_message().map_or(Sent::Failed, Sent::Unsent),
                }
            }),
            Self::InProcess(mut router) => Box::pin(async move {
                let request = request.map(axum::body::Body::new);
                // A router is always ready.
                let response = never(router.call(request).await);
                Sent::Answer(response.map(Source::InProcess), None)
            }),
        }
    }
}
