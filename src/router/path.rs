//! One spelling for every path that means the same. Pure; allocates only when something has to change.
//!
//! RFC 3986 section 6.2.2 and the habits of wallets behind proxies: parameters of segments (`alice;v=1`, which servlet
//! containers cut off) and double and trailing slashes are dropped, escapes decoded, dot segments resolved. What two
//! servers would read as different accounts is not guessed at but refused.

use std::borrow::Cow;

/// A path that an upstream might read as another resource than we do. Answered 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmbiguousPath {
    #[error("an encoded slash, backslash or NUL in the path")]
    EncodedSeparator,
    #[error("a backslash in the path")]
    Backslash,
    #[error("a percent sign without two hexadecimal digits in the path")]
    BadEscape,
    #[error("the path is not UTF-8 once decoded")]
    NotUtf8,
    #[error("the path does not begin with a slash")]
    NotAbsolute,
    /// Merging slashes first or resolving `..` first gives two answers.
    #[error("an empty segment and a `..` in one path")]
    EmptyAndParent,
    /// `..;x` is a name to one server and the parent to another.
    #[error("a `.` or `..` segment with a `;` in the path")]
    DotWithParameters,
}

/// The one spelling of a path: decoded, without parameters of segments, dot segments, double slashes or a slash at the
/// end (but for `/`).
///
/// Segments of the result are values: a `%` in it is a `%`, and a `;` was escaped. `raw` is the path of the request target, without its query;
/// `*` (of `OPTIONS *`) is given back as it is and matches no route.
///
/// # Errors
/// [`AmbiguousPath`] for what servers do not agree about.
pub fn normalise(raw: &str) -> Result<Cow<'_, str>, AmbiguousPath> {
    if raw == "*" {
        return Ok(Cow::Borrowed(raw));
    }
    if !raw.starts_with('/') {
        return Err(AmbiguousPath::NotAbsolute);
    }
    if raw.contains('\\') {
        return Err(AmbiguousPath::Backslash);
    }
    if raw.contains(';') {
        let bare = without_parameters(raw)?;
        return canonical(&bare).map(|path| Cow::Owned(path.into_owned()));
    }
    canonical(raw)
}

fn canonical(raw: &str) -> Result<Cow<'_, str>, AmbiguousPath> {
    let decoded = decode(raw)?;
    if is_plain(&decoded) {
        return Ok(decoded);
    }
    resolve(&decoded).map(Cow::Owned)
}

/// Cuts every segment off at its first `;`, as servlet containers do before they decode. For a server that keeps it,
/// `alice;1` and `alice;2` share a window then, which lets nobody around it.
fn without_parameters(raw: &str) -> Result<String, AmbiguousPath> {
    let mut bare = String::with_capacity(raw.len());
    for segment in raw.split('/').skip(1) {
        let name = segment.split_once(';').map_or(segment, |(name, _)| name);
        if name.len() < segment.len() && is_dots(name) {
            return Err(AmbiguousPath::DotWithParameters);
        }
        bare.push('/');
        bare.push_str(name);
    }
    Ok(bare)
}

/// Whether a segment, its dots escaped or not, is `.` or `..`.
fn is_dots(segment: &str) -> bool {
    let dots = segment.replace("%2e", ".").replace("%2E", ".");
    dots == "." || dots == ".."
}

/// Whether no segment is empty, `.` or `..`, so that the path is normal as it stands.
fn is_plain(path: &str) -> bool {
    path == "/"
        || path
            .split('/')
            .skip(1)
            .all(|segment| !matches!(segment, "" | "." | ".."))
}

fn resolve(path: &str) -> Result<String, AmbiguousPath> {
    let inner = path.trim_end_matches('/').split('/').skip(1);
    let empty = inner.clone().any(str::is_empty);
    let mut kept: Vec<&str> = Vec::new();
    for segment in inner {
        match segment {
            "" | "." => {}
            ".." if empty => return Err(AmbiguousPath::EmptyAndParent),
            ".." => {
                kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    Ok(kept
        .iter()
        .fold(String::new(), |path, segment| path + "/" + segment))
    .map(|path| if path.is_empty() { "/".to_owned() } else { path })
}

/// Decodes every escape; refuses those of separators, whose meaning a decoding upstream would change.
fn decode(raw: &str) -> Result<Cow<'_, str>, AmbiguousPath> {
    let Some(first) = raw.find('%') else {
        return if raw.contains('\0') {
            Err(AmbiguousPath::EncodedSeparator)
        } else {
            Ok(Cow::Borrowed(raw))
        };
    };
    let (plain, rest) = raw.split_at(first);
    let mut bytes = Vec::with_capacity(raw.len());
    bytes.extend_from_slice(plain.as_bytes());
    let mut rest = rest.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let byte = escape(rest.next(), rest.next()).ok_or(AmbiguousPath::BadEscape)?;
        if matches!(byte, b'/' | b'\\' | 0) {
            return Err(AmbiguousPath::EncodedSeparator);
        }
        bytes.push(byte);
    }
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| AmbiguousPath::NotUtf8)
}

/// The byte of the two digits after a `%`.
pub(crate) fn escape(high: Option<u8>, low: Option<u8>) -> Option<u8> {
    let digit = |byte: Option<u8>| {
        char::from(byte?)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    Some(digit(high)? << 4 | digit(low)?)
}
