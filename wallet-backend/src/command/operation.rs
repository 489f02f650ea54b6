//! What a command does, and how two commands of one id are compared.

use crate::account::{Account, AccountId, CreditMode, DebitMode, HoldTerm, RequestId, SlotCount, Status};
use crate::money::Amount;

/// What a [`Command`](super::Command) does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    Credit {
        amount: Amount,
        memo: Option<Box<str>>,
    },
    Debit {
        amount: DebitAmount,
        memo: Option<Box<str>>,
    },
    /// Sets money aside. The hold's id is the command's request id.
    Hold {
        amount: Amount,
        /// `None`: it never expires.
        expires_in: Option<HoldTerm>,
    },
    Capture {
        hold: RequestId,
        /// `None`: all that is left of it.
        amount: Option<Amount>,
        remainder: Remainder,
    },
    Release {
        hold: RequestId,
    },
    /// `to` is never the command's own account.
    Transfer {
        to: AccountId,
        amount: Amount,
        memo: Option<Box<str>>,
    },
    /// Undoes a credit, debit, transfer or capture of the account, once.
    Reversal {
        reverses: RequestId,
    },
    /// Changes the account itself.
    Amend(Amendment),
}

/// How much a debit takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebitAmount {
    Exactly(Amount),
    /// All there is above the floor. A replay repeats what it was the first time.
    Max,
}

impl From<Amount> for DebitAmount {
    fn from(amount: Amount) -> Self {
        Self::Exactly(amount)
    }
}

/// What becomes of the part of a hold that a capture leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remainder {
    /// It goes back to the account: the capture is final.
    Release,
    /// It stays held, for further captures.
    Keep,
}

/// What is to change of an account; `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amendment {
    pub status: Option<Status>,
    pub slots: Option<SlotCount>,
    pub credit: Option<CreditMode>,
    pub debit: Option<DebitMode>,
    /// Minor units, 0 to [`MAX_AMOUNT`](crate::money::MAX_AMOUNT).
    pub floor: Option<i64>,
}

impl Amendment {
    /// The account as it becomes.
    #[must_use]
    pub fn applied_to(&self, account: &Account) -> Account {
        Account {
            id: account.id.clone(),
            currency: account.currency,
            status: self.status.unwrap_or(account.status),
            floor: self.floor.unwrap_or(account.floor),
            slots: self.slots.unwrap_or(account.slots),
            credit: self.credit.unwrap_or(account.credit),
            debit: self.debit.unwrap_or(account.debit),
        }
    }
}

impl Operation {
    /// Of a transfer, the account that it goes to.
    #[must_use]
    pub const fn target(&self) -> Option<&AccountId> {
        match self {
            Self::Transfer { to, .. } => Some(to),
            Self::Credit { .. }
            | Self::Debit { .. }
            | Self::Hold { .. }
            | Self::Capture { .. }
            | Self::Release { .. }
            | Self::Reversal { .. }
            | Self::Amend(_) => None,
        }
    }

    /// Of a capture or a release, the hold.
    #[must_use]
    pub const fn hold(&self) -> Option<&RequestId> {
        match self {
            Self::Capture { hold, .. } | Self::Release { hold } => Some(hold),
            Self::Credit { .. }
            | Self::Debit { .. }
            | Self::Hold { .. }
            | Self::Transfer { .. }
            | Self::Reversal { .. }
            | Self::Amend(_) => None,
        }
    }

    /// Of a reversal, the request that it undoes.
    #[must_use]
    pub const fn reverses(&self) -> Option<&RequestId> {
        match self {
            Self::Reversal { reverses } => Some(reverses),
            Self::Credit { .. }
            | Self::Debit { .. }
            | Self::Hold { .. }
            | Self::Capture { .. }
            | Self::Release { .. }
            | Self::Transfer { .. }
            | Self::Amend(_) => None,
        }
    }

    /// The note that came with it, at most [`MAX_MEMO_BYTES`](super::MAX_MEMO_BYTES) long.
    #[must_use]
    pub fn memo(&self) -> Option<&str> {
        match self {
            Self::Credit { memo, .. } | Self::Debit { memo, .. } | Self::Transfer { memo, .. } => {
                memo.as_deref()
            }
            Self::Hold { .. }
            | Self::Capture { .. }
            | Self::Release { .. }
            | Self::Reversal { .. }
            | Self::Amend(_) => None,
        }
    }

