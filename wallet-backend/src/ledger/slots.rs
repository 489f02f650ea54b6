//! Where money goes and comes from: plans over an account's slots. Pure; posting a plan is [`super::decide`]'s.
//!
//! - A credit goes to the slot it prefers, among those after slot 0 when there are several, else to slot 0.
//! - A debit takes from slot 0. Where slot 0 is short, expired holds give back to it, earliest first, then pending
//!   credits settle into it, oldest first, each only as many as are needed and at most [`STEP_ROWS`] in one step; then
//!   other slots are emptied into it, ascending and WHOLE, until there is enough. Whole, because the entries of a move
//!   cost the same for any amount, and the next debits then find the money in slot 0.
//! - Everything a decision sees is locked, so `slots + pending + expired - floor < amount` is the proof of a refusal.
//! - Tidying settles what is pending and brings slots together (debits from slot 0) or evens them out (hashed
//!   debits). It moves nothing where nothing is to be gained, so that it may run at any time, any number of times.

use xxhash_rust::xxh3::xxh3_64;

use crate::account::{MAX_HELD, PRIMARY_CAP, RequestId, Slot, SlotCount, SlotIndex, Timestamp};
use crate::ledger::rows::AccountRows;
use crate::money::{Amount, MAX_AMOUNT};
use crate::mutants::{Mutant, is_on};

mod tidy;

pub use tidy::{TidyPlan, is_untidy, plan_tidy};

/// How much one step settles and sweeps at most: a pending row counts once, an expired hold twice. A millisecond of
/// work and, at up to 204 bytes for each with the longest ids, a record that fits the smallest segment of a log
/// together with what follows it.
pub const STEP_ROWS: usize = 250;
/// What an expired hold counts of them.
const HOLD_ROWS: usize = 2;

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
    /// How many of the expired holds give back to slot 0, earliest first.
    pub expire: usize,
    /// How many of the oldest pending rows settle into slot 0 after that.
    pub settle: usize,
    /// After that, in this order.
    pub shifts: Vec<Shift>,
    /// `None`: what settles here is not enough yet; once it has, the debit is planned again.
    pub slot: Option<SlotIndex>,
}

impl DebitPlan {
    const fn direct(slot: SlotIndex) -> Self {
        Self {
            expire: 0,
            settle: 0,
            shifts: Vec::new(),
            slot: Some(slot),
        }
    }

    fn unfinished(self) -> Self {
        Self { slot: None, ..self }
    }
}

/// The proof of a refusal: all that could have been taken, in minor units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    pub available: i64,
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
            .and_then(|sum| sum.checked_add(rows.in_unseen_pending()))
            .and_then(|sum| sum.checked_add(amount.minor()))
            .is_some_and(|sum| sum <= PRIMARY_CAP)
}

/// The slot for a credit that may not be refused, as [`plan_credit`] without caps. `None` only where the account's sum
/// would pass 2^63.
#[must_use]
pub fn plan_return(rows: &AccountRows, amount: Amount, prefer: u64) -> Option<SlotIndex> {
    rows.total().checked_add(amount.minor())?;
    plan_credit(rows, amount, prefer).or_else(|| (!is_on(Mutant::CapsReturns)).then_some(SlotIndex::PRIMARY))
}

