//! The values inside a body: text and whole numbers that become domain types while they are read.
//!
//! Doing it inside the reader means that an error has the field's path with it. A number with a fraction or an
//! exponent is refused even where it is whole: money never passes through a float.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

use crate::account::{
    AccountId, CreditMode, DebitMode, HoldTerm, MAX_HOLD_SECONDS, MAX_SLOTS, RequestId, SlotCount, Status,
};
use crate::command::{DebitAmount, MAX_MEMO_BYTES};
use crate::money::{Amount, Currency, MAX_AMOUNT};

/// A JSON string that is a `T`.
pub(super) struct Text<T>(pub(super) T);

/// A JSON integer that is a `T`.
pub(super) struct Whole<T>(pub(super) T);

/// How much a debit takes: a JSON integer, or `"max"`.
pub(super) struct Taken(pub(super) DebitAmount);

/// What can be read from a string. Errors complete a sentence that begins with the field's name.
pub(super) trait FromText: Sized {
    fn from_text(text: &str) -> Result<Self, String>;
}

/// What can be read from an integer. Errors complete a sentence that begins with the field's name.
pub(super) trait FromWhole: Sized {
    fn from_whole(number: i128) -> Result<Self, String>;
}

/// A note that is kept with the command, at most [`MAX_MEMO_BYTES`].
pub(super) struct Memo(Box<str>);

impl From<Memo> for Box<str> {
    fn from(memo: Memo) -> Self {
        memo.0
    }
}

/// What must stay in an account: 0 to [`MAX_AMOUNT`] minor units.
#[derive(Clone, Copy)]
pub(super) struct Floor(i64);

impl Floor {
    pub(super) const fn minor(self) -> i64 {
        self.0
    }
}

impl FromText for AccountId {
    fn from_text(text: &str) -> Result<Self, String> {
        Self::new(text).map_err(|error| error.to_string())
    }
}

impl FromText for RequestId {
    fn from_text(text: &str) -> Result<Self, String> {
        Self::new(text).map_err(|error| error.to_string())
    }
}

impl FromText for Currency {
    fn from_text(text: &str) -> Result<Self, String> {
        Self::new(text).map_err(|error| error.to_string())
    }
}

impl FromText for Status {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "active" => Ok(Self::Active),
            "debit_frozen" => Ok(Self::DebitFrozen),
            "frozen" => Ok(Self::Frozen),
            "closed" => Ok(Self::Closed),
            other => Err(format!(
                "must be active, debit_frozen, frozen or closed, not {other:?}"
            )),
        }
    }
}

impl FromText for CreditMode {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "slot" => Ok(Self::Slot),
            "upsert" => Ok(Self::Upsert),
            "journal" => Ok(Self::Journal),
            other => Err(format!("must be slot, upsert or journal, not {other:?}")),
        }
    }
}

impl FromText for DebitMode {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "primary" => Ok(Self::Primary),
            "hashed" => Ok(Self::Hashed),
            other => Err(format!("must be primary or hashed, not {other:?}")),
        }
    }
}

impl FromText for Memo {
    fn from_text(text: &str) -> Result<Self, String> {
        if text.len() <= MAX_MEMO_BYTES {
            Ok(Self(text.into()))
        } else {
            Err(format!(
                "must have at most {MAX_MEMO_BYTES} bytes, not {}",
                text.len()
            ))
        }
    }
}

impl FromWhole for Amount {
    fn from_whole(number: i128) -> Result<Self, String> {
        i64::try_from(number)
            .map_err(|_| crate::money::AmountError(number))
            .and_then(Self::new)
            .map_err(|error| error.to_string())
    }
}

impl FromWhole for SlotCount {
    fn from_whole(number: i128) -> Result<Self, String> {
        u8::try_from(number)
            .ok()
            .and_then(Self::new)
            .ok_or_else(|| format!("must be from 1 to {MAX_SLOTS}, not {number}"))
    }
}

impl FromWhole for HoldTerm {
    fn from_whole(number: i128) -> Result<Self, String> {
        u32::try_from(number)
            .ok()
            .and_then(Self::new)
            .ok_or_else(|| format!("must be from 1 to {MAX_HOLD_SECONDS} seconds, not {number}"))
    }
}

impl FromWhole for Floor {
    fn from_whole(number: i128) -> Result<Self, String> {
        match i64::try_from(number) {
            Ok(minor) if (0..=MAX_AMOUNT).contains(&minor) => Ok(Self(minor)),
            _ => Err(format!(
                "must be a whole number of minor units from 0 to {MAX_AMOUNT}, not {number}"
            )),
        }
    }
}

impl<'de, T: FromText> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor(PhantomData))
    }
}

impl<'de, T: FromWhole> Deserialize<'de> for Whole<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_i64(WholeVisitor(PhantomData))
    }
}

struct TextVisitor<T>(PhantomData<T>);

impl<T: FromText> Visitor<'_> for TextVisitor<T> {
    type Value = Text<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<T>, E> {
        T::from_text(text).map(Text).map_err(E::custom)
    }
}

struct WholeVisitor<T>(PhantomData<T>);

impl<T: FromWhole> Visitor<'_> for WholeVisitor<T> {
    type Value = Whole<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, written without a fraction and without an exponent")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Whole<T>, E> {
        T::from_whole(number.into()).map(Whole).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Whole<T>, E> {
        T::from_whole(number.into()).map(Whole).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Taken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TakenVisitor)
    }
}

struct TakenVisitor;

impl Visitor<'_> for TakenVisitor {
    type Value = Taken;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"max\" or a whole number, written without a fraction and without an exponent")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Taken, E> {
        match text {
            "max" => Ok(Taken(DebitAmount::Max)),
            other => Err(E::invalid_value(Unexpected::Str(other), &self)),
        }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Taken, E> {
        exactly(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Taken, E> {
        exactly(number.into())
    }
}

fn exactly<E: Error>(number: i128) -> Result<Taken, E> {
    let amount = Amount::from_whole(number).map_err(E::custom)?;
    Ok(Taken(DebitAmount::Exactly(amount)))
}
