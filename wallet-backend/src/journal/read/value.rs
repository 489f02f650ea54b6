//! The single values of a line, read into the types that they are of.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::account::{
    AccountId, CreditMode, DebitMode, EntryKind, HoldState, HoldTerm, RequestId, SlotCount, SlotIndex,
    Status, Timestamp,
};
use crate::command::{DebitAmount, Posting, ReceiptKind};
use crate::money::{Amount, Currency};

/// A value that is written as a text.
pub(super) struct Word<T>(pub(super) T);

/// A value that is written as a whole number.
pub(super) struct Number<T>(pub(super) T);

/// How a type is read from a text.
pub(super) trait FromWord: Sized {
    fn from_word(text: &str) -> Result<Self, String>;
}

/// How a type is read from a whole number.
pub(super) trait FromNumber: Sized {
    fn from_number(number: i64) -> Result<Self, String>;
}

impl<'de, T: FromWord> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(from)?;
        T::from_word(&text).map(Self).map_err(D::Error::custom)
    }
}

impl<'de, T: FromNumber> Deserialize<'de> for Number<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(from)?;
        T::from_number(number).map(Self).map_err(D::Error::custom)
    }
}

impl FromNumber for i64 {
    fn from_number(number: i64) -> Result<Self, String> {
        Ok(number)
    }
}

impl FromNumber for Amount {
    fn from_number(number: i64) -> Result<Self, String> {
        Self::new(number).map_err(|error| error.to_string())
    }
}

impl FromNumber for SlotIndex {
    fn from_number(number: i64) -> Result<Self, String> {
        let slot = u8::try_from(number).ok().and_then(Self::new);
        slot.ok_or_else(|| format!("must be a slot from 0 to 63, not {number}"))
    }
}

impl FromNumber for SlotCount {
    fn from_number(number: i64) -> Result<Self, String> {
        let count = u8::try_from(number).ok().and_then(Self::new);
        count.ok_or_else(|| format!("must be from 1 to 64, not {number}"))
    }
}

impl FromNumber for HoldTerm {
    fn from_number(number: i64) -> Result<Self, String> {
        let term = u32::try_from(number).ok().and_then(Self::new);
        term.ok_or_else(|| format!("must be 1 to 31536000 seconds, not {number}"))
    }
}

impl FromWord for AccountId {
    fn from_word(text: &str) -> Result<Self, String> {
        Self::new(text).map_err(|error| error.to_string())
    }
}

impl FromWord for RequestId {
    fn from_word(text: &str) -> Result<Self, String> {
        Self::new(text).map_err(|error| error.to_string())
    }
}

impl FromWord for Currency {
    fn from_word(text: &str) -> Result<Self, String> {
        Self::new(text).map_err(|error| error.to_string())
    }
}

/// As it is shown: outside of the years that RFC 3339 has, the microseconds.
impl FromWord for Timestamp {
    fn from_word(text: &str) -> Result<Self, String> {
        if let Ok(micros) = text.parse() {
            return Ok(Self(micros));
        }
        let time: jiff::Timestamp = text
            .parse()
            .map_err(|_| format!("must be a time such as 2026-07-01T09:00:00.000000Z, not {text:?}"))?;
        Ok(Self(time.as_microsecond()))
    }
}

/// The one of a closed set that has this name.
fn named<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str, text: &str) -> Result<T, String> {
    let found = all.iter().copied().find(|one| name(*one) == text);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|one| name(*one)).collect();
        format!("must be one of {}, not {text:?}", names.join(", "))
    })
}

impl FromWord for Status {
    fn from_word(text: &str) -> Result<Self, String> {
        const ALL: [Status; 4] = [
            Status::Active,
            Status::DebitFrozen,
            Status::Frozen,
            Status::Closed,
        ];
        named(&ALL, Self::as_str, text)
    }
}

impl FromWord for CreditMode {
    fn from_word(text: &str) -> Result<Self, String> {
        const ALL: [CreditMode; 3] = [CreditMode::Slot, CreditMode::Upsert, CreditMode::Journal];
        named(&ALL, Self::as_str, text)
    }
}

impl FromWord for DebitMode {
    fn from_word(text: &str) -> Result<Self, String> {
        named(&[Self::Primary, Self::Hashed], Self::as_str, text)
    }
}

impl FromWord for HoldState {
    fn from_word(text: &str) -> Result<Self, String> {
        const ALL: [HoldState; 4] = [
            HoldState::Open,
            HoldState::Captured,
            HoldState::Released,
            HoldState::Expired,
        ];
        named(&ALL, Self::as_str, text)
    }
}

impl FromWord for EntryKind {
    fn from_word(text: &str) -> Result<Self, String> {
        named(&Self::ALL, Self::as_str, text)
    }
}

impl FromWord for ReceiptKind {
    fn from_word(text: &str) -> Result<Self, String> {
        named(&Self::ALL, Self::as_str, text)
    }
}

impl FromWord for Posting {
    fn from_word(text: &str) -> Result<Self, String> {
        match text {
            "posted" => Ok(Self::Posted),
            "pending" => Ok(Self::Pending),
            other => Err(format!("must be posted or pending, not {other:?}")),
        }
    }
}

/// A number, or `"max"`.
pub(super) struct Asked(pub(super) DebitAmount);

impl<'de> Deserialize<'de> for Asked {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = DebitAmount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an amount in minor units, or \"max\"")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<DebitAmount, E> {
                let number = i64::try_from(number).unwrap_or(i64::MAX);
                let amount = Amount::new(number).map_err(E::custom)?;
                Ok(DebitAmount::Exactly(amount))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<DebitAmount, E> {
                match text {
                    "max" => Ok(DebitAmount::Max),
                    other => Err(E::custom(format!("must be a number or \"max\", not {other:?}"))),
                }
            }
        }
        from.deserialize_any(Either).map(Self)
    }
}
