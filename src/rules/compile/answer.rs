//! `onBlock` and `fallback`: answers in place of the sidecar's own.

use std::collections::HashMap;

use http::StatusCode;
use serde_json::Value as Json;

use super::super::report::{Report, did_you_mean};
use super::super::wire::{Fields, Node, Scalar, Schema, Value};
use super::super::{Answer, OnBlock};

const ANSWER: Schema = Schema {
    what: "an answer",
    known: &["status", "body"],
    later: &["headers"],
    instead: &[],
};

/// The codes that a resource's refusals can have.
const CODES: [&str; 6] = [
    "param_flow",
    "flow",
    "isolation",
    "degrade",
    "missing_param",
    "body_too_large",
];

/// Codes of refusals that this version never makes.
const LATER_CODES: [&str; 3] = ["authority", "system", "param_isolation"];

/// `{status, body}`: one of them at least.
pub(super) fn answer(node: &Node, report: &mut Report) -> Option<Answer> {
    let fields = Fields::new(node, &ANSWER, report)?;
    let status = fields.or("status", None, report, |node, report| {
        status(node, report).map(Some)
    });
    let body = fields.or("body", None, report, |node, report| json(node, report).map(Some));
    let answer = Answer {
        status: status?,
        body: body?,
    };
    if answer.status.is_none() && answer.body.is_none() {
        return report.refuse(&node.place, "an answer needs `status`, `body` or both");
    }
    Some(answer)
}

/// One answer for all codes, or answers by code.
pub(super) fn on_block(node: &Node, report: &mut Report) -> Option<OnBlock> {
    let Value::Map(entries) = &node.value else {
        return report.refuse(
            &node.place,
            format!("`onBlock` is an answer or a map of answers by code, not {node}"),
        );
    };
    if entries.is_empty()
        || entries
            .iter()
            .any(|(key, _)| ANSWER.known.contains(&key.text.as_str()))
    {
        return answer(node, report).map(OnBlock::All);
    }
    let mut by_code = HashMap::new();
    for (key, node) in entries {
        let code = key.text.as_str();
        if CODES.contains(&code) {
            by_code.insert(code.to_owned(), answer(node, report)?);
        } else if LATER_CODES.contains(&code) {
            report.add(
                &key.place,
                format!("code `{code}` is not supported by this version"),
            );
        } else if !code.starts_with("x-") {
            let hint = did_you_mean(code, CODES.iter().copied().chain(ANSWER.known.iter().copied()));
            report.add(
                &key.place,
                format!("`{code}` is neither a key of an answer nor a code{hint}"),
            );
        }
    }
    Some(OnBlock::ByCode(by_code))
}

/// A status that ends an exchange. Bodiless ones are left out: an answer with a `body` has to be able to carry it.
fn status(node: &Node, report: &mut Report) -> Option<StatusCode> {
    let status = node.integer(200, 599, "", report)?;
    if matches!(status, 204 | 205 | 304) {
        return report.refuse(
            &node.place,
            format!("a {status} has no body and says that nothing went wrong"),
        );
    }
    StatusCode::from_u16(u16::try_from(status).ok()?).ok()
}

fn json(node: &Node, report: &mut Report) -> Option<Json> {
    Some(match &node.value {
        Value::Null => Json::Null,
        Value::Scalar(Scalar::Text, text) => Json::String(text.clone()),
        Value::Scalar(Scalar::Bool | Scalar::Number, text) => match serde_json::from_str(text) {
            Ok(json) => json,
            Err(_) => {
                return report.refuse(
                    &node.place,
                    format!("`{text}` is not a JSON value; put it in quotes"),
                );
            }
        },
        Value::List(items) => Json::Array(
            items
                .iter()
                .map(|item| json(item, report))
                .collect::<Option<_>>()?,
        ),
        Value::Map(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| Some((key.text.clone(), json(value, report)?)));
            Json::Object(entries.collect::<Option<_>>()?)
        }
    })
}
