//! Says which field of a refused body is to blame. Reads it a second time, off the fast path.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::error::Category;
use serde_path_to_error::Segment;

use crate::http::error::{Code, Problem};

/// The problem of a body that is no `T`.
pub(super) fn blame<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Problem {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let error = match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Ok(_) => return Problem::new(Code::InvalidRequest, "the body must end after its JSON object"),
        Err(error) => error,
    };
    let field = error.path().iter().next().and_then(|first| match first {
        Segment::Map { key } => Some(key.clone()),
        Segment::Seq { .. } | Segment::Enum { .. } | Segment::Unknown => None,
    });
    let error = error.into_inner();
    match (error.classify(), field) {
        (Category::Data, Some(field)) => Problem::invalid(&field, sentence(&error)),
        (Category::Data, None) => match first_duplicate(body) {
            Some(field) => Problem::invalid(&field, "must be given once"),
            None => Problem::new(Code::InvalidRequest, format!("the body {}", sentence(&error))),
        },
        (Category::Syntax | Category::Eof | Category::Io, field) => {
            let problem = Problem::new(
                Code::InvalidRequest,
                format!("the body must be valid JSON in UTF-8: {error}"),
            );
            match field {
                Some(field) => problem.at(field),
                None => problem,
            }
        }
    }
}

/// The reader's message as the end of a sentence that begins with the field, without its position.
fn sentence(error: &serde_json::Error) -> String {
    let position = format!(" at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    let text = text.strip_suffix(&position).unwrap_or(&text);
    if let Some(rest) = text.strip_prefix("unknown field ") {
        let expected = rest.split_once(", ").map_or("", |(_, expected)| expected);
        return format!("is unknown here: {expected}");
    }
    match text.split_once(", expected ") {
        Some((found, expected)) if text.starts_with("invalid ") => {
            let found = found.split_once(": ").map_or(found, |(_, found)| found);
            format!("must be {expected}, not {found}")
        }
        _ => text.to_owned(),
    }
}

/// The first key that an object has twice.
fn first_duplicate(body: &[u8]) -> Option<String> {
    let Keys(duplicate) = serde_json::from_slice(body).ok()?;
    duplicate
}

struct Keys(Option<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = Keys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
        let mut seen = HashSet::new();
        let mut duplicate = None;
        while let Some((key, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
            if duplicate.is_none() && !seen.insert(key.clone()) {
                duplicate = Some(key);
            }
        }
        Ok(Keys(duplicate))
    }
}
