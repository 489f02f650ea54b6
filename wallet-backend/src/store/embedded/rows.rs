//! Account rows as bytes: in records (an account opened or changed) and, with slots, pending and holds, in
//! checkpoints.

use std::collections::VecDeque;

use crate::account::{Account, CreditMode, DebitMode, Slot, SlotCount, SlotIndex, Status};
use crate::ledger::rows::AccountRows;
use crate::store::embedded::links::{Chain, Chains};
use crate::store::embedded::record::{read_hold, read_pending, write_hold, write_pending};
use crate::store::embedded::sums::{read_past, write_past};
use crate::store::embedded::wire::{CodecError, Reader, Writer, kind};

/// An account row.
pub(super) fn write_account(account: &Account, out: &mut Writer) {
    out.text(account.id.as_str());
    out.currency(account.currency);
    out.byte(status(account.status));
    out.signed(account.floor);
    out.byte(account.slots.get());
    out.byte(credit_mode(account.credit));
    out.byte(debit_mode(account.debit));
}

/// The reverse of [`write_account`].
pub(super) fn read_account(from: &mut Reader<'_>) -> Result<Account, CodecError> {
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
pub(super) const fn status(status: Status) -> u8 {
    match status {
        Status::Active => 0,
        Status::DebitFrozen => 1,
        Status::Frozen => 2,
        Status::Closed => 3,
    }
}

/// The reverse of [`status`].
pub(super) fn read_status(from: &mut Reader<'_>) -> Result<Status, CodecError> {
    match from.byte("a status")? {
        0 => Ok(Status::Active),
        1 => Ok(Status::DebitFrozen),
        2 => Ok(Status::Frozen),
        3 => Ok(Status::Closed),
        found => Err(kind("a status", found)),
    }
}

/// A credit mode as a byte.
pub(super) const fn credit_mode(mode: CreditMode) -> u8 {
    match mode {
        CreditMode::Slot => 0,
        CreditMode::Upsert => 1,
        CreditMode::Journal => 2,
    }
}

/// The reverse of [`credit_mode`].
pub(super) fn read_credit_mode(from: &mut Reader<'_>) -> Result<CreditMode, CodecError> {
    match from.byte("a credit mode")? {
        0 => Ok(CreditMode::Slot),
        1 => Ok(CreditMode::Upsert),
        2 => Ok(CreditMode::Journal),
        found => Err(kind("a credit mode", found)),
    }
}

/// A debit mode as a byte.
pub(super) const fn debit_mode(mode: DebitMode) -> u8 {
    match mode {
        DebitMode::Primary => 0,
        DebitMode::Hashed => 1,
    }
}

/// The reverse of [`debit_mode`].
pub(super) fn read_debit_mode(from: &mut Reader<'_>) -> Result<DebitMode, CodecError> {
    match from.byte("a debit mode")? {
        0 => Ok(DebitMode::Primary),
        1 => Ok(DebitMode::Hashed),
        found => Err(kind("a debit mode", found)),
    }
}

/// All that a checkpoint keeps of one account.
pub(super) fn write_rows(rows: &AccountRows, chains: &Chains, out: &mut Writer) {
    write_account(rows.account(), out);
    out.length(rows.slots().len());
    for slot in rows.slots() {
        out.signed(slot.balance);
        out.number(slot.version);
        let chain = chains.of(slot.index).map(Chain::positions).unwrap_or_default();
        out.length(chain.len());
        for (version, position) in chain {
            out.number(*version);
            out.number(*position);
        }
    }
    out.number(rows.next_pending());
    out.length(rows.pending().len());
    for row in rows.pending() {
        write_pending(row, out);
    }
    out.length(rows.hold_count());
    for hold in rows.holds() {
        write_hold(hold, out);
    }
    write_past(&chains.past, out);
}

/// The reverse of [`write_rows`], checked as rows.
pub(super) fn read_rows(from: &mut Reader<'_>) -> Result<(AccountRows, Chains), CodecError> {
    let account = read_account(from)?;
    let (mut slots, mut chains) = (Vec::new(), Chains::default());
    for index in 0..from.length("slots")? {
        let index = u8::try_from(index)
            .ok()
            .and_then(SlotIndex::new)
            .ok_or(CodecError::Range("a slot"))?;
        let (balance, version) = (from.signed("a balance")?, from.number("a version")?);
        slots.push(Slot {
            index,
            balance,
            version,
        });
        let mut chain = Vec::new();
        for _ in 0..from.length("a chain")? {
            chain.push((from.number("a version")?, from.number("a position")?));
        }
        chains.restore(index, version, chain)?;
    }
    let next_pending = from.number("a pending number")?;
    let mut pending = VecDeque::new();
    for _ in 0..from.length("pending rows")? {
        pending.push_back(read_pending(from)?);
    }
    let mut holds = Vec::new();
    for _ in 0..from.length("holds")? {
        holds.push(read_hold(from)?);
    }
    chains.past = read_past(from)?;
    let rows = AccountRows::restore(account, slots, pending, next_pending, holds)
        .map_err(|violation| CodecError::Rows(violation.to_string()))?;
    Ok((rows, chains))
}
