//! What the service writes -> what the history checker takes.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use wallet_backend::account::Slot;
use wallet_backend::client::AccountState;

use super::client::{Client, Reply};
use crate::history::{Entry, Leg, Read, Receipt, Span};
use crate::support::id;

/// A statement from a cursor on, and the cursor at its end.
pub(super) async fn statement(
    client: &Client,
    account: &str,
    mut after: Option<String>,
) -> (Vec<Entry>, Option<String>) {
    let (mut entries, account) = (Vec::new(), id(account));
    loop {
        let page = client.wallet().entries(&account, after.as_deref(), 1_000).await;
        let page = page.unwrap();
        after = Some(page.next);
        if page.entries.is_empty() {
            return (entries, after);
        }
        entries.extend(page.entries.iter().map(Entry::from));
    }
}

/// A read as the history checker takes it.
pub(crate) fn read(seen: &AccountState, span: Span) -> Read {
    let slot = |slot: &Slot| (slot.index.get(), slot.balance, slot.version);
    Read {
        account: seen.id.to_string(),
        balance: seen.balance,
        held: seen.held,
        pending: seen.pending,
        slots: seen.slots.iter().map(slot).collect(),
        span,
    }
}

pub(crate) fn receipt(told: &Value, replayed: bool, span: Span) -> Receipt {
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
