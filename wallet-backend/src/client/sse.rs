//! Server-sent events, as far as the wallet sends them (WHATWG HTML, 9.2): an `id`, a `data` on one line, comments.

/// The longest line that is taken in, in bytes.
const MAX_LINE: usize = 64 * 1024;

/// An event as it was sent. What comes under a name of its own is no entry, and is passed over. One without data only moves the position on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    pub(super) data: Option<String>,
}

/// Takes pieces of a stream, cut anywhere.
#[derive(Debug, Default)]
pub(super) struct Parser {
    line: Vec<u8>,
    message: Message,
    /// The message is of an event with a name.
    named: bool,
}

impl Parser {
    /// The messages that end in this piece.
    ///
    /// # Errors
    /// What is no such stream.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<Vec<Message>, String> {
        let mut messages = Vec::new();
        for byte in piece {
            if *byte != b'\n' {
                if self.line.len() >= MAX_LINE {
                    return Err(format!("a line has over {MAX_LINE} bytes"));
                }
                self.line.push(*byte);
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let line = String::from_utf8(line).map_err(|error| error.to_string())?;
            messages.extend(self.line(line.trim_end_matches('\r')));
        }
        Ok(messages)
    }

    fn line(&mut self, line: &str) -> Option<Message> {
        if line.is_empty() {
            let mut message = std::mem::take(&mut self.message);
            if std::mem::take(&mut self.named) {
                message.data = None;
            }
            return (message != Message::default()).then_some(message);
        }
        // What begins with a colon is a comment, and a field that is not known is passed over.
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match name {
            "id" => self.message.id = Some(value),
            "event" => self.named = !value.is_empty(),
            "data" => self.message.data = Some(value),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, data: Option<&str>) -> Message {
        Message {
            id: Some(id.to_owned()),
            data: data.map(str::to_owned),
        }
    }

    const STREAM: &str = ": keep-alive\n\nid: 1\ndata: {\"a\": 1}\n\nretry: 5\n\n: keep-alive\nid: 2\n\nid:3\r\ndata:x\r\n\r\n";

    #[test]
    fn a_stream_is_the_same_wherever_it_is_cut() {
        let expected = [
            message("1", Some("{\"a\": 1}")),
            message("2", None),
            message("3", Some("x")),
        ];
        for at in 0..STREAM.len() {
            let mut parser = Parser::default();
            let mut messages = parser.push(&STREAM.as_bytes()[..at]).unwrap();
            messages.extend(parser.push(&STREAM.as_bytes()[at..]).unwrap());
            assert_eq!(messages, expected, "cut at {at}");
        }
    }

    #[test]
    fn an_event_with_a_name_is_no_entry_and_moves_on_only_with_an_id() {
        let mut parser = Parser::default();
        let sent = b"event: reconciliation_difference\ndata: {}\n\nevent: other\nid: 1\ndata: x\n\nid: 2\ndata: y\n\n";
        let expected = [message("1", None), message("2", Some("y"))];
        assert_eq!(parser.push(sent).unwrap(), expected);
    }

    #[test]
    fn a_message_that_was_cut_off_is_none() {
        let mut parser = Parser::default();
        assert_eq!(parser.push(b"id: 1\ndata: x\n").unwrap(), []);
    }

    #[test]
    fn a_line_without_end_and_bytes_that_are_no_text_are_refused() {
        assert!(Parser::default().push(&vec![b'x'; MAX_LINE + 1]).is_err());
        assert!(Parser::default().push(b"data: \xff\n").is_err());
    }
}
