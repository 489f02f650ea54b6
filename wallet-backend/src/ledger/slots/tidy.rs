//! What tidying does: sweeping, settling, bringing together or evening out. Nothing where nothing is to be gained.

use super::{HOLD_ROWS, STEP_ROWS, Shift, empty_into_primary, others};
use crate::account::{DebitMode, Hold, Slot, SlotIndex, Timestamp};
use crate::ledger::rows::AccountRows;

/// What tidying an account does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TidyPlan {
    /// How many of the expired holds give back to slot 0, earliest first.
    pub expire: usize,
    /// How many of the oldest pending rows settle into slot 0.
    pub settle: usize,
    /// After that, in this order.
    pub shifts: Vec<Shift>,
}

/// What there is to tidy; nothing where the account is tidy.
#[must_use]
pub fn plan_tidy(rows: &AccountRows, now: Timestamp) -> TidyPlan {
    let most = STEP_ROWS.checked_div(HOLD_ROWS).unwrap_or_default();
    let expire = rows.expired(now).take(most).count();
    let room = STEP_ROWS.saturating_sub(expire.saturating_mul(HOLD_ROWS));
    let settle = rows.pending().len().min(room);
    let shifts = match rows.account().debit {
        DebitMode::Primary => others(rows).map(empty_into_primary).collect(),
        DebitMode::Hashed => {
            let expired = rows.expired(now).take(expire).map(Hold::rest);
            let settled = rows.pending().take(settle).map(|row| row.amount.minor());
            plan_even(rows, expired.chain(settled).fold(0, i64::saturating_add))
        }
    };
    TidyPlan {
        expire,
        settle,
        shifts,
    }
}

/// Whether [`plan_tidy`] would do anything even if no hold expired. Cheap: it plans nothing.
#[must_use]
pub fn is_untidy(rows: &AccountRows) -> bool {
    rows.pending().len() > 0
        || match rows.account().debit {
            DebitMode::Primary => others(rows).next().is_some(),
            DebitMode::Hashed => is_uneven(rows, rows.in_slots(), 0),
        }
}

/// What each slot gets of `sum`, and what is left over for slot 0.
fn shares(rows: &AccountRows, sum: i64) -> (i64, i64) {
    let count = i64::from(rows.account().slots.get());
    let share = sum.checked_div(count).unwrap_or(0);
    (share, sum.checked_rem(count).unwrap_or(0))
}

/// Uneven enough to be worth entries: a slot in use has less than half its share, or one out of use has money.
fn is_uneven(rows: &AccountRows, sum: i64, settled: i64) -> bool {
    let (share, _) = shares(rows, sum);
    let half = share.checked_div(2).unwrap_or(0);
    rows.slots().iter().any(|slot| {
        let balance = with_settled(slot, settled);
        if slot.index.get() < rows.account().slots.get() {
            balance < half
        } else {
            balance > 0
        }
    })
}

fn with_settled(slot: &Slot, settled: i64) -> i64 {
    if slot.index == SlotIndex::PRIMARY {
        slot.balance.saturating_add(settled)
    } else {
        slot.balance
    }
}

/// Evens the slots out, once `settled` has reached slot 0: from those above their share to those below, both
/// ascending.
fn plan_even(rows: &AccountRows, settled: i64) -> Vec<Shift> {
    let sum = rows.in_slots().saturating_add(settled);
    if !is_uneven(rows, sum, settled) {
        return Vec::new();
    }
    let (share, rest) = shares(rows, sum);
    let mut above = Vec::new();
    let mut below = Vec::new();
    for slot in rows.slots() {
        let want = match slot.index.get() {
            0 => share.saturating_add(rest),
            index if index < rows.account().slots.get() => share,
            _ => 0,
        };
        let excess = with_settled(slot, settled).saturating_sub(want);
        match excess {
            1.. => above.push((slot.index, excess)),
            0 => {}
            _ => below.push((slot.index, excess.saturating_neg())),
        }
    }
    pair_off(above, below)
}

/// Moves what is `above` to where it is `below`; both add up to the same.
fn pair_off(above: Vec<(SlotIndex, i64)>, below: Vec<(SlotIndex, i64)>) -> Vec<Shift> {
    let mut shifts = Vec::new();
    let mut wanting = below.into_iter();
    let mut want = wanting.next();
    for (from, mut excess) in above {
        while excess > 0
            && let Some((to, lack)) = want
        {
            let amount = excess.min(lack);
            shifts.push(Shift { from, to, amount });
            excess = excess.saturating_sub(amount);
            want = match lack.saturating_sub(amount) {
                0 => wanting.next(),
                left => Some((to, left)),
            };
        }
    }
    shifts
}

#[cfg(test)]
mod tests {
    use super::super::tests::{NOW, rows, shift, with_holds};
    use super::*;

    #[test]
    fn even_slots_are_left_alone_until_one_has_less_than_half_its_share() {
        let even = rows(DebitMode::Hashed, 4, &[10, 10, 10, 10], &[]);
        let leaning = rows(DebitMode::Hashed, 4, &[16, 14, 6, 6], &[]);
        let uneven = rows(DebitMode::Hashed, 4, &[20, 10, 7, 3], &[]);
        assert!(!is_untidy(&even) && !is_untidy(&leaning) && is_untidy(&uneven));
        assert_eq!(plan_tidy(&leaning, NOW), TidyPlan::default());
        assert_eq!(plan_tidy(&uneven, NOW).shifts, [shift(0, 2, 3), shift(0, 3, 7)]);
    }

    #[test]
    fn evening_out_drains_slots_out_of_use_and_spreads_what_settles() {
        let rows = rows(DebitMode::Hashed, 2, &[0, 0, 5], &[6]);
        let plan = plan_tidy(&rows, NOW);
        assert_eq!((plan.settle, plan.shifts), (1, vec![shift(2, 1, 5)]));
    }

    #[test]
    fn cents_too_few_to_share_make_nothing_untidy() {
        let rows = rows(DebitMode::Hashed, 8, &[3, 0, 0, 0, 0, 0, 0, 0], &[]);
        assert!(!is_untidy(&rows));
    }

    #[test]
    fn what_has_expired_is_swept_before_anything_else_and_shared_out_too() {
        let rows = with_holds(
            rows(DebitMode::Hashed, 2, &[0, 0], &[]),
            &[(6, Some(NOW.0)), (5, Some(NOW.0 + 1))],
        );
        assert!(
            !is_untidy(&rows),
            "time makes it untidy, which is asked elsewhere"
        );
        let plan = plan_tidy(&rows, NOW);
        assert_eq!(
            (plan.expire, plan.settle, plan.shifts),
            (1, 0, vec![shift(0, 1, 3)])
        );
    }
}
