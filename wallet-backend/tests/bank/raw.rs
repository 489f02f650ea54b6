//! Requests as bytes: sent once, by whatever connection, and answered or not.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use wallet_backend::account::CreditMode;
use wallet_backend::command::{Amendment, Command, DebitAmount, Operation, Remainder};

use super::books::Answer;
use crate::crash::wire;
use crate::history::Span;

/// A client that never asks again by itself.
#[derive(Clone, Debug)]
pub(super) struct Raw(reqwest::Client);

/// What came back.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// For ever, with what tells its bytes from others.
    Decided(Answer, u64),
    /// Nothing happened, or nobody knows: the same again.
    PutOff,
    /// The id is another command's; the field that says so.
    Reused(Option<String>),
    /// Nothing that may be told here.
    Odd(String),
}

impl Raw {
    /// A server that has not answered after `patience` is given up.
    pub(super) fn at(socket: &str, patience: Duration) -> Self {
        let client = reqwest::Client::builder().no_proxy().timeout(patience);
        Self(client.unix_socket(socket).build().unwrap())
    }

    /// `None` when the connection broke, or took too long.
    pub(super) async fn send(&self, command: &Command) -> Option<Reply> {
        let (method, path, body) = route(command);
        let request = self.0.request(method, format!("http://wallet{path}"));
        let request = request
            .header("content-type", "application/json")
            .body(body.to_string());
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let replayed = response.headers().contains_key("idempotent-replayed");
        let body = response.text().await.ok()?;
        Some(read(command, status, replayed, &body))
    }
}

fn read(command: &Command, status: u16, replayed: bool, body: &str) -> Reply {
    let told: Value = serde_json::from_str(body).unwrap();
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let hash = hasher.finish();
    let code = told["code"].as_str().unwrap_or_default();
    match (status, code) {
        (200 | 201, _) if matches!(command.operation, Operation::Amend(_)) => {
            Reply::Decided(Answer::Amended, hash)
        }
        (200 | 201, _) => {
            let receipt = wire::receipt(&told, replayed, Span::default());
            Reply::Decided(Answer::Posted(receipt), hash)
        }
        // Of a store on an SQL server: it runs such a transaction again, and nobody hears of it.
        _ if body.to_ascii_lowercase().contains("deadlock") => {
            Reply::Odd(format!("{command:?} was told {status} {body}"))
        }
        (429 | 503 | 504, _) | (409, "request_in_progress") => Reply::PutOff,
        (422, "request_id_reused") => Reply::Reused(told["field"].as_str().map(str::to_owned)),
        (422, _) | (409, "account_frozen" | "account_closed" | "account_not_empty") => {
            let refused = Answer::Refused {
                code: code.to_owned(),
                detail: told["detail"].as_str().unwrap().to_owned(),
            };
            Reply::Decided(refused, hash)
        }
        _ => Reply::Odd(format!("{command:?} was told {status} {body}")),
    }
}

fn route(command: &Command) -> (Method, String, Value) {
    let (account, id) = (&command.account, command.request.as_str());
    let own = |last: &str| format!("/v1/accounts/{account}/{last}");
    let (path, body) = match &command.operation {
        Operation::Credit { amount, .. } => (
            own("credits"),
            json!({"request_id": id, "amount": amount.minor()}),
        ),
        Operation::Debit { amount, .. } => {
            let amount = match amount {
                DebitAmount::Exactly(amount) => json!(amount.minor()),
                DebitAmount::Max => json!("max"),
            };
            (own("debits"), json!({"request_id": id, "amount": amount}))
        }
        Operation::Hold { amount, expires_in } => (
            own("holds"),
            json!({
                "request_id": id,
                "amount": amount.minor(),
                "expires_in_s": expires_in.map(|term| term.seconds()),
            }),
        ),
        Operation::Capture {
            hold,
            amount,
            remainder,
        } => (
            own(&format!("holds/{hold}/capture")),
            json!({
                "request_id": id,
                "amount": amount.map(|amount| amount.minor()),
                "final": *remainder == Remainder::Release,
            }),
        ),
        Operation::Release { hold } => (own(&format!("holds/{hold}/release")), json!({"request_id": id})),
        Operation::Transfer { to, amount, .. } => (
            "/v1/transfers".to_owned(),
            json!({
                "request_id": id,
                "from": account.as_str(),
                "to": to.as_str(),
                "amount": amount.minor(),
            }),
        ),
        Operation::Reversal { reverses } => (
            "/v1/reversals".to_owned(),
            json!({"request_id": id, "account_id": account.as_str(), "reverses": reverses.as_str()}),
        ),
        Operation::Amend(amendment) => {
            let path = format!("/v1/accounts/{account}");
            return (Method::PATCH, path, fields(id, amendment));
        }
    };
    (Method::POST, path, body)
}

fn fields(id: &str, amendment: &Amendment) -> Value {
    let Amendment {
        status,
        slots,
        credit,
        debit,
        floor,
    } = amendment;
    json!({
        "request_id": id,
        "status": status.map(|status| status.as_str()),
        "slots": slots.map(|slots| slots.get()),
        "credit": credit.map(CreditMode::as_str),
        "debit": debit.map(|mode| mode.as_str()),
        "floor": floor,
    })
}
