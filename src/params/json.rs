//! Values from a JSON body, in one pass that keeps nothing but them.
//!
//! A pointer is RFC 6901's with one addition: `*` steps into every element of an array. Keys are compared unescaped,
//! numbers count by their text as sent (`1e3` is not `1000`), `null` is as good as absent. A key that a pointer steps
//! through and that its object holds twice makes the whole parameter missing: two readers would pick two values.
//! Only the steps of a pointer recurse; what lies beside them is skipped without.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{MAX_VALUES, ParamValue, bounded};

/// Where in a body a value is: `/from`, or `/operations/*/account_id` for each element's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPointer(Box<[Step]>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(Box<str>),
    Each,
}

/// Why a text is not a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    #[error("a JSON pointer begins with `/`, as `/account_id`")]
    NoSlash,
    #[error("`~` in a JSON pointer is written `~0`, and `/` in a key `~1`")]
    BadTilde,
    #[error("a JSON pointer has at most 16 steps")]
    TooDeep,
}

/// Bounds the recursion over a body.
const MAX_STEPS: usize = 16;

impl JsonPointer {
    /// Reads a pointer as the rule files write it.
    ///
    /// # Errors
    /// [`PointerError`] says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, PointerError> {
        let rest = text.strip_prefix('/').ok_or(PointerError::NoSlash)?;
        let steps = rest.split('/').map(step).collect::<Result<Box<[_]>, _>>()?;
        if steps.len() > MAX_STEPS {
            Err(PointerError::TooDeep)
        } else {
            Ok(Self(steps))
        }
    }
}

fn step(text: &str) -> Result<Step, PointerError> {
    if text == "*" {
        return Ok(Step::Each);
    }
    let mut pieces = text.split('~');
    let mut key = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (character, rest) = match piece.as_bytes().first() {
            Some(b'0') => ('~', piece.get(1..)),
            Some(b'1') => ('/', piece.get(1..)),
            _ => return Err(PointerError::BadTilde),
        };
        key.push(character);
        key.push_str(rest.unwrap_or_default());
    }
    Ok(Step::Key(key.into()))
}

/// What the pointers find in a body, taken together; `Missing` for nothing, too much, or what is not one JSON text.
pub(super) fn values(pointers: &[JsonPointer], body: &[u8]) -> ParamValue {
    let paths: Vec<&[Step]> = pointers.iter().map(|pointer| &*pointer.0).collect();
    let mut found = Found::default();
    let mut reader = serde_json::Deserializer::from_slice(body);
    let walked = Walk {
        paths: &paths,
        found: &mut found,
    }
    .deserialize(&mut reader);
    match walked.and_then(|()| reader.end()) {
        Ok(()) => found.into_value(),
        Err(_) => ParamValue::Missing,
    }
}

/// Distinct values with their weights, in order of first occurrence. At most [`MAX_VALUES`].
#[derive(Default)]
struct Found {
    values: Vec<(Box<str>, u32)>,
    places: HashMap<Box<str>, usize>,
}

impl Found {
    fn add(&mut self, text: &str) -> Result<(), &'static str> {
        let text = bounded(text);
        if let Some((_, weight)) = self.places.get(&text).and_then(|at| self.values.get_mut(*at)) {
            *weight = weight.saturating_add(1);
            return Ok(());
        }
        if self.values.len() == MAX_VALUES {
            return Err("too many values");
        }
        self.places.insert(text.clone(), self.values.len());
        self.values.push((text, 1));
        Ok(())
    }

    fn into_value(mut self) -> ParamValue {
        match self.values.pop() {
            None => ParamValue::Missing,
            Some((text, 1)) if self.values.is_empty() => ParamValue::One(text),
            Some(last) => {
                self.values.push(last);
                ParamValue::Many(self.values)
            }
        }
    }
}

/// Walks one JSON value along the paths that lead through it. None of them is empty: those are read by [`leaf`].
struct Walk<'w> {
    paths: &'w [&'w [Step]],
    found: &'w mut Found,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen: Vec<Box<str>> = Vec::new();
        while let Some(key) = map.next_key_seed(Key { paths: self.paths })? {
            let Some(key) = key else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if seen.contains(&key) {
                return Err(A::Error::custom("a key twice"));
            }
            let next = after(
                self.paths,
                |step| matches!(step, Step::Key(wanted) if *wanted == key),
            );
            map.next_value_seed(Value {
                paths: &next,
                found: self.found,
            })?;
            seen.push(key);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let next = after(self.paths, |step| *step == Step::Each);
        while seq
            .next_element_seed(Value {
                paths: &next,
                found: self.found,
            })?
            .is_some()
        {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// The rests of the paths whose first step is taken.
fn after<'w>(paths: &[&'w [Step]], taken: impl Fn(&Step) -> bool) -> Vec<&'w [Step]> {
    let split = paths.iter().filter_map(|path| path.split_first());
    split
        .filter(|(first, _)| taken(first))
        .map(|(_, rest)| rest)
        .collect()
}

/// An object's key, kept only if a path steps through it.
struct Key<'w> {
    paths: &'w [&'w [Step]],
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<Box<str>>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<Box<str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        let firsts = self.paths.iter().filter_map(|path| path.first());
        let wanted = firsts
            .into_iter()
            .any(|step| matches!(step, Step::Key(wanted) if **wanted == *key));
        Ok(wanted.then(|| key.into()))
    }
}

/// A value inside an object or array: skipped, walked on, or taken where a path ends.
struct Value<'w> {
    paths: &'w [&'w [Step]],
    found: &'w mut Found,
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        if self.paths.is_empty() {
            return IgnoredAny::deserialize(reader).map(drop);
        }
        if !self.paths.iter().any(|path| path.is_empty()) {
            return Walk {
                paths: self.paths,
                found: self.found,
            }
            .deserialize(reader);
        }
        let raw = <&RawValue>::deserialize(reader)?;
        if let Some(text) = leaf(raw.get()).map_err(D::Error::custom)? {
            return self.found.add(&text).map_err(D::Error::custom);
        }
        let paths: Vec<&[Step]> = self
            .paths
            .iter()
            .copied()
            .filter(|path| !path.is_empty())
            .collect();
        if paths.is_empty() {
            return Ok(());
        }
        let walk = Walk {
            paths: &paths,
            found: self.found,
        };
        walk.deserialize(&mut serde_json::Deserializer::from_str(raw.get()))
            .map_err(D::Error::custom)
    }
}

/// The text of a scalar; nothing for `null`, an empty string, an object or an array.
fn leaf(raw: &str) -> Result<Option<String>, serde_json::Error> {
    let text = match raw.as_bytes().first() {
        Some(b'"') => serde_json::from_str(raw)?,
        Some(b'{' | b'[' | b'n') | None => return Ok(None),
        Some(_) => raw.to_owned(),
    };
    Ok((!text.is_empty()).then_some(text))
}
