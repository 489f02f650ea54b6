//! Commands -> what is sent for them.

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::error::CallError;
use super::wire::{CREDIT_MODES, DEBIT_MODES, STATUSES, name_of};
use crate::account::{Account, RequestId, Status};
use crate::command::{Amendment, BatchMode, Command, DebitAmount, Operation, Remainder};

/// A request before it has an address.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) method: Method,
    /// Decoded.
    pub(super) path: Vec<String>,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) body: Option<Value>,
}

impl Asked {
    /// # Errors
    /// `Invalid` for an id that no URL can have in its path.
    pub(super) fn new<const N: usize>(method: Method, path: [&str; N]) -> Result<Self, CallError> {
        // RFC 3986 takes such segments out, also where they are percent-encoded.
        if let Some(dots) = path.iter().find(|part| matches!(**part, "." | "..")) {
            return Err(CallError::Invalid {
                field: "path",
                reason: format!("cannot have the id {dots:?} in it"),
            });
        }
        Ok(Self {
            method,
            path: path.map(str::to_owned).to_vec(),
            query: Vec::new(),
            body: None,
        })
    }

    pub(super) fn get<const N: usize>(path: [&str; N]) -> Result<Self, CallError> {
        Self::new(Method::GET, path)
    }

    pub(super) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.query.push((name, value.to_string()));
        self
    }
}

pub(super) fn open(account: &Account) -> Result<Asked, CallError> {
    if account.status != Status::Active {
        return Err(CallError::Invalid {
            field: "status",
            reason: "must be active: an account is opened so".to_owned(),
        });
    }
    let body = json!({
        "account_id": account.id.as_str(),
        "currency": account.currency.as_str(),
        "slots": account.slots.get(),
        "credit": name_of(account.credit, &CREDIT_MODES),
        "debit": name_of(account.debit, &DEBIT_MODES),
        "floor": account.floor,
    });
    let mut asked = Asked::new(Method::POST, ["v1", "accounts"])?;
    asked.body = Some(body);
    Ok(asked)
}

/// What is sent for a command by itself.
pub(super) fn command(command: &Command) -> Result<Asked, CallError> {
    let account = command.account.as_str();
    let own = |last| Asked::new(Method::POST, ["v1", "accounts", account, last]);
    let of_hold = |hold: &RequestId, last| {
        let path = ["v1", "accounts", account, "holds", hold.as_str(), last];
        Asked::new(Method::POST, path)
    };
    let mut asked = match &command.operation {
        Operation::Credit { .. } => own("credits")?,
        Operation::Debit { .. } => own("debits")?,
        Operation::Hold { .. } => own("holds")?,
        Operation::Capture { hold, .. } => of_hold(hold, "capture")?,
        Operation::Release { hold } => of_hold(hold, "release")?,
        Operation::Transfer { .. } => Asked::new(Method::POST, ["v1", "transfers"])?,
        Operation::Reversal { .. } => Asked::new(Method::POST, ["v1", "reversals"])?,
        Operation::Amend(_) => Asked::new(Method::PATCH, ["v1", "accounts", account])?,
    };
    asked.body = Some(Value::Object(fields(command)));
    Ok(asked)
}

/// What is sent for several at once.
pub(super) fn batch<'a>(
    commands: impl Iterator<Item = &'a Command>,
    mode: BatchMode,
) -> Result<Asked, CallError> {
    let operations: Value = commands.map(operation).collect::<Result<_, _>>()?;
    let mut asked = Asked::new(Method::POST, ["v1", "batches"])?;
    asked.body = Some(json!({"atomic": mode == BatchMode::Atomic, "operations": operations}));
    Ok(asked)
}

/// One operation of a batch: the body of its own route, with what its route has in the path.
fn operation(command: &Command) -> Result<Value, CallError> {
    let op = match &command.operation {
        Operation::Credit { .. } => "credit",
        Operation::Debit { .. } => "debit",
        Operation::Hold { .. } => "hold",
        Operation::Capture { .. } => "capture",
        Operation::Release { .. } => "release",
        Operation::Transfer { .. } => "transfer",
        Operation::Reversal { .. } => "reversal",
        Operation::Amend(_) => {
            return Err(CallError::Invalid {
                field: "operations",
                reason: "cannot have a change of an account among them".to_owned(),
            });
        }
    };
    let mut fields = fields(command);
    fields.insert("op".to_owned(), op.into());
    if let Some(hold) = command.operation.hold() {
        fields.insert("hold_id".to_owned(), hold.as_str().into());
    }
    if command.operation.target().is_none() {
        fields.insert("account_id".to_owned(), command.account.as_str().into());
    }
    Ok(Value::Object(fields))
}

/// The body of a command's own route.
fn fields(command: &Command) -> Map<String, Value> {
    let account = command.account.as_str();
    let body = match &command.operation {
        Operation::Credit { amount, memo } => json!({"amount": amount.minor(), "memo": memo}),
        Operation::Debit { amount, memo } => {
            let amount = match amount {
                DebitAmount::Exactly(amount) => Value::from(amount.minor()),
                DebitAmount::Max => Value::from("max"),
            };
            json!({"amount": amount, "memo": memo})
        }
        Operation::Hold { amount, expires_in } => {
            let seconds = expires_in.map(|term| term.seconds());
            json!({"amount": amount.minor(), "expires_in_s": seconds})
        }
        Operation::Capture {
            hold: _,
            amount,
            remainder,
        } => {
            let amount = amount.map(|amount| amount.minor());
            json!({"amount": amount, "final": *remainder == Remainder::Release})
        }
        Operation::Release { hold: _ } => json!({}),
        Operation::Transfer { to, amount, memo } => {
            json!({"from": account, "to": to.as_str(), "amount": amount.minor(), "memo": memo})
        }
        Operation::Reversal { reverses } => json!({"account_id": account, "reverses": reverses.as_str()}),
        Operation::Amend(amendment) => amended(amendment),
    };
    let mut fields = match body {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    };
    fields.insert("request_id".to_owned(), command.request.as_str().into());
    fields
}

fn amended(amendment: &Amendment) -> Value {
    let fields = [
        (
            "status",
            amendment.status.map(|status| name_of(status, &STATUSES).into()),
        ),
        ("slots", amendment.slots.map(|slots| slots.get().into())),
        (
            "credit",
            amendment.credit.map(|mode| name_of(mode, &CREDIT_MODES).into()),
        ),
        (
            "debit",
            amendment.debit.map(|mode| name_of(mode, &DEBIT_MODES).into()),
        ),
        ("floor", amendment.floor.map(Value::from)),
    ];
    let given = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(given.collect::<Map<_, _>>())
}
