//! The rule files as they are written: a tree of nodes, each with its place and its text.
//!
//! YAML and JSON go through one reader (serde-saphyr: size budgets, duplicate keys refused). The tree is read by hand
//! rather than by derived structs so that every error of a file is told at once, each with file, line and column, and so
//! that a number keeps its text: `object: 00123` is the account `00123`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::{Location, Spanned};

use super::Place;
use super::report::RuleError;

mod fields;
mod scalar;

pub(super) use fields::{Fields, Schema};
pub(super) use scalar::{MAX_COUNT, Word};

/// One rule file: where it was found and what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

/// Longest rule file that is read.
pub const MAX_FILE_LEN: usize = 8 << 20;

/// A value in a rule file.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    /// `null`, `~` or nothing. As good as absent.
    Null,
    /// A scalar by its text.
    Scalar(Scalar, String),
    List(Vec<Node>),
    /// In the order of writing. No key twice.
    Map(Vec<(Key, Node)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Bool,
    Number,
    Text,
}

#[derive(Debug)]
pub(super) struct Key {
    pub(super) place: Place,
    pub(super) text: String,
}

/// Reads one file into a tree.
///
/// # Errors
/// What the YAML reader stopped at: the first error of the syntax, a duplicate key, or a budget.
pub(super) fn parse(source: &Source) -> Result<Node, RuleError> {
    let reader = Reader::new(source)?;
    // Infinite numbers are passed on because only their text is used: an account may be called `1e400`.
    let options = serde_yaml::options! {
        with_snippet: false,
        strict_booleans: true,
        non_finite_float_policy: serde_yaml::NonFiniteFloatPolicy::PassThrough,
    };
    match serde_yaml::from_str_with_options::<Spanned<Raw>>(reader.text, options) {
        Ok(raw) => Ok(reader.node(raw)),
        Err(error) => Err(reader.error(&error)),
    }
}

/// What turns locations of one file into places and raw scalars into their text.
struct Reader<'s> {
    file: Arc<PathBuf>,
    text: &'s str,
}

impl<'s> Reader<'s> {
    fn new(source: &'s Source) -> Result<Self, RuleError> {
        let file = Arc::new(source.path.clone());
        let whole = |message: String| RuleError {
            place: Place::whole(&file),
            message,
        };
        if source.bytes.len() > MAX_FILE_LEN {
            return Err(whole(format!("longer than {} MiB", MAX_FILE_LEN >> 20)));
        }
        match std::str::from_utf8(&source.bytes) {
            Ok(text) => Ok(Self { text, file }),
            Err(error) => Err(whole(format!("not UTF-8 after byte {}", error.valid_up_to()))),
        }
    }

    fn place(&self, location: Location) -> Place {
        let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Place {
            file: Arc::clone(&self.file),
            line: narrow(location.line()),
            column: narrow(location.column()),
        }
    }

    fn node(&self, raw: Spanned<Raw>) -> Node {
        let value = match raw.value {
            Raw::Null => Value::Null,
            Raw::Bool => Value::Scalar(Scalar::Bool, self.source_text(raw.defined)),
            Raw::Number => Value::Scalar(Scalar::Number, self.source_text(raw.defined)),
            Raw::Text(text) => Value::Scalar(Scalar::Text, text),
            Raw::List(items) => Value::List(items.into_iter().map(|item| self.node(item)).collect()),
            Raw::Map(entries) => Value::Map(
                entries
                    .into_iter()
                    .map(|(key, value)| (self.key(key), self.node(value)))
                    .collect(),
            ),
        };
        Node {
            place: self.place(raw.referenced),
            value,
        }
    }

    fn key(&self, raw: Spanned<String>) -> Key {
        Key {
            place: self.place(raw.referenced),
            text: raw.value,
        }
    }

    /// What stands in the file at a location.
    fn source_text(&self, location: Location) -> String {
        let span = location.span();
        let range = span.byte_offset().zip(span.byte_len()).and_then(|(start, len)| {
            Some(usize::try_from(start).ok()?..usize::try_from(start.checked_add(len)?).ok()?)
        });
        range
            .and_then(|range| self.text.get(range))
            .unwrap_or_default()
            .trim()
            .to_owned()
    }

    fn error(&self, error: &serde_yaml::Error) -> RuleError {
        let place = error
            .location()
            .map_or_else(|| Place::whole(&self.file), |at| self.place(at));
        let message = if let serde_yaml::Error::DuplicateMappingKey { key: Some(key), .. } = error {
            format!("`{key}` is there twice")
        } else if matches!(error, serde_yaml::Error::MultipleDocuments { .. }) {
            "a second YAML document (`---`); write it to a file of its own".to_owned()
        } else if let serde_yaml::Error::Budget { breach, .. } = error {
            format!("too much for one file ({breach:?}): divide it, or write fewer aliases")
        } else {
            let text = error.to_string();
            let suffix = format!(" at line {}, column {}", place.line, place.column);
            text.strip_suffix(&suffix).unwrap_or(&text).to_owned()
        };
        RuleError { place, message }
    }
}

/// A node before its place and text are known.
enum Raw {
    Null,
    Bool,
    Number,
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Raw, E> {
        Ok(Raw::Bool)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Raw, E> {
        Ok(Raw::Number)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Raw, E> {
        Ok(Raw::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Raw, E> {
        Ok(Raw::Number)
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Raw, E> {
        Ok(Raw::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Map(entries))
    }
}

#[cfg(test)]
mod tests;
