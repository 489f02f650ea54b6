//! From the trees of all files to one checked [`RuleSet`], or to everything that is wrong with them.
//!
//! The files of a folder are one set: a resource of one file may be named by a rule of another. Nothing is dropped and
//! nothing is guessed; what this version cannot enforce is refused at its place.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::report::{Report, RuleError, did_you_mean};
use super::wire::{self, Fields, Node, Schema, Source, Value};
use super::{Place, ResourceRules, RuleHead, RuleSet, folder};
use crate::router::{RouteMatch, Router, segments};

mod answer;
mod defaults;
mod degrade;
mod flow;
mod head;
mod isolation;
mod param_flow;
mod resource;
mod routes;

/// Reads and checks every rule file of a folder.
///
/// # Errors
/// Everything that is wrong with them, at least one error per bad file, in file order.
pub fn load(dir: &Path) -> Result<RuleSet, Vec<RuleError>> {
    let sources = folder::read(dir).map_err(|error| vec![error])?;
    compile(dir, &sources)
}

/// Checks the files of a folder, given in name order. Pure; `dir` is only named in errors about the whole set.
///
/// # Errors
/// As [`load`].
pub fn compile(dir: &Path, sources: &[Source]) -> Result<RuleSet, Vec<RuleError>> {
    let mut report = Report::default();
    let mut parsed = Vec::new();
    for source in sources {
        match wire::parse(source) {
            Ok(node) => parsed.push(node),
            Err(error) => report.note(error),
        }
    }
    let complete = report.is_clean();
    let sections = Sections::new(&parsed, &mut report);
    sections.check_empty(dir, &parsed, complete, &mut report);
    let set = assemble(&sections, complete, sources, &mut report);
    if report.is_clean() {
        Ok(set)
    } else {
        Err(report.into_errors())
    }
}

/// Which sets of files are the same, whatever their times and inodes are.
#[must_use]
pub fn content_hash(sources: &[Source]) -> u64 {
    let mut hash = Xxh3::new();
    for source in sources {
        for part in [source.path.as_os_str().as_encoded_bytes(), &source.bytes] {
            hash.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            hash.update(part);
        }
    }
    hash.digest()
}

const TOP: Schema = Schema {
    what: "a rule file",
    known: &[
        "version",
        "defaults",
        "resources",
        "paramFlow",
        "isolation",
        "degrade",
        "flow",
        "allowEmpty",
    ],
    later: &["system", "authority"],
    instead: &[
        (
            "rule",
            "take the rule out of the dashboard's `rule: {…}` and put it into a list, as `paramFlow`",
        ),
        (
            "resource",
            "a rule stands in the list of its kind, as `paramFlow: [ … ]`",
        ),
        (
            "rules",
            "rules stand in the list of their kind: `paramFlow`, `flow`, `isolation` or `degrade`",
        ),
    ],
};

/// The entries of all files by kind, in file and line order.
#[derive(Default)]
struct Sections<'n> {
    defaults: Option<&'n Node>,
    resources: Vec<&'n Node>,
    param_flow: Vec<&'n Node>,
    flow: Vec<&'n Node>,
    isolation: Vec<&'n Node>,
    degrade: Vec<&'n Node>,
    allow_empty: bool,
}

impl<'n> Sections<'n> {
    fn new(parsed: &'n [Node], report: &mut Report) -> Self {
        let mut all = Self::default();
        for node in parsed {
            match &node.value {
                Value::Null => {}
                Value::List(_) => report.add(
                    &node.place,
                    "a list has no kind: put Sentinel's rules under `paramFlow:`, `flow:`, `isolation:` or `degrade:`",
                ),
                Value::Scalar(..) | Value::Map(_) => all.add(node, report),
            }
        }
        all
    }

    fn add(&mut self, node: &'n Node, report: &mut Report) {
        let Some(fields) = Fields::new(node, &TOP, report) else {
            return;
        };
        fields.or("version", 1, report, |node, report| {
            match node.integer(0, u64::MAX, "", report)? {
                1 => Some(1),
                _ => report.refuse(
                    &node.place,
                    format!("version {node} of the rule files is not known; write `version: 1`"),
                ),
            }
        });
        self.allow_empty |= fields
            .or("allowEmpty", false, report, Node::boolean)
            .unwrap_or_default();
        if let Some(node) = fields.get("defaults") {
            match self.defaults {
                Some(first) => report.add(
                    &node.place,
                    format!("`defaults` is there twice, first at {}", first.place),
                ),
                None => self.defaults = Some(node),
            }
        }
        for (key, entries) in [
            ("resources", &mut self.resources),
            ("paramFlow", &mut self.param_flow),
            ("flow", &mut self.flow),
            ("isolation", &mut self.isolation),
            ("degrade", &mut self.degrade),
        ] {
            entries.extend(
                fields
                    .get(key)
                    .and_then(|node| node.list(report))
                    .unwrap_or_default(),
            );
        }
    }

    fn check_empty(&self, dir: &Path, parsed: &[Node], complete: bool, report: &mut Report) {
        if self.allow_empty {
            return;
        }
        for node in parsed.iter().filter(|node| matches!(node.value, Value::Null)) {
            report.add(
                &Place::whole(&node.place.file),
                "the file is empty; remove it, or write `allowEmpty: true`",
            );
        }
        let rules = [&self.param_flow, &self.flow, &self.isolation, &self.degrade];
        if complete && report.is_clean() && rules.iter().all(|kind| kind.is_empty()) {
            let place = Place::whole(&Arc::new(dir.to_path_buf()));
            report.add(
                &place,
                "no rule in any file; if that is meant, write `allowEmpty: true`",
            );
        }
    }
}

