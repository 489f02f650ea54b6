//! Outcomes, accounts and entries -> JSON.
//!
//! Each body is a function of what the ledger stored and of nothing else, which is what makes a replay the same byte
//! for byte. Times are RFC 3339 in UTC with exactly six decimals.

use std::fmt;

use serde::{Serialize, Serializer};

use super::cursor;
use super::error::Problem;
use crate::account::{AccountId, Entry, Hold, Link, RequestId, Slot, SlotIndex, Timestamp};
use crate::command::{AccountView, Leg, Outcome, PastView, Posting, Receipt, RequestView};
use crate::store::{Cursor, EntryPage};

/// `receipt`: what a posted operation answers.
#[derive(Serialize)]
pub(super) struct ReceiptJson<'a> {
    request_id: Shown<&'a RequestId>,
    account_id: Shown<&'a AccountId>,
    r#type: &'static str,
    amount: i64,
    currency: &'a str,
    status: &'static str,
    at: Shown<Timestamp>,
    entries: Legs<'a>,
}

/// Written straight from the receipt.
struct Legs<'a>(&'a [Leg]);

impl Serialize for Legs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(LegJson::from))
    }
}

#[derive(Serialize)]
struct LegJson<'a> {
    account_id: Shown<&'a AccountId>,
    slot: u8,
    version: u64,
    delta: i64,
    #[serde(skip_serializing_if = "is_zero")]
    held_delta: i64,
    balance_after: i64,
}

/// `account`: its rules and its money at one cut.
#[derive(Serialize)]
pub(super) struct AccountJson<'a> {
    account_id: Shown<&'a AccountId>,
    currency: &'a str,
    status: &'static str,
    floor: i64,
    credit: &'static str,
    debit: &'static str,
    balance: i64,
    available: i64,
    held: i64,
    pending: i64,
    slots: Vec<SlotJson>,
}

/// What an account had at a moment of its past.
#[derive(Serialize)]
pub(super) struct PastJson<'a> {
    account_id: Shown<&'a AccountId>,
    currency: &'a str,
    /// `null` before the first entry.
    at: Option<Shown<Timestamp>>,
    /// Its place in the statement.
    cursor: String,
    balance: i64,
    held: i64,
    pending: i64,
    slots: Vec<SlotJson>,
}

/// One page of the list of accounts.
#[derive(Serialize)]
pub(super) struct AccountsJson<'a> {
    accounts: Vec<AccountJson<'a>>,
    next: String,
}

#[derive(Serialize)]
struct SlotJson {
    index: u8,
    balance: i64,
    version: u64,
}

/// `hold`: where it is in its life.
#[derive(Serialize)]
pub(super) struct HoldJson<'a> {
    hold_id: Shown<&'a RequestId>,
    amount: i64,
    captured: i64,
    released: i64,
    status: &'static str,
    /// `null` for one that never expires.
    expires_at: Option<Shown<Timestamp>>,
}

/// One page of a statement.
#[derive(Serialize)]
pub(super) struct PageJson<'a> {
    entries: Vec<EntryJson<'a>>,
    next: String,
}

/// One entry.
#[derive(Serialize)]
pub(super) struct EntryJson<'a> {
    slot: u8,
    version: u64,
    r#type: &'static str,
    /// `null` for a move that no request caused.
    request_id: Option<Shown<&'a RequestId>>,
    delta: i64,
    #[serde(skip_serializing_if = "is_zero")]
    held_delta: i64,
    balance_after: i64,
    at: Shown<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<LinkJson<'a>>,
}

/// One entry, of whichever account.
#[derive(Serialize)]
pub(super) struct EventJson<'a> {
    account_id: Shown<&'a AccountId>,
    #[serde(flatten)]
    entry: EntryJson<'a>,
}

