//! A scripted wallet that speaks HTTP over raw sockets, notes what it is sent, and answers when it is told to.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The request line and fields, as sent.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    /// The value of a field; names compare without case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "))
            .find(|(each, _)| each.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Method and target.
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap().trim_end_matches(" HTTP/1.1")
    }
}

/// What the wallet does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// These bytes; `\n` in the head becomes `\r\n`.
    Answer(String),
    /// The answer, once the test lets it go ([`Upstream::release`]).
    WhenReleased(String),
    /// These bytes, then the connection closes.
    AnswerAndClose(String),
    /// The connection closes without a word.
    Close,
}

impl Reply {
    /// An answer with this status and body.
    pub(crate) fn status(status: u16, body: &str) -> Self {
        Self::Answer(answer(status, body))
    }

    /// As [`Reply::status`], once the test lets it go.
    pub(crate) fn held(status: u16, body: &str) -> Self {
        Self::WhenReleased(answer(status, body))
    }
}

fn answer(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} Told\nContent-Length: {}\n\n{body}", body.len())
}

type Script = dyn Fn(&Seen) -> Reply + Send + Sync;

/// The wallet. It stops with the test's runtime.
#[derive(Clone)]
pub(crate) struct Upstream {
    url: String,
    state: Arc<State>,
}

struct State {
    script: Box<Script>,
    seen: Mutex<Vec<Seen>>,
    arrived: watch::Sender<usize>,
    in_flight: watch::Sender<usize>,
    most: AtomicUsize,
    connections: AtomicUsize,
    release: Semaphore,
}

impl Upstream {
    /// Listens on a free TCP port.
    pub(crate) async fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::serve(listener, script)
    }

    /// Serves a listener that is bound already.
    pub(crate) fn serve(
        listener: TcpListener,
        script: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let upstream = Self::over(format!("http://{}", listener.local_addr().unwrap()), script);
        let state = Arc::clone(&upstream.state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                tokio::spawn(serve(stream, Arc::clone(&state)));
            }
        });
        upstream
    }

    /// Listens on a Unix socket.
    pub(crate) fn start_unix(path: &Path, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let upstream = Self::over(format!("unix:{}", path.display()), script);
        let state = Arc::clone(&upstream.state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&state)));
            }
        });
        upstream
    }

    fn over(url: String, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let state = State {
            script: Box::new(script),
            seen: Mutex::default(),
            arrived: watch::Sender::new(0),
            in_flight: watch::Sender::new(0),
            most: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            release: Semaphore::new(0),
        };
        Self {
            url,
            state: Arc::new(state),
        }
    }

    /// The value for `--upstream`.
    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// Every request so far, in order of arrival.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    /// The most requests that were under way at once.
    pub(crate) fn most_in_flight(&self) -> usize {
        self.state.most.load(Ordering::SeqCst)
    }

    /// How many connections were opened.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Waits until so many requests have arrived.
    pub(crate) async fn arrived(&self, count: usize) {
        let mut arrived = self.state.arrived.subscribe();
        super::soon(
            "the arrival of a request",
            arrived.wait_for(|seen| *seen >= count),
        )
        .await
        .unwrap();
    }

    /// Waits until exactly so many requests are under way.
    pub(crate) async fn in_flight(&self, count: usize) {
        let mut in_flight = self.state.in_flight.subscribe();
        super::soon(
            "the number of requests under way",
            in_flight.wait_for(|now| *now == count),
        )
        .await
        .unwrap();
    }

    /// Lets so many held answers go.
    pub(crate) fn release(&self, count: usize) {
        self.state.release.add_permits(count);
    }
}

/// Counts a request for as long as it is under way.
struct UnderWay(Arc<State>);

impl UnderWay {
    fn new(state: Arc<State>) -> Self {
        state.in_flight.send_modify(|now| {
            *now += 1;
            state.most.fetch_max(*now, Ordering::SeqCst);
        });
        Self(state)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.in_flight.send_modify(|now| *now -= 1);
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, state: Arc<State>) {
    state.connections.fetch_add(1, Ordering::SeqCst);
    let mut unread = Vec::new();
    while let Some(seen) = request(&mut stream, &mut unread).await {
        let reply = (state.script)(&seen);
        let under_way = UnderWay::new(Arc::clone(&state));
        state.seen.lock().unwrap().push(seen);
        state.arrived.send_modify(|count| *count += 1);
        let (text, close) = match reply {
            Reply::Answer(text) => (text, false),
            Reply::AnswerAndClose(text) => (text, true),
            Reply::Close => return,
            Reply::WhenReleased(text) => {
                let mut byte = [0];
                tokio::select! {
                    permit = state.release.acquire() => permit.unwrap().forget(),
                    // The proxy hung up, or sent something out of turn.
                    _ = stream.read(&mut byte) => return,
                }
                (text, false)
            }
        };
        drop(under_way);
        let (head, body) = text.split_once("\n\n").unwrap();
        let bytes = format!("{}\r\n\r\n{body}", head.replace('\n', "\r\n"));
        if stream.write_all(bytes.as_bytes()).await.is_err() || close {
            return;
        }
    }
}

/// Reads one request with a body by length or by chunks (kept as sent); `None` at the end of the connection.
async fn request<S: AsyncRead + Unpin>(stream: &mut S, unread: &mut Vec<u8>) -> Option<Seen> {
    let end = until(stream, unread, b"\r\n\r\n").await?;
    let head = String::from_utf8_lossy(&unread.drain(..end).collect::<Vec<_>>())
        .trim_end()
        .replace("\r\n", "\n");
    let mut seen = Seen {
        head,
        body: Vec::new(),
    };
    let length = if seen.header("transfer-encoding").is_some() {
        until(stream, unread, b"0\r\n\r\n").await?
    } else {
        seen.header("content-length")
            .map_or(0, |length| length.parse().unwrap())
    };
    while unread.len() < length {
        more(stream, unread).await?;
    }
    seen.body = unread.drain(..length).collect();
    Some(seen)
}

/// Reads until `mark` is there; where it ends.
async fn until<S: AsyncRead + Unpin>(stream: &mut S, unread: &mut Vec<u8>, mark: &[u8]) -> Option<usize> {
    loop {
        if let Some(at) = unread.windows(mark.len()).position(|bytes| bytes == mark) {
            return Some(at + mark.len());
        }
        more(stream, unread).await?;
    }
}

async fn more<S: AsyncRead + Unpin>(stream: &mut S, unread: &mut Vec<u8>) -> Option<()> {
    match stream.read_buf(unread).await {
        Ok(read @ 1..) => {
            let _ = read;
            Some(())
        }
        _ => None,
    }
}