/// Builds the set. `complete` is whether every file could be read: if not, a name may be known to one that could not.
fn assemble(sections: &Sections<'_>, complete: bool, sources: &[Source], report: &mut Report) -> RuleSet {
    let defaults = defaults::defaults(sections.defaults, report);
    let mut names = Names {
        complete,
        known: HashMap::new(),
    };
    let mut resources = Vec::new();
    for node in &sections.resources {
        names.add(node, resources.len(), report);
        resources.extend(resource::resource(node, &defaults, report));
    }
    names.keep_compiled(&resources);

    for node in &sections.param_flow {
        with_resource(
            node,
            &param_flow::SCHEMA,
            &names,
            &mut resources,
            report,
            param_flow::add,
        );
    }
    for node in &sections.flow {
        with_resource(node, &flow::SCHEMA, &names, &mut resources, report, flow::add);
    }
    for node in &sections.isolation {
        with_resource(
            node,
            &isolation::SCHEMA,
            &names,
            &mut resources,
            report,
            isolation::add,
        );
    }
    for node in &sections.degrade {
        with_resource(
            node,
            &degrade::SCHEMA,
            &names,
            &mut resources,
            report,
            degrade::add,
        );
    }
    check_ids(&resources, report);

    RuleSet {
        generation: 1,
        router: router(&resources, report),
        resources: resources.into_iter().map(Arc::new).collect(),
        unmatched: defaults.unmatched,
        origin_header: defaults.origin_header,
        default_timeout: defaults.timeout,
        files: sources
            .iter()
            .map(|source| Arc::new(source.path.clone()))
            .collect(),
        content_hash: content_hash(sources),
    }
}

/// Reads a rule of a kind with the resource it names.
fn with_resource<'n>(
    node: &'n Node,
    schema: &Schema,
    names: &Names<'n>,
    resources: &mut [ResourceRules],
    report: &mut Report,
    add: impl FnOnce(&Fields<'n>, &mut ResourceRules, &mut Report) -> Option<()>,
) {
    let mark = report.mark();
    let Some(fields) = Fields::new(node, schema, report) else {
        return;
    };
    let found = fields.must("resource", report, |node, report| names.find(node, report));
    if let Some(resource) = found.and_then(|at| resources.get_mut(at)) {
        add(&fields, resource, report);
    }
    if let Some(Value::Scalar(_, id)) = fields.get("id").map(|node| &node.value) {
        report.in_rule(mark, id);
    }
}

/// The names of the resources, those included that could not be built.
struct Names<'n> {
    complete: bool,
    known: HashMap<&'n str, (usize, &'n Place)>,
}

impl<'n> Names<'n> {
    fn add(&mut self, node: &'n Node, at: usize, report: &mut Report) {
        let Value::Map(entries) = &node.value else { return };
        let Some((_, name)) = entries.iter().find(|(key, _)| key.text == "name") else {
            return;
        };
        let Value::Scalar(_, text) = &name.value else {
            return;
        };
        if let Some((_, first)) = self.known.insert(text, (at, &name.place)) {
            report.add(
                &name.place,
                format!("resource `{text}` is there twice, first at {first}"),
            );
        }
    }

    /// Points every name at its resource; one that could not be built points at none.
    fn keep_compiled(&mut self, resources: &[ResourceRules]) {
        let compiled = resources.iter().enumerate();
        let places: HashMap<&str, usize> = compiled.map(|(at, each)| (each.resource.as_str(), at)).collect();
        for (name, (at, _)) in &mut self.known {
            *at = places.get(name).copied().unwrap_or(usize::MAX);
        }
    }

    fn find(&self, node: &Node, report: &mut Report) -> Option<usize> {
        let name = node.name(report)?;
        match self.known.get(name) {
            Some((at, _)) => Some(*at),
            None if !self.complete => None,
            None => {
                let hint = did_you_mean(name, self.known.keys().copied());
                report.refuse(&node.place, format!("no resource is called `{name}`{hint}"))
            }
        }
    }
}

/// State, metrics and refusals are filed under the id, so two rules cannot share one.
fn check_ids(resources: &[ResourceRules], report: &mut Report) {
    let mut seen: HashMap<&str, &Place> = HashMap::new();
    for head in resources.iter().flat_map(heads) {
        let id = head.id.as_str();
        if let Some(first) = seen.insert(id, &head.place) {
            report.add(
                &head.place,
                format!("rule id `{id}` is there twice, first at {first}; give this rule an `id` of its own"),
            );
        }
    }
}

fn heads(resource: &ResourceRules) -> impl Iterator<Item = &RuleHead> {
    let param_flow = resource.param_flow.iter().map(|rule| &rule.head);
    let flow = resource.flow.iter().map(|rule| &rule.head);
    let isolation = resource.isolation.iter().map(|rule| &rule.head);
    param_flow
        .chain(flow)
        .chain(isolation)
        .chain(resource.degrade.iter().map(|rule| &rule.head))
}

fn router(resources: &[ResourceRules], report: &mut Report) -> Router {
    let mut router = Router::default();
    for (at, resource) in resources.iter().enumerate() {
        for (number, route) in resource.routes.iter().enumerate() {
            let path = segments(&route.path).unwrap_or_default();
            let found = RouteMatch {
                resource: at,
                route: number,
            };
            let Err(same) = router.insert(route.method.as_ref(), &path, found) else {
                continue;
            };
            let other = resources.get(same.0.resource);
            let name = other.map_or("", |other| other.resource.as_str());
            let first = other
                .and_then(|other| other.routes.get(same.0.route))
                .map_or(&resource.place, |r| &r.place);
            report.add(
                &route.place,
                format!("{route} is matched twice, first by resource `{name}` at {first}"),
            );
        }
    }
    router
}

#[cfg(test)]
mod tests;
