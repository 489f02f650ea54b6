//! The status table: which refusal or failure is answered by which status and `code`.
//!
//! A [`Problem`] is RFC 9457 `application/problem+json`. `type` is always `about:blank`, so `title` is the status'
//! own phrase and clients branch on `code`. The body of a stored refusal is a function of the refusal alone: a
//! replay is the same byte for byte.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::{Serialize, Serializer};

use crate::command::{LedgerError, Refusal};

/// Details quote what the client sent; this bounds the echo, in characters.
const MAX_DETAIL_CHARS: usize = 400;
/// The longest field name that is echoed, in characters.
const MAX_FIELD_CHARS: usize = 64;

/// Every `code` of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    InvalidRequest,
    Unauthorized,
    /// The caller is known, and may not do this.
    Forbidden,
    NotFound,
    AccountNotFound,
    MethodNotAllowed,
    NotAcceptable,
    RequestTimeout,
    AccountExists,
    AccountFrozen,
    AccountClosed,
    RequestInProgress,
    BodyTooLarge,
    UnsupportedMediaType,
    InsufficientFunds,
    RequestIdReused,
    BalanceLimit,
    CurrencyMismatch,
    AccountNotEmpty,
    /// A sibling of an atomic batch was refused.
    BatchAborted,
    HoldNotFound,
    HoldNotOpen,
    HoldExceeded,
    NotFoundToReverse,
    AlreadyReversed,
    NotReversible,
    Abandoned,
    /// One account's lane is full: that account's affair.
    LaneOverloaded,
    /// The whole store is full.
    StoreOverloaded,
    /// Provably nothing happened.
    Unavailable,
    /// Only sending the same id again can tell.
    OutcomeUnknown,
}

impl Code {
    /// Every code, for the API's description.
    pub const ALL: [Self; 31] = [
        Self::InvalidRequest,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::AccountNotFound,
        Self::MethodNotAllowed,
        Self::NotAcceptable,
        Self::RequestTimeout,
        Self::AccountExists,
        Self::AccountFrozen,
        Self::AccountClosed,
        Self::RequestInProgress,
        Self::BodyTooLarge,
        Self::UnsupportedMediaType,
        Self::InsufficientFunds,
        Self::RequestIdReused,
        Self::BalanceLimit,
        Self::CurrencyMismatch,
        Self::AccountNotEmpty,
        Self::BatchAborted,
        Self::HoldNotFound,
        Self::HoldNotOpen,
        Self::HoldExceeded,
        Self::NotFoundToReverse,
        Self::AlreadyReversed,
        Self::NotReversible,
        Self::Abandoned,
        Self::LaneOverloaded,
        Self::StoreOverloaded,
        Self::Unavailable,
        Self::OutcomeUnknown,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::AccountNotFound => "account_not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::NotAcceptable => "not_acceptable",
            Self::RequestTimeout => "request_timeout",
            Self::AccountExists => "account_exists",
            Self::AccountFrozen => "account_frozen",
            Self::AccountClosed => "account_closed",
            Self::RequestInProgress => "request_in_progress",
            Self::BodyTooLarge => "body_too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::InsufficientFunds => "insufficient_funds",
            Self::RequestIdReused => "request_id_reused",
            Self::BalanceLimit => "balance_limit",
            Self::CurrencyMismatch => "currency_mismatch",
            Self::AccountNotEmpty => "account_not_empty",
            Self::BatchAborted => "batch_aborted",
            Self::HoldNotFound => "hold_not_found",
            Self::HoldNotOpen => "hold_not_open",
            Self::HoldExceeded => "hold_exceeded",
            Self::NotFoundToReverse => "not_found_to_reverse",
            Self::AlreadyReversed => "already_reversed",
            Self::NotReversible => "not_reversible",
            Self::Abandoned => "abandoned",
            Self::LaneOverloaded | Self::StoreOverloaded => "overloaded",
            Self::Unavailable => "unavailable",
            Self::OutcomeUnknown => "outcome_unknown",
        }
    }

    /// The status that carries it.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound | Self::AccountNotFound | Self::HoldNotFound | Self::NotFoundToReverse => {
                StatusCode::NOT_FOUND
            }
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::AccountExists
            | Self::AccountFrozen
            | Self::AccountClosed
            | Self::AccountNotEmpty
            | Self::BatchAborted
            | Self::RequestInProgress => StatusCode::CONFLICT,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::InsufficientFunds
            | Self::RequestIdReused
            | Self::BalanceLimit
            | Self::CurrencyMismatch
            | Self::HoldNotOpen
            | Self::HoldExceeded
            | Self::AlreadyReversed
            | Self::NotReversible
            | Self::Abandoned => StatusCode::UNPROCESSABLE_ENTITY,
            Self::LaneOverloaded => StatusCode::TOO_MANY_REQUESTS,
            Self::StoreOverloaded | Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::OutcomeUnknown => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// A header that the status calls for.
    fn header(self) -> Option<(http::HeaderName, HeaderValue)> {
        match self.status() {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Some((RETRY_AFTER, HeaderValue::from_static("1")))
            }
            StatusCode::UNAUTHORIZED => Some((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            _ => None,
        }
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// An answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    code: Code,
    detail: String,
    field: Option<String>,
}

/// A problem as it is written; the order of the fields is part of what a replay repeats.
#[derive(Serialize)]
struct Body<'a> {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    code: Code,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
}

