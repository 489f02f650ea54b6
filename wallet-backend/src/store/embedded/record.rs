//! A record of the log: everything one decided task changed, and the links that make its entries findable.
//!
//! A record is self-contained. Account ids are written once and then by number; an entry of the record's own request
//! and a leg that is one of its entries cost a byte. [`Changes`] is the meaning, the rest is how it is found again:
//! each entry carries the position of the entry before it on its slot and one [`Links::skip`] further back.
//!
//! The first byte is the version of this format. Reading never panics and never trusts a length.

use crate::account::{AccountId, Entry, EntryKind, Link, Pending, RequestId, SlotIndex};
use crate::command::{Changes, Leg, Operation, Outcome, Posting, Receipt, Refusal, RequestRecord};
use crate::store::embedded::links::Links;
use crate::store::embedded::rows::{read_account, write_account};
use crate::store::embedded::wire::{CodecError, Reader, Writer, kind};

/// The version of the format, the first byte of every record.
const VERSION: u8 = 1;

/// A record as it is kept: `links[i]` belongs to `changes.entries[i]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) changes: Changes,
    pub(super) links: Vec<Links>,
}

/// Appends a record to `out`. `links` has one for each entry.
pub(super) fn encode(changes: &Changes, links: &[Links], out: &mut Writer) {
    let mut ids = Ids::default();
    out.byte(VERSION);
    out.byte(u8::from(changes.request.is_some()) | (u8::from(changes.account.is_some()) << 1));
    if let Some(account) = &changes.account {
        write_account(account, out);
    }
    let own = changes.request.as_ref().map(|record| {
        ids.write(&record.account, out);
        out.text(record.request.as_str());
        &record.request
    });
    out.length(changes.entries.len());
    for (entry, links) in changes.entries.iter().zip(links) {
        write_entry(entry, own, &mut ids, out);
        out.number(links.before);
        out.number(links.skip);
    }
    out.length(changes.pending_added.len());
    for (account, row) in &changes.pending_added {
        ids.write(account, out);
        write_pending(row, out);
    }
    out.length(changes.pending_settled.len());
    for (account, number) in &changes.pending_settled {
        ids.write(account, out);
        out.number(*number);
    }
    if let Some(record) = &changes.request {
        write_operation(record.operation.as_ref(), &mut ids, out);
        write_outcome(record, &changes.entries, &mut ids, out);
    }
}

/// Reads one record, which must be all of `bytes`.
pub(super) fn decode(bytes: &[u8]) -> Result<Record, CodecError> {
    let mut from = Reader::new(bytes);
    let mut ids = Ids::default();
    match from.byte("a record")? {
        VERSION => {}
        found => return Err(kind("a record", found)),
    }
    let flags = from.byte("a record")?;
    if flags > 3 {
        return Err(kind("a record", flags));
    }
    let account = (flags & 2 != 0).then(|| read_account(&mut from)).transpose()?;
    let own = if flags & 1 != 0 {
        Some((ids.read(&mut from)?, from.request()?))
    } else {
        None
    };
    let mut record = Record::default();
    for _ in 0..from.length("entries")? {
        let request = own.as_ref().map(|(_, request)| request);
        record
            .changes
            .entries
            .push(read_entry(&mut from, request, &mut ids)?);
        record.links.push(Links {
            before: from.number("a link")?,
            skip: from.number("a link")?,
        });
    }
    for _ in 0..from.length("pending rows")? {
        let account = ids.read(&mut from)?;
        record
            .changes
            .pending_added
            .push((account, read_pending(&mut from)?));
    }
    for _ in 0..from.length("settled rows")? {
        let account = ids.read(&mut from)?;
        record
            .changes
            .pending_settled
            .push((account, from.number("a pending number")?));
    }
    if let Some((account, request)) = own {
        let operation = read_operation(&mut from, &mut ids)?;
        let outcome = read_outcome(&mut from, &account, &request, &record.changes.entries, &mut ids)?;
        record.changes.request = Some(RequestRecord {
            account,
            request,
            operation,
            outcome,
        });
    }
    record.changes.account = account;
    from.end()?;
    Ok(record)
}

/// Account ids by the order of their first appearance in the record.
#[derive(Default)]
struct Ids {
    seen: Vec<AccountId>,
}