/// A debit of `amount` under the gate.
///
/// # Errors
/// [`Short`] where slots, pending rows and expired holds together, less the floor, are below `amount`.
pub fn plan_debit(rows: &AccountRows, amount: Amount, now: Timestamp) -> Result<DebitPlan, Short> {
    let need = amount.minor();
    let floor = match rows.account().floor {
        _ if is_on(Mutant::IgnoresTheFloor) => 0,
        floor => floor,
    };
    let above_floor = |sum: i64| sum.saturating_sub(floor);
    // The sum of what is expired is only asked for where it matters.
    let asks = is_on(Mutant::RefusesWithoutProof) || is_on(Mutant::LeavesPendingOut);
    if asks || above_floor(rows.in_slots().saturating_add(rows.in_pending())) < need {
        let available = above_floor(rows.spendable(now)).max(0);
        if available < need {
            return Err(Short { available });
        }
    }
    let mut plan = DebitPlan::direct(SlotIndex::PRIMARY);
    let mut have = rows.slot(SlotIndex::PRIMARY).map_or(0, |slot| slot.balance);
    let mut room = STEP_ROWS;
    for hold in rows.expired(now) {
        if have >= need || is_on(Mutant::TakesWithoutCollecting) {
            return Ok(plan);
        }
        let Some(left) = room.checked_sub(HOLD_ROWS) else {
            return Ok(plan.unfinished());
        };
        room = left;
        have = have.saturating_add(hold.rest());
        plan.expire = plan.expire.saturating_add(1);
    }
    for row in rows.pending() {
        if have >= need || is_on(Mutant::TakesWithoutCollecting) {
            return Ok(plan);
        }
        let Some(left) = room.checked_sub(1) else {
            return Ok(plan.unfinished());
        };
        room = left;
        have = have.saturating_add(row.amount.minor());
        plan.settle = plan.settle.saturating_add(1);
    }
    for slot in others(rows) {
        if have >= need || is_on(Mutant::TakesWithoutCollecting) {
            break;
        }
        have = have.saturating_add(slot.balance);
        plan.shifts.push(empty_into_primary(slot));
    }
    Ok(plan)
}

/// A debit of all there is above the floor, at most [`MAX_AMOUNT`], and how much that is.
///
/// # Errors
/// [`Short`] where there is nothing.
pub fn plan_max(rows: &AccountRows, now: Timestamp) -> Result<(Amount, DebitPlan), Short> {
    let all = if is_on(Mutant::MaxTakesSlotZero) {
        rows.slot(SlotIndex::PRIMARY).map_or(0, |slot| slot.balance)
    } else {
        rows.spendable(now)
    };
    let above = all.saturating_sub(rows.account().floor);
    let amount = Amount::new(above.min(MAX_AMOUNT)).map_err(|_| Short { available: 0 })?;
    Ok((amount, plan_debit(rows, amount, now)?))
}

/// Whether `amount` more may be held: what is held and not expired stays within [`MAX_HELD`].
#[must_use]
pub fn may_hold(rows: &AccountRows, amount: Amount, now: Timestamp) -> bool {
    let fits = |held: i64| {
        held.checked_add(amount.minor())
            .is_some_and(|sum| sum <= MAX_HELD)
    };
    is_on(Mutant::HoldsPastTheMost)
        || fits(rows.in_held())
        || fits(rows.in_held().saturating_sub(rows.in_expired(now)))
}

/// Empties the slots from `count` on into slot 0.
#[must_use]
pub fn plan_drain(rows: &AccountRows, count: SlotCount) -> Vec<Shift> {
    let beyond = others(rows).filter(|slot| slot.index.get() >= count.get() && !is_on(Mutant::DrainsNothing));
    beyond.map(empty_into_primary).collect()
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
    now: Timestamp,
) -> Result<DebitPlan, Short> {
    let chosen = spread(rows, xxh3_64(request.as_str().as_bytes()));
    let enough = rows
        .slot(chosen)
        .is_some_and(|slot| slot.balance >= amount.minor());
    if enough && rows.account().floor == 0 {
        Ok(DebitPlan::direct(chosen))
    } else {
        plan_debit(rows, amount, now)
    }
}

/// One of the slots that are not the gate, or the gate where it is the only one.
fn spread(rows: &AccountRows, number: u64) -> SlotIndex {
    let others = rows.account().slots.get().saturating_sub(1);
    if is_on(Mutant::CreditsTheGate) {
        return SlotIndex::PRIMARY;
    }
    number
        .checked_rem(u64::from(others))
        .and_then(|rest| u8::try_from(rest.saturating_add(1)).ok())
        .and_then(SlotIndex::new)
        .unwrap_or(SlotIndex::PRIMARY)
}

