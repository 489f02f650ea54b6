//! A statement as a stream: NDJSON or CSV, a page at a time, as fast as the client reads.
//!
//! It ends at the entries that were there when it was asked for; the `Link` header (`rel="next"`, RFC 8288) leads to
//! what comes after them. The first page is read before the answer begins, so that what is wrong is a problem with its
//! status. What goes wrong later breaks the answer off without its last chunk: nobody takes a part for the whole. A
//! client that leaves drops the stream, and with it the reading.
//!
//! CSV is RFC 4180 (CRLF, a header row) for spreadsheets, in which a cell that begins with `=`, `+`, `-` or `@` is a
//! formula. Request ids may begin so; such a text, or one that begins with `'`, gets one `'` in front, which a program
//! takes off again.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_TYPE, LINK};
use http::{HeaderName, HeaderValue};
use serde_json::Value;

use super::accept::Form;
use super::cursor;
use super::error::Problem;
use super::view::EntryJson;
use crate::Wallet;
use crate::account::{AccountId, Entry};
use crate::command::LedgerError;
use crate::store::Cursor;
use crate::wallet::Statement;

/// The fields of an entry, in the order of the columns.
const COLUMNS: [&str; 10] = [
    "slot",
    "version",
    "type",
    "request_id",
    "delta",
    "held_delta",
    "balance_after",
    "at",
    "link_kind",
    "link_id",
];

/// Everything after `after`, or at most `limit` entries of it.
pub(super) async fn respond(
    wallet: &Wallet,
    account: &AccountId,
    after: Cursor,
    limit: Option<usize>,
    form: Form,
) -> Result<Response, Problem> {
    let Some(limit) = limit else {
        let mut statement = wallet.statement(account, after).await?;
        let first = statement.next().await?;
        let next = next_link(account, statement.end(), None);
        return Ok(answer(form, next, streamed(statement, first, form)));
    };
    let page = wallet.entries(account, &after, limit).await?;
    let next = next_link(account, &page.next, Some(limit));
    let mut body = head(form);
    body.extend(write(&page.entries, form));
    Ok(answer(form, next, body.into()))
}

fn answer(form: Form, (name, next): (HeaderName, HeaderValue), body: Body) -> Response {
    let content_type = HeaderValue::from_static(form.content_type());
    ([(CONTENT_TYPE, content_type), (name, next)], body).into_response()
}

/// Where to go on.
fn next_link(account: &AccountId, end: &Cursor, limit: Option<usize>) -> (HeaderName, HeaderValue) {
    let after = cursor::encode(account, end);
    let limit = limit.map_or_else(String::new, |limit| format!("&limit={limit}"));
    let link = format!("</v1/accounts/{account}/entries?after={after}{limit}>; rel=\"next\"");
    // An account id, hex and digits: all of them may stand in a header.
    let link = HeaderValue::try_from(link).unwrap_or(HeaderValue::from_static(""));
    (LINK, link)
}

/// What is still to be sent.
struct Left {
    statement: Statement,
    /// The page that was read before the answer began.
    first: Option<Vec<Entry>>,
    head: Vec<u8>,
    form: Form,
}

fn streamed(statement: Statement, first: Option<Vec<Entry>>, form: Form) -> Body {
    let left = Left {
        statement,
        first,
        head: head(form),
        form,
    };
    Body::from_stream(stream::try_unfold(left, |mut left| async move {
        let page = match left.first.take() {
            Some(page) => Some(page),
            None => left.statement.next().await.inspect_err(broken_off)?,
        };
        let mut chunk = std::mem::take(&mut left.head);
        chunk.extend(write(&page.unwrap_or_default(), left.form));
        Ok::<_, LedgerError>((!chunk.is_empty()).then(|| (Bytes::from(chunk), left)))
    }))
}

fn broken_off(error: &LedgerError) {
    tracing::warn!(%error, "a statement was broken off");
}

fn head(form: Form) -> Vec<u8> {
    match form {
        Form::Json | Form::Lines => Vec::new(),
        Form::Csv => format!("{}\r\n", COLUMNS.join(",")).into_bytes(),
    }
}

fn write(entries: &[Entry], form: Form) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries.iter().map(EntryJson::from) {
        match form {
            Form::Json | Form::Lines => {
                // Into memory, from plain structs of numbers and strings: nothing in them can fail to be written.
                out.extend(serde_json::to_vec(&entry).unwrap_or_default());
                out.push(b'\n');
            }
            Form::Csv => {
                let entry = serde_json::to_value(&entry).unwrap_or_default();
                let cells = COLUMNS.map(|column| cell(field(&entry, column)));
                out.extend(cells.join(",").into_bytes());
                out.extend(b"\r\n");
            }
        }
    }
    out
}

fn field<'a>(entry: &'a Value, column: &str) -> Option<&'a Value> {
    match column.split_once('_') {
        Some(("link", part)) => entry.get("link")?.get(part),
        // Left out of the JSON where it is 0.
        _ if column == "held_delta" => Some(entry.get(column).unwrap_or(&ZERO)),
        _ => entry.get(column),
    }
}

static ZERO: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| Value::from(0));

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => quoted(text),
        Some(number) => number.to_string(),
    }
}

/// A text as a cell that no spreadsheet calculates.
fn quoted(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\'']) {
        "'"
    } else {
        ""
    };
    if guard.is_empty() && !text.contains([',', '"', ';']) {
        return text.to_owned();
    }
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{EntryKind, Link, RequestId, SlotIndex, Timestamp};

    fn entry(request: Option<&str>, link: Option<Link>) -> Entry {
        Entry {
            account: AccountId::new("alice").unwrap(),
            slot: SlotIndex::PRIMARY,
            version: 7,
            kind: EntryKind::TransferOut,
            request: request.map(|id| RequestId::new(id).unwrap()),
            delta: -30,
            held_delta: 0,
            balance_after: 70,
            at: Timestamp(0),
            link,
        }
    }

    fn csv(entry: Entry) -> String {
        String::from_utf8(write(&[entry], Form::Csv)).unwrap()
    }

    #[test]
    fn a_row_has_a_cell_for_every_column_and_ends_in_crlf() {
        let bob = Link::Transfer(AccountId::new("bob").unwrap());
        assert_eq!(
            csv(entry(Some("t1"), Some(bob))),
            "0,7,transfer_out,t1,-30,0,70,1970-01-01T00:00:00.000000Z,transfer,bob\r\n"
        );
        assert_eq!(
            csv(entry(None, None)),
            "0,7,transfer_out,,-30,0,70,1970-01-01T00:00:00.000000Z,,\r\n"
        );
    }

    #[test]
    fn a_text_that_a_spreadsheet_would_calculate_is_guarded_and_can_be_told_from_one_that_was_guarded_before()
    {
        for (text, cell) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("=1+1", "\"'=1+1\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@x", "\"'@x\""),
            ("'=1", "\"''=1\""),
            ("a=1", "a=1"),
        ] {
            assert_eq!(quoted(text), cell);
        }
    }
}