impl Problem {
    /// A problem about the request as a whole.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: clip(detail.into(), MAX_DETAIL_CHARS),
            field: None,
        }
    }

    /// Names the field, parameter or path part that is to blame.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(clip(field.into(), MAX_FIELD_CHARS));
        self
    }

    /// 400 `invalid_request` for one field; `rule` completes a sentence that begins with the field's name.
    #[must_use]
    pub fn invalid(field: &str, rule: impl std::fmt::Display) -> Self {
        let field = clip(field.to_owned(), MAX_FIELD_CHARS);
        Self::new(Code::InvalidRequest, format!("{field} {rule}")).at(field)
    }

    /// What to branch on.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }
}

fn clip(mut text: String, chars: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(chars) {
        text.truncate(end);
        text.push('…');
    }
    text
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let status = self.code.status();
        Body {
            r#type: "about:blank",
            title: status.canonical_reason().unwrap_or_default(),
            status: status.as_u16(),
            code: self.code,
            detail: &self.detail,
            field: self.field.as_deref(),
        }
        .serialize(serializer)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = Response::new(body.into());
        *response.status_mut() = self.code.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some((name, value)) = self.code.header() {
            headers.insert(name, value);
        }
        response
    }
}

impl From<&Refusal> for Problem {
    fn from(refusal: &Refusal) -> Self {
        let (code, field) = match refusal {
            Refusal::InsufficientFunds { .. } => (Code::InsufficientFunds, Some("amount")),
            Refusal::AccountFrozen { .. } => (Code::AccountFrozen, None),
            Refusal::AccountClosed { .. } => (Code::AccountClosed, None),
            Refusal::BalanceLimit { .. } => (Code::BalanceLimit, Some("amount")),
            Refusal::CurrencyMismatch { .. } => (Code::CurrencyMismatch, Some("to")),
            Refusal::AccountNotEmpty { .. } => (Code::AccountNotEmpty, Some("status")),
            Refusal::HoldNotOpen { .. } => (Code::HoldNotOpen, Some("hold_id")),
            Refusal::HoldExceeded { .. } => (Code::HoldExceeded, Some("amount")),
            Refusal::AlreadyReversed { .. } => (Code::AlreadyReversed, Some("reverses")),
            Refusal::NotReversible { .. } => (Code::NotReversible, Some("reverses")),
            Refusal::Abandoned => (Code::Abandoned, None),
        };
        let problem = Self::new(code, refusal.to_string());
        match field {
            Some(field) => problem.at(field),
            None => problem,
        }
    }
}

