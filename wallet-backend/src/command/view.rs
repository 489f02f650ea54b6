//! What is read: accounts, requests and holds, each at one cut.

use crate::account::{Account, AccountId, Hold, Slot, Timestamp};
use crate::command::Outcome;
use crate::money::Currency;

/// An account with its money, at one cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountView {
    pub account: Account,
    /// Every slot row, ascending; at least `account.slots` of them.
    pub slots: Vec<Slot>,
    /// Minor units in unexpired holds.
    pub held: i64,
    /// Minor units accepted and not yet in a slot, and those in expired holds that no sweep has returned yet.
    pub pending: i64,
}

impl AccountView {
    /// Slots + held + pending, in minor units.
    #[must_use]
    pub fn balance(&self) -> i64 {
        self.slots
            .iter()
            .map(|slot| slot.balance)
            .fold(self.held.saturating_add(self.pending), i64::saturating_add)
    }

    /// Balance - held - floor, not under 0. The status does not enter into it.
    #[must_use]
    pub fn available(&self) -> i64 {
        self.balance()
            .saturating_sub(self.held)
            .saturating_sub(self.account.floor)
            .max(0)
    }
}

/// What an account had at a moment of its past. Whatever is read of a moment once is read of it for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastView {
    pub account: AccountId,
    pub currency: Currency,
    /// The moment; of a cursor the time of the newest entry before it, `None` before the first one.
    pub at: Option<Timestamp>,
    /// Those that had an entry by then, as their last one left them; ascending.
    pub slots: Vec<Slot>,
    /// As in [`AccountView`].
    pub held: i64,
    /// As in [`AccountView`].
    pub pending: i64,
}

impl PastView {
    /// Slots + held + pending, in minor units.
    #[must_use]
    pub fn balance(&self) -> i64 {
        let slots = self.slots.iter().map(|slot| slot.balance);
        slots.fold(self.held.saturating_add(self.pending), i64::saturating_add)
    }
}

/// What is known of a request id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestView {
    /// Not decided here YET: only sending the same id again is safe.
    NotFound,
    InProgress,
    Decided(Outcome),
}

/// What is known of a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldView {
    /// The account has none of this id.
    NotFound,
    /// As it is at the time of the read: an expired one has given its rest back.
    Found(Hold),
}
