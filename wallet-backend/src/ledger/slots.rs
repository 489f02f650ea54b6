//! Where money goes and comes from: plans over an account's slots. Pure; posting a plan is [`super::decide`]'s.
//!
//! - A credit goes to the slot it prefers, among those after slot 0 when there are several, else to slot 0.
//! - A debit takes from slot 0. Where slot 0 is short, pending credits settle into it, oldest first and only as many
//!   as are needed, at most [`SETTLE_ROWS`] in one step; then other slots are emptied into it, ascending and WHOLE,
//!   until there is enough. Whole, because the entries of a move cost the same for any amount, and the next debits
//!   then find the money in slot 0.
//! - Everything a decision sees is locked, so `slots + pending - floor < amount` is the proof of a refusal.
//! - Tidying settles what is pending and brings slots together (debits from slot 0) or evens them out (hashed
//!   debits). It moves nothing where nothing is to be gained, so that it may run at any time, any number of times.

use xxhash_rust::xxh3::xxh3_64;

use crate::account::{DebitMode, PRIMARY_CAP, RequestId, Slot, SlotIndex};
use crate::ledger::rows::AccountRows;
use crate::money::Amount;

/// The most pending rows that one step settles: a millisecond of work and, at up to 204 bytes each with the longest
/// ids, a record that fits the smallest segment of a log together with what follows it.
pub const SETTLE_ROWS: usize = 250;

/// Money from one slot to another of the same account. `amount` is at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift {
    pub from: SlotIndex,
    pub to: SlotIndex,
    pub amount: i64,
}

/// What to do before the debit's one entry, and where that entry goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebitPlan {
    /// How many of the oldest pending rows settle into slot 0.
    pub settle: usize,
    /// After that, in this order.
    pub shifts: Vec<Shift>,
    /// `None`: what settles here is not enough yet; once it has, the debit is planned again.
    pub slot: Option<SlotIndex>,
}

impl DebitPlan {
    const fn direct(slot: SlotIndex) -> Self {
        Self {
            settle: 0,
            shifts: Vec::new(),
            slot: Some(slot),
        }
    }
}

/// The proof of a refusal: all that could have been taken, in minor units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    pub available: i64,
}

/// What tidying an account does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TidyPlan {
    /// How many of the oldest pending rows settle into slot 0.
    pub settle: usize,
    /// After that, in this order.
    pub shifts: Vec<Shift>,
}

/// The slot for a credit of `amount`, or `None` where its cap and then slot 0's would be passed.
#[must_use]
pub fn plan_credit(rows: &AccountRows, amount: Amount, prefer: u64) -> Option<SlotIndex> {
    rows.total().checked_add(amount.minor())?;
    let chosen = spread(rows, prefer);
    [chosen, SlotIndex::PRIMARY]
        .into_iter()
        .find(|index| fits(rows.slot(*index), amount.minor()))
}

/// Whether a credit of `amount` may wait as a pending row: it will settle into slot 0, beside what waits already.
#[must_use]
pub fn may_wait(rows: &AccountRows, amount: Amount) -> bool {
    let primary = rows.slot(SlotIndex::PRIMARY).map_or(0, |slot| slot.balance);
    rows.total().checked_add(amount.minor()).is_some()
        && primary
            .checked_add(rows.in_pending())
            .and_then(|sum| sum.checked_add(amount.minor()))
            .is_some_and(|sum| sum <= PRIMARY_CAP)
}

/// A debit of `amount` under the gate.
///
/// # Errors
/// [`Short`] where slots and pending rows together, less the floor, are below `amount`.
pub fn plan_debit(rows: &AccountRows, amount: Amount) -> Result<DebitPlan, Short> {
    let need = amount.minor();
    let available = rows.total().saturating_sub(rows.account().floor).max(0);
    if available < need {
        return Err(Short { available });
    }
    let mut plan = DebitPlan::direct(SlotIndex::PRIMARY);
    let mut have = rows.slot(SlotIndex::PRIMARY).map_or(0, |slot| slot.balance);
    for row in rows.pending() {
        if have >= need {
            return Ok(plan);
        }
        if plan.settle == SETTLE_ROWS {
            plan.slot = None;
            return Ok(plan);
        }
        have = have.saturating_add(row.amount.minor());
        plan.settle = plan.settle.saturating_add(1);
    }
    for slot in others(rows) {
        if have >= need {
            break;
        }
        have = have.saturating_add(slot.balance);
        plan.shifts.push(empty_into_primary(slot));
    }
    Ok(plan)
}

