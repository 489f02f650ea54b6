//! Money that is set aside for a later capture.
//!
//! A hold's money has left the slots, so that a capture can never fail for funds. It ends exactly once: captured,
//! released, or expired. From its deadline on it counts as expired for every read and every decision, whether or not
//! a sweep has returned the money to slot 0 yet.

use crate::account::{RequestId, Timestamp};
use crate::money::Amount;

/// What an account may have in unexpired holds, in minor units. Bounds placing holds only.
pub const MAX_HELD: i64 = 1 << 51;
/// The longest life of a hold that has a deadline: 365 days.
pub const MAX_HOLD_SECONDS: u32 = 31_536_000;

/// How long a hold lives: 1 to [`MAX_HOLD_SECONDS`] seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldTerm(u32);

impl HoldTerm {
    /// `None` outside 1 to [`MAX_HOLD_SECONDS`].
    #[must_use]
    pub const fn new(seconds: u32) -> Option<Self> {
        if seconds >= 1 && seconds <= MAX_HOLD_SECONDS {
            Some(Self(seconds))
        } else {
            None
        }
    }

    /// Seconds, at least 1.
    #[must_use]
    pub const fn seconds(self) -> u32 {
        self.0
    }

    /// The moment from which a hold placed at `from` is expired.
    #[must_use]
    pub fn deadline(self, from: Timestamp) -> Timestamp {
        let micros = i64::from(self.0).saturating_mul(1_000_000);
        Timestamp(from.0.saturating_add(micros))
    }
}

/// Where a hold is in its life. All but `Open` are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldState {
    Open,
    /// Nothing is left of it, and the last that was done to it was a capture.
    Captured,
    Released,
    Expired,
}

impl HoldState {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Captured => "captured",
            Self::Released => "released",
            Self::Expired => "expired",
        }
    }
}

/// One hold. `captured + released <= amount`, and something is left exactly while it is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The request that placed it.
    pub id: RequestId,
    /// What was set aside at first.
    pub amount: Amount,
    /// Minor units that have left the account.
    pub captured: i64,
    /// Minor units that went back to the account's slots: by a release, a final capture, or the expiry.
    pub released: i64,
    pub state: HoldState,
    /// From this moment on it is expired. `None`: never.
    pub expires_at: Option<Timestamp>,
}

impl Hold {
    /// A hold as it is placed.
    #[must_use]
    pub const fn new(id: RequestId, amount: Amount, expires_at: Option<Timestamp>) -> Self {
        Self {
            id,
            amount,
            captured: 0,
            released: 0,
            state: HoldState::Open,
            expires_at,
        }
    }

    /// Minor units that are still set aside: 0 once it has ended.
    #[must_use]
    pub const fn rest(&self) -> i64 {
        self.amount
            .minor()
            .saturating_sub(self.captured)
            .saturating_sub(self.released)
    }

    /// Whether it is open and its deadline has come.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.state == HoldState::Open && self.expires_at.is_some_and(|at| at <= now)
    }

    /// The hold as anybody may see it at `now`: an expired one has given its rest back.
    #[must_use]
    pub fn seen_at(&self, now: Timestamp) -> Self {
        if self.is_expired(now) {
            self.ended(HoldState::Expired)
        } else {
            self.clone()
        }
    }

    /// The hold once its rest has gone back to the account.
    #[must_use]
    pub(crate) fn ended(&self, state: HoldState) -> Self {
        Self {
            released: self.released.saturating_add(self.rest()),
            state,
            ..self.clone()
        }
    }

    /// Whether the parts agree with each other.
    #[must_use]
    pub(crate) fn is_sound(&self) -> bool {
        let open = self.state == HoldState::Open;
        let rest = self.rest();
        self.captured >= 0 && self.released >= 0 && rest >= 0 && open == (rest > 0)
    }

    /// Whether `self` may follow `before`: the same hold, further on in its life.
    #[must_use]
    pub(crate) fn follows(&self, before: &Self) -> bool {
        let same = self.id == before.id && self.amount == before.amount;
        let onward = self.captured >= before.captured && self.released >= before.released;
        same && onward && self.expires_at == before.expires_at && before.state == HoldState::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold() -> Hold {
        let id = RequestId::new("h").unwrap();
        Hold::new(id, Amount::new(100).unwrap(), Some(Timestamp(50)))
    }

    #[test]
    fn a_hold_lives_one_second_to_a_year() {
        assert_eq!(HoldTerm::new(0), None);
        assert_eq!(HoldTerm::new(MAX_HOLD_SECONDS + 1), None);
        let term = HoldTerm::new(1).unwrap();
        assert_eq!(term.deadline(Timestamp(7)), Timestamp(1_000_007));
    }

    #[test]
    fn a_hold_is_expired_from_its_deadline_on_and_has_given_its_rest_back() {
        let hold = Hold {
            captured: 30,
            ..hold()
        };
        assert_eq!(hold.seen_at(Timestamp(49)), hold);
        let expired = hold.seen_at(Timestamp(50));
        assert_eq!(
            (expired.state, expired.captured, expired.released),
            (HoldState::Expired, 30, 70)
        );
        assert!(expired.is_sound() && expired.follows(&hold));
    }

    #[test]
    fn a_hold_never_goes_back_nor_on_after_its_end() {
        let (open, ended) = (hold(), hold().ended(HoldState::Released));
        assert!(!open.follows(&ended) && !ended.follows(&ended));
        let taken = Hold {
            captured: 1,
            ..hold()
        };
        assert!(taken.follows(&open) && !open.follows(&taken));
        let late = Hold {
            expires_at: None,
            ..hold()
        };
        assert!(!late.follows(&open));
    }
}
