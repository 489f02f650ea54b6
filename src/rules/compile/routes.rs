//! `match` and `params`: which requests are a resource's, and where each of them carries its parameters.
//!
//! Every route of a resource fills the same list of parameters, in the same order, so that one rule has one window
//! whichever way a request came. A route says where its values are in `params` of its own; what it leaves out is read
//! as the resource's `params` say.

use http::Method;

use super::super::Route;
use super::super::report::{Report, did_you_mean};
use super::super::wire::{Fields, Node, Schema, Word};
use super::defaults::{Defaults, header_name};
use crate::params::{Extractor, JsonPointer, ParamName};
use crate::router::{Segment, segments};

const MATCH: Schema = Schema {
    what: "`match`",
    known: &["method", "path", "params"],
    later: &["host", "regex", "pathPrefix", "headers", "query"],
    instead: &[
        (
            "methods",
            "write one entry per method, or leave `method` out for all",
        ),
        ("pattern", "write `path`"),
        ("url", "write `path`"),
    ],
};

const PARAM: Schema = Schema {
    what: "a parameter",
    known: &["name", "from", "key"],
    later: &["regex", "pattern"],
    instead: &[
        ("in", "write `from`"),
        ("field", "write `key`"),
        ("pointer", "write `key`"),
    ],
};

#[derive(Clone, Copy)]
enum From {
    Path,
    Query,
    Header,
    Cookie,
    Json,
    Origin,
}

const FROM: [Word<From>; 7] = [
    Word::new("path", From::Path),
    Word::new("query", From::Query),
    Word::new("header", From::Header),
    Word::new("cookie", From::Cookie),
    Word::new("json", From::Json),
    Word::new("origin", From::Origin),
    Word::later("clientIp", "clientIp"),
];

const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT",
];

/// The routes of a resource; each has an extractor per parameter.
pub(super) struct Routes {
    pub(super) params: Vec<ParamName>,
    pub(super) routes: Vec<Route>,
}

/// One entry of `params`, before it is known which path it reads.
struct Spec<'n> {
    node: &'n Node,
    name: &'n str,
    source: SpecSource<'n>,
}

enum SpecSource<'n> {
    /// The segment that the template calls so.
    Segment(&'n str),
    Fixed(Extractor),
}

/// One entry of `match`.
struct Entry<'n> {
    node: &'n Node,
    method: Option<Method>,
    path: &'n str,
    segments: Vec<Segment>,
    params: Vec<Spec<'n>>,
}

pub(super) fn routes(fields: &Fields<'_>, defaults: &Defaults, report: &mut Report) -> Option<Routes> {
    let shared = fields.or("params", Vec::new(), report, |node, report| {
        specs(node, defaults, report)
    });
    let list = fields.need("match", report)?.one_or_list();
    if list.is_empty() {
        return report.refuse(fields.place, "`match` is empty: nothing would be protected");
    }
    let entries: Vec<Option<Entry<'_>>> = list.iter().map(|node| entry(node, defaults, report)).collect();
    let entries: Vec<Entry<'_>> = entries.into_iter().collect::<Option<_>>()?;
    let shared = shared?;
    let leading = if shared.is_empty() {
        &entries.first()?.params
    } else {
        &shared
    };
    let names: Vec<&str> = leading.iter().map(|spec| spec.name).collect();
    let routes: Vec<Option<Route>> = entries
        .iter()
        .map(|entry| route(entry, &shared, &names, report))
        .collect();
    Some(Routes {
        params: names.iter().map(|name| ParamName::new(name)).collect(),
        routes: routes.into_iter().collect::<Option<_>>()?,
    })
}

fn entry<'n>(node: &'n Node, defaults: &Defaults, report: &mut Report) -> Option<Entry<'n>> {
    let fields = Fields::new(node, &MATCH, report)?;
    let method = fields.or("method", None, report, method);
    let path = fields.must("path", report, |node, report| {
        let text = node.text(report)?;
        match segments(text) {
            Ok(segments) => Some((text, segments)),
            Err(error) => report.refuse(&node.place, format!("path `{text}`: {error}")),
        }
    });
    let params = fields.or("params", Vec::new(), report, |node, report| {
        specs(node, defaults, report)
    });
    let (path, segments) = path?;
    Some(Entry {
        node,
        method: method?,
        path,
        segments,
        params: params?,
    })
}

fn method(node: &Node, report: &mut Report) -> Option<Option<Method>> {
    let text = node.text(report)?;
    if text == "*" {
        return Some(None);
    }
    if !METHODS.contains(&text) {
        let hint = did_you_mean(text, METHODS);
        return report.refuse(&node.place, format!("`{text}` is not a method{hint}"));
    }
    Method::from_bytes(text.as_bytes()).ok().map(Some)
}

