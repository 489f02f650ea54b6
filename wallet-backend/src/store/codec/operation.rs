//! What was asked for, as bytes: all of it, so that a later command of the same id can be compared field by field.

use crate::account::{HoldTerm, SlotCount};
use crate::command::{Amendment, DebitAmount, Operation, Remainder};
use crate::money::Amount;
use crate::store::codec::account::{
    credit_mode, debit_mode, read_credit_mode, read_debit_mode, read_status, status,
};
use crate::store::codec::{CodecError, Ids, Named, Reader, Writer, kind};

/// An operation; `None` for an abandoned id.
pub(in crate::store) fn write_operation<'a>(
    operation: Option<&'a Operation>,
    ids: &mut Named<'a>,
    out: &mut Writer,
) {
    match operation {
        None => out.byte(0),
        Some(Operation::Credit { amount, memo }) => {
            out.byte(1);
            out.amount(*amount);
            out.optional_text(memo.as_deref());
        }
        Some(Operation::Debit { amount, memo }) => {
            out.byte(2);
            write_optional_amount(
                match amount {
                    DebitAmount::Exactly(amount) => Some(*amount),
                    DebitAmount::Max => None,
                },
                out,
            );
            out.optional_text(memo.as_deref());
        }
        Some(Operation::Transfer { to, amount, memo }) => {
            out.byte(3);
            ids.write(to, out);
            out.amount(*amount);
            out.optional_text(memo.as_deref());
        }
        Some(Operation::Hold { amount, expires_in }) => {
            out.byte(4);
            out.amount(*amount);
            out.number(expires_in.map_or(0, |term| term.seconds().into()));
        }
        Some(Operation::Capture {
            hold,
            amount,
            remainder,
        }) => {
            out.byte(5);
            out.text(hold.as_str());
            write_optional_amount(*amount, out);
            out.byte(match remainder {
                Remainder::Release => 0,
                Remainder::Keep => 1,
            });
        }
        Some(Operation::Release { hold }) => {
            out.byte(6);
            out.text(hold.as_str());
        }
        Some(Operation::Reversal { reverses }) => {
            out.byte(7);
            out.text(reverses.as_str());
        }
        Some(Operation::Amend(amendment)) => {
            out.byte(8);
            write_amendment(amendment, out);
        }
    }
}

/// The reverse of [`write_operation`].
pub(in crate::store) fn read_operation(
    from: &mut Reader<'_>,
    ids: &mut Ids,
) -> Result<Option<Operation>, CodecError> {
    Ok(Some(match from.byte("an operation")? {
        0 => return Ok(None),
        1 => Operation::Credit {
            amount: from.amount()?,
            memo: read_memo(from)?,
        },
        2 => Operation::Debit {
            amount: read_optional_amount(from)?.map_or(DebitAmount::Max, DebitAmount::Exactly),
            memo: read_memo(from)?,
        },
        3 => Operation::Transfer {
            to: ids.read(from)?,
            amount: from.amount()?,
            memo: read_memo(from)?,
        },
        4 => Operation::Hold {
            amount: from.amount()?,
            expires_in: read_term(from)?,
        },
        5 => Operation::Capture {
            hold: from.request()?,
            amount: read_optional_amount(from)?,
            remainder: match from.byte("a remainder")? {
                0 => Remainder::Release,
                1 => Remainder::Keep,
                found => return Err(kind("a remainder", found)),
            },
        },
        6 => Operation::Release {
            hold: from.request()?,
        },
        7 => Operation::Reversal {
            reverses: from.request()?,
        },
        8 => Operation::Amend(read_amendment(from)?),
        found => return Err(kind("an operation", found)),
    }))
}

fn read_memo(from: &mut Reader<'_>) -> Result<Option<Box<str>>, CodecError> {
    Ok(from.optional_text("a memo")?.map(Box::from))
}

/// 0 for none, which no amount is.
fn write_optional_amount(amount: Option<Amount>, out: &mut Writer) {
    out.signed(amount.map_or(0, Amount::minor));
}

fn read_optional_amount(from: &mut Reader<'_>) -> Result<Option<Amount>, CodecError> {
    match from.signed("an amount")? {
        0 => Ok(None),
        minor => Ok(Some(Amount::new(minor)?)),
    }
}

/// 0 for none, which no term is.
fn read_term(from: &mut Reader<'_>) -> Result<Option<HoldTerm>, CodecError> {
    match from.number("a term")? {
        0 => Ok(None),
        seconds => u32::try_from(seconds)
            .ok()
            .and_then(HoldTerm::new)
            .map(Some)
            .ok_or(CodecError::Range("a term")),
    }
}

// Which fields an amendment has.
const STATUS: u8 = 1;
const SLOTS: u8 = 2;
const CREDIT: u8 = 4;
const DEBIT: u8 = 8;
const FLOOR: u8 = 16;

fn write_amendment(amendment: &Amendment, out: &mut Writer) {
    let Amendment {
        status: new_status,
        slots,
        credit,
        debit,
        floor,
    } = amendment;
    let flag = |given: bool, flag: u8| if given { flag } else { 0 };
    out.byte(
        flag(new_status.is_some(), STATUS)
            | flag(slots.is_some(), SLOTS)
            | flag(credit.is_some(), CREDIT)
            | flag(debit.is_some(), DEBIT)
            | flag(floor.is_some(), FLOOR),
    );
    let bytes = [
        new_status.map(status),
        slots.map(SlotCount::get),
        credit.map(credit_mode),
        debit.map(debit_mode),
    ];
    bytes.into_iter().flatten().for_each(|byte| out.byte(byte));
    if let Some(floor) = floor {
        out.signed(*floor);
    }
}

fn read_amendment(from: &mut Reader<'_>) -> Result<Amendment, CodecError> {
    let flags = from.byte("an amendment")?;
    if flags > STATUS | SLOTS | CREDIT | DEBIT | FLOOR {
        return Err(kind("an amendment", flags));
    }
    let has = |flag: u8| flags & flag != 0;
    let mut amendment = Amendment::default();
    if has(STATUS) {
        amendment.status = Some(read_status(from)?);
    }
    if has(SLOTS) {
        let count = SlotCount::new(from.byte("a slot count")?);
        amendment.slots = Some(count.ok_or(CodecError::Range("a slot count"))?);
    }
    if has(CREDIT) {
        amendment.credit = Some(read_credit_mode(from)?);
    }
    if has(DEBIT) {
        amendment.debit = Some(read_debit_mode(from)?);
    }
    if has(FLOOR) {
        amendment.floor = Some(from.signed("a floor")?);
    }
    Ok(amendment)
}
