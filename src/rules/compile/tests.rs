use std::path::PathBuf;
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;

use super::super::{Answer, Mode, OnBlock, OnMissingParam, Shaping, Trip, Unmatched};
use super::*;
use crate::params::{Extractor, JsonPointer};

const DEBIT: &str = "
resources:
  - name: debit
    match: { method: POST, path: '/v1/accounts/{accountId}/debits' }
    params: [ { name: accountId, from: path } ]
";

fn set(files: &[(&str, &str)]) -> Result<RuleSet, Vec<String>> {
    let sources: Vec<Source> = files
        .iter()
        .map(|(name, text)| Source {
            path: Path::new("rules").join(name),
            bytes: text.as_bytes().to_vec(),
        })
        .collect();
    compile(Path::new("rules"), &sources).map_err(|errors| errors.iter().map(RuleError::to_string).collect())
}

fn one(rules: &str) -> Result<RuleSet, Vec<String>> {
    set(&[("a.yaml", &format!("{DEBIT}{rules}"))])
}

#[test]
fn the_fields_of_every_rule_arrive_in_their_units() {
    let set = one("
paramFlow: [ { resource: debit, param: accountId, count: 100, burstCount: 5, durationInSec: 2, maxKeys: 10,
    paramFlowItemList: [ { object: 00123, count: 400, classType: int }, { object: '1001', count: 10.0 } ] } ]
flow: [ { resource: debit, grade: 1, count: 5000, statIntervalMs: 500, strategy: 0, limitApp: default } ]
isolation: [ { resource: debit, maxConcurrentRequests: 50, maxQueueingTimeMs: 0, maxQueueLength: 100 } ]
degrade: [ { resource: debit, grade: exceptionRatio, count: 0.3, timeWindow: 10, minRequestAmount: 20,
    statIntervalMs: 1s, probeNum: 1, mode: shadow, percent: 40, id: brk } ]
")
    .unwrap();
    let debit = &set.resources[0];
    let hot = &debit.param_flow[0];
    assert_eq!(hot.head.id.as_str(), "paramFlow:debit:accountId:qps");
    assert_eq!((hot.param, hot.count, hot.burst, hot.max_keys), (0, 100, 5, 10));
    assert_eq!(
        (hot.window, hot.shaping),
        (Duration::from_secs(2), Shaping::Reject)
    );
    assert_eq!(
        hot.items,
        HashMap::from([("00123".into(), 400), ("1001".into(), 10)])
    );
    let flow = &debit.flow[0];
    assert_eq!(flow.head.id.as_str(), "flow:debit:default:qps");
    assert_eq!((flow.count, flow.window), (5_000, Duration::from_millis(500)));
    assert_eq!(debit.isolation[0].max_concurrent, 50);
    let breaker = &debit.degrade[0];
    assert_eq!(
        (breaker.head.id.as_str(), breaker.head.mode, breaker.head.percent),
        ("brk", Mode::Shadow, 40)
    );
    assert_eq!(breaker.trip, Trip::ExceptionRatio(0.3));
    assert_eq!(
        (breaker.open_for, breaker.min_requests),
        (Duration::from_secs(10), 20)
    );
    assert_eq!(breaker.head.place.to_string(), "rules/a.yaml:11:12");
}

#[test]
fn what_a_resource_leaves_out_comes_from_the_defaults() {
    let set = one("
defaults: { onMissingParam: shared, unmatched: reject, timeout: 3s, errorStatuses: [503], origin: { header: X-App } }
allowEmpty: true
")
    .unwrap();
    let debit = &set.resources[0];
    assert_eq!(debit.on_missing_param, OnMissingParam::Shared);
    assert_eq!(
        (debit.timeout, debit.abandon_after),
        (Duration::from_secs(3), Duration::from_secs(15))
    );
    assert_eq!(debit.error_statuses, [StatusCode::SERVICE_UNAVAILABLE]);
    assert_eq!((debit.max_json_body, set.unmatched), (65_536, Unmatched::Reject));
    assert_eq!(set.origin_header, "x-app");
    assert_eq!(set.default_timeout, Duration::from_secs(3));
}

#[test]
fn each_route_reads_the_same_parameters_where_it_has_them() {
    let set = set(&[("a.yaml", "
allowEmpty: true
resources:
  - name: takeMoney
    maxJsonBody: 4MiB
    params:
      - { name: account, from: path, key: id }
      - { name: app, from: origin }
    match:
      - { method: POST, path: '/v1/accounts/{id}/debits' }
      - { method: POST, path: /v1/transfers, params: [ { name: account, from: json, key: /from } ] }
      - { path: /v1/batches, params: [ { name: account, from: json, key: [ /operations/*/account_id, /operations/*/from ] } ] }
")])
    .unwrap();
    let json = |texts: &[&str]| {
        Extractor::Json(
            texts
                .iter()
                .map(|text| JsonPointer::parse(text).unwrap())
                .collect(),
        )
    };
    let routes = &set.resources[0].routes;
    assert_eq!(routes[0].extractors[0], Extractor::Path(2));
    assert_eq!(routes[1].extractors[0], json(&["/from"]));
    assert_eq!(
        routes[2].extractors[0],
        json(&["/operations/*/account_id", "/operations/*/from"])
    );
    assert!(
        routes
            .iter()
            .all(|route| matches!(route.extractors[1], Extractor::Origin(_)))
    );
    assert!(!routes[0].needs_body() && routes[1].needs_body());
    let (resource, route) = set.find(&Method::PUT, "/v1/batches").unwrap();
    assert_eq!(
        (resource.resource.as_str(), route.to_string().as_str()),
        ("takeMoney", "* /v1/batches")
    );
}

#[test]
fn answers_are_for_all_codes_or_by_code() {
    let all = one(
        "    onBlock: { status: 429, body: { code: BUSY, message: 系统繁忙, n: [1.50, true, ~] } }\nallowEmpty: true\n",
    );
    let body = serde_json::from_str(r#"{"code":"BUSY","message":"系统繁忙","n":[1.50,true,null]}"#).unwrap();
    let answer = Answer {
        status: Some(StatusCode::TOO_MANY_REQUESTS),
        body: Some(body),
    };
    assert_eq!(all.unwrap().resources[0].on_block, OnBlock::All(answer));
    let by_code = one(
        "    onBlock: { degrade: { body: { code: DOWN } } }\n    fallback: { status: 500 }\nallowEmpty: true\n",
    );
    let set = by_code.unwrap();
    let answer = Answer {
        status: None,
        body: Some(json!({ "code": "DOWN" })),
    };
    assert_eq!(
        set.resources[0].on_block,
        OnBlock::ByCode(HashMap::from([("degrade".into(), answer)]))
    );
    assert_eq!(
        set.resources[0].fallback.as_ref().unwrap().status,
        Some(StatusCode::INTERNAL_SERVER_ERROR)
    );
}

#[test]
fn files_are_one_set_in_name_order() {
    let flow = "flow: [ { resource: debit, count: 5 } ]";
    let both = set(&[
        (
            "a.json",
            r#"{"flow": [{"resource": "debit", "count": 7, "id": "x"}]}"#,
        ),
        ("b.yaml", DEBIT),
        ("c.yml", flow),
    ]);
    let both = both.unwrap();
    let counts: Vec<u64> = both.resources[0].flow.iter().map(|rule| rule.count).collect();
    assert_eq!(counts, [7, 5]);
    let files: Vec<PathBuf> = both.files.iter().map(|file| (**file).clone()).collect();
    assert_eq!(
        files,
        [
            PathBuf::from("rules/a.json"),
            "rules/b.yaml".into(),
            "rules/c.yml".into()
        ]
    );
}

#[test]
fn anchors_live_under_free_keys() {
    let set = one("
x-common: &common { resource: debit, count: 3 }
flow: [ { <<: *common, id: one, x-why: example }, { <<: *common, count: 4 } ]
")
    .unwrap();
    let counts: Vec<u64> = set.resources[0].flow.iter().map(|rule| rule.count).collect();
    assert_eq!(counts, [3, 4]);
}

#[test]
fn every_error_of_every_file_is_told_in_order() {
    let errors = set(&[
        (
            "a.yaml",
            "paramFlw: []\nflow: [ { resource: debt, count: -1 } ]\n",
        ),
        ("b.yaml", DEBIT),
        ("c.yaml", "isolation:\n  resource: debit\n"),
    ])
    .unwrap_err();
    assert_eq!(
        errors,
        [
            "rules/a.yaml:1:1: `paramFlw` is not a key of a rule file, did you mean `paramFlow`?",
            "rules/a.yaml:2:21: no resource is called `debt`, did you mean `debit`?",
            "rules/c.yaml:2:3: a list is due, not a map: begin each entry with `- `",
        ]
    );
}

#[test]
fn a_name_from_a_file_that_could_not_be_read_is_not_called_unknown() {
    let errors = set(&[
        ("a.yaml", "resources: ["),
        ("b.yaml", "flow: [ { resource: debit, count: 1 } ]"),
    ])
    .unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].starts_with("rules/a.yaml:1:12: "));
}

#[test]
fn a_rule_of_a_resource_that_is_wrong_itself_is_not_called_unknown() {
    let errors = set(&[(
        "a.yaml",
        "resources: [ { name: debit } ]\nflow: [ { resource: debit, count: 1 } ]",
    )]);
    assert_eq!(
        errors.unwrap_err(),
        ["rules/a.yaml:1:14: a resource needs `match`"]
    );
}

#[test]
fn no_rules_at_all_have_to_be_meant() {
    let none = "no rule in any file; if that is meant, write `allowEmpty: true`";
    assert_eq!(set(&[]).unwrap_err(), [format!("rules: {none}")]);
    assert_eq!(one("flow: []").unwrap_err(), [format!("rules: {none}")]);
    let empty = set(&[
        ("a.yaml", "# nothing\n"),
        (
            "b.yaml",
            &format!("{DEBIT}flow: [ {{ resource: debit, count: 1 }} ]"),
        ),
    ]);
    assert_eq!(
        empty.unwrap_err(),
        ["rules/a.yaml: the file is empty; remove it, or write `allowEmpty: true`"]
    );
    assert!(
        set(&[("a.yaml", ""), ("b.yaml", "allowEmpty: true")])
            .unwrap()
            .resources
            .is_empty()
    );
}

#[test]
fn the_same_texts_have_the_same_hash_and_others_another() {
    let source = |name: &str, text: &str| Source {
        path: name.into(),
        bytes: text.into(),
    };
    assert_eq!(
        content_hash(&[source("a", "b")]),
        content_hash(&[source("a", "b")])
    );
    assert_ne!(
        content_hash(&[source("a", "bc")]),
        content_hash(&[source("ab", "c")])
    );
    assert_ne!(
        content_hash(&[source("a", "b")]),
        content_hash(&[source("a", "c")])
    );
}

#[test]
fn the_shipped_rules_hold_for_every_money_route_of_the_wallet() {
    let set = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("rules")).unwrap();
    let takes = [
        "/v1/accounts/a/debits",
        "/v1/accounts/a/holds",
        "/v1/transfers",
        "/v1/reversals",
        "/v1/batches",
    ];
    for path in takes {
        let (resource, _) = set.find(&Method::POST, path).unwrap();
        assert_eq!(resource.resource.as_str(), "takeMoney", "{path}");
    }
    let (take, _) = set.find(&Method::POST, takes[0]).unwrap();
    let hot = &take.param_flow[0];
    assert_eq!(
        (hot.head.id.as_str(), hot.count, hot.window),
        ("hot-account", 100, Duration::from_secs(1))
    );
    assert_eq!(
        (take.isolation[0].max_concurrent, take.flow[0].count),
        (50, 5_000)
    );
    assert_eq!(
        (take.degrade[0].trip, take.degrade[0].min_requests),
        (Trip::ExceptionRatio(0.3), 20)
    );
    for (method, path) in [
        (Method::POST, "/v1/accounts"),
        (Method::GET, "/v1/accounts"),
        (Method::GET, "/v1/accounts/a"),
        (Method::PATCH, "/v1/accounts/a"),
        (Method::POST, "/v1/accounts/a/credits"),
        (Method::POST, "/v1/accounts/a/holds/h/capture"),
        (Method::POST, "/v1/accounts/a/holds/h/release"),
        (Method::GET, "/v1/accounts/a/holds/h"),
        (Method::GET, "/v1/accounts/a/entries"),
        (Method::GET, "/v1/requests/a/r"),
        (Method::POST, "/v1/requests/a/r/abandon"),
    ] {
        assert!(
            set.find(&method, path)
                .is_some_and(|(found, _)| found.resource.as_str() != "takeMoney"),
            "{path}"
        );
    }
}

#[test]
fn a_file_cut_off_anywhere_is_judged_without_a_panic() {
    let whole = include_str!("../../../tests/rules/valid/every-field.yaml");
    assert!(set(&[("a.yaml", whole)]).is_ok());
    for (end, _) in whole.char_indices().step_by(7) {
        set(&[("a.yaml", &whole[..end])]).ok();
    }
}

#[test]
fn an_error_in_a_rule_names_it() {
    let errors = one("flow: [ { id: total, resource: debit, count: -1, cuont: 1 } ]").unwrap_err();
    assert_eq!(
        errors,
        [
            "rules/a.yaml:6:46: rule `total`: `-1` is negative",
            "rules/a.yaml:6:50: rule `total`: `cuont` is not a key of a flow rule, did you mean `count`?",
        ]
    );
}
