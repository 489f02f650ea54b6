//! Requests as rows.
//!
//! What happens most often takes no `outcome`: a credit, a debit of an amount, or a hold, posted as one entry of the
//! account itself. Slot, version, balance and time say the rest of such a receipt.

use sqlx::Row as _;
use sqlx::mysql::MySqlRow;

use super::columns::{self, ColumnError};
use crate::account::{AccountId, RequestId, Timestamp};
use crate::command::{DebitAmount, Leg, Operation, Outcome, Posting, Receipt, ReceiptKind, RequestRecord};
use crate::money::{Amount, Currency};
use crate::store::codec::{
    CodecError, Ids, Named, Reader, Writer, read_operation, read_outcome, write_operation, write_outcome,
};

/// A record's `operation`; `None` for an abandoned id.
pub(super) fn operation(record: &RequestRecord) -> Option<Vec<u8>> {
    let operation = record.operation.as_ref()?;
    let mut out = Writer::default();
    write_operation(Some(operation), &mut Named::default(), &mut out);
    Some(out.bytes)
}

/// A record's outcome, in one of its two ways.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stored<'a> {
    /// The columns `slot_index`, `version`, `balance_after` and `at_us`.
    Plain {
        leg: &'a Leg,
        at: Timestamp,
    },
    Bytes(Vec<u8>),
}

pub(super) fn outcome(record: &RequestRecord) -> Stored<'_> {
    if let Outcome::Posted(receipt) = &record.outcome
        && let [leg] = receipt.legs.as_slice()
        && let Some(operation) = &record.operation
        && plain(record, operation, receipt.currency, leg, receipt.at).as_ref() == Some(receipt)
    {
        return Stored::Plain { leg, at: receipt.at };
    }
    let mut out = Writer::default();
    write_outcome(record, &[], &mut Named::default(), &mut out);
    Stored::Bytes(out.bytes)
}

/// Of `request`: `request_id`, `operation`, `outcome`, `slot_index`, `version`, `balance_after` and `at_us`.
/// `currency` is the account's.
pub(super) fn record(
    row: &MySqlRow,
    account: &AccountId,
    currency: Currency,
) -> Result<RequestRecord, ColumnError> {
    let request = columns::request_id(row, "request_id")?;
    let bytes: Option<&[u8]> = row.try_get("operation")?;
    let operation = bytes.map(decode_operation).transpose();
    let operation = operation.map_err(|error| wrong("operation", &error))?.flatten();
    let bytes: Option<&[u8]> = row.try_get("outcome")?;
    let outcome = match bytes {
        Some(bytes) => decode_outcome(bytes, account, &request).map_err(|error| wrong("outcome", &error))?,
        None => plain_outcome(row, account, &request, operation.as_ref(), currency)?,
    };
    Ok(RequestRecord {
        account: account.clone(),
        request,
        operation,
        outcome,
    })
}

fn decode_operation(bytes: &[u8]) -> Result<Option<Operation>, CodecError> {
    let mut from = Reader::new(bytes);
    let operation = read_operation(&mut from, &mut Ids::default())?;
    from.end()?;
    Ok(operation)
}

fn decode_outcome(bytes: &[u8], account: &AccountId, request: &RequestId) -> Result<Outcome, CodecError> {
    let mut from = Reader::new(bytes);
    let outcome = read_outcome(&mut from, account, request, &[], &mut Ids::default())?;
    from.end()?;
    Ok(outcome)
}

fn plain_outcome(
    row: &MySqlRow,
    account: &AccountId,
    request: &RequestId,
    operation: Option<&Operation>,
    currency: Currency,
) -> Result<Outcome, ColumnError> {
    let leg = Leg {
        account: account.clone(),
        slot: columns::slot_index(row)?,
        version: row.try_get("version")?,
        delta: 0,
        held_delta: 0,
        balance_after: row.try_get("balance_after")?,
    };
    let at = Timestamp(row.try_get("at_us")?);
    operation
        .and_then(|operation| plain_receipt(account, request, operation, currency, &leg, at))
        .map(Outcome::Posted)
        .ok_or_else(|| ColumnError::Value {
            column: "outcome",
            reason: "must not be absent for this operation".to_owned(),
        })
}

