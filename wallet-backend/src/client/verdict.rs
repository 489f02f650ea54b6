//! What one attempt tells: the answer, that nothing happened, or that nobody knows.
//!
//! | what came back | verdict |
//! |---|---|
//! | 2xx; a refusal that the wallet keeps | the answer |
//! | no connection; 408, 429, 503, 502 `upstream_unreachable` | nothing happened |
//! | 409 `request_in_progress`; any other 5xx; a connection that broke; a time-out | perhaps it happened |
//! | any other 4xx | rejected: sent again it would be again |
//! | anything else | no wallet answered |

use std::time::Duration;

use bytes::Bytes;

use super::error::{Problem, Trouble};

/// What became of one attempt.
#[derive(Clone, Debug)]
pub(super) enum Attempt {
    /// A whole answer.
    Answered(Reply),
    /// Not a byte of it was sent.
    NotSent(String),
    /// Some of it may have arrived.
    Broken(String),
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) replayed: bool,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Bytes,
}

#[derive(Debug)]
pub(super) enum Verdict {
    Answered(Reply),
    Rejected(Problem),
    NotDone(Trouble, Option<Duration>),
    Perhaps(Trouble, Option<Duration>),
    /// What it was that answered.
    Foreign(String),
}

/// Refusals for a reason of business: the wallet keeps them with the request id, and repeats them for ever.
const KEPT: [&str; 11] = [
    "insufficient_funds",
    "account_frozen",
    "account_closed",
    "account_not_empty",
    "balance_limit",
    "currency_mismatch",
    "hold_not_open",
    "hold_exceeded",
    "already_reversed",
    "not_reversible",
    "abandoned",
];

impl Verdict {
    pub(super) fn of(attempt: Attempt) -> Self {
        let reply = match attempt {
            Attempt::Answered(reply) => reply,
            Attempt::NotSent(what) => return Self::NotDone(Trouble::Connection(what), None),
            Attempt::Broken(what) => return Self::Perhaps(Trouble::Connection(what), None),
        };
        let after = reply.retry_after;
        match reply.status {
            200..=299 => Self::Answered(reply),
            400..=599 => match Meaning::of(Problem::read(reply.status, &reply.body)) {
                Meaning::Kept(_) => Self::Answered(reply),
                Meaning::Rejected(problem) => Self::Rejected(problem),
                Meaning::NotDone(problem) => Self::NotDone(Trouble::Problem(problem), after),
                Meaning::Perhaps(problem) => Self::Perhaps(Trouble::Problem(problem), after),
            },
            status => Self::Foreign(format!("status {status}")),
        }
    }
}

/// What a problem says about what was asked.
#[derive(Debug)]
pub(super) enum Meaning {
    /// It is refused for ever.
    Kept(Problem),
    Rejected(Problem),
    NotDone(Problem),
    Perhaps(Problem),
}

impl Meaning {
    pub(super) fn of(problem: Problem) -> Self {
        match (problem.status, problem.code.as_str()) {
            (408 | 429 | 503, _) | (502, "upstream_unreachable") => Self::NotDone(problem),
            (500..=599, _) | (_, "request_in_progress") => Self::Perhaps(problem),
            (_, code) if KEPT.contains(&code) => Self::Kept(problem),
            _ => Self::Rejected(problem),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(status: u16, code: &str) -> &'static str {
        let body = format!(r#"{{"type":"about:blank","status":{status},"code":"{code}","detail":"d"}}"#);
        let reply = Reply {
            status,
            replayed: false,
            retry_after: None,
            body: body.into(),
        };
        match Verdict::of(Attempt::Answered(reply)) {
            Verdict::Answered(_) => "answer",
            Verdict::Rejected(_) => "rejected",
            Verdict::NotDone(..) => "not done",
            Verdict::Perhaps(..) => "perhaps",
            Verdict::Foreign(_) => "foreign",
        }
    }

    #[test]
    fn every_answer_has_its_verdict() {
        for (status, code, expected) in [
            (200, "", "answer"),
            (201, "", "answer"),
            (307, "", "foreign"),
            (400, "invalid_request", "rejected"),
            (401, "unauthorized", "rejected"),
            (403, "forbidden", "rejected"),
            (404, "account_not_found", "rejected"),
            (408, "request_timeout", "not done"),
            (409, "request_in_progress", "perhaps"),
            (409, "account_exists", "rejected"),
            (409, "account_frozen", "answer"),
            (413, "body_too_large", "rejected"),
            (422, "insufficient_funds", "answer"),
            (422, "request_id_reused", "rejected"),
            (422, "something_of_tomorrow", "rejected"),
            (429, "param_flow", "not done"),
            (429, "overloaded", "not done"),
            (500, "", "perhaps"),
            (502, "upstream_unreachable", "not done"),
            (502, "upstream_reset", "perhaps"),
            (503, "degrade", "not done"),
            (503, "unavailable", "not done"),
            (504, "outcome_unknown", "perhaps"),
            (504, "upstream_timeout", "perhaps"),
        ] {
            assert_eq!(verdict(status, code), expected, "{status} {code}");
        }
    }

    /// What the service keeps with a request id, it answers as a refusal.
    #[cfg(feature = "http")]
    #[test]
    fn every_refusal_of_the_service_is_taken_for_an_answer() {
        use crate::account::{AccountId, HoldState, RequestId};
        use crate::command::Refusal;
        use crate::http::error::Problem;
        use crate::money::Currency;

        let account = || AccountId::new("a").unwrap();
        let (request, eur) = (RequestId::new("r").unwrap(), Currency::new("EUR").unwrap());
        let (hold, reverses, by) = (request.clone(), request.clone(), request);
        let (asked, available, balance, rest) = (1, 0, 1, 0);
        let refusals = [
            Refusal::InsufficientFunds {
                account: account(),
                asked,
                available,
            },
            Refusal::AccountFrozen { account: account() },
            Refusal::AccountClosed { account: account() },
            Refusal::BalanceLimit {
                account: account(),
                asked,
            },
            Refusal::CurrencyMismatch { from: eur, to: eur },
            Refusal::AccountNotEmpty {
                account: account(),
                balance,
            },
            Refusal::HoldNotOpen {
                hold: hold.clone(),
                state: HoldState::Released,
            },
            Refusal::HoldExceeded { hold, asked, rest },
            Refusal::AlreadyReversed {
                reverses: reverses.clone(),
                by,
            },
            Refusal::NotReversible { reverses },
            Refusal::Abandoned,
        ];
        let mut codes = refusals.map(|refusal| Problem::from(&refusal).code().as_str());
        let mut kept = KEPT;
        codes.sort_unstable();
        kept.sort_unstable();
        assert_eq!(codes, kept);
    }

    #[test]
    fn a_body_that_is_no_problem_does_not_stand_in_the_way_of_a_verdict() {
        let reply = Reply {
            status: 502,
            replayed: false,
            retry_after: None,
            body: "<html>bad gateway</html>".into(),
        };
        let Verdict::Perhaps(trouble, None) = Verdict::of(Attempt::Answered(reply)) else {
            panic!("another's 502 says nothing");
        };
        assert!(trouble.to_string().contains("502"), "{trouble}");
    }
}
