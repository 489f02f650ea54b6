//! JSON that the wallet writes -> types. Unknown fields are passed over: a wallet may learn to tell more.

use std::fmt::Display;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::{CallError, Problem, excerpt};
use super::told::{AccountPage, AccountState, Done, Outcome, Past, RequestState, StatementPage};
use crate::account::{
    AccountId, CreditMode, DebitMode, Entry, EntryKind, Hold, HoldState, Link, RequestId, Slot, SlotIndex,
    Status, Timestamp,
};
use crate::command::{Leg, PastView, Posting, Receipt, ReceiptKind};
use crate::money::{Amount, Currency};

/// What stands behind a body and is not what it should be.
type Read<T> = Result<T, String>;

/// A body that is read as one kind of thing.
pub(super) trait Told: Sized {
    type Json: DeserializeOwned;

    fn of(json: Self::Json) -> Read<Self>;
}

/// Reads a body.
///
/// # Errors
/// `Unreadable`, with what is wrong.
pub(super) fn read<T: Told>(body: &[u8]) -> Result<T, CallError> {
    let json = serde_json::from_slice(body).map_err(|error| error.to_string());
    json.and_then(T::of).map_err(|error| CallError::Unreadable {
        what: format!("{error} in {}", excerpt(body)),
    })
}

#[derive(Deserialize)]
pub(super) struct ReceiptJson {
    request_id: String,
    account_id: String,
    r#type: String,
    amount: i64,
    currency: String,
    status: String,
    at: String,
    entries: Vec<LegJson>,
}

#[derive(Deserialize)]
struct LegJson {
    account_id: String,
    slot: u8,
    version: u64,
    delta: i64,
    #[serde(default)]
    held_delta: i64,
    balance_after: i64,
}

#[derive(Deserialize)]
pub(super) struct AccountJson {
    account_id: String,
    currency: String,
    status: String,
    floor: i64,
    credit: String,
    debit: String,
    balance: i64,
    available: i64,
    held: i64,
    pending: i64,
    slots: Vec<SlotJson>,
}

#[derive(Deserialize)]
struct SlotJson {
    index: u8,
    balance: i64,
    version: u64,
}

#[derive(Deserialize)]
pub(super) struct AccountsJson {
    accounts: Vec<AccountJson>,
    next: String,
}

#[derive(Deserialize)]
pub(super) struct PastJson {
    account_id: String,
    currency: String,
    at: Option<String>,
    cursor: String,
    held: i64,
    pending: i64,
    slots: Vec<SlotJson>,
}

#[derive(Deserialize)]
pub(super) struct HoldJson {
    hold_id: String,
    amount: i64,
    captured: i64,
    released: i64,
    status: String,
    expires_at: Option<String>,
}

/// A page of the statement of an account, which the entries do not name.
#[derive(Deserialize)]
struct PageJson {
    entries: Vec<EntryJson>,
    next: String,
}

#[derive(Deserialize)]
struct EntryJson {
    slot: u8,
    version: u64,
    r#type: String,
    request_id: Option<String>,
    delta: i64,
    #[serde(default)]
    held_delta: i64,
    balance_after: i64,
    at: String,
    link: Option<LinkJson>,
}

/// What an entry has beside its other fields where it stands alone.
#[derive(Deserialize)]
struct OfAccount {
    account_id: String,
}

#[derive(Deserialize)]
struct LinkJson {
    kind: String,
    id: String,
}

#[derive(Deserialize)]
pub(super) struct RequestJson {
    status: String,
    receipt: Option<ReceiptJson>,
    account: Option<AccountJson>,
    problem: Option<ProblemJson>,
}

#[derive(Deserialize)]
struct ProblemJson {
    status: u16,
    code: String,
    detail: String,
    field: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct BatchJson {
    applied: bool,
    results: Vec<ResultJson>,
}

#[derive(Deserialize)]
struct ResultJson {
    status: u16,
    receipt: Option<ReceiptJson>,
    problem: Option<ProblemJson>,
}

/// An answer to a batch.
pub(super) struct BatchReply {
    pub(super) applied: bool,
    pub(super) results: Vec<BatchResult>,
}

/// What an operation's own route would have answered.
pub(super) enum BatchResult {
    Done(Outcome<Receipt>),
    Problem(Problem),
}

impl Told for BatchReply {
    type Json = BatchJson;

