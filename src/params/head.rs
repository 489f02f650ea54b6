//! Values from the request head. What is there twice is nothing.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, header};

use crate::router::escape;

/// The segment `index` of a normalised path.
pub(super) fn segment(path: &str, index: usize) -> Option<&str> {
    path.split('/').skip(1).nth(index)
}

/// The only value of a header, if it is text.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values
        .next()
        .is_none()
        .then(|| std::str::from_utf8(value.as_bytes()).ok())
        .flatten()
}

/// The only field of this name in the query, decoded.
pub(super) fn query<'a>(query: Option<&'a str>, name: &str) -> Option<Cow<'a, str>> {
    let fields = query?
        .split('&')
        .map(|field| field.split_once('=').unwrap_or((field, "")));
    only(fields.filter(|(key, _)| form_decoded(key).is_some_and(|key| key == name)))
        .and_then(|(_, value)| form_decoded(value))
}

/// The only cookie of this name (RFC 6265 section 5.4), its value as sent.
pub(super) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter();
    let pairs = lines
        .filter_map(|line| std::str::from_utf8(line.as_bytes()).ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim_matches([' ', '\t']).split_once('='));
    only(pairs.filter(|(key, _)| *key == name)).map(|(_, value)| value)
}

/// Whether the body is sent as it is.
pub(super) fn is_unencoded(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// Decodes `application/x-www-form-urlencoded` text; `None` for broken escapes and what is not UTF-8.
fn form_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains(['%', '+']) {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => escape(rest.next(), rest.next())?,
            plain => plain,
        });
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}
