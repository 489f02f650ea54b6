//! The numbers behind a refusal. Amounts in minor units.

use wallet_backend::account::{MAX_HELD, PRIMARY_CAP, SLOT_CAP};
use wallet_backend::command::{Operation, Refusal};
use wallet_backend::store::embedded::Then;

/// One line each, out of what the decision saw.
pub(super) fn of(refusal: &Refusal, operation: Option<&Operation>, then: &Then) -> Vec<String> {
    let mut lines = vec![state(then)];
    match refusal {
        Refusal::InsufficientFunds { asked, available, .. } => {
            lines.push(funds((*asked, *available), operation, then));
        }
        Refusal::BalanceLimit { .. } => lines.push(format!(
            "slot 0 takes no credit that lifts it above {PRIMARY_CAP}, another slot above {SLOT_CAP}, and holds end at {MAX_HELD}"
        )),
        Refusal::AccountFrozen { .. }
        | Refusal::AccountClosed { .. }
        | Refusal::CurrencyMismatch { .. }
        | Refusal::AccountNotEmpty { .. }
        | Refusal::HoldNotOpen { .. }
        | Refusal::HoldExceeded { .. }
        | Refusal::AlreadyReversed { .. }
        | Refusal::NotReversible { .. }
        | Refusal::Abandoned => {}
    }
    lines
}

/// The account as the decision saw it.
fn state(then: &Then) -> String {
    let slots = then.slots.iter();
    let slots: Vec<String> = slots
        .map(|slot| format!("slot {} {} (v{})", slot.index.get(), slot.balance, slot.version))
        .collect();
    let Then {
        account,
        pending,
        held,
        ..
    } = then;
    let (id, status, floor) = (&account.id, account.status.as_str(), account.floor);
    format!(
        "{id} was {status}, floor {floor}, and had {}, pending {pending}, in holds {held}",
        slots.join(", ")
    )
}

/// The sum that was too small.
fn funds((asked, available): (i64, i64), operation: Option<&Operation>, then: &Then) -> String {
    // Whether a floor can be raised is asked of all there is.
    let floor = match operation {
        Some(Operation::Amend(_)) => 0,
        _ => then.account.floor,
    };
    let at_hand = then.at_hand();
    let slots = at_hand.saturating_sub(then.pending);
    let sum = format!("slots {slots} + pending {}", then.pending);
    let expired = available.saturating_add(floor).saturating_sub(at_hand);
    let proof = if available > 0 {
        format!("{sum} + expired holds {expired} - floor {floor} = {available}")
    } else if then.held == 0 {
        format!("{sum} - floor {floor} = {}, so 0", at_hand.saturating_sub(floor))
    } else {
        format!("{sum} + what had expired of the holds - floor {floor} was not above 0")
    };
    format!("{proof}; {asked} asked for")
}
