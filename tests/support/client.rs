//! A client that says exactly what a test wants said, byte for byte.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::soon;

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// One answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case, in order.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The value of a field; panics if it is there twice.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self
            .headers
            .iter()
            .filter(|(each, _)| each == name)
            .map(|(_, value)| value.as_str());
        let value = values.next();
        assert!(values.next().is_none(), "{name} is there twice");
        value
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Client {
    pub(crate) async fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            unread: Vec::new(),
        }
    }

    /// Connects, sends and reads one answer.
    pub(crate) async fn once(address: &str, request: &str) -> Answer {
        let mut client = Self::connect(address).await;
        client.send(request).await;
        client.answer().await
    }

    /// Sends bytes as they are, but for `\n`, which becomes `\r\n` in a head.
    pub(crate) async fn send(&mut self, request: &str) {
        let (head, body) = request.split_once("\n\n").unwrap_or((request, ""));
        let text = if request.contains("\n\n") {
            format!("{}\r\n\r\n{body}", head.replace('\n', "\r\n"))
        } else {
            request.to_owned()
        };
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads one answer to its end: by length, by chunks, or by the end of the connection.
    pub(crate) async fn answer(&mut self) -> Answer {
        self.answer_to("GET").await
    }

    /// Reads the answer to a HEAD request.
    pub(crate) async fn answer_to_head(&mut self) -> Answer {
        self.answer_to("HEAD").await
    }

    async fn answer_to(&mut self, method: &str) -> Answer {
        let (status, headers) = self.head().await;
        let field = |name: &str| {
            headers
                .iter()
                .find(|(each, _)| each == name)
                .map(|(_, value)| value.clone())
        };
        let body = if method == "HEAD" || status == 204 || status == 304 {
            Vec::new()
        } else if field("transfer-encoding").as_deref() == Some("chunked") {
            self.chunks().await
        } else if let Some(length) = field("content-length") {
            self.exactly(length.parse().unwrap()).await
        } else {
            while self.more().await {}
            std::mem::take(&mut self.unread)
        };
        Answer {
            status,
            headers,
            body,
        }
    }

    /// Reads a status line and fields.
    pub(crate) async fn head(&mut self) -> (u16, Vec<(String, String)>) {
        let end = loop {
            if let Some(at) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            assert!(self.more().await, "the connection closed before an answer");
        };
        let head = String::from_utf8(self.unread.drain(..end + 4).collect()).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        (status, headers)
    }

    async fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(&self.line().await, 16).unwrap();
            body.extend(self.exactly(size).await);
            assert_eq!(self.line().await, "");
            if size == 0 {
                return body;
            }
        }
    }

    async fn line(&mut self) -> String {
        let end = loop {
            if let Some(at) = self.unread.windows(2).position(|two| two == b"\r\n") {
                break at;
            }
            assert!(self.more().await, "the connection closed in a line");
        };
        let line: Vec<u8> = self.unread.drain(..end + 2).collect();
        String::from_utf8_lossy(&line[..end]).into_owned()
    }

    async fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.unread.len() < length {
            assert!(self.more().await, "the connection closed in a body");
        }
        self.unread.drain(..length).collect()
    }

    /// Reads what comes next; false at the end of the connection.
    async fn more(&mut self) -> bool {
        let read = soon("an answer", self.stream.read_buf(&mut self.unread))
            .await
            .unwrap_or(0);
        read > 0
    }

    /// Waits until the other side has closed; whatever comes before that is thrown away.
    pub(crate) async fn closed(&mut self) {
        while self.more().await {}
    }

    /// Closes the sending side only.
    pub(crate) async fn half_close(&mut self) {
        self.stream.shutdown().await.unwrap();
    }
}
