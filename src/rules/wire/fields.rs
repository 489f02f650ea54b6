//! A map of a rule file, with the keys it may have.
//!
//! Every key is either known, or refused at its place: by name if it is one that people write (a field of a later
//! version, a dashboard's spelling), else with the nearest known key.

use super::super::Place;
use super::super::report::{Report, did_you_mean};
use super::{Key, Node, Value};

/// The keys of one kind of map.
#[derive(Debug)]
pub(in crate::rules) struct Schema {
    /// What the map is called in errors, for example `a paramFlow rule`.
    pub(in crate::rules) what: &'static str,
    pub(in crate::rules) known: &'static [&'static str],
    /// Keys of features that this version does not have.
    pub(in crate::rules) later: &'static [&'static str],
    /// Keys that are written elsewhere or by another name, with what to do.
    pub(in crate::rules) instead: &'static [(&'static str, &'static str)],
}

/// A map whose keys were checked.
#[derive(Clone, Copy, Debug)]
pub(in crate::rules) struct Fields<'n> {
    pub(in crate::rules) what: &'static str,
    pub(in crate::rules) place: &'n Place,
    pub(in crate::rules) entries: &'n [(Key, Node)],
}

impl<'n> Fields<'n> {
    /// The map in `node`; notes every key that `schema` does not know.
    pub(in crate::rules) fn new(node: &'n Node, schema: &Schema, report: &mut Report) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            return report.refuse(
                &node.place,
                format!("{} is a map of keys and values, not {node}", schema.what),
            );
        };
        for (key, _) in entries {
            check_key(key, schema, report);
        }
        Some(Self {
            what: schema.what,
            place: &node.place,
            entries,
        })
    }

    /// The value of a key; `null` is as good as absent.
    pub(in crate::rules) fn get(&self, name: &str) -> Option<&'n Node> {
        let (_, node) = self.entries.iter().find(|(key, _)| key.text == name)?;
        (!matches!(node.value, Value::Null)).then_some(node)
    }

    /// The value of a key that has to be there.
    pub(in crate::rules) fn need(&self, name: &str, report: &mut Report) -> Option<&'n Node> {
        match self.get(name) {
            None => report.refuse(self.place, format!("{} needs `{name}`", self.what)),
            found => found,
        }
    }

    /// The value of a key that has to be there, read by `read`.
    pub(in crate::rules) fn must<T>(
        &self,
        name: &str,
        report: &mut Report,
        read: impl FnOnce(&'n Node, &mut Report) -> Option<T>,
    ) -> Option<T> {
        self.need(name, report).and_then(|node| read(node, report))
    }

    /// The value of a key read by `read`, or the default where the key is not there.
    pub(in crate::rules) fn or<T>(
        &self,
        name: &str,
        default: T,
        report: &mut Report,
        read: impl FnOnce(&'n Node, &mut Report) -> Option<T>,
    ) -> Option<T> {
        self.get(name).map_or(Some(default), |node| read(node, report))
    }

    /// Notes a value other than the ones that mean what is done anyway.
    pub(in crate::rules) fn only(&self, name: &str, accepted: &[&str], report: &mut Report) {
        let Some(node) = self.get(name) else { return };
        if !matches!(&node.value, Value::Scalar(_, text) if accepted.contains(&text.as_str())) {
            report.add(
                &node.place,
                format!(
                    "`{name}` other than `{}` is not supported by this version",
                    accepted.join("` or `")
                ),
            );
        }
    }
}

fn check_key(key: &Key, schema: &Schema, report: &mut Report) {
    let name = key.text.as_str();
    if schema.known.contains(&name) || name.starts_with("x-") {
        return;
    }
    let what = schema.what;
    let message = if schema.later.contains(&name) {
        format!("`{name}` is not supported by this version")
    } else if let Some((_, instead)) = schema.instead.iter().find(|(wrong, _)| *wrong == name) {
        format!("`{name}` is not a key of {what}: {instead}")
    } else {
        format!(
            "`{name}` is not a key of {what}{}",
            did_you_mean(name, schema.known.iter().copied())
        )
    };
    report.add(&key.place, message);
}
