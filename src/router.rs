//! From a request's method and normalised path to the resource it touches. Pure.

/// Finds the route of a request. Built once per rule set.
#[derive(Debug, Default)]
pub struct Router {}