    fn of(json: BatchJson) -> Read<Self> {
        let result = |result: ResultJson| match (result.receipt, result.problem) {
            (Some(receipt), _) => Ok(BatchResult::Done(Outcome::Done {
                told: Receipt::of(receipt)?,
                replayed: result.status == 200,
            })),
            (None, Some(problem)) => Ok(BatchResult::Problem(problem.into())),
            (None, None) => Err(format!("a result has status {} and nothing else", result.status)),
        };
        Ok(Self {
            applied: json.applied,
            results: json.results.into_iter().map(result).collect::<Read<_>>()?,
        })
    }
}

impl From<ProblemJson> for Problem {
    fn from(json: ProblemJson) -> Self {
        Self {
            status: json.status,
            code: json.code,
            detail: json.detail,
            field: json.field,
        }
    }
}

impl Told for Receipt {
    type Json = ReceiptJson;

    fn of(json: ReceiptJson) -> Read<Self> {
        Ok(Self {
            account: parsed("account_id", AccountId::new(&json.account_id))?,
            request: parsed("request_id", RequestId::new(&json.request_id))?,
            kind: one_of(
                "type",
                &json.r#type,
                &ReceiptKind::ALL.map(|kind| (kind.as_str(), kind)),
            )?,
            amount: parsed("amount", Amount::new(json.amount))?,
            currency: parsed("currency", Currency::new(&json.currency))?,
            posting: one_of("status", &json.status, &POSTINGS)?,
            at: time("at", &json.at)?,
            legs: json.entries.into_iter().map(leg).collect::<Read<_>>()?,
        })
    }
}

fn leg(json: LegJson) -> Read<Leg> {
    Ok(Leg {
        account: parsed("account_id", AccountId::new(&json.account_id))?,
        slot: slot_index(json.slot)?,
        version: json.version,
        delta: json.delta,
        held_delta: json.held_delta,
        balance_after: json.balance_after,
    })
}

impl Told for AccountState {
    type Json = AccountJson;

    fn of(json: AccountJson) -> Read<Self> {
        Ok(Self {
            id: parsed("account_id", AccountId::new(&json.account_id))?,
            currency: parsed("currency", Currency::new(&json.currency))?,
            status: one_of("status", &json.status, &STATUSES)?,
            floor: json.floor,
            credit: one_of("credit", &json.credit, &CREDIT_MODES)?,
            debit: one_of("debit", &json.debit, &DEBIT_MODES)?,
            balance: json.balance,
            available: json.available,
            held: json.held,
            pending: json.pending,
            slots: slots(json.slots)?,
        })
    }
}

fn slots(json: Vec<SlotJson>) -> Read<Vec<Slot>> {
    let slot = |slot: SlotJson| {
        Ok(Slot {
            index: slot_index(slot.index)?,
            balance: slot.balance,
            version: slot.version,
        })
    };
    json.into_iter().map(slot).collect()
}

impl Told for AccountPage {
    type Json = AccountsJson;

    fn of(json: AccountsJson) -> Read<Self> {
        let accounts = json.accounts.into_iter().map(AccountState::of);
        Ok(Self {
            accounts: accounts.collect::<Read<_>>()?,
            next: json.next,
        })
    }
}

impl Told for Past {
    type Json = PastJson;

    fn of(json: PastJson) -> Read<Self> {
        let view = PastView {
            account: parsed("account_id", AccountId::new(&json.account_id))?,
            currency: parsed("currency", Currency::new(&json.currency))?,
            at: json.at.map(|at| time("at", &at)).transpose()?,
            slots: slots(json.slots)?,
            held: json.held,
            pending: json.pending,
        };
        let cursor = json.cursor;
        Ok(Self { view, cursor })
    }
}

impl Told for Hold {
    type Json = HoldJson;