fn plain(
    record: &RequestRecord,
    operation: &Operation,
    currency: Currency,
    leg: &Leg,
    at: Timestamp,
) -> Option<Receipt> {
    plain_receipt(&record.account, &record.request, operation, currency, leg, at)
}

/// The receipt of one entry on the account itself; `None` for an operation whose receipt may be another.
fn plain_receipt(
    account: &AccountId,
    request: &RequestId,
    operation: &Operation,
    currency: Currency,
    leg: &Leg,
    at: Timestamp,
) -> Option<Receipt> {
    let (kind, amount, sign, held): (_, Amount, i64, i64) = match operation {
        Operation::Credit { amount, .. } => (ReceiptKind::Credit, *amount, 1, 0),
        Operation::Debit {
            amount: DebitAmount::Exactly(amount),
            ..
        } => (ReceiptKind::Debit, *amount, -1, 0),
        Operation::Hold { amount, .. } => (ReceiptKind::Hold, *amount, -1, 1),
        Operation::Debit {
            amount: DebitAmount::Max,
            ..
        }
        | Operation::Transfer { .. }
        | Operation::Capture { .. }
        | Operation::Release { .. }
        | Operation::Reversal { .. }
        | Operation::Amend(_) => return None,
    };
    let leg = Leg {
        account: account.clone(),
        delta: amount.minor().saturating_mul(sign),
        held_delta: amount.minor().saturating_mul(held),
        ..leg.clone()
    };
    Some(Receipt {
        account: account.clone(),
        request: request.clone(),
        kind,
        amount,
        currency,
        posting: Posting::Posted,
        at,
        legs: vec![leg],
    })
}

fn wrong(column: &'static str, error: &CodecError) -> ColumnError {
    let reason = error.to_string();
    ColumnError::Value { column, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::SlotIndex;
    use crate::command::Refusal;

    fn record(operation: Operation, outcome: Outcome) -> RequestRecord {
        RequestRecord {
            account: AccountId::new("a").unwrap(),
            request: RequestId::new("r").unwrap(),
            operation: Some(operation),
            outcome,
        }
    }

    fn receipt(kind: ReceiptKind, delta: i64, legs: usize) -> Outcome {
        let account = AccountId::new("a").unwrap();
        let leg = Leg {
            account: account.clone(),
            slot: SlotIndex::PRIMARY,
            version: 7,
            delta,
            held_delta: 0,
            balance_after: 50,
        };
        Outcome::Posted(Receipt {
            account,
            request: RequestId::new("r").unwrap(),
            kind,
            amount: Amount::new(5).unwrap(),
            currency: Currency::new("EUR").unwrap(),
            posting: if legs == 0 {
                Posting::Pending
            } else {
                Posting::Posted
            },
            at: Timestamp(9),
            legs: vec![leg; legs],
        })
    }

    fn credit() -> Operation {
        let amount = Amount::new(5).unwrap();
        Operation::Credit { amount, memo: None }
    }

    #[test]
    fn a_posted_credit_needs_no_outcome() {
        let record = record(credit(), receipt(ReceiptKind::Credit, 5, 1));
        assert!(matches!(outcome(&record), Stored::Plain { leg, .. } if leg.version == 7));
    }

    #[test]
    fn what_columns_cannot_tell_is_kept_as_bytes() {
        let refused = Outcome::Refused(Refusal::Abandoned);
        let pending = receipt(ReceiptKind::Credit, 5, 0);
        let other_delta = receipt(ReceiptKind::Credit, 4, 1);
        for kept in [refused, pending, other_delta] {
            let record = record(credit(), kept.clone());
            let Stored::Bytes(bytes) = outcome(&record) else {
                panic!("{kept:?} was taken for plain");
            };
            let back = decode_outcome(&bytes, &record.account, &record.request);
            assert_eq!(back, Ok(kept));
        }
    }

    #[test]
    fn an_operation_comes_back_from_its_bytes() {
        let record = record(credit(), receipt(ReceiptKind::Credit, 5, 1));
        let bytes = operation(&record).unwrap();
        assert_eq!(decode_operation(&bytes), Ok(Some(credit())));
    }
}
