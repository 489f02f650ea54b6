//! Header fields on their way through: hop-by-hop fields end here, both ways; what the wallet should know is added.
//!
//! Source: RFC 9110 section 7.6 (Connection, Via), RFC 9112 section 3.2.2 (absolute form replaces Host). The map is
//! moved, never rebuilt: one pass over its names finds what has to go.

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, EXPECT, HOST, SET_COOKIE,
    TRANSFER_ENCODING, VIA,
};
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri};

const VIA_SLUICE: HeaderValue = HeaderValue::from_static("1.1 sluice");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Fields that a sender may name in Connection without effect: taking them away would change what the message means.
const END_TO_END: [HeaderName; 9] = [
    HOST,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    AUTHORIZATION,
    COOKIE,
    SET_COOKIE,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("x-request-id"),
];

/// Whether a field belongs to one connection only.
fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "te"
            | "transfer-encoding"
            | "upgrade"
            | "http2-settings"
    )
}

/// Takes away what belongs to one connection: the known fields and those that Connection names.
pub(super) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let mut gone: Vec<HeaderName> = headers
        .keys()
        .filter(|name| is_hop_by_hop(name.as_str()))
        .cloned()
        .collect();
    if gone.contains(&CONNECTION) {
        let named = headers
            .get_all(CONNECTION)
            .into_iter()
            .flat_map(named_fields)
            .collect::<Vec<_>>();
        gone.extend(named);
    }
    for name in gone {
        headers.remove(name);
    }
}

fn named_fields(value: &HeaderValue) -> impl Iterator<Item = HeaderName> {
    value
        .as_bytes()
        .split(|byte| *byte == b',')
        .filter_map(|token| HeaderName::from_bytes(token.trim_ascii()).ok())
        .filter(|name| !END_TO_END.contains(name))
}

/// Whether a request's head means the same to every server; if not, why.
///
/// hyper decides where a body ends and refuses lengths that contradict each other. It undoes `chunked` alone, so any
/// other coding would be lost here; and it leaves Host to its caller (RFC 9112 section 3.2).
pub(super) fn check<B>(request: &Request<B>) -> Result<(), &'static str> {
    let headers = request.headers();
    if !is_plainly_framed(headers) {
        return Err("the only transfer coding that is understood is chunked, once");
    }
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if request.version() >= http::Version::HTTP_11 => Err("Host is missing"),
        (Some(_), Some(_)) => Err("Host is there twice"),
        (Some(host), None) if !is_host(host) => Err("Host is no host"),
        _ => Ok(()),
    }
}

/// Whether a message's transfer coding is `chunked` alone, or none.
pub(super) fn is_plainly_framed(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(only), None) => only.as_bytes().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    }
}

/// Whether an answer's body ends at one place only.
pub(super) fn is_framed_once(headers: &HeaderMap) -> bool {
    is_plainly_framed(headers)
        && !(headers.contains_key(TRANSFER_ENCODING) && headers.contains_key(CONTENT_LENGTH))
}

/// `host` or `host:port`, or nothing for a target that has none.
fn is_host(value: &HeaderValue) -> bool {
    let bytes = value.as_bytes();
    bytes.is_empty() || Authority::try_from(bytes).is_ok_and(|host| !host.as_str().contains('@'))
}

