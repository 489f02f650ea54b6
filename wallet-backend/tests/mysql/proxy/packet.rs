//! As much of the MySQL protocol as it takes to see a text go and its whole answer come back: packets, the flags of
//! the handshake, where the results of a text end.
//!
//! Source: the MariaDB and MySQL manuals, "Client/Server Protocol": 0-packet, OK_Packet, EOF_Packet, result sets.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The greeting and the client's response say which of these both have.
const FOUND_ROWS: u32 = 1 << 1;
const SSL: u32 = 1 << 11;
const DEPRECATE_EOF: u32 = 1 << 24;

/// First byte of the client's packet that carries SQL as text.
const QUERY: u8 = 3;

const OK: u8 = 0x00;
const LOCAL_FILE: u8 = 0xfb;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;

/// In an OK or EOF packet's status: another result follows.
const MORE_RESULTS: u16 = 1 << 3;

/// A longer payload goes on in the next packet.
const FULL: usize = 0xff_ff_ff;

/// Bytes as they come, cut into packets. Nothing is lost where a read is given up.
pub(super) struct Packets<R> {
    stream: R,
    bytes: Vec<u8>,
}

/// One payload, and the bytes that carried it: one packet, or several where it is long.
pub(super) struct Packet {
    pub(super) payload: Vec<u8>,
    pub(super) bytes: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Packets<R> {
    pub(super) fn new(stream: R) -> Self {
        let bytes = Vec::new();
        Self { stream, bytes }
    }

    /// The next packet; `None` where the stream ends, in the middle of one too.
    pub(super) async fn next(&mut self) -> Option<Packet> {
        loop {
            if let Some(packet) = Packet::take(&mut self.bytes) {
                return Some(packet);
            }
            match self.stream.read_buf(&mut self.bytes).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return None,
            }
        }
    }
}

impl Packet {
    /// Takes one off the front, once all of it is there.
    fn take(bytes: &mut Vec<u8>) -> Option<Self> {
        let (mut payload, mut at) = (Vec::new(), 0);
        loop {
            let head = bytes.get(at..at + 4)?;
            let length = usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16;
            at += 4;
            payload.extend_from_slice(bytes.get(at..at + length)?);
            at += length;
            if length < FULL {
                let bytes = bytes.drain(..at).collect();
                return Some(Self { payload, bytes });
            }
        }
    }

    /// SQL as text, if it is that.
    pub(super) fn text(&self) -> Option<String> {
        let (&first, text) = self.payload.split_first()?;
        (first == QUERY).then(|| String::from_utf8_lossy(text).into_owned())
    }

    fn first(&self) -> u8 {
        self.payload.first().copied().unwrap_or_default()
    }
}

/// A server's greeting, without the offer of TLS, in which nothing could be read.
pub(super) fn without_tls(mut greeting: Packet) -> Packet {
    // The version of the protocol, the server's name up to a zero, the thread, eight bytes of a scramble, a zero.
    let name = greeting.payload[1..].iter().position(|&byte| byte == 0);
    let flags = 4 + 1 + name.unwrap() + 1 + 4 + 8 + 1;
    let [low, high, ..] = SSL.to_le_bytes();
    greeting.bytes[flags] &= !low;
    greeting.bytes[flags + 1] &= !high;
    greeting
}

/// The flags of the client's response to the greeting.
pub(super) struct Flags(u32);

impl Flags {
    pub(super) fn of(response: &Packet) -> Self {
        Self(u32::from_le_bytes(response.payload[..4].try_into().unwrap()))
    }

    /// Says that an UPDATE is to count the rows that it found, or those that it changed.
    pub(super) fn found_rows(response: &mut Packet, found: bool) {
        let flags = Self::of(response).0;
        let flags = if found {
            flags | FOUND_ROWS
        } else {
            flags & !FOUND_ROWS
        };
        response.bytes[4..8].copy_from_slice(&flags.to_le_bytes());
    }
}

/// How much of the answer to a text has gone by.
pub(super) struct Answer {
    /// Rows end with an OK packet, not an EOF packet, and columns with nothing.
    deprecate_eof: bool,
    next: Next,
}

enum Next {
    /// A result begins.
    Result,
    /// So many packets about columns, then rows.
    Columns(u64),
    Rows,
}

impl Answer {
    pub(super) fn new(flags: &Flags) -> Self {
        Self {
            deprecate_eof: flags.0 & DEPRECATE_EOF != 0,
            next: Next::Result,
        }
    }

    /// Takes the next packet of it: whether that was the last.
    pub(super) fn is_over_with(&mut self, packet: &Packet) -> bool {
        match self.next {
            Next::Result => match packet.first() {
                ERROR => return true,
                OK => return status(&packet.payload) & MORE_RESULTS == 0,
                LOCAL_FILE => panic!("the server asks for a file"),
                _ => {
                    let columns = number(&packet.payload).0;
                    self.next = Next::Columns(columns + u64::from(!self.deprecate_eof));
                }
            },
            Next::Columns(left @ 2..) => self.next = Next::Columns(left - 1),
            Next::Columns(_) => self.next = Next::Rows,
            Next::Rows => match packet.first() {
                ERROR => return true,
                // A row may begin with the same byte: then its first field has 16 MiB.
                END if packet.payload.len() < FULL => {
                    self.next = Next::Result;
                    let status = if self.deprecate_eof {
                        status(&packet.payload)
                    } else {
                        u16::from_le_bytes(packet.payload[3..5].try_into().unwrap())
                    };
                    return status & MORE_RESULTS == 0;
                }
                _ => {}
            },
        }
        false
    }
}

/// Of an OK packet: it follows two numbers.
fn status(payload: &[u8]) -> u16 {
    let rest = &payload[1..];
    let rest = &rest[number(rest).1..];
    let rest = &rest[number(rest).1..];
    u16::from_le_bytes(rest[..2].try_into().unwrap())
}

/// A number of 1, 2, 3 or 8 bytes, and how many bytes that took.
fn number(bytes: &[u8]) -> (u64, usize) {
    let wide = |length: usize| {
        let mut number = [0; 8];
        number[..length].copy_from_slice(&bytes[1..=length]);
        (u64::from_le_bytes(number), 1 + length)
    };
    match bytes[0] {
        0xfc => wide(2),
        0xfd => wide(3),
        0xfe => wide(8),
        small => (small.into(), 1),
    }
}