impl From<LedgerError> for Problem {
    fn from(error: LedgerError) -> Self {
        let (code, field) = match &error {
            LedgerError::Invalid { field, .. } => (Code::InvalidRequest, Some(*field)),
            LedgerError::AccountNotFound { field, .. } => (Code::AccountNotFound, Some(*field)),
            LedgerError::HoldNotFound { .. } => (Code::HoldNotFound, Some("hold_id")),
            LedgerError::NothingToReverse { .. } => (Code::NotFoundToReverse, Some("reverses")),
            LedgerError::AccountExists { field, .. } => (Code::AccountExists, Some(*field)),
            LedgerError::RequestReused { field, .. } => (Code::RequestIdReused, Some(*field)),
            LedgerError::InProgress { .. } => (Code::RequestInProgress, None),
            LedgerError::LaneFull { .. } => (Code::LaneOverloaded, None),
            LedgerError::StoreFull => (Code::StoreOverloaded, None),
            LedgerError::BatchAborted { .. } => (Code::BatchAborted, None),
            LedgerError::Unavailable { .. } => (Code::Unavailable, None),
            LedgerError::OutcomeUnknown { .. } => {
                let detail =
                    format!("{error}; send the same request_id again: it is answered by what became of it");
                return Self::new(Code::OutcomeUnknown, detail);
            }
        };
        let problem = Self::new(code, error.to_string());
        match field {
            Some(field) => problem.at(field),
            None => problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{AccountId, RequestId};
    use crate::money::Currency;

    #[test]
    fn a_problem_carries_its_status_and_code_and_leaves_out_an_absent_field() {
        let problem = Problem::new(Code::AccountClosed, "alice is closed");
        assert_eq!(
            serde_json::to_string(&problem).unwrap(),
            r#"{"type":"about:blank","title":"Conflict","status":409,"code":"account_closed","detail":"alice is closed"}"#
        );
    }

    #[test]
    fn a_problem_about_a_field_names_it_in_the_sentence_and_on_its_own() {
        let problem = Problem::invalid("amount", "must be given");
        let json = serde_json::to_string(&problem).unwrap();
        assert!(
            json.ends_with(r#""detail":"amount must be given","field":"amount"}"#),
            "{json}"
        );
    }

    #[test]
    fn what_a_client_sent_is_echoed_only_in_part() {
        let problem = Problem::invalid(&"é".repeat(10_000), "x".repeat(10_000));
        assert_eq!(
            problem.field.as_ref().unwrap().chars().count(),
            MAX_FIELD_CHARS + 1
        );
        assert_eq!(problem.detail.chars().count(), MAX_DETAIL_CHARS + 1);
    }

    fn answered(problem: &Problem) -> (u16, &'static str, Option<&str>) {
        let code = problem.code();
        (code.status().as_u16(), code.as_str(), problem.field.as_deref())
    }

    #[test]
    fn every_failure_of_the_ledger_has_its_status_code_and_field() {
        let account = AccountId::new("alice").unwrap();
        let request = RequestId::new("r").unwrap();
        let reason = String::new;
        let rows = [
            (
                LedgerError::Invalid {
                    field: "memo",
                    reason: reason(),
                },
                (400, "invalid_request", Some("memo")),
            ),
            (
                LedgerError::AccountNotFound {
                    account: account.clone(),
                    field: "to",
                },
                (404, "account_not_found", Some("to")),
            ),
            (
                LedgerError::AccountExists {
                    account: account.clone(),
                    field: "floor",
                },
                (409, "account_exists", Some("floor")),
            ),
            (
                LedgerError::RequestReused {
                    account: account.clone(),
                    request: request.clone(),
                    field: "amount",
                },
                (422, "request_id_reused", Some("amount")),
            ),
            (
                LedgerError::InProgress {
                    account: account.clone(),
                    request,
                },
                (409, "request_in_progress", None),
            ),
            (LedgerError::LaneFull { account }, (429, "overloaded", None)),
            (LedgerError::StoreFull, (503, "overloaded", None)),
            (
                LedgerError::Unavailable { reason: reason() },
                (503, "unavailable", None),
            ),
            (
                LedgerError::OutcomeUnknown { reason: reason() },
                (504, "outcome_unknown", None),
            ),
        ];
        for (error, expected) in rows {
            assert_eq!(answered(&Problem::from(error)), expected);
        }
    }

    #[test]
    fn every_refusal_has_its_status_code_and_field() {
        let account = AccountId::new("alice").unwrap();
        let (from, to) = (Currency::new("EUR").unwrap(), Currency::new("JPY").unwrap());
        let short = Refusal::InsufficientFunds {
            account: account.clone(),
            asked: 2,
            available: 1,
        };
        let rows = [
            (short, (422, "insufficient_funds", Some("amount"))),
            (
                Refusal::AccountFrozen {
                    account: account.clone(),
                },
                (409, "account_frozen", None),
            ),
            (
                Refusal::AccountClosed {
                    account: account.clone(),
                },
                (409, "account_closed", None),
            ),
            (
                Refusal::BalanceLimit { account, asked: 2 },
                (422, "balance_limit", Some("amount")),
            ),
            (
                Refusal::CurrencyMismatch { from, to },
                (422, "currency_mismatch", Some("to")),
            ),
            (Refusal::Abandoned, (422, "abandoned", None)),
        ];
        for (refusal, expected) in rows {
            assert_eq!(answered(&Problem::from(&refusal)), expected);
        }
    }

    #[test]
    fn an_unknown_outcome_says_to_send_the_same_id_again() {
        let problem = Problem::from(LedgerError::OutcomeUnknown {
            reason: "the store stopped".to_owned(),
        });
        assert_eq!(problem.code().status(), StatusCode::GATEWAY_TIMEOUT);
        assert!(problem.detail.contains("send the same request_id again"));
    }

    #[test]
    fn what_may_be_retried_says_when() {
        for code in Code::ALL {
            let response = Problem::new(code, "").into_response();
            let retry = matches!(code.status().as_u16(), 429 | 503);
            assert_eq!(response.headers().contains_key(RETRY_AFTER), retry, "{code:?}");
        }
    }
}
