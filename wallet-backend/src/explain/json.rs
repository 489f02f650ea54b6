//! As one object of JSON. Fields are named as in the API; `record` is the record's canonical line, as
//! docs/tamper-evidence.md has it.

use serde_json::{Value, json};
use wallet_backend::account::{Account, Entry, Hold, Pending, RequestId, Slot};
use wallet_backend::command::{AccountView, Changes, Outcome};
use wallet_backend::journal::Lines;
use wallet_backend::store::Event;
use wallet_backend::store::embedded::{Decided, Explained, Found, LogPlace, Then};

use super::{proof, words};

/// # Errors
/// A record whose line is no JSON, which would be a fault of this program.
pub(super) fn explained(
    explained: &Explained,
    asked: Option<(&RequestId, &Found)>,
) -> Result<Value, serde_json::Error> {
    let Explained {
        at,
        end,
        entries,
        view,
        holds,
        pending,
        last,
        ..
    } = explained;
    let mut whole = json!({
        "as_of": {"at": at.to_string(), "entries": entries, "log": place(end)},
        "account": account(view),
        "holds": holds.iter().map(hold).collect::<Vec<_>>(),
        "pending": pending.iter().map(waiting).collect::<Vec<_>>(),
        "last_entries": last.iter().map(event).collect::<Result<Vec<_>, _>>()?,
    });
    if let (Some((id, found)), Some(whole)) = (asked, whole.as_object_mut()) {
        whole.insert("request".to_owned(), request(id, found)?);
    }
    Ok(whole)
}

fn place(place: &LogPlace) -> Value {
    json!({"file": place.file, "byte": place.byte})
}

fn account(view: &AccountView) -> Value {
    let mut shown = terms(&view.account);
    if let Some(shown) = shown.as_object_mut() {
        let sums = [
            ("balance", view.balance()),
            ("available", view.available()),
            ("held", view.held),
            ("pending", view.pending),
        ];
        for (name, sum) in sums {
            shown.insert(name.to_owned(), sum.into());
        }
        shown.insert("slots".to_owned(), view.slots.iter().map(slot).collect());
    }
    shown
}

fn terms(account: &Account) -> Value {
    json!({
        "account_id": account.id.as_str(),
        "currency": account.currency.as_str(),
        "status": account.status.as_str(),
        "floor": account.floor,
        "slots_in_use": account.slots.get(),
        "credit": account.credit.as_str(),
        "debit": account.debit.as_str(),
    })
}

fn slot(slot: &Slot) -> Value {
    json!({"index": slot.index.get(), "balance": slot.balance, "version": slot.version})
}

fn hold(hold: &Hold) -> Value {
    json!({
        "hold_id": hold.id.as_str(),
        "amount": hold.amount.minor(),
        "captured": hold.captured,
        "released": hold.released,
        "rest": hold.rest(),
        "status": hold.state.as_str(),
        "expires_at": hold.expires_at.map(|at| at.to_string()),
    })
}

fn waiting(row: &Pending) -> Value {
    json!({
        "number": row.number,
        "amount": row.amount.minor(),
        "request_id": row.request.as_str(),
        "at": row.at.to_string(),
    })
}

/// An entry as its line has it, with its number and what its slot had before.
fn event(event: &Event) -> Result<Value, serde_json::Error> {
    let changes = Changes {
        entries: vec![event.entry.clone()],
        ..Changes::default()
    };
    let mut line = record(&changes)?;
    let mut shown = line
        .pointer_mut("/entries/0")
        .map(Value::take)
        .unwrap_or_default();
    if let Some(shown) = shown.as_object_mut() {
        let Entry {
            balance_after, delta, ..
        } = &event.entry;
        shown.insert("number".to_owned(), event.number.into());
        shown.insert(
            "balance_before".to_owned(),
            balance_after.saturating_sub(*delta).into(),
        );
    }
    Ok(shown)
}

fn record(changes: &Changes) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(Lines::default().write(changes).text())
}

fn request(id: &RequestId, found: &Found) -> Result<Value, serde_json::Error> {
    match found {
        Found::Nothing => Ok(json!({"request_id": id.as_str(), "status": "not_found"})),
        Found::Decided(decided) => decision(id, decided),
    }
}

fn decision(id: &RequestId, decided: &Decided) -> Result<Value, serde_json::Error> {
    let Decided {
        changes,
        first,
        place: at,
        settled,
        reversed_by,
        hold: placed,
        then,
    } = decided;
    let request = changes.request.as_ref();
    let refusal = request.and_then(|request| match &request.outcome {
        Outcome::Refused(refusal) => Some(refusal),
        Outcome::Posted(_) | Outcome::Amended(_) => None,
    });
    let operation = request.and_then(|request| request.operation.as_ref());
    let numbered = (*first..).zip(&changes.entries);
    let entries = numbered.map(|(number, entry)| {
        let entry = entry.clone();
        event(&Event { number, entry })
    });
    let proof = refusal.zip(then.as_ref());
    let settled = settled.as_ref().map(|entry| {
        json!({
            "account_id": entry.account.as_str(),
            "slot": entry.slot.get(),
            "version": entry.version,
            "at": entry.at.to_string(),
        })
    });
    Ok(json!({
        "request_id": id.as_str(),
        "status": if refusal.is_some() { "refused" } else { "done" },
        "log": place(at),
        "record": record(changes)?,
        "entries": entries.collect::<Result<Vec<_>, _>>()?,
        "collected": words::collected(changes),
        "settled": settled,
        "reversed_by": reversed_by.as_ref().map(RequestId::as_str),
        "hold": placed.as_ref().map(hold),
        "then": then.as_ref().map(seen),
        "proof": proof.map(|(refusal, then)| proof::of(refusal, operation, then)),
    }))
}

/// The account as a decision saw it.
fn seen(then: &Then) -> Value {
    json!({
        "terms": terms(&then.account),
        "slots": then.slots.iter().map(slot).collect::<Vec<_>>(),
        "pending": then.pending,
        "in_holds": then.held,
    })
}
