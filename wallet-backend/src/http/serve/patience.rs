//! A connection that is given up once its client has taken nothing of an answer for too long.
//!
//! Without it, a client that asks and never reads keeps its connection for ever, and with an event stream one of the
//! few places that there are: as many such clients as there are places, and nobody else is served.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long a client may take nothing of what is there for it. A slow one, which takes a little at a time, is waited
/// for.
pub const TAKE_TIMEOUT: Duration = Duration::from_secs(60);

/// A stream on which a write fails with [`io::ErrorKind::TimedOut`] after [`TAKE_TIMEOUT`] without a byte taken.
#[derive(Debug)]
pub(super) struct Patient<I> {
    stream: I,
    /// Runs while a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<I> Patient<I> {
    pub(super) const fn new(stream: I) -> Self {
        Self {
            stream,
            waiting: None,
        }
    }

    /// What a write said, or that it has waited for too long.
    fn within<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(TAKE_TIMEOUT)));
        ready!(waiting.as_mut().poll(context));
        let what = format!("the client took nothing for {} s", TAKE_TIMEOUT.as_secs());
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, what)))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Patient<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Patient<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.within(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Nothing of its own to take: a socket has none, and what waits is waited for by writing.
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::{Instant, advance};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_for_a_minute_is_given_up() {
        let (_client, server) = duplex(16);
        let begun = Instant::now();
        let error = Patient::new(server).write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), TAKE_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_a_little_at_a_time_is_waited_for() {
        let (mut client, server) = duplex(16);
        let mut server = Patient::new(server);
        let slow = async {
            let mut taken = 0;
            while taken < 64 {
                advance(TAKE_TIMEOUT - Duration::from_secs(1)).await;
                taken += client.read(&mut [0; 8]).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(server.write_all(&[0; 64]), slow);
        written.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_for_a_request_and_not_for_its_client_is_left_alone() {
        let (mut client, server) = duplex(16);
        let mut server = Patient::new(server);
        server.write_all(&[0; 8]).await.unwrap();
        advance(10 * TAKE_TIMEOUT).await;
        client.write_all(&[1]).await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), 1);
        server.write_all(&[0; 8]).await.unwrap();
    }
}