#[derive(Serialize)]
struct LinkJson<'a> {
    kind: &'static str,
    id: LinkId<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum LinkId<'a> {
    Account(Shown<&'a AccountId>),
    Slot(Shown<u8>),
    Request(Shown<&'a RequestId>),
}

/// What is known of a request id.
#[derive(Serialize)]
pub(super) struct RequestJson<'a> {
    account_id: Shown<&'a AccountId>,
    request_id: Shown<&'a RequestId>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<ReceiptJson<'a>>,
    /// In place of a receipt, of a request that changed the account: as it became.
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<AccountJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

impl<'a> From<&'a Receipt> for ReceiptJson<'a> {
    fn from(receipt: &'a Receipt) -> Self {
        Self {
            request_id: Shown(&receipt.request),
            account_id: Shown(&receipt.account),
            r#type: receipt.kind.as_str(),
            amount: receipt.amount.minor(),
            currency: receipt.currency.as_str(),
            status: match receipt.posting {
                Posting::Posted => "posted",
                Posting::Pending => "pending",
            },
            at: Shown(receipt.at),
            entries: Legs(&receipt.legs),
        }
    }
}

impl<'a> From<&'a Leg> for LegJson<'a> {
    fn from(leg: &'a Leg) -> Self {
        Self {
            account_id: Shown(&leg.account),
            slot: leg.slot.get(),
            version: leg.version,
            delta: leg.delta,
            held_delta: leg.held_delta,
            balance_after: leg.balance_after,
        }
    }
}

impl<'a> From<&'a AccountView> for AccountJson<'a> {
    fn from(view: &'a AccountView) -> Self {
        let account = &view.account;
        Self {
            account_id: Shown(&account.id),
            currency: account.currency.as_str(),
            status: account.status.as_str(),
            floor: account.floor,
            credit: account.credit.as_str(),
            debit: account.debit.as_str(),
            balance: view.balance(),
            available: view.available(),
            held: view.held,
            pending: view.pending,
            slots: view.slots.iter().map(SlotJson::from).collect(),
        }
    }
}

impl<'a> From<&'a PastView> for PastJson<'a> {
    fn from(past: &'a PastView) -> Self {
        let seen = past.slots.iter().map(|slot| (slot.index, slot.version));
        Self {
            account_id: Shown(&past.account),
            currency: past.currency.as_str(),
            at: past.at.map(Shown),
            cursor: cursor::encode(&past.account, &Cursor(seen.collect())),
            balance: past.balance(),
            held: past.held,
            pending: past.pending,
            slots: past.slots.iter().map(SlotJson::from).collect(),
        }
    }
}

impl<'a> AccountsJson<'a> {
    /// `after`: where the page began.
    pub(super) fn new(views: &'a [AccountView], after: Option<&'a AccountId>) -> Self {
        let last = views.last().map(|view| &view.account.id);
        Self {
            accounts: views.iter().map(AccountJson::from).collect(),
            next: cursor::encode_account(last.or(after)),
        }
    }
}

impl<'a> From<&'a Hold> for HoldJson<'a> {
    fn from(hold: &'a Hold) -> Self {
        Self {
            hold_id: Shown(&hold.id),
            amount: hold.amount.minor(),
            captured: hold.captured,
            released: hold.released,
            status: hold.state.as_str(),
            expires_at: hold.expires_at.map(Shown),
        }
    }
}

impl From<&Slot> for SlotJson {
    fn from(slot: &Slot) -> Self {
        Self {
            index: slot.index.get(),
            balance: slot.balance,
            version: slot.version,
        }
    }
}

impl<'a> PageJson<'a> {
    pub(super) fn new(account: &AccountId, page: &'a EntryPage) -> Self {
        Self {
            entries: page.entries.iter().map(EntryJson::from).collect(),
            next: cursor::encode(account, &page.next),
        }
    }
}

impl<'a> From<&'a Entry> for EntryJson<'a> {
    fn from(entry: &'a Entry) -> Self {
        Self {
            slot: entry.slot.get(),
            version: entry.version,
            r#type: entry.kind.as_str(),
            request_id: entry.request.as_ref().map(Shown),
            delta: entry.delta,
            held_delta: entry.held_delta,
            balance_after: entry.balance_after,
            at: Shown(entry.at),
            link: entry.link.as_ref().map(LinkJson::from),
        }
    }
}

