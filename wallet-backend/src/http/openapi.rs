//! `/openapi.json`: OpenAPI 3.1, written by hand in `openapi.json` and completed with what the code knows.
//!
//! Currencies and their exponents come from [`crate::money`], the version from the package, and which scopes an
//! operation needs, with its 403, from `routes`. Tests hold the rest to the router, the status table and live answers.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::auth::{Needs, Scope};
use super::routes::Route;
use crate::money::Currency;

const WRITTEN: &str = include_str!("openapi.json");

/// The document, ready to send.
///
/// # Panics
/// Never: that the written part is a JSON object is tested.
pub(super) fn document(routes: &[Route]) -> Bytes {
    let mut document: Map<String, Value> =
        serde_json::from_str(WRITTEN).expect("openapi.json is a JSON object, which a test checks");
    let exponents: Map<String, Value> = Currency::all()
        .map(|(code, exponent)| (code.to_owned(), exponent.into()))
        .collect();
    let codes: Value = exponents.keys().cloned().collect();
    document.insert("x-currency-exponents".to_owned(), exponents.into());
    if let Some(info) = document.get_mut("info").and_then(Value::as_object_mut) {
        info.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    }
    let mut document = Value::Object(document);
    let currency = document.pointer_mut("/components/schemas/Currency");
    if let Some(currency) = currency.and_then(Value::as_object_mut) {
        currency.insert("enum".to_owned(), codes);
    }
    for route in routes.iter().filter(|route| !route.needs.is_empty()) {
        let paths = document.get_mut("paths");
        let path = paths.and_then(|paths| paths.get_mut(route.path));
        if let Some(operation) = path.and_then(|path| path.get_mut(route.method)) {
            guard(operation, route.needs);
        }
    }
    document.to_string().into()
}

/// Says of an operation what its caller must be allowed to do.
fn guard(operation: &mut Value, needs: Needs) {
    let scopes = |group: &&[Scope]| -> Value { group.iter().map(|scope| scope.as_str()).collect() };
    let security = needs.iter().map(|group| json!({"bearer": scopes(group)}));
    let security: Value = security.collect();
    let forbidden = json!({"$ref": "#/components/responses/Forbidden"});
    if let Some(operation) = operation.as_object_mut() {
        operation.insert("security".to_owned(), security);
        if let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) {
            responses.insert("403".to_owned(), forbidden);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::http::error::Code;
    use crate::http::routes::routes;

    fn parsed() -> Value {
        serde_json::from_slice(&document(&routes())).unwrap()
    }

    /// Every `$ref` below a value.
    fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(target)) = map.get("$ref") {
                    found.insert(target);
                }
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_component_is_used() {
        let document = parsed();
        let mut used = BTreeSet::new();
        references(&document, &mut used);
        let mut defined = BTreeSet::new();
        for (kind, components) in document["components"].as_object().unwrap() {
            if kind != "securitySchemes" {
                let names = components.as_object().unwrap().keys();
                defined.extend(names.map(|name| format!("#/components/{kind}/{name}")));
            }
        }
        assert_eq!(used, defined.iter().map(String::as_str).collect());
    }

    #[test]
    fn every_code_of_the_status_table_is_listed_and_no_other() {
        let listed = parsed()["components"]["schemas"]["Problem"]["properties"]["code"]["enum"].clone();
        let listed: BTreeSet<String> = serde_json::from_value(listed).unwrap();
        let known: BTreeSet<String> = Code::ALL.iter().map(|code| code.as_str().to_owned()).collect();
        assert_eq!(listed, known);
    }

    #[test]
    fn an_operation_says_which_scopes_it_needs_and_that_it_may_be_forbidden() {
        let paths = &parsed()["paths"];
        let abandon = &paths["/v1/requests/{account_id}/{request_id}/abandon"]["post"];
        assert_eq!(
            abandon["security"],
            json!([{"bearer": ["credit"]}, {"bearer": ["debit"]}])
        );
        assert!(abandon["responses"]["403"].is_object());
        let health = &paths["/healthz"]["get"];
        assert_eq!(health["security"], json!([]));
        assert_eq!(health["responses"].get("403"), None);
    }

    #[test]
    fn every_currency_is_there_with_its_exponent() {
        let exponents = &parsed()["x-currency-exponents"];
        assert_eq!(exponents["EUR"], 2);
        assert_eq!(exponents["JPY"], 0);
        assert_eq!(exponents.as_object().unwrap().len(), Currency::all().count());
        let codes = parsed()["components"]["schemas"]["Currency"]["enum"].clone();
        let codes: BTreeSet<String> = serde_json::from_value(codes).unwrap();
        assert_eq!(codes, exponents.as_object().unwrap().keys().cloned().collect());
    }

    #[test]
    fn the_document_names_the_version_of_the_package() {
        assert_eq!(parsed()["info"]["version"], env!("CARGO_PKG_VERSION"));
    }
}
