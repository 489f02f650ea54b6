//! One decided task as a line: everything that it changed.
//!
//! Members in this order, absent where there is nothing: `account`, `request`, `entries`, `pending_added`,
//! `pending_settled`, `holds`. An entry is as the API shows it, with its account. docs/tamper-evidence.md has the table.

use std::ops::Range;

use super::decision;
use super::json::{Object, object};
use crate::account::{Account, AccountId, Entry, Hold, Link, Pending, RequestId, Timestamp};
use crate::command::Changes;

/// A line, without its line feed.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    text: &'a [u8],
    entries: &'a [Range<usize>],
}

impl<'a> Line<'a> {
    /// UTF-8, one JSON object.
    #[must_use]
    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    /// The part of it that each entry is, in the order of [`Changes::entries`].
    pub fn entries(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let text = self.text;
        let places = self.entries.iter().cloned();
        places.map(move |place| text.get(place).unwrap_or_default())
    }
}

/// Writes lines, one after the other, into one buffer.
#[derive(Debug, Default)]
pub struct Lines {
    text: Vec<u8>,
    entries: Vec<Range<usize>>,
    times: Times,
}

impl Lines {
    /// The line of what one task changed.
    pub fn write(&mut self, changes: &Changes) -> Line<'_> {
        let Self { text, entries, times } = self;
        text.clear();
        entries.clear();
        object(text, |line| {
            if let Some(account) = &changes.account {
                line.object("account", |object| write_account(object, account));
            }
            if let Some(record) = &changes.request {
                line.object("request", |object| {
                    decision::write_request(object, record, times);
                });
            }
            if !changes.entries.is_empty() {
                *entries = line.array("entries", &changes.entries, |object, entry| {
                    write_entry(object, entry, times);
                });
            }
            write_pending(line, changes, times);
            if !changes.holds.is_empty() {
                line.array("holds", &changes.holds, |object, (account, hold)| {
                    write_hold(object, account, hold, times);
                });
            }
        });
        Line { text, entries }
    }
}

/// Times as text. Those of a task are mostly one.
#[derive(Debug, Default)]
pub(super) struct Times {
    last: Option<(Timestamp, String)>,
}

impl Times {
    pub(super) fn show(&mut self, time: Timestamp) -> &str {
        let known = self.last.take().filter(|(last, _)| *last == time);
        let (_, text) = self
            .last
            .insert(known.unwrap_or_else(|| (time, time.to_string())));
        text
    }
}

/// An account's terms.
pub(super) fn write_account(object: &mut Object<'_>, account: &Account) {
    object.text("account_id", account.id.as_str());
    object.text("currency", account.currency.as_str());
    object.text("status", account.status.as_str());
    object.signed("floor", account.floor);
    object.number("slots", account.slots.get().into());
    object.text("credit", account.credit.as_str());
    object.text("debit", account.debit.as_str());
}

fn write_entry(object: &mut Object<'_>, entry: &Entry, times: &mut Times) {
    object.text("account_id", entry.account.as_str());
    object.number("slot", entry.slot.get().into());
    object.number("version", entry.version);
    object.text("type", entry.kind.as_str());
    object.optional_text("request_id", entry.request.as_ref().map(RequestId::as_str));
    object.signed("delta", entry.delta);
    if entry.held_delta != 0 {
        object.signed("held_delta", entry.held_delta);
    }
    object.signed("balance_after", entry.balance_after);
    object.text("at", times.show(entry.at));
    write_link(object, entry.link.as_ref());
}

fn write_link(object: &mut Object<'_>, link: Option<&Link>) {
    let Some(link) = link else { return };
    object.object("link", |object| match link {
        Link::Transfer(account) => {
            object.text("kind", "transfer");
            object.text("id", account.as_str());
        }
        Link::Slot(slot) => {
            object.text("kind", "slot");
            object.text("id", &slot.get().to_string());
        }
        Link::Hold(hold) => {
            object.text("kind", "hold");
            object.text("id", hold.as_str());
        }
        Link::Reversed(request) => {
            object.text("kind", "reversed");
            object.text("id", request.as_str());
        }
    });
}

fn write_pending(line: &mut Object<'_>, changes: &Changes, times: &mut Times) {
    if !changes.pending_added.is_empty() {
        line.array(
            "pending_added",
            &changes.pending_added,
            |object, (account, row)| {
                write_pending_row(object, account, row, times);
            },
        );
    }
    if !changes.pending_settled.is_empty() {
        line.array(
            "pending_settled",
            &changes.pending_settled,
            |object, (account, number)| {
                object.text("account_id", account.as_str());
                object.number("number", *number);
            },
        );
    }
}

fn write_pending_row(object: &mut Object<'_>, account: &AccountId, row: &Pending, times: &mut Times) {
    object.text("account_id", account.as_str());
    object.number("number", row.number);
    object.signed("amount", row.amount.minor());
    object.text("request_id", row.request.as_str());
    object.text("at", times.show(row.at));
    write_link(object, row.link.as_ref());
}

fn write_hold(object: &mut Object<'_>, account: &AccountId, hold: &Hold, times: &mut Times) {
    object.text("account_id", account.as_str());
    object.text("hold_id", hold.id.as_str());
    object.signed("amount", hold.amount.minor());
    object.signed("captured", hold.captured);
    object.signed("released", hold.released);
    object.text("status", hold.state.as_str());
    let expires_at = hold.expires_at.map(|at| times.show(at));
    object.optional_text("expires_at", expires_at);
}

#[cfg(test)]
mod tests;
