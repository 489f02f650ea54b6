//! `?at=` and `?cursor=` of an account: a moment of its past, or neither.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::cursor;
use super::error::Problem;
use super::extract::parameters;
use crate::account::{AccountId, Timestamp};
use crate::store::Moment;

/// `?at=` or `?cursor=`.
pub(super) enum MomentQuery {
    Now,
    At(Timestamp),
    /// Not decoded yet: what it means depends on the account.
    Cursor(String),
}

impl MomentQuery {
    /// The moment of this account; `None` is now.
    ///
    /// # Errors
    /// 400 for a cursor that is not one of this account.
    pub(super) fn of(self, account: &AccountId) -> Result<Option<Moment>, Problem> {
        match self {
            Self::Now => Ok(None),
            Self::At(at) => Ok(Some(Moment::Time(at))),
            Self::Cursor(text) => {
                let cursor = cursor::decode(account, &text);
                let cursor = cursor.ok_or_else(|| {
                    Problem::invalid("cursor", "must be the next of a page of this account's entries")
                })?;
                Ok(Some(Moment::Cursor(cursor)))
            }
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for MomentQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut query = Self::Now;
        for (name, value) in parameters(parts)? {
            let asked = match name.as_str() {
                "at" => Self::At(time(&value).ok_or_else(|| {
                    let rule = format!("must be a time such as 2026-01-31T12:00:00.000000Z, not {value:?}");
                    Problem::invalid("at", rule)
                })?),
                "cursor" => Self::Cursor(value),
                other => {
                    let rule = "is no parameter of this route: it takes at or cursor";
                    return Err(Problem::invalid(other, rule));
                }
            };
            if !matches!(query, Self::Now) {
                return Err(Problem::invalid(&name, "must be the only one of at and cursor"));
            }
            query = asked;
        }
        Ok(query)
    }
}

/// RFC 3339 in UTC (`Z`), to the microsecond at most.
fn time(text: &str) -> Option<Timestamp> {
    let (second, fraction) = text
        .strip_suffix('Z')?
        .split_at_checked("0000-00-00T00:00:00".len())?;
    let mut shape = second.bytes().zip("0000-00-00T00:00:00".bytes());
    let is_second = shape.all(|(given, shape)| match shape {
        b'0' => given.is_ascii_digit(),
        separator => given == separator,
    });
    let is_fraction = fraction.is_empty()
        || fraction.strip_prefix('.').is_some_and(|decimals| {
            (1..=6).contains(&decimals.len()) && decimals.bytes().all(|byte| byte.is_ascii_digit())
        });
    if !is_second || !is_fraction {
        return None;
    }
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp(time.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_utc_to_the_microsecond_at_most() {
        for (text, micros) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.5Z", 500_000),
            ("1970-01-01T00:00:01.000001Z", 1_000_001),
            ("1969-12-31T23:59:59.999999Z", -1),
        ] {
            assert_eq!(time(text), Some(Timestamp(micros)), "{text}");
        }
        for bad in [
            "",
            "0",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00.0000001Z",
            "1970-01-01T00:00:00,5Z",
            "1970-01-01T00:00:00+00:00",
            "1970-01-01t00:00:00z",
            "1970-01-01 00:00:00Z",
            "1970-02-30T00:00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:00é00Z",
            "+1970-01-01T00:00:00Z",
        ] {
            assert_eq!(time(bad), None, "{bad}");
        }
    }
}