fn specs<'n>(node: &'n Node, defaults: &Defaults, report: &mut Report) -> Option<Vec<Spec<'n>>> {
    let list = node.list(report)?;
    let read: Vec<Option<Spec<'n>>> = list.iter().map(|node| spec(node, defaults, report)).collect();
    let read: Vec<Spec<'n>> = read.into_iter().collect::<Option<_>>()?;
    for (at, one) in read.iter().enumerate() {
        if read.iter().take(at).any(|other| other.name == one.name) {
            return report.refuse(
                &one.node.place,
                format!("parameter `{}` is there twice", one.name),
            );
        }
    }
    Some(read)
}

fn spec<'n>(node: &'n Node, defaults: &Defaults, report: &mut Report) -> Option<Spec<'n>> {
    let fields = Fields::new(node, &PARAM, report)?;
    let name = fields.must("name", report, Node::name);
    let from = fields.must("from", report, |node, report| node.word(&FROM, report));
    let (name, from) = (name?, from?);
    let key = fields.get("key");
    let text = |report: &mut Report| key.map_or(Some(name), |key| key.name(report));
    let source = match from {
        From::Path => SpecSource::Segment(text(report)?),
        From::Query => SpecSource::Fixed(Extractor::Query(text(report)?.into())),
        From::Cookie => SpecSource::Fixed(Extractor::Cookie(text(report)?.into())),
        From::Header => SpecSource::Fixed(Extractor::Header(match key {
            Some(key) => header_name(key, report)?,
            None => fields.must("name", report, header_name)?,
        })),
        From::Json => SpecSource::Fixed(Extractor::Json(pointers(&fields, report)?)),
        From::Origin => match key {
            None => SpecSource::Fixed(Extractor::Origin(defaults.origin_header.clone())),
            Some(key) => {
                return report.refuse(
                    &key.place,
                    "the origin's header is named by `defaults.origin.header`",
                );
            }
        },
    };
    Some(Spec { node, name, source })
}

/// `key`: one JSON pointer, or several whose values weigh together.
fn pointers(fields: &Fields<'_>, report: &mut Report) -> Option<Box<[JsonPointer]>> {
    let key = fields.need("key", report)?;
    let read = key.one_or_list().iter().map(|node| {
        let text = node.text(report)?;
        match JsonPointer::parse(text) {
            Ok(pointer) => Some(pointer),
            Err(error) => report.refuse(&node.place, format!("`{text}`: {error}")),
        }
    });
    let read: Box<[JsonPointer]> = read.collect::<Option<_>>()?;
    if read.is_empty() {
        return report.refuse(&key.place, "`key` is empty: name at least one JSON pointer");
    }
    Some(read)
}

fn route(entry: &Entry<'_>, shared: &[Spec<'_>], names: &[&str], report: &mut Report) -> Option<Route> {
    if let Some(spec) = entry.params.iter().find(|spec| !names.contains(&spec.name)) {
        let hint = did_you_mean(spec.name, names.iter().copied());
        return report.refuse(
            &spec.node.place,
            format!(
                "parameter `{}` is not among those of the resource{hint}",
                spec.name
            ),
        );
    }
    let extractors = names.iter().map(|name| {
        let own = entry.params.iter().chain(shared).find(|spec| spec.name == *name);
        match own {
            Some(spec) => extractor(spec, entry, report),
            None => report.refuse(
                &entry.node.place,
                format!("this route does not say where `{name}` is"),
            ),
        }
    });
    Some(Route {
        extractors: extractors.collect::<Option<_>>()?,
        method: entry.method.clone(),
        path: entry.path.to_owned(),
        place: entry.node.place.clone(),
    })
}

fn extractor(spec: &Spec<'_>, entry: &Entry<'_>, report: &mut Report) -> Option<Extractor> {
    let wanted = match &spec.source {
        SpecSource::Fixed(extractor) => return Some(extractor.clone()),
        SpecSource::Segment(wanted) => *wanted,
    };
    let named = |segment: &Segment| matches!(segment, Segment::Param(name) if **name == *wanted);
    if let Some(at) = entry.segments.iter().position(named) {
        return Some(Extractor::Path(at));
    }
    let known = entry.segments.iter().filter_map(|segment| match segment {
        Segment::Param(name) => Some(&**name),
        Segment::Literal(_) => None,
    });
    let hint = did_you_mean(wanted, known);
    report.refuse(
        &spec.node.place,
        format!("path `{}` has no segment `{{{wanted}}}`{hint}", entry.path),
    )
}
