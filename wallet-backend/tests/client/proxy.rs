//! A proxy between client and wallet that loses what it is told to lose. One exchange a connection.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What becomes of one exchange.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// Nothing.
    None,
    /// The request never reaches the wallet.
    LoseRequest,
    /// It does, and not a byte of the answer comes back.
    LoseAnswer,
    /// Half of the answer comes back.
    CutAnswer,
    /// The answer stays away for as long as the client waits.
    Silence,
    /// A stream comes back as far as so many bytes.
    CutStream(usize),
    /// A stream comes back for as long as it goes on.
    Stream,
    /// The wallet hears nothing; this is the answer: status and fields, and a body.
    Say(&'static str, &'static str),
}

/// Falls with its connections.
pub(super) struct Proxy {
    pub(super) address: String,
    seen: Arc<Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

impl Proxy {
    /// The faults of the first exchanges, one after the other; those after them have the last one.
    pub(super) async fn start(upstream: &str, faults: impl IntoIterator<Item = Fault>) -> Self {
        let upstream = upstream.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut serving = JoinSet::new();
        let mut faults: VecDeque<Fault> = faults.into_iter().collect();
        let log = Arc::clone(&seen);
        serving.spawn(async move {
            let mut exchanges = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let fault = if faults.len() > 1 {
                    faults.pop_front()
                } else {
                    faults.front().cloned()
                };
                let fault = fault.unwrap_or(Fault::None);
                exchanges.spawn(exchange(client, upstream.clone(), fault, Arc::clone(&log)));
            }
        });
        Self {
            address,
            seen,
            _serving: serving,
        }
    }

    /// The requests so far, each with head and body, as they arrived.
    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

async fn exchange(mut client: TcpStream, upstream: String, fault: Fault, log: Arc<Mutex<Vec<String>>>) {
    let request = message(&mut client).await;
    log.lock()
        .unwrap()
        .push(String::from_utf8(request.clone()).unwrap());
    if let Fault::Say(head, body) = fault {
        let answer = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        return client.write_all(answer.as_bytes()).await.unwrap();
    }
    if matches!(fault, Fault::LoseRequest) {
        return;
    }
    let mut wallet = TcpStream::connect(upstream).await.unwrap();
    wallet.write_all(&request).await.unwrap();
    if let Fault::CutStream(_) | Fault::Stream = fault {
        let most = match fault {
            Fault::CutStream(bytes) => u64::try_from(bytes).unwrap(),
            _ => u64::MAX,
        };
        // Ends with either side: a client that has gone away is no fault of the proxy's.
        drop(tokio::io::copy(&mut wallet.take(most), &mut client).await);
        return;
    }
    let answer = message(&mut wallet).await;
    match fault {
        Fault::None => {
            // The connection ends here, and the client is to know.
            let text = String::from_utf8(answer).unwrap();
            let (status, rest) = text.split_once("\r\n").unwrap();
            let whole = format!("{status}\r\nconnection: close\r\n{rest}");
            client.write_all(whole.as_bytes()).await.unwrap();
        }
        Fault::CutAnswer => client.write_all(&answer[..answer.len() - 10]).await.unwrap(),
        Fault::Silence => {
            // Until the client has gone away.
            let mut rest = Vec::new();
            drop(client.read_to_end(&mut rest).await);
        }
        Fault::LoseAnswer | Fault::LoseRequest | Fault::Say(..) | Fault::CutStream(_) | Fault::Stream => {}
    }
}

/// Reads one message: a head, and as much of a body as it announces.
async fn message(stream: &mut TcpStream) -> Vec<u8> {
    let mut message = Vec::new();
    loop {
        if let Some(end) = message.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&message[..end]).to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            if message.len() >= end + 4 + length {
                return message;
            }
        }
        if stream.read_buf(&mut message).await.unwrap() == 0 {
            return message;
        }
    }
}
