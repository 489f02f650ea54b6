//! Account rows as bytes: in records (an account opened or changed) and, with slots, pending and holds, in
//! checkpoints.

use std::collections::VecDeque;

use crate::account::{Slot, SlotIndex};
use crate::ledger::rows::AccountRows;
use crate::store::codec::{CodecError, Reader, Writer, read_account, write_account};
use crate::store::embedded::links::{Chain, Chains};
use crate::store::embedded::record::{read_hold, read_pending, write_hold, write_pending};
use crate::store::embedded::sums::{read_past, write_past};

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
