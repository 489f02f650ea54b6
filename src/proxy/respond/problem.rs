//! The status table, and the problem that goes with each code.

use std::borrow::Cow;
use std::time::Duration;

use http::StatusCode;
use serde::Serialize;

use super::title;
use crate::admission::{BlockKind, Blocked};
use crate::proxy::failure::{Failure, Refusal, UpstreamError};
use crate::rules::{ResourceRules, RuleId};
use crate::telemetry::metrics::OwnRefusal;

/// A refusal or failure with everything its answer says.
#[derive(Debug)]
pub(super) struct Problem<'a> {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) retry_after: Option<Duration>,
    detail: Cow<'static, str>,
    resource: Option<&'a str>,
    rule: Option<&'a str>,
    /// The error type of RFC 9209.
    proxy_error: &'static str,
}

/// Field order as documented.
#[derive(Serialize)]
pub(super) struct Wire<'a> {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    code: &'static str,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl<'a> Problem<'a> {
    pub(super) fn of(failure: &'a Failure, resource: Option<&'a ResourceRules>) -> Self {
        let resource = resource.map(|resource| resource.resource.as_str());
        match failure {
            Failure::Refused(refusal) => Self {
                status: status(refusal),
                code: code(refusal),
                retry_after: retry_after(refusal),
                detail: detail(refusal),
                resource,
                rule: refusal.rule().map(RuleId::as_str),
                proxy_error: "http_request_denied",
            },
            Failure::Upstream(error) => Self {
                status: upstream_status(error),
                code: upstream_code(error),
                retry_after: None,
                detail: upstream_detail(error),
                resource,
                rule: None,
                proxy_error: match error {
                    UpstreamError::Unreachable(_) => "connection_refused",
                    UpstreamError::Reset => "connection_terminated",
                    UpstreamError::Timeout => "http_response_timeout",
                    UpstreamError::ClientBody | UpstreamError::ClientLate => "http_request_error",
                },
            },
        }
    }

    /// The problem as JSON says it. `status` is the one that is sent.
    pub(super) fn wire(&self, status: StatusCode) -> Wire<'_> {
        Wire {
            r#type: "about:blank",
            title: title(status),
            status: status.as_u16(),
            code: self.code,
            detail: &self.detail,
            resource: self.resource,
            rule: self.rule,
            retry_after_ms: self.retry_after.map(whole_millis),
        }
    }

    /// The Proxy-Status field: RFC 9209, with the code in `details`.
    pub(super) fn proxy_status(&self) -> String {
        format!("sluice; error={}; details=\"{}\"", self.proxy_error, self.code)
    }
}

/// Rounded up, so that waiting it is enough.
fn whole_millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

impl Refusal {
    fn rule(&self) -> Option<&RuleId> {
        match self {
            Self::Blocked(blocked) => blocked.rule.as_ref(),
            Self::BadRequest(_) | Self::Unmatched | Self::BodyTooLarge { .. } | Self::Draining => None,
        }
    }

    pub(super) fn into_rule(self) -> Option<RuleId> {
        match self {
            Self::Blocked(blocked) => blocked.rule,
            Self::BadRequest(_) | Self::Unmatched | Self::BodyTooLarge { .. } | Self::Draining => None,
        }
    }

    /// Which of the sidecar's own refusals it is, if no rule made it.
    pub(in crate::proxy) const fn own(&self) -> Option<OwnRefusal> {
        match self {
            Self::Blocked(_) => None,
            Self::BadRequest(_) => Some(OwnRefusal::BadRequest),
            Self::Unmatched => Some(OwnRefusal::Unmatched),
            Self::BodyTooLarge { .. } => Some(OwnRefusal::BodyTooLarge),
            Self::Draining => Some(OwnRefusal::Draining),
        }
    }
}

pub(super) fn code(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Blocked(blocked) => blocked.kind.name(),
        Refusal::BadRequest(_) => OwnRefusal::BadRequest.code(),
        Refusal::Unmatched => OwnRefusal::Unmatched.code(),
        Refusal::BodyTooLarge { .. } => OwnRefusal::BodyTooLarge.code(),
        Refusal::Draining => OwnRefusal::Draining.code(),
    }
}

const fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::Blocked(blocked) => match blocked.kind {
            BlockKind::ParamFlow | BlockKind::Flow => StatusCode::TOO_MANY_REQUESTS,
            BlockKind::Isolation | BlockKind::Degrade => StatusCode::SERVICE_UNAVAILABLE,
            BlockKind::MissingParam => StatusCode::BAD_REQUEST,
        },
        Refusal::BadRequest(_) => StatusCode::BAD_REQUEST,
        Refusal::Unmatched => StatusCode::NOT_FOUND,
        Refusal::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Refusal::Draining => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn retry_after(refusal: &Refusal) -> Option<Duration> {
    match refusal {
        Refusal::Blocked(blocked) if !blocked.never => blocked.retry_after,
        // Another replica may take it at once; the shortest the field can say is 1 s.
        Refusal::Draining => Some(Duration::from_secs(1)),
        Refusal::Blocked(_) | Refusal::BadRequest(_) | Refusal::Unmatched | Refusal::BodyTooLarge { .. } => {
            None
        }
    }
}

fn detail(refusal: &Refusal) -> Cow<'static, str> {
    match refusal {
        Refusal::Blocked(blocked) => blocked_detail(blocked).into(),
        Refusal::BadRequest(reason) => reason.clone().into(),
        Refusal::Unmatched => "no resource of the rules matches this method and path".into(),
        Refusal::BodyTooLarge { limit } => {
            format!("the body is longer than the {limit} bytes that are read for a parameter").into()
        }
        Refusal::Draining => "this instance is shutting down; nothing was sent, try again".into(),
    }
}

fn blocked_detail(blocked: &Blocked) -> String {
    let limit = blocked
        .limit
        .map_or_else(String::new, |limit| format!(" of {limit}"));
    let param = blocked
        .param
        .as_ref()
        .map_or("the parameter", |param| param.as_str());
    match blocked.kind {
        _ if blocked.never && blocked.limit != Some(0) => {
            format!("the request weighs more than the limit{limit} and can never pass: split it")
        }
        BlockKind::ParamFlow | BlockKind::Flow | BlockKind::Isolation if blocked.limit == Some(0) => {
            "the rule's count is 0: it admits nothing".to_owned()
        }
        BlockKind::ParamFlow => format!("the limit{limit} for this {param} is used up; nothing was sent"),
        BlockKind::Flow => format!("the limit{limit} for the resource is used up; nothing was sent"),
        BlockKind::Isolation => {
            format!("the limit{limit} of requests under way is reached; nothing was sent")
        }
        BlockKind::Degrade => {
            "the breaker is open because the upstream is failing; nothing was sent".to_owned()
        }
        BlockKind::MissingParam => {
            format!(
                "the request lacks {param}, which a rule needs, or has it in a form that can be read in two ways"
            )
        }
    }
}

const fn upstream_status(error: &UpstreamError) -> StatusCode {
    match error {
        UpstreamError::Unreachable(_) | UpstreamError::Reset => StatusCode::BAD_GATEWAY,
        UpstreamError::Timeout => StatusCode::GATEWAY_TIMEOUT,
        UpstreamError::ClientBody | UpstreamError::ClientLate => StatusCode::BAD_REQUEST,
    }
}

pub(super) const fn upstream_code(error: &UpstreamError) -> &'static str {
    match error {
        UpstreamError::Unreachable(_) => "upstream_unreachable",
        UpstreamError::Reset => "upstream_reset",
        UpstreamError::Timeout => "upstream_timeout",
        UpstreamError::ClientBody | UpstreamError::ClientLate => "bad_request",
    }
}

fn upstream_detail(error: &UpstreamError) -> Cow<'static, str> {
    match error {
        UpstreamError::Unreachable(_) => "the upstream cannot be reached; nothing was sent, so it is safe to retry".into(),
        UpstreamError::Reset => {
            "the upstream broke off, or what it sent is no answer; the outcome is unknown: retry with the same request_id"
                .into()
        }
        UpstreamError::Timeout => {
            "the upstream did not answer in time; the outcome is unknown: retry with the same request_id".into()
        }
        UpstreamError::ClientBody | UpstreamError::ClientLate => error.to_string().into(),
    }
}
