//! A request of a line: what was asked, and what it became.

use serde::Deserialize;

use super::value::{Asked, Number, Word};
use super::{AccountWire, LineError};
use crate::account::{
    AccountId, CreditMode, DebitMode, HoldState, HoldTerm, RequestId, Slot, SlotCount, SlotIndex, Status,
    Timestamp,
};
use crate::command::{
    AccountView, Amendment, DebitAmount, Leg, MAX_MEMO_BYTES, Operation, Outcome, Posting, Receipt,
    ReceiptKind, Refusal, Remainder, RequestRecord,
};
use crate::money::{Amount, Currency};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestWire {
    account_id: Word<AccountId>,
    request_id: Word<RequestId>,
    operation: Option<OperationWire>,
    receipt: Option<ReceiptWire>,
    account: Option<ViewWire>,
    refusal: Option<RefusalWire>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationWire {
    r#type: String,
    hold_id: Option<Word<RequestId>>,
    to: Option<Word<AccountId>>,
    reverses: Option<Word<RequestId>>,
    amount: Option<Asked>,
    expires_in_s: Option<Number<HoldTerm>>,
    r#final: Option<bool>,
    status: Option<Word<Status>>,
    slots: Option<Number<SlotCount>>,
    credit: Option<Word<CreditMode>>,
    debit: Option<Word<DebitMode>>,
    floor: Option<i64>,
    memo: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReceiptWire {
    request_id: Word<RequestId>,
    account_id: Word<AccountId>,
    r#type: Word<ReceiptKind>,
    amount: Number<Amount>,
    currency: Word<Currency>,
    status: Word<Posting>,
    at: Word<Timestamp>,
    entries: Vec<LegWire>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LegWire {
    account_id: Word<AccountId>,
    slot: Number<SlotIndex>,
    version: u64,
    delta: i64,
    #[serde(default)]
    held_delta: i64,
    balance_after: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ViewWire {
    terms: AccountWire,
    held: i64,
    pending: i64,
    slots: Vec<SlotWire>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SlotWire {
    index: Number<SlotIndex>,
    balance: i64,
    version: u64,
}

/// `from` and `to` are currencies, the other texts ids.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RefusalWire {
    code: String,
    account_id: Option<Word<AccountId>>,
    asked: Option<i64>,
    available: Option<i64>,
    balance: Option<i64>,
    from: Option<Word<Currency>>,
    to: Option<Word<Currency>>,
    hold_id: Option<Word<RequestId>>,
    status: Option<Word<HoldState>>,
    rest: Option<i64>,
    reverses: Option<Word<RequestId>>,
    by: Option<Word<RequestId>>,
}

/// A member that the kind of its object calls for.
fn needed<T>(member: Option<T>, of: &str, name: &str) -> Result<T, LineError> {
    member.ok_or_else(|| LineError::new(format!("{of}.{name}"), "is missing"))
}

impl RequestWire {
    pub(super) fn record(self) -> Result<RequestRecord, LineError> {
        let (account, request) = (self.account_id.0, self.request_id.0);
        let operation = self.operation.map(OperationWire::operation).transpose()?;
        if operation.as_ref().and_then(Operation::target) == Some(&account) {
            let reason = "must be another account";
            return Err(LineError::new("request.operation.to", reason));
        }
        let outcome = match (self.receipt, self.account, self.refusal) {
            (Some(receipt), None, None) => Outcome::Posted(receipt.receipt(&account, &request)?),
            (None, Some(view), None) => Outcome::Amended(Box::new(view.view()?)),
            (None, None, Some(refusal)) => Outcome::Refused(refusal.refusal()?),
            _ => {
                let reason = "has one of receipt, account and refusal";
                return Err(LineError::new("request", reason));
            }
        };
        if operation.is_none() && outcome != Outcome::Refused(Refusal::Abandoned) {
            let reason = "is missing, and only an abandoned id has none";
            return Err(LineError::new("request.operation", reason));
        }
        Ok(RequestRecord {
            account,
            request,
            operation,
            outcome,
        })
    }
}

impl OperationWire {
    /// Members that the kind has no use for are not looked at: the line as it is written again has none.
    fn operation(self) -> Result<Operation, LineError> {
        const OF: &str = "request.operation";
        let asked = self.amount.map(|asked| asked.0);
        let exactly = |asked: Option<DebitAmount>| match asked {
            Some(DebitAmount::Exactly(amount)) => Ok(Some(amount)),
            Some(DebitAmount::Max) => Err(LineError::new(format!("{OF}.amount"), "must be a number")),
            None => Ok(None),
        };
        let amount = || needed(exactly(asked)?, OF, "amount");
        if let Some(bytes) = self.memo.as_ref().map(|memo| memo.len())
            && bytes > MAX_MEMO_BYTES
        {
            let reason = format!("must have at most {MAX_MEMO_BYTES} bytes, not {bytes}");
            return Err(LineError::new(format!("{OF}.memo"), reason));
        }
        let (hold, memo) = (self.hold_id.map(|hold| hold.0), self.memo);
        Ok(match self.r#type.as_str() {
            "credit" => Operation::Credit {
                amount: amount()?,
                memo,
            },
            "debit" => Operation::Debit {
                amount: needed(asked, OF, "amount")?,
                memo,
            },
            "hold" => Operation::Hold {
                amount: amount()?,
                expires_in: self.expires_in_s.map(|term| term.0),
            },
            "capture" => Operation::Capture {
                hold: needed(hold, OF, "hold_id")?,
                amount: exactly(asked)?,
                remainder: match needed(self.r#final, OF, "final")? {
                    true => Remainder::Release,
                    false => Remainder::Keep,
                },
            },
            "release" => Operation::Release {
                hold: needed(hold, OF, "hold_id")?,
            },
            "transfer" => Operation::Transfer {
                to: needed(self.to, OF, "to")?.0,
                amount: amount()?,
                memo,
            },
            "reversal" => Operation::Reversal {
                reverses: needed(self.reverses, OF, "reverses")?.0,
            },
            "amend" => Operation::Amend(Amendment {
                status: self.status.map(|status| status.0),
                slots: self.slots.map(|slots| slots.0),
                credit: self.credit.map(|credit| credit.0),
                debit: self.debit.map(|debit| debit.0),
                floor: self.floor,
            }),
            other => {
                let reason = format!("there is no operation {other:?}");
                return Err(LineError::new(format!("{OF}.type"), reason));
            }
        })
    }
}

impl ReceiptWire {
    /// `account` and `request` are those of the request that it is for.
    fn receipt(self, account: &AccountId, request: &RequestId) -> Result<Receipt, LineError> {
        let own = [
            ("request_id", self.request_id.0 == *request),
            ("account_id", self.account_id.0 == *account),
        ];
        if let Some((name, _)) = own.into_iter().find(|(_, same)| !same) {
            let field = format!("request.receipt.{name}");
            return Err(LineError::new(field, "is not the request's"));
        }
        Ok(Receipt {
            account: self.account_id.0,
            request: self.request_id.0,
            kind: self.r#type.0,
            amount: self.amount.0,
            currency: self.currency.0,
            posting: self.status.0,
            at: self.at.0,
            legs: self.entries.into_iter().map(LegWire::leg).collect(),
        })
    }
}

impl LegWire {
    fn leg(self) -> Leg {
        Leg {
            account: self.account_id.0,
            slot: self.slot.0,
            version: self.version,
            delta: self.delta,
            held_delta: self.held_delta,
            balance_after: self.balance_after,
        }
    }
}

impl ViewWire {
    fn view(self) -> Result<AccountView, LineError> {
        let account = self.terms.account("request.account.terms")?;
        let slots = self.slots.into_iter().map(|slot| Slot {
            index: slot.index.0,
            balance: slot.balance,
            version: slot.version,
        });
        Ok(AccountView {
            account,
            slots: slots.collect(),
            held: self.held,
            pending: self.pending,
        })
    }
}

impl RefusalWire {
    fn refusal(self) -> Result<Refusal, LineError> {
        const OF: &str = "request.refusal";
        let account = || needed(self.account_id.as_ref(), OF, "account_id").map(|id| id.0.clone());
        let hold = || needed(self.hold_id.as_ref(), OF, "hold_id").map(|id| id.0.clone());
        let reverses = || needed(self.reverses.as_ref(), OF, "reverses").map(|id| id.0.clone());
        let asked = || needed(self.asked, OF, "asked");
        Ok(match self.code.as_str() {
            "insufficient_funds" => Refusal::InsufficientFunds {
                account: account()?,
                asked: asked()?,
                available: needed(self.available, OF, "available")?,
            },
            "account_frozen" => Refusal::AccountFrozen { account: account()? },
            "account_closed" => Refusal::AccountClosed { account: account()? },
            "balance_limit" => Refusal::BalanceLimit {
                account: account()?,
                asked: asked()?,
            },
            "currency_mismatch" => Refusal::CurrencyMismatch {
                from: needed(self.from, OF, "from")?.0,
                to: needed(self.to, OF, "to")?.0,
            },
            "account_not_empty" => Refusal::AccountNotEmpty {
                account: account()?,
                balance: needed(self.balance, OF, "balance")?,
            },
            "hold_not_open" => Refusal::HoldNotOpen {
                hold: hold()?,
                state: needed(self.status, OF, "status")?.0,
            },
            "hold_exceeded" => Refusal::HoldExceeded {
                hold: hold()?,
                asked: asked()?,
                rest: needed(self.rest, OF, "rest")?,
            },
            "already_reversed" => Refusal::AlreadyReversed {
                reverses: reverses()?,
                by: needed(self.by, OF, "by")?.0,
            },
            "not_reversible" => Refusal::NotReversible {
                reverses: reverses()?,
            },
            "abandoned" => Refusal::Abandoned,
            other => {
                let reason = format!("there is no refusal {other:?}");
                return Err(LineError::new(format!("{OF}.code"), reason));
            }
        })
    }
}
