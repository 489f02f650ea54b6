//! Entries, pending rows and holds as bytes.

use crate::account::{Entry, EntryKind, Hold, Link, Pending, RequestId};
use crate::store::codec::{
    CodecError, Ids, Named, Reader, Writer, kind, read_hold_state, read_slot, write_hold_state,
};

pub(super) fn write_entry<'a>(
    entry: &'a Entry,
    own: Option<&RequestId>,
    ids: &mut Named<'a>,
    out: &mut Writer,
) {
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
        EntryKind::Hold => 6,
        EntryKind::Capture => 7,
        EntryKind::Release => 8,
        EntryKind::Reversal => 9,
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

pub(super) fn read_entry(
    from: &mut Reader<'_>,
    own: Option<&RequestId>,
    ids: &mut Ids,
) -> Result<Entry, CodecError> {
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
            6 => EntryKind::Hold,
            7 => EntryKind::Capture,
            8 => EntryKind::Release,
            9 => EntryKind::Reversal,
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
        Some(Link::Hold(hold)) => {
            out.byte(3);
            out.text(hold.as_str());
        }
        Some(Link::Reversed(request)) => {
            out.byte(4);
            out.text(request.as_str());
        }
    }
}

fn read_link(from: &mut Reader<'_>) -> Result<Option<Link>, CodecError> {
    match from.byte("a link")? {
        0 => Ok(None),
        1 => Ok(Some(Link::Transfer(from.account()?))),
        2 => Ok(Some(Link::Slot(read_slot(from)?))),
        3 => Ok(Some(Link::Hold(from.request()?))),
        4 => Ok(Some(Link::Reversed(from.request()?))),
        found => Err(kind("a link", found)),
    }
}

/// A pending row, also as checkpoints keep it.
pub(in crate::store::embedded) fn write_pending(row: &Pending, out: &mut Writer) {
    out.number(row.number);
    out.amount(row.amount);
    out.text(row.request.as_str());
    write_link(row.link.as_ref(), out);
    out.signed(row.at.0);
}

/// The reverse of [`write_pending`].
pub(in crate::store::embedded) fn read_pending(from: &mut Reader<'_>) -> Result<Pending, CodecError> {
    Ok(Pending {
        number: from.number("a pending number")?,
        amount: from.amount()?,
        request: from.request()?,
        link: read_link(from)?,
        at: from.timestamp()?,
    })
}

/// A hold, also as checkpoints keep it.
pub(in crate::store::embedded) fn write_hold(hold: &Hold, out: &mut Writer) {
    out.text(hold.id.as_str());
    out.amount(hold.amount);
    out.signed(hold.captured);
    out.signed(hold.released);
    write_hold_state(hold.state, out);
    match hold.expires_at {
        None => out.byte(0),
        Some(at) => {
            out.byte(1);
            out.signed(at.0);
        }
    }
}

/// The reverse of [`write_hold`].
pub(in crate::store::embedded) fn read_hold(from: &mut Reader<'_>) -> Result<Hold, CodecError> {
    Ok(Hold {
        id: from.request()?,
        amount: from.amount()?,
        captured: from.signed("an amount")?,
        released: from.signed("an amount")?,
        state: read_hold_state(from)?,
        expires_at: match from.byte("a deadline")? {
            0 => None,
            1 => Some(from.timestamp()?),
            found => return Err(kind("a deadline", found)),
        },
    })
}