/// A debit in hashed mode: from the slot that the request hashes to, where that has enough by itself; else as
/// [`plan_debit`]. Only an account without a floor may skip the sum, so any other takes the gate's way.
///
/// # Errors
/// As [`plan_debit`].
pub fn plan_hashed_debit(
    rows: &AccountRows,
    amount: Amount,
    request: &RequestId,
) -> Result<DebitPlan, Short> {
    let chosen = spread(rows, xxh3_64(request.as_str().as_bytes()));
    let enough = rows
        .slot(chosen)
        .is_some_and(|slot| slot.balance >= amount.minor());
    if enough && rows.account().floor == 0 {
        Ok(DebitPlan::direct(chosen))
    } else {
        plan_debit(rows, amount)
    }
}

/// What there is to tidy; nothing where the account is tidy.
#[must_use]
pub fn plan_tidy(rows: &AccountRows) -> TidyPlan {
    let settle = rows.pending().len().min(SETTLE_ROWS);
    let shifts = match rows.account().debit {
        DebitMode::Primary => others(rows).map(empty_into_primary).collect(),
        DebitMode::Hashed => plan_even(rows, settle),
    };
    TidyPlan { settle, shifts }
}

/// Whether [`plan_tidy`] would do anything. Cheap: it plans nothing.
#[must_use]
pub fn is_untidy(rows: &AccountRows) -> bool {
    rows.pending().len() > 0
        || match rows.account().debit {
            DebitMode::Primary => others(rows).next().is_some(),
            DebitMode::Hashed => is_uneven(rows, rows.in_slots(), 0),
        }
}

/// One of the slots that are not the gate, or the gate where it is the only one.
fn spread(rows: &AccountRows, number: u64) -> SlotIndex {
    let others = rows.account().slots.get().saturating_sub(1);
    number
        .checked_rem(u64::from(others))
        .and_then(|rest| u8::try_from(rest.saturating_add(1)).ok())
        .and_then(SlotIndex::new)
        .unwrap_or(SlotIndex::PRIMARY)
}

fn fits(slot: Option<Slot>, amount: i64) -> bool {
    slot.and_then(|slot| slot.balance.checked_add(amount).map(|sum| (slot, sum)))
        .is_some_and(|(slot, sum)| sum <= slot.index.cap())
}

/// Slots other than 0 that hold money, ascending; those beyond the account's count too.
fn others(rows: &AccountRows) -> impl Iterator<Item = &Slot> {
    rows.slots()
        .iter()
        .filter(|slot| slot.index != SlotIndex::PRIMARY && slot.balance > 0)
}