/// Makes a client's request the sidecar's own: origin form, hop-by-hop fields gone, forwarding fields set.
///
/// X-Forwarded-For is what the connection says, never what the client says: no proxy in front is trusted.
pub(super) fn to_upstream<B>(
    request: &mut Request<B>,
    forwarded_for: &HeaderValue,
    fallback_host: &HeaderValue,
    authorization: Option<&HeaderValue>,
) {
    let absolute = request
        .uri()
        .authority()
        .and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    if absolute.is_some() || request.uri().scheme().is_some() {
        let path = request.uri().path_and_query().cloned();
        *request.uri_mut() = Uri::from(path.unwrap_or(PathAndQuery::from_static("/")));
    }
    *request.version_mut() = http::Version::HTTP_11;
    let headers = request.headers_mut();
    strip_hop_by_hop(headers);
    // 100-continue ends here: the server answers it when the body is first read.
    headers.remove(EXPECT);
    if let Some(host) = absolute {
        headers.insert(HOST, host);
    }
    let host = headers
        .entry(HOST)
        .or_insert_with(|| fallback_host.clone())
        .clone();
    headers.insert(FORWARDED_HOST, host);
    headers.insert(FORWARDED_PROTO, HeaderValue::from_static("http"));
    headers.insert(FORWARDED_FOR, forwarded_for.clone());
    headers.append(VIA, VIA_SLUICE);
    if let Some(authorization) = authorization {
        headers
            .entry(AUTHORIZATION)
            .or_insert_with(|| authorization.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        fields
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        headers.keys().map(HeaderName::as_str).collect()
    }

    #[test]
    fn hop_by_hop_and_connection_named_fields_go() {
        let mut headers = map(&[
            ("connection", "close,  X-Secret"),
            ("x-secret", "1"),
            ("te", "trailers, gzip"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("proxy-authorization", "Basic eA=="),
            ("http2-settings", "AAMAAABk"),
            ("upgrade", "h2c"),
            ("accept", "*/*"),
        ]);
        headers.append(CONNECTION, HeaderValue::from_static(" ,http2-settings"));
        strip_hop_by_hop(&mut headers);
        assert_eq!(names(&headers), ["accept"]);
    }

    #[test]
    fn connection_cannot_name_away_framing_or_credentials() {
        let mut headers = map(&[
            ("connection", "content-length, host, authorization"),
            ("content-length", "5"),
            ("host", "wallet"),
            ("authorization", "Bearer x"),
        ]);
        strip_hop_by_hop(&mut headers);
        let mut kept = names(&headers);
        kept.sort_unstable();
        assert_eq!(kept, ["authorization", "content-length", "host"]);
    }

    fn forwarded(uri: &'static str, fields: &[(&'static str, &'static str)]) -> Request<()> {
        let mut request = Request::new(());
        *request.uri_mut() = Uri::from_static(uri);
        *request.headers_mut() = map(fields);
        let authorization = HeaderValue::from_static("Bearer ours");
        to_upstream(
            &mut request,
            &HeaderValue::from_static("10.0.0.7"),
            &HeaderValue::from_static("fallback"),
            Some(&authorization),
        );
        request
    }

    #[test]
    fn a_spoofed_forwarded_for_is_replaced() {
        let request = forwarded("/a", &[("host", "wallet"), ("x-forwarded-for", "1.2.3.4")]);
        assert_eq!(request.headers()["x-forwarded-for"], "10.0.0.7");
        assert_eq!(request.headers()["x-forwarded-host"], "wallet");
        assert_eq!(request.headers()["via"], "1.1 sluice");
    }

    #[test]
    fn absolute_form_wins_over_host_and_becomes_origin_form() {
        let request = forwarded("http://real:80/a?b", &[("host", "lie")]);
        assert_eq!(request.uri(), "/a?b");
        assert_eq!(request.headers()["host"], "real:80");
    }

    #[test]
    fn credentials_are_added_only_where_absent() {
        assert_eq!(forwarded("/", &[]).headers()["authorization"], "Bearer ours");
        assert_eq!(
            forwarded("/", &[("authorization", "Bearer own")]).headers()["authorization"],
            "Bearer own"
        );
    }

    #[test]
    fn nothing_else_is_added() {
        let request = forwarded("/", &[]);
        let mut added = names(request.headers());
        added.sort_unstable();
        assert_eq!(
            added,
            [
                "authorization",
                "host",
                "via",
                "x-forwarded-for",
                "x-forwarded-host",
                "x-forwarded-proto"
            ]
        );
    }
}