impl Ids {
    fn write(&mut self, id: &AccountId, out: &mut Writer) {
        match self.seen.iter().position(|known| known == id) {
            Some(at) => out.length(at.saturating_add(1)),
            None => {
                out.length(0);
                out.text(id.as_str());
                self.seen.push(id.clone());
            }
        }
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Result<AccountId, CodecError> {
        let number = from.number("an account id")?;
        match number.checked_sub(1) {
            None => {
                let id = from.account()?;
                self.seen.push(id.clone());
                Ok(id)
            }
            Some(at) => usize::try_from(at)
                .ok()
                .and_then(|at| self.seen.get(at))
                .cloned()
                .ok_or(CodecError::Range("an account id")),
        }
    }
}

fn write_entry(entry: &Entry, own: Option<&RequestId>, ids: &mut Ids, out: &mut Writer) {
    ids.write(&entry.account, out);
    out.byte(entry.slot.get());
    out.number(entry.version);
    out.byte(match entry.kind {
        EntryKind::Credit => 0,
        EntryKind::Debit => 1,
        EntryKind::TransferIn => 2,
        EntryKind::TransferOut => 3,
        EntryKind::Consolidate => 4,
        EntryKind::Settle => 5,
    });
    match &entry.request {
        None => out.byte(0),
        Some(request) if Some(request) == own => out.byte(1),
        Some(request) => {
            out.byte(2);
            out.text(request.as_str());
        }
    }
    out.signed(entry.delta);
    out.signed(entry.held_delta);
    out.signed(entry.balance_after);
    out.signed(entry.at.0);
    write_link(entry.link.as_ref(), out);
}

fn read_entry(from: &mut Reader<'_>, own: Option<&RequestId>, ids: &mut Ids) -> Result<Entry, CodecError> {
    Ok(Entry {
        account: ids.read(from)?,
        slot: read_slot(from)?,
        version: from.number("a version")?,
        kind: match from.byte("an entry")? {
            0 => EntryKind::Credit,
            1 => EntryKind::Debit,
            2 => EntryKind::TransferIn,
            3 => EntryKind::TransferOut,
            4 => EntryKind::Consolidate,
            5 => EntryKind::Settle,
            found => return Err(kind("an entry", found)),
        },
        request: match (from.byte("an entry's request")?, own) {
            (0, _) => None,
            (1, Some(own)) => Some(own.clone()),
            (2, _) => Some(from.request()?),
            (found, _) => return Err(kind("an entry's request", found)),
        },
        delta: from.signed("a delta")?,
        held_delta: from.signed("a delta")?,
        balance_after: from.signed("a balance")?,
        at: from.timestamp()?,
        link: read_link(from)?,
    })
}

fn read_slot(from: &mut Reader<'_>) -> Result<SlotIndex, CodecError> {
    SlotIndex::new(from.byte("a slot")?).ok_or(CodecError::Range("a slot"))
}

fn write_link(link: Option<&Link>, out: &mut Writer) {
    match link {
        None => out.byte(0),
        Some(Link::Transfer(account)) => {
            out.byte(1);
            out.text(account.as_str());
        }
        Some(Link::Slot(slot)) => {
            out.byte(2);
            out.byte(slot.get());
        }
    }
}

fn read_link(from: &mut Reader<'_>) -> Result<Option<Link>, CodecError> {
    match from.byte("a link")? {
        0 => Ok(None),
        1 => Ok(Some(Link::Transfer(from.account()?))),
        2 => Ok(Some(Link::Slot(read_slot(from)?))),
        found => Err(kind("a link", found)),
    }
}

/// A pending row, also as checkpoints keep it.
pub(super) fn write_pending(row: &Pending, out: &mut Writer) {
    out.number(row.number);
    out.amount(row.amount);
    out.text(row.request.as_str());
    write_link(row.link.as_ref(), out);
    out.signed(row.at.0);
}

/// The reverse of [`write_pending`].
pub(super) fn read_pending(from: &mut Reader<'_>) -> Result<Pending, CodecError> {
    Ok(Pending {
        number: from.number("a pending number")?,
        amount: from.amount()?,
        request: from.request()?,
        link: read_link(from)?,
        at: from.timestamp()?,
    })
}

fn write_operation(operation: Option<&Operation>, ids: &mut Ids, out: &mut Writer) {
    let Some(operation) = operation else {
        return out.byte(0);
    };
    match operation {
        Operation::Credit { .. } => out.byte(1),
        Operation::Debit { .. } => out.byte(2),
        Operation::Transfer { to, .. } => {
            out.byte(3);
            ids.write(to, out);
        }
    }
    out.amount(operation.amount());
    out.optional_text(operation.memo());
}

fn read_operation(from: &mut Reader<'_>, ids: &mut Ids) -> Result<Option<Operation>, CodecError> {
    let tag = from.byte("an operation")?;
    let to = match tag {
        0 => return Ok(None),
        3 => Some(ids.read(from)?),
        _ => None,
    };
    let amount = from.amount()?;
    let memo = from.optional_text("a memo")?.map(Box::from);
    match (tag, to) {
        (1, _) => Ok(Some(Operation::Credit { amount, memo })),
        (2, _) => Ok(Some(Operation::Debit { amount, memo })),
        (3, Some(to)) => Ok(Some(Operation::Transfer { to, amount, memo })),
        (found, _) => Err(kind("an operation", found)),
    }
}

fn write_outcome(record: &RequestRecord, entries: &[Entry], ids: &mut Ids, out: &mut Writer) {
    match &record.outcome {
        Outcome::Posted(receipt) => {
            out.byte(0);
            write_receipt(receipt, entries, ids, out);
        }
        Outcome::Refused(refusal) => {
            out.byte(1);
            write_refusal(refusal, ids, out);
        }
    }
}

fn read_outcome(
    from: &mut Reader<'_>,
    account: &AccountId,
    request: &RequestId,
    entries: &[Entry],
    ids: &mut Ids,
) -> Result<Outcome, CodecError> {
    match from.byte("an outcome")? {
        0 => Ok(Outcome::Posted(read_receipt(
            from, account, request, entries, ids,
        )?)),
        1 => Ok(Outcome::Refused(read_refusal(from, ids)?)),
        found => Err(kind("an outcome", found)),
    }
}

/// The receipt's account and request are the record's; a leg that is one of the entries is that entry's number.
fn write_receipt(receipt: &Receipt, entries: &[Entry], ids: &mut Ids, out: &mut Writer) {
    use crate::command::ReceiptKind;
    out.byte(match receipt.kind {
        ReceiptKind::Credit => 0,
        ReceiptKind::Debit => 1,
        ReceiptKind::Transfer => 2,
    });
    out.byte(match receipt.posting {
        Posting::Posted => 0,
        Posting::Pending => 1,
    });
    out.amount(receipt.amount);
    out.currency(receipt.currency);
    out.signed(receipt.at.0);
    out.length(receipt.legs.len());
    for leg in &receipt.legs {
        match entries.iter().position(|entry| Leg::from(entry) == *leg) {
            Some(at) => out.length(at.saturating_add(1)),
            None => {
                out.length(0);
                ids.write(&leg.account, out);
                out.byte(leg.slot.get());
                out.number(leg.version);
                out.signed(leg.delta);
                out.signed(leg.held_delta);
                out.signed(leg.balance_after);
            }
        }
    }
}

fn read_receipt(
    from: &mut Reader<'_>,
    account: &AccountId,
    request: &RequestId,
    entries: &[Entry],
    ids: &mut Ids,
) -> Result<Receipt, CodecError> {
    use crate::command::ReceiptKind;
    let mut receipt = Receipt {
        account: account.clone(),
        request: request.clone(),
        kind: match from.byte("a receipt")? {
            0 => ReceiptKind::Credit,
            1 => ReceiptKind::Debit,
            2 => ReceiptKind::Transfer,
            found => return Err(kind("a receipt", found)),
        },
        posting: match from.byte("a receipt's state")? {
            0 => Posting::Posted,
            1 => Posting::Pending,
            found => return Err(kind("a receipt's state", found)),
        },
        amount: from.amount()?,
        currency: from.currency()?,
        at: from.timestamp()?,
        legs: Vec::new(),
    };
    for _ in 0..from.length("legs")? {
        let leg = match from.number("a leg")?.checked_sub(1) {
            Some(at) => usize::try_from(at)
                .ok()
                .and_then(|at| entries.get(at))
                .map(Leg::from)
                .ok_or(CodecError::Range("a leg"))?,
            None => Leg {
                account: ids.read(from)?,
                slot: read_slot(from)?,
                version: from.number("a version")?,
                delta: from.signed("a delta")?,
                held_delta: from.signed("a delta")?,
                balance_after: from.signed("a balance")?,
            },
        };
        receipt.legs.push(leg);
    }
    Ok(receipt)
}

fn write_refusal(refusal: &Refusal, ids: &mut Ids, out: &mut Writer) {
    match refusal {
        Refusal::InsufficientFunds {
            account,
            asked,
            available,
        } => {
            out.byte(0);
            ids.write(account, out);
            out.signed(*asked);
            out.signed(*available);
        }
        Refusal::AccountFrozen { account } => {
            out.byte(1);
            ids.write(account, out);
        }
        Refusal::AccountClosed { account } => {
            out.byte(2);
            ids.write(account, out);
        }
        Refusal::BalanceLimit { account, asked } => {
            out.byte(3);
            ids.write(account, out);
            out.signed(*asked);
        }
        Refusal::CurrencyMismatch { from, to } => {
            out.byte(4);
            out.currency(*from);
            out.currency(*to);
        }
        Refusal::Abandoned => out.byte(5),
    }
}

fn read_refusal(from: &mut Reader<'_>, ids: &mut Ids) -> Result<Refusal, CodecError> {
    match from.byte("a refusal")? {
        0 => Ok(Refusal::InsufficientFunds {
            account: ids.read(from)?,
            asked: from.signed("an amount")?,
            available: from.signed("an amount")?,
        }),
        1 => Ok(Refusal::AccountFrozen {
            account: ids.read(from)?,
        }),
        2 => Ok(Refusal::AccountClosed {
            account: ids.read(from)?,
        }),
        3 => Ok(Refusal::BalanceLimit {
            account: ids.read(from)?,
            asked: from.signed("an amount")?,
        }),
        4 => Ok(Refusal::CurrencyMismatch {
            from: from.currency()?,
            to: from.currency()?,
        }),
        5 => Ok(Refusal::Abandoned),
        found => Err(kind("a refusal", found)),
    }
}

#[cfg(test)]
mod tests;
