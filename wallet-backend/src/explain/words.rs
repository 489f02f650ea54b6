//! What was asked for, and why an entry was written, in words. Amounts in minor units.

use wallet_backend::account::{AccountId, Entry, EntryKind, Link, SlotIndex};
use wallet_backend::command::{Amendment, Changes, DebitAmount, Operation, Remainder};

/// An operation, as in "debit of 120".
pub(super) fn operation(operation: &Operation) -> String {
    let asked = match operation {
        Operation::Credit { amount, .. } => format!("credit of {}", amount.minor()),
        Operation::Debit { amount, .. } => match amount {
            DebitAmount::Exactly(amount) => format!("debit of {}", amount.minor()),
            DebitAmount::Max => "debit of all there is".to_owned(),
        },
        Operation::Hold { amount, expires_in } => {
            let term = expires_in.map_or_else(
                || "without a deadline".to_owned(),
                |term| format!("for {} s", term.seconds()),
            );
            format!("hold of {} {term}", amount.minor())
        }
        Operation::Capture {
            hold,
            amount,
            remainder,
        } => {
            let amount = amount.map_or_else(
                || "all that is left".to_owned(),
                |amount| amount.minor().to_string(),
            );
            let rest = match remainder {
                Remainder::Release => "the rest goes back",
                Remainder::Keep => "the rest stays held",
            };
            format!("capture of {amount} of hold {hold}, {rest}")
        }
        Operation::Release { hold } => format!("release of hold {hold}"),
        Operation::Transfer { to, amount, .. } => format!("transfer of {} to {to}", amount.minor()),
        Operation::Reversal { reverses } => format!("reversal of {reverses}"),
        Operation::Amend(amendment) => format!("change of the account: {}", amended(amendment)),
    };
    match operation.memo() {
        Some(memo) => format!("{asked}, memo {memo:?}"),
        None => asked,
    }
}

fn amended(amendment: &Amendment) -> String {
    let Amendment {
        status,
        slots,
        credit,
        debit,
        floor,
    } = amendment;
    let fields = [
        status.map(|status| format!("status {}", status.as_str())),
        slots.map(|slots| format!("slots {}", slots.get())),
        credit.map(|credit| format!("credit {}", credit.as_str())),
        debit.map(|debit| format!("debit {}", debit.as_str())),
        floor.map(|floor| format!("floor {floor}")),
    ];
    let changed: Vec<String> = fields.into_iter().flatten().collect();
    if changed.is_empty() {
        return "nothing".to_owned();
    }
    changed.join(", ")
}

/// An entry of `account`'s statement, or of another one's that is then named.
pub(super) fn entry(account: &AccountId, number: u64, entry: &Entry) -> String {
    let Entry {
        slot,
        version,
        kind,
        delta,
        held_delta,
        balance_after,
        ..
    } = entry;
    let whose = if entry.account == *account {
        String::new()
    } else {
        format!("{} ", entry.account)
    };
    let before = balance_after.saturating_sub(*delta);
    let sign = if *delta < 0 { '-' } else { '+' };
    let amount = delta.unsigned_abs();
    let held = match held_delta {
        0 => String::new(),
        more => format!(", held {more:+}"),
    };
    let why = why(entry).map_or_else(String::new, |why| format!(" ({why})"));
    let (slot, kind) = (slot.get(), kind.as_str());
    format!(
        "#{number} {whose}slot {slot} v{version} {kind}: {before} {sign} {amount} = {balance_after}{held}{why}"
    )
}

/// What its kind alone does not say.
fn why(entry: &Entry) -> Option<String> {
    let request = entry.request.as_ref();
    Some(match (entry.kind, &entry.link) {
        (EntryKind::Consolidate, Some(Link::Slot(other))) => {
            let towards = if entry.delta < 0 { "into" } else { "out of" };
            format!("{towards} slot {}", other.get())
        }
        (EntryKind::Settle, Some(Link::Transfer(from))) => {
            format!("the pending transfer {} from {from}", request?)
        }
        (EntryKind::Settle, _) => format!("the pending credit {}", request?),
        (EntryKind::Release, Some(Link::Hold(hold))) if request.is_none() => {
            format!("hold {hold} has expired")
        }
        (_, Some(Link::Hold(hold))) => format!("hold {hold}"),
        (EntryKind::TransferOut, Some(Link::Transfer(other))) => format!("to {other}"),
        (_, Some(Link::Transfer(other))) => format!("with {other}"),
        (_, Some(Link::Reversed(undone))) => format!("undoes {undone}"),
        (_, Some(Link::Slot(_)) | None) => return None,
    })
}

/// Why a request wrote entries before its own: what was brought together for it, and how much slot 0 had.
pub(super) fn collected(changes: &Changes) -> Option<String> {
    let operation = changes.request.as_ref()?.operation.as_ref()?;
    let is_own = |entry: &Entry| entry.delta < 0 && entry.kind != EntryKind::Consolidate;
    let first = changes.entries.first()?;
    let gathers = match first.kind {
        EntryKind::Consolidate | EntryKind::Settle => true,
        EntryKind::Release => first.request.is_none(),
        EntryKind::Credit
        | EntryKind::Debit
        | EntryKind::TransferIn
        | EntryKind::TransferOut
        | EntryKind::Hold
        | EntryKind::Capture
        | EntryKind::Reversal => false,
    };
    if !gathers {
        return None;
    }
    if let Operation::Amend(_) = operation {
        return Some("the slots beyond those in use were emptied into slot 0".to_owned());
    }
    let mut entries = changes.entries.iter();
    let taken = entries.find(|entry| is_own(entry) && entry.account == first.account)?;
    let mut entries = changes.entries.iter();
    let primary = entries.find(|entry| entry.slot == SlotIndex::PRIMARY && entry.account == first.account)?;
    let (had, needed) = (
        primary.balance_after.saturating_sub(primary.delta),
        taken.delta.unsigned_abs(),
    );
    Some(format!(
        "slot 0 had {had} and {needed} were needed: first came what had expired, then what was pending, then other \
         slots, until it was enough"
    ))
}
