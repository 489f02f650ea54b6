//! What a request became, as bytes.

use crate::account::{AccountId, Entry, RequestId, Slot, SlotIndex};
use crate::command::{AccountView, Leg, Outcome, Posting, Receipt, ReceiptKind, Refusal, RequestRecord};
use crate::store::codec::{
    CodecError, Ids, Named, Reader, Writer, kind, read_account, read_hold_state, read_slot, write_account,
    write_hold_state,
};

pub(in crate::store) fn write_outcome<'a>(
    record: &'a RequestRecord,
    entries: &[Entry],
    ids: &mut Named<'a>,
    out: &mut Writer,
) {
    match &record.outcome {
        Outcome::Posted(receipt) => {
            out.byte(0);
            write_receipt(receipt, entries, ids, out);
        }
        Outcome::Refused(refusal) => {
            out.byte(1);
            write_refusal(refusal, ids, out);
        }
        Outcome::Amended(view) => {
            out.byte(2);
            write_view(view, out);
        }
    }
}

pub(in crate::store) fn read_outcome(
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
        2 => Ok(Outcome::Amended(Box::new(read_view(from)?))),
        found => Err(kind("an outcome", found)),
    }
}

fn write_view(view: &AccountView, out: &mut Writer) {
    write_account(&view.account, out);
    out.length(view.slots.len());
    for slot in &view.slots {
        out.signed(slot.balance);
        out.number(slot.version);
    }
    out.signed(view.held);
    out.signed(view.pending);
}

fn read_view(from: &mut Reader<'_>) -> Result<AccountView, CodecError> {
    let account = read_account(from)?;
    let mut slots = Vec::new();
    for index in 0..from.length("slots")? {
        let index = u8::try_from(index).ok().and_then(SlotIndex::new);
        slots.push(Slot {
            index: index.ok_or(CodecError::Range("a slot"))?,
            balance: from.signed("a balance")?,
            version: from.number("a version")?,
        });
    }
    Ok(AccountView {
        account,
        slots,
        held: from.signed("an amount")?,
        pending: from.signed("an amount")?,
    })
}

/// The receipt's account and request are the record's; a leg that is one of the entries is that entry's number.
fn write_receipt<'a>(receipt: &'a Receipt, entries: &[Entry], ids: &mut Named<'a>, out: &mut Writer) {
    out.byte(match receipt.kind {
        ReceiptKind::Credit => 0,
        ReceiptKind::Debit => 1,
        ReceiptKind::Transfer => 2,
        ReceiptKind::Hold => 3,
        ReceiptKind::Capture => 4,
        ReceiptKind::Release => 5,
        ReceiptKind::Reversal => 6,
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
        match entries.iter().position(|entry| leg.is(entry)) {
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
    let mut receipt = Receipt {
        account: account.clone(),
        request: request.clone(),
        kind: match from.byte("a receipt")? {
            0 => ReceiptKind::Credit,
            1 => ReceiptKind::Debit,
            2 => ReceiptKind::Transfer,
            3 => ReceiptKind::Hold,
            4 => ReceiptKind::Capture,
            5 => ReceiptKind::Release,
            6 => ReceiptKind::Reversal,
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

fn write_refusal<'a>(refusal: &'a Refusal, ids: &mut Named<'a>, out: &mut Writer) {
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
        Refusal::AccountNotEmpty { account, balance } => {
            out.byte(6);
            ids.write(account, out);
            out.signed(*balance);
        }
        Refusal::HoldNotOpen { hold, state } => {
            out.byte(7);
            out.text(hold.as_str());
            write_hold_state(*state, out);
        }
        Refusal::HoldExceeded { hold, asked, rest } => {
            out.byte(8);
            out.text(hold.as_str());
            out.signed(*asked);
            out.signed(*rest);
        }
        Refusal::AlreadyReversed { reverses, by } => {
            out.byte(9);
            out.text(reverses.as_str());
            out.text(by.as_str());
        }
        Refusal::NotReversible { reverses } => {
            out.byte(10);
            out.text(reverses.as_str());
        }
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
        6 => Ok(Refusal::AccountNotEmpty {
            account: ids.read(from)?,
            balance: from.signed("an amount")?,
        }),
        7 => Ok(Refusal::HoldNotOpen {
            hold: from.request()?,
            state: read_hold_state(from)?,
        }),
        8 => Ok(Refusal::HoldExceeded {
            hold: from.request()?,
            asked: from.signed("an amount")?,
            rest: from.signed("an amount")?,
        }),
        9 => Ok(Refusal::AlreadyReversed {
            reverses: from.request()?,
            by: from.request()?,
        }),
        10 => Ok(Refusal::NotReversible {
            reverses: from.request()?,
        }),
        found => Err(kind("a refusal", found)),
    }
}
