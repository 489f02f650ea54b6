//! In lines of text. Amounts in minor units.

use wallet_backend::account::{AccountId, Hold, HoldState, RequestId, Timestamp};
use wallet_backend::command::{AccountView, Outcome, Posting, Receipt};
use wallet_backend::store::embedded::{Decided, Explained, Found};

use super::{proof, words};

/// The account, and how its balance is made up.
pub(super) fn account(explained: &Explained) -> Vec<String> {
    let Explained {
        view,
        holds,
        pending,
        last,
        end,
        entries,
        at,
        ..
    } = explained;
    let account = &view.account;
    let (id, currency, status) = (&account.id, account.currency.as_str(), account.status.as_str());
    let (slots, floor) = (account.slots.get(), account.floor);
    let (credit, debit) = (account.credit.as_str(), account.debit.as_str());
    let mut lines = vec![
        format!(
            "account {id}: {status}, {currency}, floor {floor}, slots {slots}, credit {credit}, debit {debit}"
        ),
        format!(
            "as of entry #{entries} of the ledger ({}, byte {})",
            end.file, end.byte
        ),
    ];
    lines.extend(sums(view, holds));
    for slot in &view.slots {
        let unused = if slot.index.get() < slots {
            ""
        } else {
            ", out of use"
        };
        let (index, balance, version) = (slot.index.get(), slot.balance, slot.version);
        lines.push(format!("  slot {index}: {balance}, version {version}{unused}"));
    }
    lines.extend(holds.iter().map(|each| format!("  {}", hold(each, *at))));
    for row in pending {
        let (amount, request, at) = (row.amount.minor(), &row.request, row.at);
        lines.push(format!("  pending {amount} of {request} since {at}"));
    }
    if !last.is_empty() {
        lines.push("last entries".to_owned());
    }
    for event in last {
        let entry = words::entry(id, event.number, &event.entry);
        let by = event.entry.request.as_ref();
        let by = by.map_or_else(String::new, |request| format!(", {request}"));
        lines.push(format!("  {} {entry}{by}", event.entry.at));
    }
    lines
}

fn sums(view: &AccountView, holds: &[Hold]) -> [String; 2] {
    let (balance, held, pending) = (view.balance(), view.held, view.pending);
    let slots = balance.saturating_sub(held).saturating_sub(pending);
    let in_holds = holds.iter().map(Hold::rest).fold(0, i64::saturating_add);
    let expired = match in_holds.saturating_sub(held) {
        0 => String::new(),
        expired => format!(" (expired holds {expired} among it)"),
    };
    let (floor, available) = (view.account.floor, view.available());
    let above = balance.saturating_sub(held).saturating_sub(floor);
    let shown = if above < 0 {
        format!("{above}, so 0")
    } else {
        available.to_string()
    };
    [
        format!("  balance {balance} = slots {slots} + held {held} + pending {pending}{expired}"),
        format!("  available: balance {balance} - held {held} - floor {floor} = {shown}"),
    ]
}

/// As it is at `now`: one whose time is over counts as expired before it is swept.
fn hold(hold: &Hold, now: Timestamp) -> String {
    let Hold {
        id,
        amount,
        captured,
        released,
        state,
        expires_at,
    } = hold;
    let (rest, amount) = (hold.rest(), amount.minor());
    let until = match (state, expires_at) {
        (HoldState::Open, Some(at)) if *at <= now => {
            return format!("hold {id}: expired at {at}, {rest} of {amount} are available again");
        }
        (HoldState::Open, Some(at)) => format!(", until {at}"),
        (HoldState::Open, None) => ", without a deadline".to_owned(),
        (HoldState::Captured | HoldState::Released | HoldState::Expired, _) => String::new(),
    };
    let state = state.as_str();
    format!("hold {id}: {state}, {rest} of {amount} left, captured {captured}, released {released}{until}")
}

/// What became of a request.
pub(super) fn request(explained: &Explained, id: &RequestId, found: &Found) -> Vec<String> {
    let account = &explained.view.account.id;
    match found {
        Found::Nothing => vec![
            format!("request {id}: not decided in this log"),
            "  It was never sent, or it is still on its way. To have it done, send the SAME id again: under another id it"
                .to_owned(),
            "  could be done twice. To be sure that it never is, abandon it:".to_owned(),
            format!("  POST /v1/requests/{account}/{id}/abandon"),
        ],
        Found::Decided(decided) => decision((account, explained.at), id, decided),
    }
}

fn decision((account, now): (&AccountId, Timestamp), id: &RequestId, decided: &Decided) -> Vec<String> {
    let Some(record) = &decided.changes.request else {
        return Vec::new();
    };
    let asked = record.operation.as_ref().map_or_else(
        || "abandoned before its command was seen".to_owned(),
        words::operation,
    );
    let place = &decided.place;
    let mut lines = vec![
        format!("request {id}: {asked}"),
        format!("  decided in {}, byte {}", place.file, place.byte),
    ];
    match &record.outcome {
        Outcome::Posted(receipt) => lines.push(posted(receipt)),
        Outcome::Amended(view) => {
            let account = &view.account;
            let (status, slots, floor) = (account.status.as_str(), account.slots.get(), account.floor);
            let (credit, debit) = (account.credit.as_str(), account.debit.as_str());
            lines.push(format!(
                "  done: {status}, floor {floor}, slots {slots}, credit {credit}, debit {debit} from then on"
            ));
        }
        Outcome::Refused(refusal) => {
            lines.push(format!("  refused, {}: {refusal}", refusal.code()));
            let proof = decided.then.as_ref();
            let proof = proof.map(|then| proof::of(refusal, record.operation.as_ref(), then));
            lines.extend(proof.into_iter().flatten().map(|line| format!("  {line}")));
            lines.push("  the same id answers this for ever".to_owned());
        }
    }
    lines.extend(words::collected(&decided.changes).map(|why| format!("  {why}")));
    for (number, entry) in (decided.first..).zip(&decided.changes.entries) {
        lines.push(format!("  {}", words::entry(account, number, entry)));
    }
    lines.extend(since(decided, now));
    lines
}

fn posted(receipt: &Receipt) -> String {
    let (kind, amount) = (receipt.kind.as_str(), receipt.amount.minor());
    let (currency, at) = (receipt.currency.as_str(), receipt.at);
    let waits = match receipt.posting {
        Posting::Posted => "posted",
        Posting::Pending => "posted, its credit pending",
    };
    format!("  {waits}: {kind} of {amount} {currency} at {at}")
}

/// What became of it later.
fn since(decided: &Decided, now: Timestamp) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(entry) = &decided.settled {
        let (account, slot, version, at) = (&entry.account, entry.slot.get(), entry.version, entry.at);
        lines.push(format!(
            "  since: its credit reached slot {slot} of {account} as v{version} at {at}"
        ));
    }
    if let Some(by) = &decided.reversed_by {
        lines.push(format!("  since: reversed by {by}"));
    }
    if let Some(placed) = &decided.hold {
        lines.push(format!("  since: {}", hold(placed, now)));
    }
    lines
}
