//! Parts of a request, checked: path ids, query, idempotency key, body. Each rejects with a [`Problem`].
//!
//! Handlers list them in the order in which a request is judged: query, path, header, body.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use http_body_util::{BodyExt, Limited};

use super::error::{Code, Problem};
use crate::account::{AccountId, RequestId};

/// The longest body, in bytes.
pub const MAX_BODY_BYTES: usize = 64 * 1024;
/// The longest body of a batch.
pub const MAX_BATCH_BYTES: usize = 4 * 1024 * 1024;
/// A body must have arrived after this long; a client that trickles would hold its connection for ever.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How far beyond its limit a body that is too long is read and thrown away, so that the client reads the answer instead
/// of failing to write.
const MAX_DISCARDED_BYTES: usize = 1024 * 1024;
/// What is on one page where `limit` is absent, and at most.
pub(super) const DEFAULT_PAGE: usize = 100;
const MAX_PAGE: usize = 1000;

/// `{account_id}` of the path.
pub(super) struct AccountPath(pub(super) AccountId);

/// `{account_id}` and `{request_id}` of the path.
pub(super) struct RequestPath(pub(super) AccountId, pub(super) RequestId);

/// `{account_id}` and `{hold_id}` of the path.
pub(super) struct HoldPath(pub(super) AccountId, pub(super) RequestId);

/// A route that takes no query parameter.
pub(super) struct NoQuery;

/// `?after=&limit=`.
pub(super) struct PageQuery {
    /// Not decoded yet: what it means depends on the account.
    pub(super) after: Option<String>,
    /// 1 to 1 000.
    pub(super) limit: Option<usize>,
}

/// `?account=&after=`.
pub(super) struct EventsQuery {
    pub(super) account: Option<AccountId>,
    /// Not decoded yet: a header may stand over it.
    pub(super) after: Option<String>,
}

/// The `Idempotency-Key` header.
pub(super) struct IdempotencyKey(pub(super) Option<RequestId>);

/// A body of `application/json`, whole.
pub(super) struct JsonBody(pub(super) Bytes);

/// The same, of up to [`MAX_BATCH_BYTES`].
pub(super) struct BatchBody(pub(super) Bytes);

/// The same, or no body at all.
pub(super) struct OptionalJsonBody(pub(super) Bytes);

impl<S: Send + Sync> FromRequestParts<S> for AccountPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let Path(account) = path.map_err(|error| bad_path(&error))?;
        account_id(&account).map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RequestPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (account, request) = account_and_id(parts, state, "request_id").await?;
        Ok(Self(account, request))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for HoldPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (account, hold) = account_and_id(parts, state, "hold_id").await?;
        Ok(Self(account, hold))
    }
}

/// The two ids of a path; `field` is the name of the second.
async fn account_and_id<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    field: &str,
) -> Result<(AccountId, RequestId), Problem> {
    let path = Path::<(String, String)>::from_request_parts(parts, state).await;
    let Path((account, id)) = path.map_err(|error| bad_path(&error))?;
    let account = account_id(&account)?;
    let id = RequestId::new(&id).map_err(|error| Problem::invalid(field, error))?;
    Ok((account, id))
}

fn account_id(text: &str) -> Result<AccountId, Problem> {
    AccountId::new(text).map_err(|error| Problem::invalid("account_id", error))
}

/// The only way for a string in a path to be wrong is not to be UTF-8 once it is decoded.
fn bad_path(rejection: &PathRejection) -> Problem {
    let mut field = "path";
    if let PathRejection::FailedToDeserializePathParams(failed) = rejection
        && let ErrorKind::InvalidUtf8InPathParam { key } = failed.kind()
    {
        field = key;
    }
    Problem::invalid(field, "must be UTF-8 once it is decoded")
}

impl<S: Send + Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match parameters(parts)?.into_iter().next() {
            Some((name, _)) => Err(Problem::invalid(&name, "is no parameter of this route")),
            None => Ok(Self),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PageQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let [after, limit] = named(parts, ["after", "limit"])?;
        Ok(Self {
            after: after.filter(|after| !after.is_empty()),
            limit: limit.map(|limit| page_limit(&limit)).transpose()?,
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for EventsQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let [account, after] = named(parts, ["account", "after"])?;
        let account = account.map(|id| AccountId::new(&id));
        let account = account.transpose();
        Ok(Self {
            account: account.map_err(|error| Problem::invalid("account", error))?,
            after: after.filter(|after| !after.is_empty()),
        })
    }
}

/// The values of the only parameters that a route takes.
fn named<const N: usize>(parts: &Parts, names: [&'static str; N]) -> Result<[Option<String>; N], Problem> {
    let mut values = [const { None }; N];
    for (name, value) in parameters(parts)? {
        let place = names.iter().zip(&mut values).find(|(known, _)| **known == name);
        let Some((_, place)) = place else {
            let known = names.join(" and ");
            let rule = format!("is no parameter of this route: it takes {known}");
            return Err(Problem::invalid(&name, rule));
        };
        if place.replace(value).is_some() {
            return Err(Problem::invalid(&name, "must be given once"));
        }
    }
    Ok(values)
}

fn page_limit(text: &str) -> Result<usize, Problem> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(limit) if digits && (1..=MAX_PAGE).contains(&limit) => Ok(limit),
        _ => {
            let rule = format!("must be a whole number from 1 to {MAX_PAGE}, not {text:?}");
            Err(Problem::invalid("limit", rule))
        }
    }
}

