//! What every rule has, and the parameter that some name.

use super::super::report::{Report, did_you_mean};
use super::super::wire::{Fields, Node, Word};
use super::super::{Mode, ResourceRules, RuleHead, RuleId};

const MODES: [Word<Mode>; 2] = [
    Word::new("enforce", Mode::Enforce),
    Word::new("shadow", Mode::Shadow),
];

/// The head of a rule. `id` is its default id: free of values, so that a changed count is the same rule.
pub(super) fn head(fields: &Fields<'_>, id: &str, report: &mut Report) -> Option<RuleHead> {
    fields.only("limitApp", &["default"], report);
    fields.only("clusterMode", &["false"], report);
    let given = fields.or("id", id, report, Node::name);
    let mode = fields.or("mode", Mode::Enforce, report, |node, report| {
        node.word(&MODES, report)
    });
    let percent = fields.or("percent", 100, report, |node, report| {
        node.integer(0, 100, "", report)
    });
    Some(RuleHead {
        id: RuleId::new(given?),
        mode: mode?,
        percent: u8::try_from(percent?).ok()?,
        place: fields.place.clone(),
    })
}

/// The index of the parameter that a rule names by `param` or by `paramIdx`.
pub(super) fn param(fields: &Fields<'_>, resource: &ResourceRules, report: &mut Report) -> Option<usize> {
    match (fields.get("param"), fields.get("paramIdx")) {
        (Some(name), None) => by_name(name, resource, report),
        (None, Some(index)) => by_index(index, resource, report),
        (Some(_), Some(index)) => report.refuse(
            &index.place,
            "`param` and `paramIdx` say the same: write one of them",
        ),
        (None, None) => report.refuse(fields.place, format!("{} needs `param`", fields.what)),
    }
}

fn by_name(node: &Node, resource: &ResourceRules, report: &mut Report) -> Option<usize> {
    let name = node.name(report)?;
    let names = resource.params.iter().map(crate::params::ParamName::as_str);
    names.clone().position(|known| known == name).or_else(|| {
        let hint = did_you_mean(name, names);
        let resource = &resource.resource;
        report.refuse(
            &node.place,
            format!("resource `{resource}` has no parameter `{name}`{hint}"),
        )
    })
}

fn by_index(node: &Node, resource: &ResourceRules, report: &mut Report) -> Option<usize> {
    let index = node.integer(0, u64::MAX, "", report)?;
    let count = resource.params.len();
    match usize::try_from(index) {
        Ok(index) if index < count => Some(index),
        _ => {
            let resource = &resource.resource;
            report.refuse(
                &node.place,
                format!("resource `{resource}` has no parameter {node}: it has {count}, counted from 0"),
            )
        }
    }
}
