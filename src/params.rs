//! Hot parameters: what a request weighs against which value. Pure.
//!
//! [`extract`] turns a request's head, and its body where a parameter lives there, into one [`ParamValue`] per
//! parameter of the resource. The text of a value is compared byte for byte with the text in the rule files; nothing is
//! trimmed, folded or parsed as a number. What could be read in two ways is missing: a header, query field, cookie or
//! JSON key that is there twice, a query field that a `;` may end, and a body that is not JSON or is encoded. So is an
//! empty value.

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderName};

mod head;
mod json;

pub use json::{JsonPointer, PointerError};

/// The name of a parameter, as a resource's `params` list writes it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ParamName(Arc<str>);

impl ParamName {
    /// Takes a name that the caller has checked not to be blank.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The name as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ParamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a parameter comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extractor {
    /// The segment of the normalised path with this index, counted from 0 after the first slash.
    Path(usize),
    /// A field of the query, decoded as forms are (`+` is a space).
    Query(Box<str>),
    /// A header's value.
    Header(HeaderName),
    /// A cookie's value, without quotes and decoded.
    Cookie(Box<str>),
    /// What the pointers find in the JSON body, taken together.
    Json(Box<[JsonPointer]>),
    /// The caller's name: the header of `defaults.origin.header`.
    Origin(HeaderName),
}

impl Extractor {
    /// Whether the body has to be read first.
    #[must_use]
    pub const fn needs_body(&self) -> bool {
        matches!(self, Self::Json(_))
    }
}

/// What one request carries for one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamValue {
    /// Not there, or not readable.
    Missing,
    /// One value, weight 1: nearly every request.
    One(Box<str>),
    /// Several values, each with how often it occurs (at least once). Distinct values, in order of first occurrence.
    Many(Vec<(Box<str>, u32)>),
}

/// The parts of a request that parameters are read from.
#[derive(Clone, Copy, Debug)]
pub struct RequestParts<'a> {
    /// As [`normalise`](crate::router::normalise) gave it.
    pub path: &'a str,
    /// As sent, without the `?`.
    pub query: Option<&'a str>,
    pub headers: &'a HeaderMap,
}

/// The most distinct values that one request may weigh on. A request with more has the parameter missing.
///
/// The wallet's batches carry at most 8 192 operations.
pub const MAX_VALUES: usize = 8_192;

/// Longest value that is kept as it is, in bytes; of a longer one, its beginning and a 128-bit hash of the whole.
///
/// Bounds the memory of a rule's keys. Account ids are at most 64 bytes.
pub const MAX_VALUE_LEN: usize = 256;

/// One value per extractor, in their order. `body` is the whole body, or `None` if it was not read.
#[must_use]
pub fn extract(extractors: &[Extractor], parts: &RequestParts<'_>, body: Option<&[u8]>) -> Vec<ParamValue> {
    extractors
        .iter()
        .map(|extractor| value(extractor, parts, body))
        .collect()
}

fn value(extractor: &Extractor, parts: &RequestParts<'_>, body: Option<&[u8]>) -> ParamValue {
    match extractor {
        Extractor::Path(index) => one(head::segment(parts.path, *index)),
        Extractor::Query(name) => one(head::query(parts.query, name)),
        Extractor::Header(name) | Extractor::Origin(name) => one(head::header(parts.headers, name)),
        Extractor::Cookie(name) => one(head::cookie(parts.headers, name)),
        Extractor::Json(pointers) => match body {
            Some(body) if head::is_unencoded(parts.headers) => json::values(pointers, body),
            _ => ParamValue::Missing,
        },
    }
}

fn one(text: Option<impl AsRef<str>>) -> ParamValue {
    text.map_or(ParamValue::Missing, |text| match text.as_ref() {
        "" => ParamValue::Missing,
        text => ParamValue::One(bounded(text)),
    })
}

/// The text, or the beginning and a hash of one that is too long to keep.
fn bounded(text: &str) -> Box<str> {
    if text.len() <= MAX_VALUE_LEN {
        return text.into();
    }
    let hash = xxhash_rust::xxh3::xxh3_128(text.as_bytes());
    let kept = text.floor_char_boundary(MAX_VALUE_LEN - 33);
    format!("{}#{hash:032x}", text.get(..kept).unwrap_or_default()).into()
}

#[cfg(test)]
mod tests;
