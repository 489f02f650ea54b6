//! A request as part of a line: what was asked, and what it became.

use super::json::Object;
use super::line::{Times, write_account};
use crate::account::{CreditMode, DebitMode, HoldTerm, Status};
use crate::command::{
    AccountView, Amendment, DebitAmount, Operation, Outcome, Posting, Receipt, Refusal, Remainder,
    RequestRecord,
};

/// `account_id`, `request_id`, `operation` (absent where the id was abandoned, its command never seen), and one of
/// `receipt`, `account`, `refusal`.
pub(super) fn write_request(object: &mut Object<'_>, record: &RequestRecord, times: &mut Times) {
    object.text("account_id", record.account.as_str());
    object.text("request_id", record.request.as_str());
    if let Some(operation) = &record.operation {
        object.object("operation", |object| write_operation(object, operation));
    }
    match &record.outcome {
        Outcome::Posted(receipt) => {
            object.object("receipt", |object| write_receipt(object, receipt, times));
        }
        Outcome::Amended(view) => object.object("account", |object| write_view(object, view)),
        Outcome::Refused(refusal) => object.object("refusal", |object| write_refusal(object, refusal)),
    }
}

/// `type`, and the fields of the command as the API takes them.
fn write_operation(object: &mut Object<'_>, operation: &Operation) {
    match operation {
        Operation::Credit { amount, .. } => {
            object.text("type", "credit");
            object.signed("amount", amount.minor());
        }
        Operation::Debit { amount, .. } => {
            object.text("type", "debit");
            match amount {
                DebitAmount::Exactly(amount) => object.signed("amount", amount.minor()),
                DebitAmount::Max => object.text("amount", "max"),
            }
        }
        Operation::Hold { amount, expires_in } => {
            object.text("type", "hold");
            object.signed("amount", amount.minor());
            if let Some(seconds) = expires_in.map(HoldTerm::seconds) {
                object.number("expires_in_s", seconds.into());
            }
        }
        Operation::Capture {
            hold,
            amount,
            remainder,
        } => {
            object.text("type", "capture");
            object.text("hold_id", hold.as_str());
            if let Some(amount) = amount {
                object.signed("amount", amount.minor());
            }
            object.flag("final", *remainder == Remainder::Release);
        }
        Operation::Release { hold } => {
            object.text("type", "release");
            object.text("hold_id", hold.as_str());
        }
        Operation::Transfer { to, amount, .. } => {
            object.text("type", "transfer");
            object.text("to", to.as_str());
            object.signed("amount", amount.minor());
        }
        Operation::Reversal { reverses } => {
            object.text("type", "reversal");
            object.text("reverses", reverses.as_str());
        }
        Operation::Amend(amendment) => write_amendment(object, amendment),
    }
    if let Some(memo) = operation.memo() {
        object.text("memo", memo);
    }
}

fn write_amendment(object: &mut Object<'_>, amendment: &Amendment) {
    object.text("type", "amend");
    if let Some(status) = amendment.status.map(Status::as_str) {
        object.text("status", status);
    }
    if let Some(slots) = amendment.slots {
        object.number("slots", slots.get().into());
    }
    if let Some(credit) = amendment.credit.map(CreditMode::as_str) {
        object.text("credit", credit);
    }
    if let Some(debit) = amendment.debit.map(DebitMode::as_str) {
        object.text("debit", debit);
    }
    if let Some(floor) = amendment.floor {
        object.signed("floor", floor);
    }
}

/// As the API answers it.
fn write_receipt(object: &mut Object<'_>, receipt: &Receipt, times: &mut Times) {
    object.text("request_id", receipt.request.as_str());
    object.text("account_id", receipt.account.as_str());
    object.text("type", receipt.kind.as_str());
    object.signed("amount", receipt.amount.minor());
    object.text("currency", receipt.currency.as_str());
    object.text(
        "status",
        match receipt.posting {
            Posting::Posted => "posted",
            Posting::Pending => "pending",
        },
    );
    object.text("at", times.show(receipt.at));
    object.array("entries", &receipt.legs, |object, leg| {
        object.text("account_id", leg.account.as_str());
        object.number("slot", leg.slot.get().into());
        object.number("version", leg.version);
        object.signed("delta", leg.delta);
        if leg.held_delta != 0 {
            object.signed("held_delta", leg.held_delta);
        }
        object.signed("balance_after", leg.balance_after);
    });
}

/// The account as it became: its terms, and its money at that moment.
fn write_view(object: &mut Object<'_>, view: &AccountView) {
    object.object("terms", |object| write_account(object, &view.account));
    object.signed("held", view.held);
    object.signed("pending", view.pending);
    object.array("slots", &view.slots, |object, slot| {
        object.number("index", slot.index.get().into());
        object.signed("balance", slot.balance);
        object.number("version", slot.version);
    });
}

/// `code`, and the facts behind it.
fn write_refusal(object: &mut Object<'_>, refusal: &Refusal) {
    object.text("code", refusal.code());
    match refusal {
        Refusal::InsufficientFunds {
            account,
            asked,
            available,
        } => {
            object.text("account_id", account.as_str());
            object.signed("asked", *asked);
            object.signed("available", *available);
        }
        Refusal::AccountFrozen { account } | Refusal::AccountClosed { account } => {
            object.text("account_id", account.as_str());
        }
        Refusal::BalanceLimit { account, asked } => {
            object.text("account_id", account.as_str());
            object.signed("asked", *asked);
        }
        Refusal::CurrencyMismatch { from, to } => {
            object.text("from", from.as_str());
            object.text("to", to.as_str());
        }
        Refusal::AccountNotEmpty { account, balance } => {
            object.text("account_id", account.as_str());
            object.signed("balance", *balance);
        }
        Refusal::HoldNotOpen { hold, state } => {
            object.text("hold_id", hold.as_str());
            object.text("status", state.as_str());
        }
        Refusal::HoldExceeded { hold, asked, rest } => {
            object.text("hold_id", hold.as_str());
            object.signed("asked", *asked);
            object.signed("rest", *rest);
        }
        Refusal::AlreadyReversed { reverses, by } => {
            object.text("reverses", reverses.as_str());
            object.text("by", by.as_str());
        }
        Refusal::NotReversible { reverses } => object.text("reverses", reverses.as_str()),
        Refusal::Abandoned => {}
    }
}