    fn of(json: HoldJson) -> Read<Self> {
        Ok(Self {
            id: parsed("hold_id", RequestId::new(&json.hold_id))?,
            amount: parsed("amount", Amount::new(json.amount))?,
            captured: json.captured,
            released: json.released,
            state: one_of(
                "status",
                &json.status,
                &HOLD_STATES.map(|state| (state.as_str(), state)),
            )?,
            expires_at: json.expires_at.map(|at| time("expires_at", &at)).transpose()?,
        })
    }
}

/// Reads a page of the statement of `account`.
///
/// # Errors
/// `Unreadable`, with what is wrong.
pub(super) fn read_page(account: &AccountId, body: &[u8]) -> Result<StatementPage, CallError> {
    let json = serde_json::from_slice(body).map_err(|error| error.to_string());
    let page = json.and_then(|PageJson { entries, next }| {
        let entries = entries.into_iter().map(|json| entry(account, json));
        let entries = entries.collect::<Read<_>>()?;
        Ok(StatementPage { entries, next })
    });
    page.map_err(|error| CallError::Unreadable {
        what: format!("{error} in {}", excerpt(body)),
    })
}

/// Reads an entry that names its account.
///
/// # Errors
/// `Unreadable`, with what is wrong.
pub(super) fn read_event(data: &[u8]) -> Result<Entry, CallError> {
    let of = |data| {
        let OfAccount { account_id } = serde_json::from_slice(data).map_err(|error| error.to_string())?;
        let account = parsed("account_id", AccountId::new(&account_id))?;
        let json = serde_json::from_slice(data).map_err(|error| error.to_string())?;
        entry(&account, json)
    };
    of(data).map_err(|error: String| CallError::Unreadable {
        what: format!("{error} in {}", excerpt(data)),
    })
}

fn entry(account: &AccountId, json: EntryJson) -> Read<Entry> {
    let request = json
        .request_id
        .map(|id| parsed("request_id", RequestId::new(&id)));
    Ok(Entry {
        account: account.clone(),
        slot: slot_index(json.slot)?,
        version: json.version,
        kind: one_of(
            "type",
            &json.r#type,
            &EntryKind::ALL.map(|kind| (kind.as_str(), kind)),
        )?,
        request: request.transpose()?,
        delta: json.delta,
        held_delta: json.held_delta,
        balance_after: json.balance_after,
        at: time("at", &json.at)?,
        link: json.link.map(link).transpose()?,
    })
}

fn link(LinkJson { kind, id }: LinkJson) -> Read<Link> {
    let request = || parsed("id", RequestId::new(&id));
    match kind.as_str() {
        "transfer" => Ok(Link::Transfer(parsed("id", AccountId::new(&id))?)),
        "slot" => Ok(Link::Slot(slot_index(parsed("id", id.parse())?)?)),
        "hold" => Ok(Link::Hold(request()?)),
        "reversed" => Ok(Link::Reversed(request()?)),
        other => Err(format!("kind is {other:?}")),
    }
}

impl Told for RequestState {
    type Json = RequestJson;

    fn of(json: RequestJson) -> Read<Self> {
        let done = |told| {
            let replayed = true;
            Self::Decided(Outcome::Done { told, replayed })
        };
        match (json.status.as_str(), json.receipt, json.account, json.problem) {
            ("not_found", ..) => Ok(Self::NotFound),
            ("in_progress", ..) => Ok(Self::InProgress),
            ("done", Some(receipt), ..) => Ok(done(Done::Receipt(Receipt::of(receipt)?))),
            ("done", None, Some(account), _) => Ok(done(Done::Account(AccountState::of(account)?))),
            ("refused", _, _, Some(problem)) => Ok(Self::Decided(Outcome::Refused(problem.into()))),
            (other, ..) => Err(format!("status is {other:?} without what belongs to it")),
        }
    }
}

const HOLD_STATES: [HoldState; 4] = [
    HoldState::Open,
    HoldState::Captured,
    HoldState::Released,
    HoldState::Expired,
];

const POSTINGS: [(&str, Posting); 2] = [("posted", Posting::Posted), ("pending", Posting::Pending)];

pub(super) const STATUSES: [(&str, Status); 4] = [
    ("active", Status::Active),
    ("debit_frozen", Status::DebitFrozen),
    ("frozen", Status::Frozen),
    ("closed", Status::Closed),
];

pub(super) const CREDIT_MODES: [(&str, CreditMode); 3] = [
    ("slot", CreditMode::Slot),
    ("upsert", CreditMode::Upsert),
    ("journal", CreditMode::Journal),
];

pub(super) const DEBIT_MODES: [(&str, DebitMode); 2] =
    [("primary", DebitMode::Primary), ("hashed", DebitMode::Hashed)];

/// The name of a value in such a table.
pub(super) fn name_of<T: PartialEq>(value: T, names: &[(&'static str, T)]) -> &'static str {
    let found = names.iter().find(|(_, named)| *named == value);
    found.map_or("", |(name, _)| name)
}

fn one_of<T: Copy>(field: &str, text: &str, names: &[(&str, T)]) -> Read<T> {
    let found = names.iter().find(|(name, _)| *name == text);
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| format!("{field} is {text:?}"))
}

fn parsed<T, E: Display>(field: &str, read: Result<T, E>) -> Read<T> {
    read.map_err(|error| format!("{field} {error}"))
}

fn slot_index(index: u8) -> Read<SlotIndex> {
    SlotIndex::new(index).ok_or_else(|| format!("there is no slot {index}"))
}

fn time(field: &str, text: &str) -> Read<Timestamp> {
    let time: jiff::Timestamp = parsed(field, text.parse())?;
    Ok(Timestamp(time.as_microsecond()))
}
