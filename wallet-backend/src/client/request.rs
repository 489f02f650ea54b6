//! Commands -> what is sent for them.

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::error::CallError;
use super::wire::{CREDIT_MODES, DEBIT_MODES, STATUSES, name_of};
use crate::account::{Account, Status};
use crate::command::{Amendment, Command, DebitAmount, Operation, Remainder};

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

pub(super) fn command(command: &Command) -> Result<Asked, CallError> {
    let account = command.account.as_str();
    let own = |last| Asked::new(Method::POST, ["v1", "accounts", account, last]);
    let (mut asked, mut body) = match &command.operation {
        Operation::Credit { amount, memo } => {
            (own("credits")?, json!({"amount": amount.minor(), "memo": memo}))
        }
        Operation::Debit { amount, memo } => {
            let amount = match amount {
                DebitAmount::Exactly(amount) => Value::from(amount.minor()),
                DebitAmount::Max => Value::from("max"),
            };
            (own("debits")?, json!({"amount": amount, "memo": memo}))
        }
        Operation::Hold { amount, expires_in } => {
            let seconds = expires_in.map(|term| term.seconds());
            (
                own("holds")?,
                json!({"amount": amount.minor(), "expires_in_s": seconds}),
            )
        }
        Operation::Capture {
            hold,
            amount,
            remainder,
        } => {
            let path = ["v1", "accounts", account, "holds", hold.as_str(), "capture"];
            let last = *remainder == Remainder::Release;
            let amount = amount.map(|amount| amount.minor());
            (
                Asked::new(Method::POST, path)?,
                json!({"amount": amount, "final": last}),
            )
        }
        Operation::Release { hold } => {
            let path = ["v1", "accounts", account, "holds", hold.as_str(), "release"];
            (Asked::new(Method::POST, path)?, json!({}))
        }
        Operation::Transfer { to, amount, memo } => (
            Asked::new(Method::POST, ["v1", "transfers"])?,
            json!({"from": account, "to": to.as_str(), "amount": amount.minor(), "memo": memo}),
        ),
        Operation::Reversal { reverses } => (
            Asked::new(Method::POST, ["v1", "reversals"])?,
            json!({"account_id": account, "reverses": reverses.as_str()}),
        ),
        Operation::Amend(amendment) => (
            Asked::new(Method::PATCH, ["v1", "accounts", account])?,
            amended(amendment),
        ),
    };
    if let Value::Object(fields) = &mut body {
        fields.insert("request_id".to_owned(), command.request.as_str().into());
    }
    asked.body = Some(body);
    Ok(asked)
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