    /// The first field in which `other` differs, by its name on the wire; `None` for the same operation.
    #[must_use]
    pub fn first_other_field(&self, other: &Self) -> Option<&'static str> {
        let amount_and_memo = |same_amount: bool| {
            first_unlike([("amount", same_amount), ("memo", self.memo() == other.memo())])
        };
        match (self, other) {
            (Self::Credit { amount, .. }, Self::Credit { amount: second, .. }) => {
                amount_and_memo(amount == second)
            }
            (Self::Debit { amount, .. }, Self::Debit { amount: second, .. }) => {
                amount_and_memo(amount == second)
            }
            (
                Self::Transfer { amount, to, .. },
                Self::Transfer {
                    amount: second,
                    to: other,
                    ..
                },
            ) => first_unlike([("to", to == other)]).or_else(|| amount_and_memo(amount == second)),
            (
                Self::Hold { amount, expires_in },
                Self::Hold {
                    amount: second,
                    expires_in: other,
                },
            ) => first_unlike([
                ("amount", amount == second),
                ("expires_in_s", expires_in == other),
            ]),
            (
                Self::Capture {
                    hold,
                    amount,
                    remainder,
                },
                Self::Capture {
                    hold: other,
                    amount: second,
                    remainder: rest,
                },
            ) => first_unlike([
                ("hold_id", hold == other),
                ("amount", amount == second),
                ("final", remainder == rest),
            ]),
            (Self::Release { hold }, Self::Release { hold: other }) => {
                first_unlike([("hold_id", hold == other)])
            }
            (Self::Reversal { reverses }, Self::Reversal { reverses: other }) => {
                first_unlike([("reverses", reverses == other)])
            }
            (Self::Amend(first), Self::Amend(second)) => first_unlike([
                ("status", first.status == second.status),
                ("slots", first.slots == second.slots),
                ("credit", first.credit == second.credit),
                ("debit", first.debit == second.debit),
                ("floor", first.floor == second.floor),
            ]),
            (
                Self::Credit { .. }
                | Self::Debit { .. }
                | Self::Transfer { .. }
                | Self::Hold { .. }
                | Self::Capture { .. }
                | Self::Release { .. }
                | Self::Reversal { .. }
                | Self::Amend(_),
                _,
            ) => Some("type"),
        }
    }
}

fn first_unlike<const N: usize>(fields: [(&'static str, bool); N]) -> Option<&'static str> {
    fields.into_iter().find(|(_, same)| !same).map(|(field, _)| field)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> RequestId {
        RequestId::new(text).unwrap()
    }

    fn amount(minor: i64) -> Amount {
        Amount::new(minor).unwrap()
    }

    fn hold(minor: i64, seconds: u32) -> Operation {
        Operation::Hold {
            amount: amount(minor),
            expires_in: HoldTerm::new(seconds),
        }
    }

    fn capture(hold: &str, minor: Option<i64>, remainder: Remainder) -> Operation {
        Operation::Capture {
            hold: id(hold),
            amount: minor.map(amount),
            remainder,
        }
    }

    fn debit(amount: DebitAmount) -> Operation {
        let memo = None;
        Operation::Debit { amount, memo }
    }

    #[test]
    fn the_first_field_that_differs_is_named_as_on_the_wire() {
        let floor = |floor| {
            Operation::Amend(Amendment {
                floor: Some(floor),
                ..Amendment::default()
            })
        };
        let closing = Operation::Amend(Amendment {
            status: Some(Status::Closed),
            ..Amendment::default()
        });
        let reversal = |of: &str| Operation::Reversal { reverses: id(of) };
        let release = |of: &str| Operation::Release { hold: id(of) };
        let keep = capture("h", Some(1), Remainder::Keep);
        let cases = [
            (hold(1, 5), hold(2, 6), Some("amount")),
            (hold(1, 5), hold(1, 6), Some("expires_in_s")),
            (hold(1, 0), hold(1, 1), Some("expires_in_s")),
            (keep.clone(), capture("i", None, Remainder::Keep), Some("hold_id")),
            (keep.clone(), capture("h", None, Remainder::Keep), Some("amount")),
            (
                keep.clone(),
                capture("h", Some(1), Remainder::Release),
                Some("final"),
            ),
            (release("h"), release("i"), Some("hold_id")),
            (release("h"), capture("h", None, Remainder::Release), Some("type")),
            (reversal("a"), reversal("b"), Some("reverses")),
            (debit(DebitAmount::Max), debit(amount(5).into()), Some("amount")),
            (floor(1), floor(2), Some("floor")),
            (floor(1), closing.clone(), Some("status")),
            (closing.clone(), closing, None),
            (keep.clone(), keep, None),
        ];
        for (first, second, field) in cases {
            assert_eq!(first.first_other_field(&second), field, "{first:?} {second:?}");
        }
    }
}
