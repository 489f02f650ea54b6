//! SQL as text: several statements that make one round trip.
//!
//! A text has no parameters that could be bound, so this is the one module that builds it. Apart from the words of the
//! statements themselves, which are constants, a text has whole numbers and `0x` literals, and nothing else can get in.

use std::fmt::Write as _;

use futures_util::TryStreamExt as _;
use sqlx::mysql::MySqlRow;
use sqlx::{AssertSqlSafe, Either, Executor as _, MySqlConnection};

mod locks;
mod writes;

pub(super) use locks::{Lock, SlotsOf};
pub(super) use writes::{HoldRow, PendingRow, SlotRow, Writes, writing};

/// No text is longer than about this, whatever is in it: far below every server's `max_allowed_packet`.
const MOST: usize = 1 << 20;

/// What a statement's rows are, to whoever reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    Nothing,
    Accounts,
    /// Under lock.
    Slots,
    /// Slots 0, without a lock.
    Peeks,
    Now,
    Requests,
    Reversals,
    Holds,
    Pending,
    /// Sums of pending rows.
    Waiting,
}

/// Statements in the making.
#[derive(Debug, Default)]
pub(super) struct Text {
    sql: String,
    reads: Vec<Reads>,
}

/// A value in a text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Number(i128),
    Bytes(&'a [u8]),
    Null,
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Number(number.into())
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}

impl From<u8> for Value<'_> {
    fn from(number: u8) -> Self {
        Self::Number(number.into())
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Bytes(text.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl Text {
    /// Words of a statement.
    fn words(&mut self, words: &'static str) -> &mut Self {
        self.sql.push_str(words);
        self
    }

    fn value<'a>(&mut self, value: impl Into<Value<'a>>) -> &mut Self {
        match value.into() {
            Value::Number(number) => {
                // Writing to a string does not fail.
                let _ = write!(self.sql, "{number}");
            }
            Value::Bytes([]) => self.sql.push_str("''"),
            Value::Bytes(bytes) => {
                self.sql.push_str("0x");
                for byte in bytes {
                    for digit in [byte >> 4, byte & 0xF] {
                        self.sql.push(char::from_digit(digit.into(), 16).unwrap_or('0'));
                    }
                }
            }
            Value::Null => self.sql.push_str("NULL"),
        }
        self
    }

    /// Values with commas between them.
    fn list<'a>(&mut self, values: impl IntoIterator<Item = Value<'a>>) -> &mut Self {
        for (number, value) in values.into_iter().enumerate() {
            if number > 0 {
                self.sql.push(',');
            }
            self.value(value);
        }
        self
    }

    /// Ends a statement.
    fn end(&mut self, reads: Reads) {
        self.sql.push(';');
        self.reads.push(reads);
    }

    /// Begins a transaction, whatever came before it on this connection.
    pub(super) fn begin(&mut self) {
        self.words("ROLLBACK").end(Reads::Nothing);
        self.words("START TRANSACTION").end(Reads::Nothing);
    }

    pub(super) fn roll_back(&mut self) {
        self.words("ROLLBACK").end(Reads::Nothing);
    }

    fn commit(&mut self) {
        self.words("COMMIT").end(Reads::Nothing);
    }

    fn is_full(&self) -> bool {
        self.sql.len() >= MOST
    }

    /// One round trip: the rows of each statement that reads some, in their order.
    ///
    /// # Errors
    /// Of the first statement that fails; those after it are not run.
    pub(super) async fn run(
        self,
        connection: &mut MySqlConnection,
    ) -> Result<Vec<(Reads, Vec<MySqlRow>)>, sqlx::Error> {
        let mut reads = self.reads.into_iter();
        let (mut all, mut rows) = (Vec::new(), Vec::new());
        let mut results = connection.fetch_many(AssertSqlSafe(self.sql));
        while let Some(step) = results.try_next().await? {
            match step {
                Either::Right(row) => rows.push(row),
                Either::Left(_) => match reads.next() {
                    Some(Reads::Nothing) | None => rows.clear(),
                    Some(reads) => all.push((reads, std::mem::take(&mut rows))),
                },
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_hexadecimal_whatever_they_say() {
        let mut text = Text::default();
        text.words("SELECT ");
        text.list(["x'; DROP TABLE account; --".into(), (-3_i64).into(), Value::Null]);
        text.end(Reads::Now);
        let hex = "0x78273b2044524f50205441424c45206163636f756e743b202d2d";
        assert_eq!(text.sql, format!("SELECT {hex},-3,NULL;"));
    }

    #[test]
    fn no_bytes_are_an_empty_string() {
        let mut text = Text::default();
        text.value("").value(Some(7_u64)).value(None::<u8>);
        assert_eq!(text.sql, "''7NULL");
    }
}
