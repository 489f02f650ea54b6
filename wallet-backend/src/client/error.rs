//! How a call ends that is not answered.

use serde::Deserialize;

/// The longest excerpt of an answer that is no problem, in characters.
const MAX_EXCERPT: usize = 200;

/// A call without an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The call cannot be made so: what is missing or too much is in the message.
    #[error("{field} {reason}")]
    Invalid { field: &'static str, reason: String },
    /// Nothing was done, and the same again would be answered so again: the request is wrong, the caller is not
    /// allowed to, or what it names is not there.
    #[error("the wallet rejects this: {0}")]
    Rejected(Problem),
    /// Nothing was done: every attempt was turned away until the deadline.
    #[error("nothing was done in {attempts} attempts; the last one: {last}")]
    NotDone { attempts: u32, last: Trouble },
    /// It may have been done. Only the same request id again can tell, or [`Client::abandon`](super::Client::abandon).
    /// A read that ends so read nothing.
    #[error("after {attempts} attempts it is unknown whether this was done; the last one: {last}")]
    Unknown { attempts: u32, last: Trouble },
    /// What answered does not speak as the wallet does. Whether anything was done is unknown.
    #[error("this is no answer of a wallet: {what}")]
    Unreadable { what: String },
}

/// Why an attempt led to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    #[error("{0}")]
    Connection(String),
    #[error("{0}")]
    Problem(Problem),
}

/// An answer that is not a success (RFC 9457): branch on `code`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{status} {code}: {detail}")]
pub struct Problem {
    pub status: u16,
    /// Empty where what answered gave none.
    pub code: String,
    pub detail: String,
    /// The field, parameter or path part that is to blame.
    pub field: Option<String>,
}

#[derive(Deserialize)]
struct ProblemJson {
    #[serde(default)]
    code: String,
    #[serde(default)]
    detail: String,
    field: Option<String>,
}

impl Problem {
    /// What an answer says; where it is no problem, its beginning.
    pub(super) fn read(status: u16, body: &[u8]) -> Self {
        match serde_json::from_slice(body) {
            Ok(ProblemJson { code, detail, field }) => Self {
                status,
                code,
                detail,
                field,
            },
            Err(_) => Self {
                status,
                code: String::new(),
                detail: excerpt(body),
                field: None,
            },
        }
    }
}

/// The beginning of something.
pub(super) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let cut: String = text.chars().take(MAX_EXCERPT).collect();
    format!("{cut:?}")
}
