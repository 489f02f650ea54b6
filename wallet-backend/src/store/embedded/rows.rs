//! Account rows as bytes: in records (an account opened or changed) and, with slots and pending, in checkpoints.

use std::collections::VecDeque;

use crate::account::{Account, CreditMode, DebitMode, Slot, SlotCount, SlotIndex, Status};
use crate::ledger::rows::AccountRows;
use crate::store::embedded::links::{Chain, Chains};
use crate::store::embedded::record::{read_pending, write_pending};
use crate::store::embedded::wire::{CodecError, Reader, Writer, kind};

/// An account row.
pub(super) fn write_account(account: &Account, out: &mut Writer) {
    out.text(account.id.as_str());
    out.currency(account.currency);
    out.byte(match account.status {
        Status::Active => 0,
        Status::DebitFrozen => 1,
        Status::Frozen => 2,
        Status::Closed => 3,
    });
    out.signed(account.floor);
    out.byte(account.slots.get());
    out.byte(match account.credit {
        CreditMode::Slot => 0,
        CreditMode::Upsert => 1,
        CreditMode::Journal => 2,
    });
    out.byte(match account.debit {
        DebitMode::Primary => 0,
        DebitMode::Hashed => 1,
    });
}

/// The reverse of [`write_account`].
pub(super) fn read_account(from: &mut Reader<'_>) -> Result<Account, CodecError> {
    Ok(Account {
        id: from.account()?,
        currency: from.currency()?,
        status: match from.byte("a status")? {
            0 => Status::Active,
            1 => Status::DebitFrozen,
            2 => Status::Frozen,
            3 => Status::Closed,
            found => return Err(kind("a status", found)),
        },
        floor: from.signed("a floor")?,
        slots: SlotCount::new(from.byte("a slot count")?).ok_or(CodecError::Range("a slot count"))?,
        credit: match from.byte("a credit mode")? {
            0 => CreditMode::Slot,
            1 => CreditMode::Upsert,
            2 => CreditMode::Journal,
            found => return Err(kind("a credit mode", found)),
        },
        debit: match from.byte("a debit mode")? {
            0 => DebitMode::Primary,
            1 => DebitMode::Hashed,
            found => return Err(kind("a debit mode", found)),
        },
    })
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
    let rows = AccountRows::restore(account, slots, pending, next_pending)
        .map_err(|violation| CodecError::Rows(violation.to_string()))?;
    Ok((rows, chains))
}
