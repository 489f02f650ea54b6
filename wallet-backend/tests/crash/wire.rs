//! What the service writes -> what the history checker takes.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::client::{Client, Reply};
use crate::history::{Entry, Leg, Link, Read, Receipt, Span};

/// A statement from a cursor on, and the cursor at its end.
pub(super) async fn statement(client: &Client, account: &str, after: Option<String>) -> (Vec<Entry>, String) {
    let mut entries = Vec::new();
    let mut after = after.unwrap_or_default();
    loop {
        let from = if after.is_empty() {
            String::new()
        } else {
            format!("&after={after}")
        };
        let page = client
            .get(&format!("/v1/accounts/{account}/entries?limit=1000{from}"))
            .await;
        after = text(&page["next"]);
        let page = page["entries"].as_array().unwrap();
        if page.is_empty() {
            return (entries, after);
        }
        entries.extend(page.iter().map(|line| entry(account, line)));
    }
}

fn entry(account: &str, line: &Value) -> Entry {
    let link = || text(&line["link"]["id"]);
    Entry {
        account: account.to_owned(),
        slot: slot(&line["slot"]),
        version: line["version"].as_u64().unwrap(),
        kind: text(&line["type"]),
        request: line["request_id"].as_str().map(str::to_owned),
        delta: line["delta"].as_i64().unwrap(),
        held_delta: line["held_delta"].as_i64().unwrap_or(0),
        balance_after: line["balance_after"].as_i64().unwrap(),
        link: match line["link"]["kind"].as_str() {
            Some("transfer") => Link::Account(link()),
            Some("hold") => Link::Hold(link()),
            Some("reversed") => Link::Reversed(link()),
            _ => Link::None,
        },
    }
}

pub(super) fn receipt(told: &Value, replayed: bool, span: Span) -> Receipt {
    let leg = |leg: &Value| Leg {
        account: text(&leg["account_id"]),
        slot: slot(&leg["slot"]),
        version: leg["version"].as_u64().unwrap(),
        delta: leg["delta"].as_i64().unwrap(),
        held_delta: leg["held_delta"].as_i64().unwrap_or(0),
        balance_after: leg["balance_after"].as_i64().unwrap(),
    };
    Receipt {
        account: text(&told["account_id"]),
        request: text(&told["request_id"]),
        kind: text(&told["type"]),
        amount: told["amount"].as_i64().unwrap(),
        pending: told["status"] == "pending",
        legs: told["entries"].as_array().unwrap().iter().map(leg).collect(),
        replayed,
        span,
    }
}

pub(super) fn read(seen: &Value, span: Span) -> Read {
    let money = |of: &Value, name: &str| of[name].as_i64().unwrap();
    let slots = seen["slots"].as_array().unwrap().iter();
    Read {
        account: text(&seen["account_id"]),
        balance: money(seen, "balance"),
        held: money(seen, "held"),
        pending: money(seen, "pending"),
        slots: slots
            .map(|each| {
                let version = each["version"].as_u64().unwrap();
                (slot(&each["index"]), money(each, "balance"), version)
            })
            .collect(),
        span,
    }
}

/// What became of a batch: each result as the single route would have answered.
#[derive(Debug)]
pub(super) struct Batched {
    pub(super) applied: bool,
    pub(super) results: Vec<Reply>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    applied: bool,
    #[serde(borrow)]
    results: Vec<Outcome<'a>>,
}

#[derive(Deserialize)]
struct Outcome<'a> {
    status: u16,
    #[serde(borrow)]
    receipt: Option<&'a RawValue>,
    #[serde(borrow)]
    problem: Option<&'a RawValue>,
}

/// An answer to a batch, byte for byte.
pub(super) fn batched(reply: &Reply) -> Batched {
    assert_eq!(reply.status, 200, "{reply:?}");
    let Answer { applied, results } = serde_json::from_str(&reply.body).unwrap();
    let one = |outcome: &Outcome<'_>| Reply {
        status: outcome.status,
        replayed: outcome.status == 200,
        body: outcome.receipt.or(outcome.problem).unwrap().get().to_owned(),
    };
    Batched {
        applied,
        results: results.iter().map(one).collect(),
    }
}

fn slot(value: &Value) -> u8 {
    value.as_u64().unwrap().try_into().unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