fn fits(slot: Option<Slot>, amount: i64) -> bool {
    slot.and_then(|slot| slot.balance.checked_add(amount).map(|sum| (slot, sum)))
        .is_some_and(|(slot, sum)| sum <= slot.index.cap() || is_on(Mutant::CreditsPastTheCap))
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::account::{Account, AccountId, DebitMode, Hold, Pending};
    use crate::money::Currency;

    /// When everything happens here.
    pub(super) const NOW: Timestamp = Timestamp(1_000);

    /// The same account with holds of these amounts and deadlines.
    pub(super) fn with_holds(rows: AccountRows, holds: &[(i64, Option<i64>)]) -> AccountRows {
        let hold = |(number, (minor, at)): (u16, &(i64, Option<i64>))| {
            let id = RequestId::new(&format!("h{number}")).unwrap();
            Hold::new(id, amount(*minor), at.map(Timestamp))
        };
        let holds = (0..).zip(holds).map(hold).collect();
        let (slots, pending) = (rows.slots().to_vec(), rows.pending().cloned().collect());
        AccountRows::restore(rows.account().clone(), slots, pending, 10_000, holds).unwrap()
    }

    /// An account with these balances by slot, `count` slots in use, and these pending rows.
    pub(super) fn rows(debit: DebitMode, count: u8, balances: &[i64], pending: &[i64]) -> AccountRows {
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
        AccountRows::restore(account, slots, pending, 10_000, Vec::new()).unwrap()
    }

    fn amount(minor: i64) -> Amount {
        Amount::new(minor).unwrap()
    }

    pub(super) fn shift(from: u8, to: u8, amount: i64) -> Shift {
        let index = |index| SlotIndex::new(index).unwrap();
        Shift {
            from: index(from),
            to: index(to),
            amount,
        }
    }

    fn plan(settle: usize, shifts: Vec<Shift>) -> DebitPlan {
        let slot = Some(SlotIndex::PRIMARY);
        DebitPlan {
            expire: 0,
            settle,
            shifts,
            slot,
        }
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
        assert_eq!(plan_debit(&rows, amount(33), NOW), Ok(collected));
    }

    #[test]
    fn slot_0_pays_alone_while_it_can() {
        let rows = rows(DebitMode::Primary, 2, &[10, 10], &[10]);
        assert_eq!(plan_debit(&rows, amount(10), NOW), Ok(plan(0, Vec::new())));
    }

    #[test]
    fn pending_rows_come_before_slots_and_only_as_many_as_are_needed() {
        let rows = rows(DebitMode::Primary, 3, &[10, 5, 5], &[3, 3, 3]);
        assert_eq!(plan_debit(&rows, amount(14), NOW), Ok(plan(2, Vec::new())));
        let collected = plan(3, vec![shift(1, 0, 5)]);
        assert_eq!(plan_debit(&rows, amount(20), NOW), Ok(collected));
    }

    #[test]
    fn more_rows_than_one_step_takes_settle_in_several() {
        let waiting = vec![1; STEP_ROWS + 1];
        let rows = rows(DebitMode::Primary, 2, &[0, 5], &waiting);
        let enough = i64::try_from(STEP_ROWS).unwrap();
        assert_eq!(
            plan_debit(&rows, amount(enough), NOW),
            Ok(plan(STEP_ROWS, Vec::new()))
        );
        let first = DebitPlan {
            slot: None,
            ..plan(STEP_ROWS, Vec::new())
        };
        assert_eq!(plan_debit(&rows, amount(enough + 1), NOW), Ok(first));
    }

    #[test]
    fn empty_slots_are_passed_over() {
        let rows = rows(DebitMode::Primary, 4, &[0, 0, 7, 0], &[]);
        assert_eq!(
            plan_debit(&rows, amount(7), NOW),
            Ok(plan(0, vec![shift(2, 0, 7)]))
        );
    }

    #[test]
    fn a_refusal_is_proven_by_slots_and_pending_less_the_floor() {
        let rows = rows(DebitMode::Primary, 2, &[4, 5], &[6]);
        assert!(plan_debit(&rows, amount(15), NOW).is_ok());
        assert_eq!(plan_debit(&rows, amount(16), NOW), Err(Short { available: 15 }));
    }

    #[test]
    fn two_debits_of_thirty_do_not_fit_in_fifty() {
        let rows = rows(DebitMode::Primary, 2, &[20, 0], &[]);
        assert_eq!(plan_debit(&rows, amount(30), NOW), Err(Short { available: 20 }));
    }

    #[test]
    fn a_hashed_debit_never_starts_at_the_gate() {
        let rows = rows(DebitMode::Hashed, 3, &[100, 100, 100], &[]);
        for number in 0..50 {
            let request = RequestId::new(&format!("r{number}")).unwrap();
            let plan = plan_hashed_debit(&rows, amount(100), &request, NOW).unwrap();
            assert_ne!(plan.slot, Some(SlotIndex::PRIMARY));
            assert_eq!((plan.settle, plan.shifts), (0, Vec::new()));
        }
    }

    #[test]
    fn expired_holds_come_first_and_unexpired_ones_never() {
        let rows = rows(DebitMode::Primary, 2, &[10, 5], &[3]);
        let rows = with_holds(
            rows,
            &[(4, Some(900)), (4, Some(1_000)), (50, Some(1_001)), (50, None)],
        );
        let one = DebitPlan {
            expire: 1,
            ..plan(0, Vec::new())
        };
        assert_eq!(plan_debit(&rows, amount(14), NOW), Ok(one));
        let all = DebitPlan {
            expire: 2,
            ..plan(1, vec![shift(1, 0, 5)])
        };
        assert_eq!(plan_debit(&rows, amount(26), NOW), Ok(all.clone()));
        assert_eq!(plan_debit(&rows, amount(27), NOW), Err(Short { available: 26 }));
        assert_eq!(plan_max(&rows, NOW), Ok((amount(26), all)));
    }

    #[test]
    fn a_step_that_is_full_of_expired_holds_goes_on_in_another() {
        let holds = vec![(1, Some(1_000)); STEP_ROWS / HOLD_ROWS + 1];
        let rows = with_holds(rows(DebitMode::Primary, 2, &[0, 5], &[7]), &holds);
        let full = STEP_ROWS / HOLD_ROWS;
        let first = DebitPlan {
            expire: full,
            slot: None,
            ..plan(0, Vec::new())
        };
        let more = i64::try_from(full).unwrap() + 1;
        assert_eq!(plan_debit(&rows, amount(more), NOW), Ok(first));
    }

    #[test]
    fn all_there_is_leaves_the_floor_and_nothing_is_short() {
        let floored = |floor| {
            let rows = rows(DebitMode::Primary, 2, &[10, 5], &[3]);
            let account = Account {
                floor,
                ..rows.account().clone()
            };
            let pending = rows.pending().cloned().collect();
            AccountRows::restore(account, rows.slots().to_vec(), pending, 1_000, Vec::new()).unwrap()
        };
        assert_eq!(plan_max(&floored(7), NOW).map(|(all, _)| all), Ok(amount(11)));
        for floor in [18, 19] {
            assert_eq!(plan_max(&floored(floor), NOW), Err(Short { available: 0 }));
        }
    }

    #[test]
    fn what_expired_makes_room_for_another_hold() {
        let rows = rows(DebitMode::Primary, 1, &[10], &[]);
        let rows = with_holds(rows, &[(MAX_HELD - 1, Some(1_000))]);
        assert!(!may_hold(&rows, amount(2), Timestamp(999)));
        assert!(may_hold(&rows, amount(1), Timestamp(999)) && may_hold(&rows, amount(2), NOW));
    }

    #[test]
    fn draining_empties_the_slots_from_the_count_on() {
        let rows = rows(DebitMode::Primary, 4, &[1, 2, 0, 4], &[]);
        let from = |count| plan_drain(&rows, SlotCount::new(count).unwrap());
        assert_eq!(from(4), []);
        assert_eq!(from(2), [shift(3, 0, 4)]);
        assert_eq!(from(1), [shift(1, 0, 2), shift(3, 0, 4)]);
    }

    #[test]
    fn what_comes_back_is_never_refused_for_a_cap() {
        let full = rows(
            DebitMode::Primary,
            2,
            &[PRIMARY_CAP, crate::account::SLOT_CAP],
            &[],
        );
        assert_eq!(plan_credit(&full, amount(1), 0), None);
        assert_eq!(plan_return(&full, amount(1), 0), Some(SlotIndex::PRIMARY));
    }
}
