//! From a request's method and normalised path to the resource it touches. Pure.
//!
//! A route table is a tree of path segments: a literal segment beats a `{param}`, a method that is named beats a route
//! for every method, and `GET` also serves `HEAD`. A dead end in the literal branch is taken back, so a request that
//! any route matches is found. Finding allocates nothing.
//!
//! Paths are compared normalised ([`normalise`]), so that one account has one window however its path is spelled.

use http::Method;

mod path;

pub(crate) use path::escape;
pub use path::{AmbiguousPath, normalise};

/// Longest template, in segments. Bounds the recursion of [`Router::find`].
pub const MAX_SEGMENTS: usize = 32;

/// Finds the route of a request. Built once per rule set.
#[derive(Debug, Default)]
pub struct Router {
    root: Node,
}

/// Which route of which resource a request met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteMatch {
    /// Index into [`RuleSet::resources`](crate::rules::RuleSet::resources).
    pub resource: usize,
    /// Index into [`ResourceRules::routes`](crate::rules::ResourceRules::routes).
    pub route: usize,
}

/// A route that cannot be told from one that is in the table already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the same method and path as another route")]
pub struct SameRoute(pub RouteMatch);

#[derive(Debug, Default)]
struct Node {
    literals: Vec<(Box<str>, Node)>,
    param: Option<Box<Node>>,
    ends: Vec<(Option<Method>, RouteMatch)>,
}

impl Router {
    /// Adds a route; `segments` are those of its template, as [`segments`] gives them.
    ///
    /// # Errors
    /// [`SameRoute`] when the table has this method on this template, whatever its parameters are called.
    pub fn insert(
        &mut self,
        method: Option<&Method>,
        segments: &[Segment],
        found: RouteMatch,
    ) -> Result<(), SameRoute> {
        let mut node = &mut self.root;
        for segment in segments {
            node = node.child(segment);
        }
        if let Some((_, other)) = node.ends.iter().find(|(m, _)| m.as_ref() == method) {
            return Err(SameRoute(*other));
        }
        node.ends.push((method.cloned(), found));
        Ok(())
    }

    /// The route of a request; `path` is what [`normalise`] gave.
    #[must_use]
    pub fn find(&self, method: &Method, path: &str) -> Option<RouteMatch> {
        let rest = path.strip_prefix('/')?;
        self.root.find(method, (!rest.is_empty()).then_some(rest))
    }
}

impl Node {
    fn child(&mut self, segment: &Segment) -> &mut Self {
        let Segment::Literal(text) = segment else {
            return self.param.get_or_insert_default();
        };
        let at = match self.literals.binary_search_by(|(have, _)| (**have).cmp(text)) {
            Ok(at) => at,
            Err(at) => {
                self.literals.insert(at, (text.clone(), Self::default()));
                at
            }
        };
        &mut self.literals.get_mut(at).expect("found or inserted just above").1
    }

    fn find(&self, method: &Method, rest: Option<&str>) -> Option<RouteMatch> {
        let Some(rest) = rest else {
            return self.end(method);
        };
        let (segment, rest) = match rest.split_once('/') {
            Some((segment, rest)) => (segment, Some(rest)),
            None => (rest, None),
        };
        let literal = self
            .literals
            .binary_search_by(|(have, _)| (**have).cmp(segment))
            .ok();
        literal
            .and_then(|at| self.literals.get(at))
            .and_then(|(_, node)| node.find(method, rest))
            .or_else(|| self.param.as_ref().and_then(|node| node.find(method, rest)))
    }

    fn end(&self, method: &Method) -> Option<RouteMatch> {
        let named = |wanted: &Method| self.ends.iter().find(|(m, _)| m.as_ref() == Some(wanted));
        named(method)
            .or_else(|| (method == Method::HEAD).then(|| named(&Method::GET)).flatten())
            .or_else(|| self.ends.iter().find(|(m, _)| m.is_none()))
            .map(|(_, found)| *found)
    }
}

/// One segment of a path template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Compared byte for byte with the normalised path's segment.
    Literal(Box<str>),
    /// `{name}`: any one segment.
    Param(Box<str>),
}

/// Why a path template cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Templates are absolute paths.
    #[error("a path begins with `/`")]
    NoSlash,
    /// `//`, or a slash at the end: requests are matched with those taken out.
    #[error("an empty segment; requests are matched without double and trailing slashes")]
    EmptySegment,
    /// `?`, `#`, `%`, `;` or `\`, or a segment `.` or `..`.
    #[error("`{0}` cannot be part of a path; write it decoded and without a query")]
    NotAPath(String),
    /// Braces that do not enclose a whole segment.
    #[error("`{0}`: a parameter is a whole segment, as `{{accountId}}`")]
    Braces(String),
    /// One name for two segments.
    #[error("`{{{0}}}` occurs twice")]
    TwiceParam(String),
    /// Wildcards that Sentinel's gateway has and these templates have not.
    #[error(
        "`{0}`: wildcards are not supported by this version; write each route, with `{{name}}` for a segment"
    )]
    Wildcard(String),
    /// More than [`MAX_SEGMENTS`].
    #[error("more than {MAX_SEGMENTS} segments")]
    TooLong,
}

/// Reads a path template such as `/v1/accounts/{accountId}/debits`.
///
/// # Errors
/// [`TemplateError`] says what is wrong with it.
pub fn segments(template: &str) -> Result<Vec<Segment>, TemplateError> {
    let rest = template.strip_prefix('/').ok_or(TemplateError::NoSlash)?;
    if rest.is_empty() {
        return Ok(Vec::new());
    }
    let parsed = rest.split('/').map(segment).collect::<Result<Vec<_>, _>>()?;
    if parsed.len() > MAX_SEGMENTS {
        return Err(TemplateError::TooLong);
    }
    for (at, one) in parsed.iter().enumerate() {
        if let Segment::Param(name) = one
            && parsed.iter().skip(at + 1).any(|other| other == one)
        {
            return Err(TemplateError::TwiceParam(name.to_string()));
        }
    }
    Ok(parsed)
}

fn segment(text: &str) -> Result<Segment, TemplateError> {
    let name = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    match name {
        _ if text.is_empty() => Err(TemplateError::EmptySegment),
        _ if text.contains('*') => Err(TemplateError::Wildcard(text.to_owned())),
        Some(name) if !name.is_empty() && !name.contains(['{', '}']) => Ok(Segment::Param(name.into())),
        _ if text.contains(['{', '}']) => Err(TemplateError::Braces(text.to_owned())),
        _ if text == "." || text == ".." || text.contains(['?', '#', '%', ';', '\\', '\0']) => {
            Err(TemplateError::NotAPath(text.to_owned()))
        }
        _ => Ok(Segment::Literal(text.into())),
    }
}

#[cfg(test)]
mod tests;
