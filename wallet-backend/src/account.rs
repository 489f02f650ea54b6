//! The rows of the ledger, as types: account, slot, entry, pending credit, hold. Ids are compared as bytes.

use std::fmt;
use std::sync::Arc;

use crate::money::{Amount, Currency};

mod hold;

pub use hold::{Hold, HoldState, HoldTerm, MAX_HELD, MAX_HOLD_SECONDS};

/// The longest account or request id, in bytes.
pub const MAX_ID_BYTES: usize = 64;
/// The most slots that a balance is split over.
pub const MAX_SLOTS: u8 = 64;
/// Slot 0 takes no credit that would lift it above this. Bounds credits and incoming transfers only.
pub const PRIMARY_CAP: i64 = 1 << 52;
/// The same for every other slot.
pub const SLOT_CAP: i64 = 1 << 46;

/// Why a text is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("must have 1 to {MAX_ID_BYTES} characters, not {0}")]
    Length(usize),
    #[error("must be made of A-Z a-z 0-9 . _ : -, not {0:?}")]
    AccountCharacter(char),
    #[error("must be made of visible ASCII characters, not {0:?}")]
    RequestCharacter(char),
}

/// 1 to 64 of `[A-Za-z0-9._:-]`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(Arc<str>);

/// 1 to 64 visible ASCII characters; names one operation of one account, for ever.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(Arc<str>);

impl AccountId {
    /// # Errors
    /// [`IdError`] for another length or another character.
    pub fn new(id: &str) -> Result<Self, IdError> {
        check_length(id)?;
        match id
            .chars()
            .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-')))
        {
            Some(bad) => Err(IdError::AccountCharacter(bad)),
            None => Ok(Self(id.into())),
        }
    }

    /// The id as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl RequestId {
    /// # Errors
    /// [`IdError`] for another length or another character.
    pub fn new(id: &str) -> Result<Self, IdError> {
        check_length(id)?;
        match id.chars().find(|c| !c.is_ascii_graphic()) {
            Some(bad) => Err(IdError::RequestCharacter(bad)),
            None => Ok(Self(id.into())),
        }
    }

    /// The id as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check_length(id: &str) -> Result<(), IdError> {
    if (1..=MAX_ID_BYTES).contains(&id.len()) {
        Ok(())
    } else {
        Err(IdError::Length(id.len()))
    }
}

macro_rules! show_as_text {
    ($name:ident) => {
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

show_as_text!(AccountId);
show_as_text!(RequestId);

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// RFC 3339, UTC, with exactly six decimals; outside of the years -9999 to 9999 the microseconds, so that no two times
/// look alike.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(time) => write!(f, "{time:.6}"),
            Err(_) => self.0.fmt(f),
        }
    }
}

/// A slot's number, 0 to 63. Slot 0 is the primary and the gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotIndex(u8);

impl SlotIndex {
    /// The primary slot, which debits go through.
    pub const PRIMARY: Self = Self(0);

    /// `None` from 64 on.
    #[must_use]
    pub const fn new(index: u8) -> Option<Self> {
        if index < MAX_SLOTS {
            Some(Self(index))
        } else {
            None
        }
    }

    /// Every slot that there can be, ascending.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..MAX_SLOTS).map(Self)
    }

    /// 0 to 63.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The most that a credit may lift this slot to.
    #[must_use]
    pub const fn cap(self) -> i64 {
        if self.0 == 0 { PRIMARY_CAP } else { SLOT_CAP }
    }
}

/// How many slots credits are spread over: 1 to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotCount(u8);

impl SlotCount {
    /// An ordinary account: one slot.
    pub const ONE: Self = Self(1);

    /// `None` outside 1 to 64.
    #[must_use]
    pub const fn new(count: u8) -> Option<Self> {
        if count >= 1 && count <= MAX_SLOTS {
            Some(Self(count))
        } else {
            None
        }
    }

    /// 1 to 64.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// What an account accepts. `Closed` is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Active,
    /// Nothing goes out: debit, hold, transfer out, a reversal that takes.
    DebitFrozen,
    /// Nor does anything come in, nor is a hold captured.
    Frozen,
    Closed,
}

impl Status {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::DebitFrozen => "debit_frozen",
            Self::Frozen => "frozen",
            Self::Closed => "closed",
        }
    }
}

/// How a credit reaches its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditMode {
    Slot,
    Upsert,
    /// As a pending row that is settled later, or drained by a debit that is short.
    Journal,
}

impl CreditMode {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Slot => "slot",
            Self::Upsert => "upsert",
            Self::Journal => "journal",
        }
    }
}

/// Which slot a debit takes from first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebitMode {
    Primary,
    /// The slot that the request id hashes to; needs floor 0.
    Hashed,
}

impl DebitMode {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Hashed => "hashed",
        }
    }
}