fn empty_into_primary(slot: &Slot) -> Shift {
    Shift {
        from: slot.index,
        to: SlotIndex::PRIMARY,
        amount: slot.balance,
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

/// Evens the slots out, once `settle` pending rows have reached slot 0: from those above their share to those below,
/// both ascending.
fn plan_even(rows: &AccountRows, settle: usize) -> Vec<Shift> {
    let settled = rows
        .pending()
        .take(settle)
        .map(|row| row.amount.minor())
        .fold(0, i64::saturating_add);
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
    use std::collections::VecDeque;

    use super::*;
    use crate::account::{Account, AccountId, Pending, SlotCount, Timestamp};
    use crate::money::Currency;

    /// An account with these balances by slot, `count` slots in use, and these pending rows.
    fn rows(debit: DebitMode, count: u8, balances: &[i64], pending: &[i64]) -> AccountRows {
        let id = AccountId::new("a").unwrap();
        let account = Account {
            debit,
            slots: SlotCount::new(count).unwrap(),
            ..Account::new(id, Currency::new("EUR").unwrap())
        };
        let slot = |(index, balance): (u8, &i64)| Slot {
            index: SlotIndex::new(index).unwrap(),
            balance: *balance,
            version: 1,
        };
        let waiting = |(number, minor): (u64, &i64)| Pending {
            number,
            amount: amount(*minor),
            request: RequestId::new("r").unwrap(),
            link: None,
            at: Timestamp::default(),
        };
        let slots = (0..).zip(balances).map(slot).collect();
        let pending: VecDeque<_> = (1..).zip(pending).map(waiting).collect();
        AccountRows::restore(account, slots, pending, 10_000).unwrap()
    }

    fn amount(minor: i64) -> Amount {
        Amount::new(minor).unwrap()
    }

    fn shift(from: u8, to: u8, amount: i64) -> Shift {
        let index = |index| SlotIndex::new(index).unwrap();
        Shift {
            from: index(from),
            to: index(to),
            amount,
        }
    }

    fn plan(settle: usize, shifts: Vec<Shift>) -> DebitPlan {
        let slot = Some(SlotIndex::PRIMARY);
        DebitPlan { settle, shifts, slot }
    }

    #[test]
    fn a_credit_goes_round_the_slots_that_are_not_the_gate() {
        let rows = rows(DebitMode::Primary, 4, &[0, 0, 0, 0], &[]);
        let chosen: Vec<_> = (0..6)
            .map(|prefer| plan_credit(&rows, amount(1), prefer).unwrap().get())
            .collect();
        assert_eq!(chosen, [1, 2, 3, 1, 2, 3]);
    }

    #[test]
    fn a_lone_slot_takes_every_credit() {
        let rows = rows(DebitMode::Primary, 1, &[0], &[]);
        let primary = Some(SlotIndex::PRIMARY);
        assert_eq!(plan_credit(&rows, amount(1), u64::MAX), primary);
    }

    #[test]
    fn slots_out_of_use_take_no_credit_but_are_collected() {
        let rows = rows(DebitMode::Primary, 2, &[1, 2, 30], &[]);
        assert!((0..9).all(|prefer| plan_credit(&rows, amount(1), prefer).unwrap().get() == 1));
        let collected = plan(0, vec![shift(1, 0, 2), shift(2, 0, 30)]);
        assert_eq!(plan_debit(&rows, amount(33)), Ok(collected));
    }

    #[test]
    fn slot_0_pays_alone_while_it_can() {
        let rows = rows(DebitMode::Primary, 2, &[10, 10], &[10]);
        assert_eq!(plan_debit(&rows, amount(10)), Ok(plan(0, Vec::new())));
    }

    #[test]
    fn pending_rows_come_before_slots_and_only_as_many_as_are_needed() {
        let rows = rows(DebitMode::Primary, 3, &[10, 5, 5], &[3, 3, 3]);
        assert_eq!(plan_debit(&rows, amount(14)), Ok(plan(2, Vec::new())));
        let collected = plan(3, vec![shift(1, 0, 5)]);
        assert_eq!(plan_debit(&rows, amount(20)), Ok(collected));
    }

    #[test]
    fn more_rows_than_one_step_takes_settle_in_several() {
        let waiting = vec![1; SETTLE_ROWS + 1];
        let rows = rows(DebitMode::Primary, 2, &[0, 5], &waiting);
        let enough = i64::try_from(SETTLE_ROWS).unwrap();
        assert_eq!(
            plan_debit(&rows, amount(enough)),
            Ok(plan(SETTLE_ROWS, Vec::new()))
        );
        let first = DebitPlan {
            slot: None,
            ..plan(SETTLE_ROWS, Vec::new())
        };
        assert_eq!(plan_debit(&rows, amount(enough + 1)), Ok(first));
    }

    #[test]
    fn empty_slots_are_passed_over() {
        let rows = rows(DebitMode::Primary, 4, &[0, 0, 7, 0], &[]);
        assert_eq!(plan_debit(&rows, amount(7)), Ok(plan(0, vec![shift(2, 0, 7)])));
    }

    #[test]
    fn a_refusal_is_proven_by_slots_and_pending_less_the_floor() {
        let rows = rows(DebitMode::Primary, 2, &[4, 5], &[6]);
        assert!(plan_debit(&rows, amount(15)).is_ok());
        assert_eq!(plan_debit(&rows, amount(16)), Err(Short { available: 15 }));
    }

    #[test]
    fn two_debits_of_thirty_do_not_fit_in_fifty() {
        let rows = rows(DebitMode::Primary, 2, &[20, 0], &[]);
        assert_eq!(plan_debit(&rows, amount(30)), Err(Short { available: 20 }));
    }

    #[test]
    fn a_hashed_debit_never_starts_at_the_gate() {
        let rows = rows(DebitMode::Hashed, 3, &[100, 100, 100], &[]);
        for number in 0..50 {
            let request = RequestId::new(&format!("r{number}")).unwrap();
            let plan = plan_hashed_debit(&rows, amount(100), &request).unwrap();
            assert_ne!(plan.slot, Some(SlotIndex::PRIMARY));
            assert_eq!((plan.settle, plan.shifts), (0, Vec::new()));
        }
    }

    #[test]
    fn even_slots_are_left_alone_until_one_has_less_than_half_its_share() {
        let even = rows(DebitMode::Hashed, 4, &[10, 10, 10, 10], &[]);
        let leaning = rows(DebitMode::Hashed, 4, &[16, 14, 6, 6], &[]);
        let uneven = rows(DebitMode::Hashed, 4, &[20, 10, 7, 3], &[]);
        assert!(!is_untidy(&even) && !is_untidy(&leaning) && is_untidy(&uneven));
        assert_eq!(plan_tidy(&leaning), TidyPlan::default());
        assert_eq!(plan_tidy(&uneven).shifts, [shift(0, 2, 3), shift(0, 3, 7)]);
    }

    #[test]
    fn evening_out_drains_slots_out_of_use_and_spreads_what_settles() {
        let rows = rows(DebitMode::Hashed, 2, &[0, 0, 5], &[6]);
        let plan = plan_tidy(&rows);
        assert_eq!((plan.settle, plan.shifts), (1, vec![shift(2, 1, 5)]));
    }

    #[test]
    fn cents_too_few_to_share_make_nothing_untidy() {
        let rows = rows(DebitMode::Hashed, 8, &[3, 0, 0, 0, 0, 0, 0, 0], &[]);
        assert!(!is_untidy(&rows));
    }
}
