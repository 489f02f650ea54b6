//! The body of `POST /v1/batches`, read in one pass.
//!
//! What is wrong with one operation is answered in its own place, as its own route would. So a body that fails as a
//! whole is read a second time, operation by operation, off the fast path.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::scalar::{FromText, Memo, Taken, Text, Whole};
use super::{check_object, parse, required};
use crate::account::{AccountId, HoldTerm, RequestId};
use crate::command::{BatchMode, Command, DebitAmount, MAX_BATCH, Operation, Remainder};
use crate::http::error::Problem;
use crate::money::Amount;

/// A batch as it was sent.
#[derive(Debug)]
pub(in crate::http) struct SentBatch {
    pub(in crate::http) mode: BatchMode,
    /// At most [`MAX_BATCH`]: the command of each operation, or why it is none.
    pub(in crate::http) operations: Vec<Result<Command, Problem>>,
}

/// `O` is how an operation is read.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, bound = "O: Deserialize<'de>")]
struct BatchBody<O> {
    atomic: Option<bool>,
    operations: Option<AtMost<O>>,
}

/// One operation: the fields of every single route.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationBody {
    op: Option<Text<Op>>,
    request_id: Option<Text<RequestId>>,
    account_id: Option<Text<AccountId>>,
    from: Option<Text<AccountId>>,
    to: Option<Text<AccountId>>,
    hold_id: Option<Text<RequestId>>,
    reverses: Option<Text<RequestId>>,
    amount: Option<Taken>,
    memo: Option<Text<Memo>>,
    expires_in_s: Option<Whole<HoldTerm>>,
    r#final: Option<bool>,
}

/// What an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Credit,
    Debit,
    Hold,
    Capture,
    Release,
    Transfer,
    Reversal,
}

/// Reads a batch.
///
/// # Errors
/// 400 `invalid_request` where it is no batch at all, with the field.
pub(in crate::http) fn batch(body: &[u8]) -> Result<SentBatch, Problem> {
    check_object(body)?;
    if let Ok(body) = serde_json::from_slice::<BatchBody<Typed>>(body) {
        return sent(body, |Typed(operation)| operation);
    }
    let body: BatchBody<&RawValue> = parse(body)?;
    sent(body, |raw| {
        parse::<OperationBody>(raw.get().as_bytes()).and_then(OperationBody::command)
    })
}

fn sent<O>(
    body: BatchBody<O>,
    command: impl FnMut(O) -> Result<Command, Problem>,
) -> Result<SentBatch, Problem> {
    let AtMost(operations) = required("operations", body.operations)?;
    Ok(SentBatch {
        mode: match body.atomic {
            Some(true) => BatchMode::Atomic,
            Some(false) | None => BatchMode::Each,
        },
        operations: operations.into_iter().map(command).collect(),
    })
}

