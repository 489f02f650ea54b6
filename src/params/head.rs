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

/// The only field of this name in the query, decoded. Some servers divide the fields at `;` too: nothing, if that would
/// give another value.
pub(super) fn query<'a>(query: Option<&'a str>, name: &str) -> Option<Cow<'a, str>> {
    let query = query?;
    let value = field(query.split('&'), name)?;
    let agreed = !query.contains(';') || field(query.split(['&', ';']), name) == Some(value);
    form_decoded(value).filter(|_| agreed)
}

/// The only value of this name, as sent.
fn field<'a>(fields: impl Iterator<Item = &'a str>, name: &str) -> Option<&'a str> {
    let pairs = fields.map(|field| field.split_once('=').unwrap_or((field, "")));
    only(pairs.filter(|(key, _)| form_decoded(key).is_some_and(|key| key == name))).map(|(_, value)| value)
}

/// The only cookie of this name (RFC 6265 section 5.4), its value without quotes and decoded: many servers do either,
/// and for one that does not, two values share a window.
pub(super) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<Cow<'a, str>> {
    let lines = headers.get_all(header::COOKIE).iter();
    let pairs = lines
        .filter_map(|line| std::str::from_utf8(line.as_bytes()).ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.trim_matches(BLANK), value.trim_matches(BLANK)));
    let (_, value) = only(pairs.filter(|(key, _)| *key == name))?;
    let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let value = inner.unwrap_or(value);
    Some(decoded(value).unwrap_or(Cow::Borrowed(value)))
}

const BLANK: [char; 2] = [' ', '\t'];

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
    if text.contains('+') {
        return decoded(&text.replace('+', " ")).map(|text| Cow::Owned(text.into_owned()));
    }
    decoded(text)
}

/// Decodes escapes; `None` for broken ones and what is not UTF-8.
fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => escape(rest.next(), rest.next())?,
            plain => plain,
        });
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}