/// What was asked for when the account was opened, and what was changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub id: AccountId,
    pub currency: Currency,
    pub status: Status,
    /// What takes money out must leave at least this. Minor units, never negative.
    pub floor: i64,
    /// Says where credits may go; sums and collection range over all slot rows.
    pub slots: SlotCount,
    pub credit: CreditMode,
    pub debit: DebitMode,
}

impl Account {
    /// An ordinary account: active, one slot, no floor, default modes. Change the fields for another.
    #[must_use]
    pub const fn new(id: AccountId, currency: Currency) -> Self {
        Self {
            id,
            currency,
            status: Status::Active,
            floor: 0,
            slots: SlotCount::ONE,
            credit: CreditMode::Slot,
            debit: DebitMode::Primary,
        }
    }
}

/// One part of a balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub index: SlotIndex,
    /// Minor units, never negative.
    pub balance: i64,
    /// The version of its last entry; 0 before the first. Never reset.
    pub version: u64,
}

impl Slot {
    /// A slot before its first entry.
    #[must_use]
    pub const fn empty(index: SlotIndex) -> Self {
        Self {
            index,
            balance: 0,
            version: 0,
        }
    }
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Credit,
    Debit,
    TransferIn,
    TransferOut,
    /// Money moved between two slots of the account: out of one, into another.
    Consolidate,
    /// A pending credit that reached a slot.
    Settle,
    /// Money that left slot 0 and is held from then on.
    Hold,
    /// Held money that left the account. The slot's balance stays.
    Capture,
    /// Held money that went back to slot 0. Without a request of its own: the hold has expired.
    Release,
    /// Undoes what an earlier request did.
    Reversal,
}

/// What an entry belongs to, beside its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// The other account of a transfer or of its reversal.
    Transfer(AccountId),
    /// The other slot of a consolidation.
    Slot(SlotIndex),
    /// The hold that is captured or released.
    Hold(RequestId),
    /// The request of this account that is reversed.
    Reversed(RequestId),
}

/// One immutable effect on one slot. Key (account, slot, version); `before(n + 1) = after(n)` proves the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub account: AccountId,
    pub slot: SlotIndex,
    /// Counts from 1 without a gap, in commit order.
    pub version: u64,
    pub kind: EntryKind,
    /// The request that caused it; where two accounts are moved between, that of the account whose
    /// request it is. `None` for what no request of this account caused: a tidy job's own moves, an expiry.
    pub request: Option<RequestId>,
    /// Minor units, added to the slot.
    pub delta: i64,
    /// Minor units, added to what is held.
    pub held_delta: i64,
    /// The slot's balance after.
    pub balance_after: i64,
    pub at: Timestamp,
    pub link: Option<Link>,
}

impl Entry {
    /// The request, by its key, whose pending credit this entry settled: of a transfer's credit leg the source's.
    ///
    /// A store keeps this entry as the missing leg of that request's receipt, for look-ups.
    #[must_use]
    pub fn settles(&self) -> Option<(&AccountId, &RequestId)> {
        let request = self.request.as_ref()?;
        match (self.kind, &self.link) {
            (EntryKind::Settle, Some(Link::Transfer(source))) => Some((source, request)),
            (EntryKind::Settle, _) => Some((&self.account, request)),
            _ => None,
        }
    }
}

/// A credit that was accepted and has not reached a slot yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Unique in its account and rising with acceptance.
    pub number: u64,
    pub amount: Amount,
    /// What the entry will be filed as once it settles: the request and, for a transfer, its other account.
    pub request: RequestId,
    pub link: Option<Link>,
    pub at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_id_is_made_of_letters_digits_and_four_signs() {
        assert!(AccountId::new("a.B_9:-").is_ok());
        assert_eq!(AccountId::new(""), Err(IdError::Length(0)));
        assert_eq!(AccountId::new(&"a".repeat(65)), Err(IdError::Length(65)));
        assert_eq!(AccountId::new("a/b"), Err(IdError::AccountCharacter('/')));
        assert_eq!(AccountId::new("ä"), Err(IdError::AccountCharacter('ä')));
    }

    #[test]
    fn a_request_id_is_visible_ascii() {
        assert!(RequestId::new("!~/a b".replace(' ', "").as_str()).is_ok());
        assert_eq!(RequestId::new("a b"), Err(IdError::RequestCharacter(' ')));
        assert_eq!(
            RequestId::new("a\u{7f}"),
            Err(IdError::RequestCharacter('\u{7f}'))
        );
    }

    #[test]
    fn slots_are_numbered_0_to_63_and_counted_1_to_64() {
        assert_eq!(SlotIndex::new(63).map(SlotIndex::get), Some(63));
        assert_eq!(SlotIndex::new(64), None);
        assert_eq!(SlotCount::new(0), None);
        assert_eq!(SlotCount::new(64).map(SlotCount::get), Some(64));
        assert_eq!(SlotCount::new(65), None);
    }
}