/// The query, decoded, in its order.
pub(super) fn parameters(parts: &Parts) -> Result<Vec<(String, String)>, Problem> {
    Query::try_from_uri(&parts.uri)
        .map(|Query(pairs)| pairs)
        .map_err(|error| Problem::new(Code::InvalidRequest, error.body_text()))
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let invalid =
            |rule: String| Problem::invalid("request_id", format!("as the Idempotency-Key header {rule}"));
        let mut values = parts.headers.get_all("idempotency-key").iter();
        let Some(value) = values.next() else {
            return Ok(Self(None));
        };
        if values.next().is_some() {
            return Err(invalid("must be given once".to_owned()));
        }
        let text = value
            .to_str()
            .map_err(|_| invalid("must be made of visible ASCII characters".to_owned()))?;
        RequestId::new(text)
            .map(|id| Self(Some(id)))
            .map_err(|error| invalid(error.to_string()))
    }
}

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        check_media_type(&parts.headers)?;
        read(&parts.headers, body, MAX_BODY_BYTES).await.map(Self)
    }
}

impl<S: Send + Sync> FromRequest<S> for BatchBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        check_media_type(&parts.headers)?;
        read(&parts.headers, body, MAX_BATCH_BYTES).await.map(Self)
    }
}

impl<S: Send + Sync> FromRequest<S> for OptionalJsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let body = read(&parts.headers, body, MAX_BODY_BYTES).await?;
        if !body.is_empty() {
            check_media_type(&parts.headers)?;
        }
        Ok(Self(body))
    }
}

/// `application/json`, in UTF-8 and not compressed.
fn check_media_type(headers: &HeaderMap) -> Result<(), Problem> {
    let unsupported = |detail: &str| Problem::new(Code::UnsupportedMediaType, detail);
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(unsupported("send one Content-Type: application/json"));
    };
    let value = value.to_str().unwrap_or_default();
    let (media, parameters) = value.split_once(';').unwrap_or((value, ""));
    if !media.trim().eq_ignore_ascii_case("application/json") {
        return Err(unsupported("the content type must be application/json"));
    }
    let foreign = |parameter: &str| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        name.trim().eq_ignore_ascii_case("charset")
            && !value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
    };
    if parameters.split(';').any(foreign) {
        return Err(unsupported("the charset must be utf-8"));
    }
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    if codings.any(|coding| coding.as_bytes() != b"identity") {
        return Err(unsupported("the body must not be compressed"));
    }
    Ok(())
}

async fn read(headers: &HeaderMap, body: Body, most: usize) -> Result<Bytes, Problem> {
    let read = read_within_limit(headers, body, most);
    tokio::time::timeout(BODY_TIMEOUT, read)
        .await
        .unwrap_or_else(|_| {
            let detail = format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs());
            Err(Problem::new(Code::RequestTimeout, detail))
        })
}

async fn read_within_limit(headers: &HeaderMap, mut body: Body, most: usize) -> Result<Bytes, Problem> {
    let declared = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let limit = u64::try_from(most).unwrap_or(u64::MAX);
    if declared.is_none_or(|length| length <= limit) {
        match Limited::new(&mut body, most).collect().await {
            Ok(whole) => return Ok(whole.to_bytes()),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {}
            Err(_) => {
                let detail = "the body broke off before its end";
                return Err(Problem::new(Code::InvalidRequest, detail));
            }
        }
    }
    // A client that waits for 100 Continue has sent nothing yet, and now it won't.
    if !headers.contains_key(EXPECT) {
        discard(body, most.saturating_add(MAX_DISCARDED_BYTES)).await;
    }
    let detail = format!("the body must have at most {most} bytes");
    Err(Problem::new(Code::BodyTooLarge, detail))
}

async fn discard(mut body: Body, most: usize) {
    let mut left = most;
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
