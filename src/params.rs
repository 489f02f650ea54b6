//! Hot parameters: what a request weighs against which value. Pure.

use std::fmt;
use std::sync::Arc;

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
    /// The path segment with this index, counted from 0 after the first slash, percent-decoded.
    Path(usize),
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
