//! What a client may ask: its route, its body, its place in a batch, and what it does to balances.

use serde_json::{Value, json};

/// What may be asked.
#[derive(Clone, Debug)]
pub(super) enum Wish {
    /// With the fields beside id and currency.
    Open {
        more: Value,
    },
    /// With the fields beside the id.
    Amend {
        fields: Value,
    },
    Credit,
    Debit,
    /// A debit of all there is.
    Drain,
    /// For so many seconds; 0 is for ever.
    Hold {
        seconds: u32,
    },
    Capture {
        hold: String,
        last: bool,
    },
    Release {
        hold: String,
    },
    Transfer {
        to: String,
    },
    Reversal {
        of: String,
    },
}

/// One request, named for ever.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) account: String,
    pub(super) request: String,
    pub(super) wish: Wish,
    pub(super) amount: i64,
}

impl Asked {
    pub(super) fn path(&self) -> String {
        let account = &self.account;
        match &self.wish {
            Wish::Open { .. } => "/v1/accounts".to_owned(),
            Wish::Amend { .. } => format!("/v1/accounts/{account}"),
            Wish::Credit => format!("/v1/accounts/{account}/credits"),
            Wish::Debit | Wish::Drain => format!("/v1/accounts/{account}/debits"),
            Wish::Hold { .. } => format!("/v1/accounts/{account}/holds"),
            Wish::Capture { hold, .. } => format!("/v1/accounts/{account}/holds/{hold}/capture"),
            Wish::Release { hold } => format!("/v1/accounts/{account}/holds/{hold}/release"),
            Wish::Transfer { .. } => "/v1/transfers".to_owned(),
            Wish::Reversal { .. } => "/v1/reversals".to_owned(),
        }
    }

    /// `PATCH` in place of `POST`.
    pub(super) const fn patches(&self) -> bool {
        matches!(self.wish, Wish::Amend { .. })
    }

    pub(super) fn body(&self) -> String {
        let (account, request, amount) = (&self.account, &self.request, self.amount);
        match &self.wish {
            Wish::Open { more } => with(json!({"account_id": account, "currency": "EUR"}), more),
            Wish::Amend { fields } => with(json!({"request_id": request}), fields),
            Wish::Credit | Wish::Debit => json!({"request_id": request, "amount": amount}),
            Wish::Drain => json!({"request_id": request, "amount": "max"}),
            Wish::Hold { seconds: 0 } => json!({"request_id": request, "amount": amount}),
            Wish::Hold { seconds } => {
                json!({"request_id": request, "amount": amount, "expires_in_s": seconds})
            }
            Wish::Capture { last, .. } => json!({"request_id": request, "amount": amount, "final": last}),
            Wish::Release { .. } => json!({"request_id": request}),
            Wish::Transfer { to } => {
                json!({"request_id": request, "from": account, "to": to, "amount": amount})
            }
            Wish::Reversal { of } => json!({"request_id": request, "account_id": account, "reverses": of}),
        }
        .to_string()
    }

    /// The same as an operation of a batch; `None` for what has no place in one.
    pub(super) fn operation(&self) -> Option<Value> {
        let body: Value = serde_json::from_str(&self.body()).unwrap();
        let more = match &self.wish {
            Wish::Open { .. } | Wish::Amend { .. } => return None,
            Wish::Credit => json!({"op": "credit", "account_id": self.account}),
            Wish::Debit | Wish::Drain => json!({"op": "debit", "account_id": self.account}),
            Wish::Hold { .. } => json!({"op": "hold", "account_id": self.account}),
            Wish::Capture { hold, .. } => {
                json!({"op": "capture", "account_id": self.account, "hold_id": hold})
            }
            Wish::Release { hold } => json!({"op": "release", "account_id": self.account, "hold_id": hold}),
            Wish::Transfer { .. } => json!({"op": "transfer"}),
            Wish::Reversal { .. } => json!({"op": "reversal"}),
        };
        Some(with(body, &more))
    }

    pub(super) fn names(&self, account: &str, request: &str) -> bool {
        self.account == account && self.request == request && !matches!(self.wish, Wish::Open { .. })
    }

    /// What it adds to balances once `amount` was moved.
    pub(super) fn changes(&self, amount: i64) -> Vec<(String, i64)> {
        let own = |delta| (self.account.clone(), delta);
        match &self.wish {
            Wish::Credit => vec![own(amount)],
            Wish::Debit | Wish::Drain | Wish::Capture { .. } => vec![own(-amount)],
            Wish::Transfer { to } => vec![own(-amount), (to.clone(), amount)],
            Wish::Open { .. }
            | Wish::Amend { .. }
            | Wish::Hold { .. }
            | Wish::Release { .. }
            | Wish::Reversal { .. } => Vec::new(),
        }
    }
}

fn with(mut body: Value, more: &Value) -> Value {
    let fields = body.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    body
}