impl OperationBody {
    fn command(self) -> Result<Command, Problem> {
        let op = required("op", self.op.as_ref())?.0;
        self.check_fields(op)?;
        let request = required("request_id", self.request_id)?.0;
        let account = match op {
            Op::Transfer => required("from", self.from)?.0,
            Op::Credit | Op::Debit | Op::Hold | Op::Capture | Op::Release | Op::Reversal => {
                required("account_id", self.account_id)?.0
            }
        };
        let memo = self.memo.map(|memo| memo.0.into());
        let operation = match op {
            Op::Credit => Operation::Credit {
                amount: exactly(required("amount", self.amount)?)?,
                memo,
            },
            Op::Debit => Operation::Debit {
                amount: required("amount", self.amount)?.0,
                memo,
            },
            Op::Hold => Operation::Hold {
                amount: exactly(required("amount", self.amount)?)?,
                expires_in: self.expires_in_s.map(|term| term.0),
            },
            Op::Capture => Operation::Capture {
                hold: required("hold_id", self.hold_id)?.0,
                amount: self.amount.map(exactly).transpose()?,
                remainder: remainder(self.r#final),
            },
            Op::Release => Operation::Release {
                hold: required("hold_id", self.hold_id)?.0,
            },
            Op::Transfer => Operation::Transfer {
                to: other_than(&account, required("to", self.to)?.0)?,
                amount: exactly(required("amount", self.amount)?)?,
                memo,
            },
            Op::Reversal => Operation::Reversal {
                reverses: required("reverses", self.reverses)?.0,
            },
        };
        Ok(Command {
            account,
            request,
            operation,
        })
    }

    /// A field that belongs to another operation is as unknown as one that belongs to none.
    fn check_fields(&self, op: Op) -> Result<(), Problem> {
        let settles = matches!(op, Op::Capture | Op::Release);
        let moves = matches!(op, Op::Credit | Op::Debit | Op::Transfer);
        let fields = [
            ("account_id", self.account_id.is_some(), op != Op::Transfer),
            ("from", self.from.is_some(), op == Op::Transfer),
            ("to", self.to.is_some(), op == Op::Transfer),
            ("hold_id", self.hold_id.is_some(), settles),
            ("reverses", self.reverses.is_some(), op == Op::Reversal),
            (
                "amount",
                self.amount.is_some(),
                moves || matches!(op, Op::Hold | Op::Capture),
            ),
            ("memo", self.memo.is_some(), moves),
            ("expires_in_s", self.expires_in_s.is_some(), op == Op::Hold),
            ("final", self.r#final.is_some(), op == Op::Capture),
        ];
        match fields.into_iter().find(|(_, given, known)| *given && !known) {
            Some((field, ..)) => Err(Problem::invalid(
                field,
                "is unknown here: it belongs to another op",
            )),
            None => Ok(()),
        }
    }
}

/// What becomes of the rest of a hold: a capture is final unless it says otherwise.
pub(super) const fn remainder(last: Option<bool>) -> Remainder {
    match last {
        Some(true) | None => Remainder::Release,
        Some(false) => Remainder::Keep,
    }
}

/// The target of a transfer.
pub(super) fn other_than(from: &AccountId, to: AccountId) -> Result<AccountId, Problem> {
    if to == *from {
        return Err(Problem::invalid("to", "must be another account than from"));
    }
    Ok(to)
}

fn exactly(taken: Taken) -> Result<Amount, Problem> {
    match taken.0 {
        DebitAmount::Exactly(amount) => Ok(amount),
        DebitAmount::Max => Err(Problem::invalid(
            "amount",
            "must be a whole number: only a debit takes max",
        )),
    }
}

impl FromText for Op {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "credit" => Ok(Self::Credit),
            "debit" => Ok(Self::Debit),
            "hold" => Ok(Self::Hold),
            "capture" => Ok(Self::Capture),
            "release" => Ok(Self::Release),
            "transfer" => Ok(Self::Transfer),
            "reversal" => Ok(Self::Reversal),
            other => Err(format!(
                "must be credit, debit, hold, capture, release, transfer or reversal, not {other:?}"
            )),
        }
    }
}

/// An operation whose values are all such values, read into its command at once.
struct Typed(Result<Command, Problem>);

impl<'de> Deserialize<'de> for Typed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TypedVisitor)
    }
}

/// Takes an object only, where a derived struct would take an array of its fields too.
struct TypedVisitor;

impl<'de> Visitor<'de> for TypedVisitor {
    type Value = Typed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Typed, A::Error> {
        let body = OperationBody::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Typed(body.command()))
    }
}

/// A list that is given up once it is longer than a batch may be.
struct AtMost<O>(Vec<O>);

impl<'de, O: Deserialize<'de>> Deserialize<'de> for AtMost<O> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(AtMostVisitor(PhantomData))
    }
}

struct AtMostVisitor<O>(PhantomData<O>);

impl<'de, O: Deserialize<'de>> Visitor<'de> for AtMostVisitor<O> {
    type Value = AtMost<O>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array of at most {MAX_BATCH} objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<AtMost<O>, A::Error> {
        let mut read = Vec::new();
        while read.len() < MAX_BATCH {
            match items.next_element()? {
                Some(item) => read.push(item),
                None => return Ok(AtMost(read)),
            }
        }
        match items.next_element::<IgnoredAny>()? {
            Some(_) => Err(A::Error::custom(format_args!(
                "must have at most {MAX_BATCH} elements"
            ))),
            None => Ok(AtMost(read)),
        }
    }
}
