//! JSON bodies -> commands. Strict: what is not understood is refused and named, never ignored.
//!
//! Bytes become a private wire struct and that becomes a typed command, so nothing behind this module checks again.
//! The fast path is plain serde; only a body that fails is read a second time, to say which field is to blame.
//! `null` is the same as absent.

use serde::Deserialize;

use self::batch::{other_than, remainder};
use self::scalar::{Floor, Memo, Taken, Text, Whole};
use super::error::{Code, Problem};
use crate::account::{Account, AccountId, CreditMode, DebitMode, HoldTerm, RequestId, SlotCount, Status};
use crate::command::{Amendment, Command, Operation};
use crate::money::{Amount, Currency};

mod batch;
mod diagnose;
mod scalar;

pub(super) use batch::{SentBatch, batch};

/// The most dead letters that one request names.
const MAX_REDELIVERED: usize = 1_000;

/// `POST /v1/webhooks/dead-letters/redeliver`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RedeliverBody {
    ids: Option<Vec<String>>,
}

/// `POST /v1/accounts`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenBody {
    account_id: Option<Text<AccountId>>,
    currency: Option<Text<Currency>>,
    slots: Option<Whole<SlotCount>>,
    credit: Option<Text<CreditMode>>,
    debit: Option<Text<DebitMode>>,
    floor: Option<Whole<Floor>>,
}

/// `PATCH /v1/accounts/{account_id}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AmendBody {
    request_id: Option<Text<RequestId>>,
    status: Option<Text<Status>>,
    slots: Option<Whole<SlotCount>>,
    credit: Option<Text<CreditMode>>,
    debit: Option<Text<DebitMode>>,
    floor: Option<Whole<Floor>>,
}

/// `POST /v1/accounts/{account_id}/credits`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreditBody {
    request_id: Option<Text<RequestId>>,
    amount: Option<Whole<Amount>>,
    memo: Option<Text<Memo>>,
}

/// `POST /v1/accounts/{account_id}/debits`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DebitBody {
    request_id: Option<Text<RequestId>>,
    amount: Option<Taken>,
    memo: Option<Text<Memo>>,
}

/// `POST /v1/accounts/{account_id}/holds`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HoldBody {
    request_id: Option<Text<RequestId>>,
    amount: Option<Whole<Amount>>,
    expires_in_s: Option<Whole<HoldTerm>>,
}

/// `POST /v1/accounts/{account_id}/holds/{hold_id}/capture`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaptureBody {
    request_id: Option<Text<RequestId>>,
    amount: Option<Whole<Amount>>,
    r#final: Option<bool>,
}

/// `POST /v1/accounts/{account_id}/holds/{hold_id}/release`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleaseBody {
    request_id: Option<Text<RequestId>>,
}

/// `POST /v1/reversals`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReversalBody {
    request_id: Option<Text<RequestId>>,
    account_id: Option<Text<AccountId>>,
    reverses: Option<Text<RequestId>>,
}

/// `POST /v1/transfers`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TransferBody {
    request_id: Option<Text<RequestId>>,
    from: Option<Text<AccountId>>,
    to: Option<Text<AccountId>>,
    amount: Option<Whole<Amount>>,
    memo: Option<Text<Memo>>,
}

/// A body that carries nothing: `{}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EmptyBody {}

/// An account to open.
///
/// # Errors
/// 400 `invalid_request`, with the field.
pub(super) fn open(body: &[u8]) -> Result<Account, Problem> {
    let body: OpenBody = parse(body)?;
    let account = Account {
        id: required("account_id", body.account_id)?.0,
        currency: required("currency", body.currency)?.0,
        status: Status::Active,
        floor: body.floor.map_or(0, |floor| floor.0.minor()),
        slots: body.slots.map_or(SlotCount::ONE, |slots| slots.0),
        credit: body.credit.map_or(CreditMode::Slot, |credit| credit.0),
        debit: body.debit.map_or(DebitMode::Primary, |debit| debit.0),
    };
    if account.debit == DebitMode::Hashed && account.floor > 0 {
        return Err(Problem::invalid("floor", "must be 0 where debit is hashed"));
    }
    Ok(account)
}

/// A change of `account`.
///
/// # Errors
/// 400 `invalid_request`, with the field.
pub(super) fn amend(account: AccountId, key: Option<RequestId>, body: &[u8]) -> Result<Command, Problem> {
    let body: AmendBody = parse(body)?;
    let amendment = Amendment {
        status: body.status.map(|status| status.0),
        slots: body.slots.map(|slots| slots.0),
        credit: body.credit.map(|credit| credit.0),
        debit: body.debit.map(|debit| debit.0),
        floor: body.floor.map(|floor| floor.0.minor()),
    };
    command(account, key, body.request_id, Operation::Amend(amendment))
}

/// A credit to `account`.
///
/// # Errors
/// 400 `invalid_request`, with the field.
pub(super) fn credit(account: AccountId, key: Option<RequestId>, body: &[u8]) -> Result<Command, Problem> {
    let body: CreditBody = parse(body)?;
    let operation = Operation::Credit {
        amount: required("amount", body.amount)?.0,
        memo: body.memo.map(|memo| memo.0.into()),
    };
    command(account, key, body.request_id, operation)
}

