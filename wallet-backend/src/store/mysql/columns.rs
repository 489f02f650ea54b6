//! Rows of the tables and the ledger's types, one into the other. What no column may hold is an error with its place.

use sqlx::mysql::MySqlRow;
use sqlx::{Row as _, Type};

use crate::account::{
    Account, AccountId, CreditMode, DebitMode, Entry, EntryKind, Hold, HoldState, Link, RequestId, Slot,
    SlotCount, SlotIndex, Status, Timestamp,
};
use crate::money::{Amount, Currency};

/// A row that says what it must not say.
#[derive(Debug, thiserror::Error)]
pub(super) enum ColumnError {
    #[error("column {column}: {reason}")]
    Value { column: &'static str, reason: String },
    #[error(transparent)]
    Read(#[from] sqlx::Error),
}

type Result<T> = std::result::Result<T, ColumnError>;

fn get<'r, T>(row: &'r MySqlRow, column: &'static str) -> Result<T>
where
    T: sqlx::Decode<'r, sqlx::MySql> + Type<sqlx::MySql>,
{
    Ok(row.try_get(column)?)
}

fn wrong(column: &'static str, found: impl std::fmt::Debug) -> ColumnError {
    let reason = format!("must not be {found:?}");
    ColumnError::Value { column, reason }
}

fn text<'r>(row: &'r MySqlRow, column: &'static str) -> Result<&'r str> {
    let bytes: &[u8] = get(row, column)?;
    std::str::from_utf8(bytes).map_err(|_| wrong(column, bytes))
}

fn optional_text<'r>(row: &'r MySqlRow, column: &'static str) -> Result<Option<&'r str>> {
    let bytes: Option<&[u8]> = get(row, column)?;
    bytes
        .map(|bytes| std::str::from_utf8(bytes).map_err(|_| wrong(column, bytes)))
        .transpose()
}

/// Of a closed set, the value with this number.
fn choose<T: Copy>(all: &[T], column: &'static str, number: u8) -> Result<T> {
    let found = all.get(usize::from(number));
    found.copied().ok_or_else(|| wrong(column, number))
}

/// The number of a value among its closed set.
fn number<T: PartialEq>(all: &[T], value: &T) -> u8 {
    let place = all.iter().position(|one| one == value);
    place
        .and_then(|place| u8::try_from(place).ok())
        .unwrap_or(u8::MAX)
}

const STATUSES: [Status; 4] = [
    Status::Active,
    Status::DebitFrozen,
    Status::Frozen,
    Status::Closed,
];
const CREDIT_MODES: [CreditMode; 3] = [CreditMode::Slot, CreditMode::Upsert, CreditMode::Journal];
const DEBIT_MODES: [DebitMode; 2] = [DebitMode::Primary, DebitMode::Hashed];
const HOLD_STATES: [HoldState; 4] = [
    HoldState::Open,
    HoldState::Captured,
    HoldState::Released,
    HoldState::Expired,
];

pub(super) fn of_status(status: Status) -> u8 {
    number(&STATUSES, &status)
}

pub(super) fn of_credit_mode(mode: CreditMode) -> u8 {
    number(&CREDIT_MODES, &mode)
}

pub(super) fn of_debit_mode(mode: DebitMode) -> u8 {
    number(&DEBIT_MODES, &mode)
}

pub(super) fn of_hold_state(state: HoldState) -> u8 {
    number(&HOLD_STATES, &state)
}

pub(super) fn of_entry_kind(kind: EntryKind) -> u8 {
    number(&EntryKind::ALL, &kind)
}

/// A link's kind, and what it names as text.
pub(super) fn of_link(link: &Link) -> (u8, String) {
    match link {
        Link::Transfer(account) => (0, account.as_str().to_owned()),
        Link::Slot(slot) => (1, slot.get().to_string()),
        Link::Hold(hold) => (2, hold.as_str().to_owned()),
        Link::Reversed(request) => (3, request.as_str().to_owned()),
    }
}

pub(super) fn account_id(row: &MySqlRow, column: &'static str) -> Result<AccountId> {
    let id = text(row, column)?;
    AccountId::new(id).map_err(|_| wrong(column, id))
}

pub(super) fn request_id(row: &MySqlRow, column: &'static str) -> Result<RequestId> {
    let id = text(row, column)?;
    RequestId::new(id).map_err(|_| wrong(column, id))
}

pub(super) fn slot_index(row: &MySqlRow) -> Result<SlotIndex> {
    let index: u8 = get(row, "slot_index")?;
    SlotIndex::new(index).ok_or_else(|| wrong("slot_index", index))
}

pub(super) fn currency(row: &MySqlRow) -> Result<Currency> {
    let code = text(row, "currency")?;
    Currency::new(code).map_err(|_| wrong("currency", code))
}

/// Of `account`, all columns.
pub(super) fn account(row: &MySqlRow) -> Result<Account> {
    let slots: u8 = get(row, "slots")?;
    Ok(Account {
        id: account_id(row, "account_id")?,
        currency: currency(row)?,
        status: choose(&STATUSES, "status", get(row, "status")?)?,
        floor: get(row, "floor")?,
        slots: SlotCount::new(slots).ok_or_else(|| wrong("slots", slots))?,
        credit: choose(&CREDIT_MODES, "credit_mode", get(row, "credit_mode")?)?,
        debit: choose(&DEBIT_MODES, "debit_mode", get(row, "debit_mode")?)?,
    })
}

/// Of `wallet_slot`: `slot_index`, `balance`, `version`.
pub(super) fn slot(row: &MySqlRow) -> Result<Slot> {
    Ok(Slot {
        index: slot_index(row)?,
        balance: get(row, "balance")?,
        version: get(row, "version")?,
    })
}

/// Of `account_entry`, all columns.
pub(super) fn entry(row: &MySqlRow) -> Result<Entry> {
    let request = optional_text(row, "request_id")?;
    let request = request.map(|id| RequestId::new(id).map_err(|_| wrong("request_id", id)));
    Ok(Entry {
        account: account_id(row, "account_id")?,
        slot: slot_index(row)?,
        version: get(row, "version")?,
        kind: choose(&EntryKind::ALL, "kind", get(row, "kind")?)?,
        request: request.transpose()?,
        delta: get(row, "delta")?,
        held_delta: get(row, "held_delta")?,
        balance_after: get(row, "balance_after")?,
        at: Timestamp(get(row, "at_us")?),
        link: link(row)?,
    })
}

fn link(row: &MySqlRow) -> Result<Option<Link>> {
    let kind: Option<u8> = get(row, "link_kind")?;
    let Some((kind, name)) = kind.zip(optional_text(row, "link")?) else {
        return Ok(None);
    };
    let slot = || SlotIndex::new(name.parse().ok()?);
    let link = match kind {
        0 => AccountId::new(name).ok().map(Link::Transfer),
        1 => slot().map(Link::Slot),
        2 => RequestId::new(name).ok().map(Link::Hold),
        3 => RequestId::new(name).ok().map(Link::Reversed),
        _ => None,
    };
    link.map(Some).ok_or_else(|| wrong("link", (kind, name)))
}

/// Of `hold`, all columns but `account_id`.
pub(super) fn hold(row: &MySqlRow) -> Result<Hold> {
    let minor: i64 = get(row, "amount")?;
    let expires_at: Option<i64> = get(row, "expires_at_us")?;
    Ok(Hold {
        id: request_id(row, "hold_id")?,
        amount: Amount::new(minor).map_err(|_| wrong("amount", minor))?,
        captured: get(row, "captured")?,
        released: get(row, "released")?,
        state: choose(&HOLD_STATES, "state", get(row, "state")?)?,
        expires_at: expires_at.map(Timestamp),
    })
}