impl<'a> From<&'a Entry> for EventJson<'a> {
    fn from(entry: &'a Entry) -> Self {
        Self {
            account_id: Shown(&entry.account),
            entry: entry.into(),
        }
    }
}

impl<'a> From<&'a Link> for LinkJson<'a> {
    fn from(link: &'a Link) -> Self {
        let (kind, id) = match link {
            Link::Transfer(account) => ("transfer", LinkId::Account(Shown(account))),
            Link::Slot(slot) => ("slot", LinkId::Slot(Shown(SlotIndex::get(*slot)))),
            Link::Hold(hold) => ("hold", LinkId::Request(Shown(hold))),
            Link::Reversed(request) => ("reversed", LinkId::Request(Shown(request))),
        };
        Self { kind, id }
    }
}

impl<'a> RequestJson<'a> {
    pub(super) fn new(account: &'a AccountId, request: &'a RequestId, view: &'a RequestView) -> Self {
        let mut json = Self {
            account_id: Shown(account),
            request_id: Shown(request),
            status: "done",
            receipt: None,
            account: None,
            problem: None,
        };
        match view {
            RequestView::NotFound => json.status = "not_found",
            RequestView::InProgress => json.status = "in_progress",
            RequestView::Decided(Outcome::Posted(receipt)) => json.receipt = Some(receipt.into()),
            RequestView::Decided(Outcome::Amended(view)) => json.account = Some(view.as_ref().into()),
            RequestView::Decided(Outcome::Refused(refusal)) => {
                json.status = "refused";
                json.problem = Some(Problem::from(refusal));
            }
        }
        json
    }
}

/// Written as the string that it displays as.
pub(super) struct Shown<T>(pub(super) T);

impl<T: fmt::Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if hands out a reference"
)]
const fn is_zero(number: &i64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{ReceiptKind, Refusal};
    use crate::money::{Amount, Currency};

    fn receipt() -> Receipt {
        let account = AccountId::new("alice").unwrap();
        Receipt {
            request: RequestId::new("r\"1").unwrap(),
            kind: ReceiptKind::Debit,
            amount: Amount::new(40).unwrap(),
            currency: Currency::new("EUR").unwrap(),
            posting: Posting::Posted,
            at: Timestamp(1_700_000_000_000_001),
            legs: vec![Leg {
                account: account.clone(),
                slot: SlotIndex::PRIMARY,
                version: 2,
                delta: -40,
                held_delta: 0,
                balance_after: 60,
            }],
            account,
        }
    }

    #[test]
    fn a_receipt_is_written_in_the_order_of_the_contract_without_a_zero_held_delta() {
        assert_eq!(
            serde_json::to_string(&ReceiptJson::from(&receipt())).unwrap(),
            r#"{"request_id":"r\"1","account_id":"alice","type":"debit","amount":40,"currency":"EUR","status":"posted","at":"2023-11-14T22:13:20.000001Z","entries":[{"account_id":"alice","slot":0,"version":2,"delta":-40,"balance_after":60}]}"#
        );
    }

    #[test]
    fn a_time_has_six_decimals_also_on_the_full_second() {
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000000Z");
        assert_eq!(Timestamp(-1).to_string(), "1969-12-31T23:59:59.999999Z");
    }

    #[test]
    fn a_refused_request_is_looked_up_with_the_problem_that_it_was_answered_with() {
        let account = AccountId::new("alice").unwrap();
        let request = RequestId::new("r1").unwrap();
        let view = RequestView::Decided(Outcome::Refused(Refusal::Abandoned));
        let json = serde_json::to_value(RequestJson::new(&account, &request, &view)).unwrap();
        assert_eq!(json["status"], "refused");
        assert_eq!(json["problem"]["code"], "abandoned");
        assert_eq!(json.get("receipt"), None);
    }
}