/// A debit from `account`.
///
/// # Errors
/// 400 `invalid_request`, with the field.
pub(super) fn debit(account: AccountId, key: Option<RequestId>, body: &[u8]) -> Result<Command, Problem> {
    let body: DebitBody = parse(body)?;
    let operation = Operation::Debit {
        amount: required("amount", body.amount)?.0,
        memo: body.memo.map(|memo| memo.0.into()),
    };
    command(account, key, body.request_id, operation)
}

/// A hold on `account`.
///
/// # Errors
/// 400 `invalid_request`, with the field.
pub(super) fn hold(account: AccountId, key: Option<RequestId>, body: &[u8]) -> Result<Command, Problem> {
    let body: HoldBody = parse(body)?;
    let operation = Operation::Hold {
        amount: required("amount", body.amount)?.0,
        expires_in: body.expires_in_s.map(|term| term.0),
    };
    command(account, key, body.request_id, operation)
}

/// A capture of `hold`, final unless the body says otherwise.
///
/// # Errors
/// 400 `invalid_request`, with the field.
pub(super) fn capture(
    (account, hold): (AccountId, RequestId),
    key: Option<RequestId>,
    body: &[u8],
) -> Result<Command, Problem> {
    let body: CaptureBody = parse(body)?;
    let operation = Operation::Capture {
        hold,
        amount: body.amount.map(|amount| amount.0),
        remainder: remainder(body.r#final),
    };
    command(account, key, body.request_id, operation)
}

/// The release of `hold`.
///
/// # Errors
/// 400 `invalid_request`, with the field.
pub(super) fn release(
    (account, hold): (AccountId, RequestId),
    key: Option<RequestId>,
    body: &[u8],
) -> Result<Command, Problem> {
    let body: ReleaseBody = parse(body)?;
    command(account, key, body.request_id, Operation::Release { hold })
}

/// A reversal.
///
/// # Errors
/// 400 `invalid_request`, with the field.
pub(super) fn reversal(key: Option<RequestId>, body: &[u8]) -> Result<Command, Problem> {
    let body: ReversalBody = parse(body)?;
    let account = required("account_id", body.account_id)?.0;
    let reverses = required("reverses", body.reverses)?.0;
    command(account, key, body.request_id, Operation::Reversal { reverses })
}

fn command(
    account: AccountId,
    key: Option<RequestId>,
    request: Option<Text<RequestId>>,
    operation: Operation,
) -> Result<Command, Problem> {
    let request = one_request_id(key, request.map(|id| id.0))?;
    Ok(Command {
        account,
        request,
        operation,
    })
}

/// A transfer; it belongs to the request ids of its source.
///
/// # Errors
/// 400 `invalid_request`, with the field.
pub(super) fn transfer(key: Option<RequestId>, body: &[u8]) -> Result<Command, Problem> {
    let body: TransferBody = parse(body)?;
    let account = required("from", body.from)?.0;
    let to = other_than(&account, required("to", body.to)?.0)?;
    let operation = Operation::Transfer {
        to,
        amount: required("amount", body.amount)?.0,
        memo: body.memo.map(|memo| memo.0.into()),
    };
    command(account, key, body.request_id, operation)
}

/// Checks that a body has nothing in it: no bytes, or `{}`.
///
/// # Errors
/// 400 `invalid_request`, with the first field.
pub(super) fn nothing(body: &[u8]) -> Result<(), Problem> {
    if body.is_empty() {
        return Ok(());
    }
    parse(body).map(|EmptyBody {}| ())
}

/// Which dead letters are sent once more: `None` is all of them.
///
/// # Errors
/// 400 `invalid_request`, with the field.
pub(super) fn redeliver(body: &[u8]) -> Result<Option<Vec<String>>, Problem> {
    if body.is_empty() {
        return Ok(None);
    }
    let body: RedeliverBody = parse(body)?;
    match body.ids {
        Some(ids) if ids.is_empty() || ids.len() > MAX_REDELIVERED => {
            let rule = format!("must have 1 to {MAX_REDELIVERED} ids; leave it out for all");
            Err(Problem::invalid("ids", rule))
        }
        ids => Ok(ids),
    }
}

/// The request id from the body or from the `Idempotency-Key` header.
///
/// # Errors
/// 400 `invalid_request` where there is none, or two that differ.
pub(super) fn one_request_id(
    header: Option<RequestId>,
    body: Option<RequestId>,
) -> Result<RequestId, Problem> {
    const FIELD: &str = "request_id";
    match (header, body) {
        (Some(header), Some(body)) if header != body => Err(Problem::invalid(
            FIELD,
            "and the Idempotency-Key header must be the same where both are given",
        )),
        (_, Some(id)) | (Some(id), None) => Ok(id),
        (None, None) => Err(Problem::invalid(
            FIELD,
            "must be given, in the body or as the Idempotency-Key header",
        )),
    }
}

fn required<T>(field: &str, value: Option<T>) -> Result<T, Problem> {
    value.ok_or_else(|| Problem::invalid(field, "must be given"))
}

/// Reads a JSON object. serde would take an array for a struct, so the brace is looked for first.
fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    check_object(body)?;
    serde_json::from_slice(body).map_err(|_| diagnose::blame::<T>(body))
}

fn check_object(body: &[u8]) -> Result<(), Problem> {
    let detail = match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => return Ok(()),
        Some(_) => "the body must be a JSON object",
        None => "the body must be a JSON object, and it is empty",
    };
    Err(Problem::new(Code::InvalidRequest, detail))
}
