//! Account rows, slots' numbers and the states of holds as bytes.

use crate::account::{Account, CreditMode, DebitMode, HoldState, SlotCount, SlotIndex, Status};
use crate::store::codec::wire::{CodecError, Reader, Writer, kind};

/// An account row.
pub(in crate::store) fn write_account(account: &Account, out: &mut Writer) {
    out.text(account.id.as_str());
    out.currency(account.currency);
    out.byte(status(account.status));
    out.signed(account.floor);
    out.byte(account.slots.get());
    out.byte(credit_mode(account.credit));
    out.byte(debit_mode(account.debit));
}

/// The reverse of [`write_account`].
pub(in crate::store) fn read_account(from: &mut Reader<'_>) -> Result<Account, CodecError> {
    Ok(Account {
        id: from.account()?,
        currency: from.currency()?,
        status: read_status(from)?,
        floor: from.signed("a floor")?,
        slots: SlotCount::new(from.byte("a slot count")?).ok_or(CodecError::Range("a slot count"))?,
        credit: read_credit_mode(from)?,
        debit: read_debit_mode(from)?,
    })
}

/// A status as a byte.
pub(in crate::store) const fn status(status: Status) -> u8 {
    match status {
        Status::Active => 0,
        Status::DebitFrozen => 1,
        Status::Frozen => 2,
        Status::Closed => 3,
    }
}

/// The reverse of [`status`].
pub(in crate::store) fn read_status(from: &mut Reader<'_>) -> Result<Status, CodecError> {
    match from.byte("a status")? {
        0 => Ok(Status::Active),
        1 => Ok(Status::DebitFrozen),
        2 => Ok(Status::Frozen),
        3 => Ok(Status::Closed),
        found => Err(kind("a status", found)),
    }
}

/// A credit mode as a byte.
pub(in crate::store) const fn credit_mode(mode: CreditMode) -> u8 {
    match mode {
        CreditMode::Slot => 0,
        CreditMode::Upsert => 1,
        CreditMode::Journal => 2,
    }
}

/// The reverse of [`credit_mode`].
pub(in crate::store) fn read_credit_mode(from: &mut Reader<'_>) -> Result<CreditMode, CodecError> {
    match from.byte("a credit mode")? {
        0 => Ok(CreditMode::Slot),
        1 => Ok(CreditMode::Upsert),
        2 => Ok(CreditMode::Journal),
        found => Err(kind("a credit mode", found)),
    }
}

/// A debit mode as a byte.
pub(in crate::store) const fn debit_mode(mode: DebitMode) -> u8 {
    match mode {
        DebitMode::Primary => 0,
        DebitMode::Hashed => 1,
    }
}

/// The reverse of [`debit_mode`].
pub(in crate::store) fn read_debit_mode(from: &mut Reader<'_>) -> Result<DebitMode, CodecError> {
    match from.byte("a debit mode")? {
        0 => Ok(DebitMode::Primary),
        1 => Ok(DebitMode::Hashed),
        found => Err(kind("a debit mode", found)),
    }
}

/// A slot's number.
pub(in crate::store) fn read_slot(from: &mut Reader<'_>) -> Result<SlotIndex, CodecError> {
    SlotIndex::new(from.byte("a slot")?).ok_or(CodecError::Range("a slot"))
}

/// Where a hold is in its life.
pub(in crate::store) fn write_hold_state(state: HoldState, out: &mut Writer) {
    out.byte(match state {
        HoldState::Open => 0,
        HoldState::Captured => 1,
        HoldState::Released => 2,
        HoldState::Expired => 3,
    });
}

/// The reverse of [`write_hold_state`].
pub(in crate::store) fn read_hold_state(from: &mut Reader<'_>) -> Result<HoldState, CodecError> {
    Ok(match from.byte("a hold")? {
        0 => HoldState::Open,
        1 => HoldState::Captured,
        2 => HoldState::Released,
        3 => HoldState::Expired,
        found => return Err(kind("a hold", found)),
    })
}
