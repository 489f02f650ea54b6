//! What must hold of an account's rows and entries, and the name of each way in which it may not.
//!
//! Per slot: versions count from 1 without a gap, `balance_after` is the balance before plus `delta`, and no balance
//! is negative. Per account: moves between slots cancel out, every pending row settles once and whole, and what
//! entries set aside is what the open holds have.
//! [`AccountCheck`] reads entries one at a time, so that a ledger of any size can be proven in bounded memory, from the
//! first entry on or from any other.

use std::fmt;

use crate::account::{AccountId, Entry, Hold, Slot, SlotIndex};
use crate::ledger::rows::AccountRows;
use crate::mutants::{Mutant, is_on};

mod account_check;

pub use account_check::{AccountCheck, Opening, Standing};

/// A rule that was found broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The entry is for another account than the rows.
    Account,
    /// The slot has no row.
    SlotMissing,
    /// Versions rise by one from 1.
    VersionGap,
    /// `balance_after` is the balance before plus `delta`.
    BalanceChain,
    /// No slot is below zero.
    NegativeBalance,
    /// All the account's money is less than 2^63.
    Overflow,
    /// The row's balance is its last entry's.
    SlotBalance,
    /// The row's version is its last entry's.
    SlotVersion,
    /// Money moved between slots leaves the account's sum alone.
    Consolidation,
    /// Pending numbers rise, and only a pending row can settle.
    PendingNumber,
    /// What settles is what was pending.
    PendingAmount,
    /// A hold goes forward only, and ends once.
    HoldRow,
    /// What entries hold and give back is what the holds have.
    HeldAmount,
    /// The rows' own sums agree with the rows.
    CachedSum,
    /// What a record moves is what came in from outside less what went out.
    Conservation,
    /// What came in from outside less what went out is what the accounts of the currency have.
    CurrencyTotal,
}

impl Rule {
    /// What should be so, in words.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Account => "the entry belongs to the account",
            Self::SlotMissing => "the slot has a row",
            Self::VersionGap => "versions rise by one",
            Self::BalanceChain => "balance_after is the balance before plus delta",
            Self::NegativeBalance => "no slot is negative",
            Self::Overflow => "sums stay below 2^63",
            Self::SlotBalance => "the slot's balance is its last entry's",
            Self::SlotVersion => "the slot's version is its last entry's",
            Self::Consolidation => "moves between slots cancel out",
            Self::PendingNumber => "pending numbers rise and settle once",
            Self::PendingAmount => "what settles is what was pending",
            Self::HoldRow => "a hold goes forward and ends once",
            Self::HeldAmount => "what entries set aside is what the holds have",
            Self::CachedSum => "the cached sum is the sum of the rows",
            Self::Conservation => "a record moves what came in from outside less what went out",
            Self::CurrencyTotal => "what came in from outside less what went out is what the accounts have",
        }
    }

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::SlotMissing => "slot_missing",
            Self::VersionGap => "version_gap",
            Self::BalanceChain => "balance_chain",
            Self::NegativeBalance => "negative_balance",
            Self::Overflow => "overflow",
            Self::SlotBalance => "slot_balance",
            Self::SlotVersion => "slot_version",
            Self::Consolidation => "consolidation",
            Self::PendingNumber => "pending_number",
            Self::PendingAmount => "pending_amount",
            Self::HoldRow => "hold_row",
            Self::HeldAmount => "held_amount",
            Self::CachedSum => "cached_sum",
            Self::Conservation => "conservation",
            Self::CurrencyTotal => "currency_total",
        }
    }
}

/// One broken rule, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub account: AccountId,
    /// `None` where the rule is about the whole account.
    pub slot: Option<SlotIndex>,
    /// The entry's version, or a pending row's number.
    pub version: Option<u64>,
    pub rule: Rule,
    pub expected: i64,
    pub found: i64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "account {}", self.account)?;
        if let Some(slot) = self.slot {
            write!(f, " slot {}", slot.get())?;
        }
        if let Some(version) = self.version {
            write!(f, " version {version}")?;
        }
        let (rule, expected, found) = (self.rule.text(), self.expected, self.found);
        write!(f, ": not so that {rule}: expected {expected}, found {found}")
    }
}

impl std::error::Error for Violation {}

/// A version or a number as the signed integer that a [`Violation`] reports.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Steps one slot by one entry: the chain rule that applying, replaying and checking share.
///
/// # Errors
/// The first rule broken, with `slot` unchanged.
pub fn step(slot: &mut Slot, entry: &Entry) -> Result<(), Violation> {
    let broken = |rule, expected, found| Violation {
        account: entry.account.clone(),
        slot: Some(entry.slot),
        version: Some(entry.version),
        rule,
        expected,
        found,
    };
    let next = slot.version.saturating_add(1);
    if entry.version != next {
        return Err(broken(Rule::VersionGap, signed(next), signed(entry.version)));
    }
    let Some(after) = slot.balance.checked_add(entry.delta) else {
        return Err(broken(Rule::Overflow, slot.balance, entry.delta));
    };
    if after != entry.balance_after {
        return Err(broken(Rule::BalanceChain, after, entry.balance_after));
    }
    if after < 0 && !is_on(Mutant::TakesWithoutCollecting) {
        return Err(broken(Rule::NegativeBalance, 0, after));
    }
    slot.balance = after;
    slot.version = next;
    Ok(())
}

/// What must hold of the rows alone.
#[must_use]
pub fn check_rows(rows: &AccountRows) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut report = |slot, version, rule, expected, found| {
        violations.push(Violation {
            account: rows.account().id.clone(),
            slot,
            version,
            rule,
            expected,
            found,
        });
    };
    for (expected, slot) in rows.slots().iter().enumerate() {
        if usize::from(slot.index.get()) != expected {
            let expected = i64::try_from(expected).unwrap_or(i64::MAX);
            let found = i64::from(slot.index.get());
            report(Some(slot.index), None, Rule::SlotMissing, expected, found);
        }
        if slot.balance < 0 {
            let version = Some(slot.version);
            report(Some(slot.index), version, Rule::NegativeBalance, 0, slot.balance);
        }
    }
    let mut last = 0;
    for row in rows.pending() {
        if row.number <= last || row.number >= rows.next_pending() {
            let expected = signed(last).saturating_add(1);
            report(
                None,
                Some(row.number),
                Rule::PendingNumber,
                expected,
                signed(row.number),
            );
        }
        last = row.number;
    }
    let slots = sum(rows.slots().iter().map(|slot| slot.balance));
    let pending = sum(rows.pending().map(|row| row.amount.minor()));
    if slots != rows.in_slots() {
        report(None, None, Rule::CachedSum, slots, rows.in_slots());
    }
    if pending != rows.in_pending() {
        report(None, None, Rule::CachedSum, pending, rows.in_pending());
    }
    let held = sum(rows.holds().map(Hold::rest));
    if held != rows.in_held() {
        report(None, None, Rule::CachedSum, held, rows.in_held());
    }
    violations
}

fn sum(amounts: impl Iterator<Item = i64>) -> i64 {
    amounts.fold(0, i64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Account, RequestId, Timestamp};
    use crate::command::{Answer, Command, Operation, Outcome, Task};
    use crate::ledger::decide::{Context, Rows, decide};
    use crate::money::{Amount, Currency};

    /// An account with one credit of 10 and one debit of 4, by the core's own decisions.
    fn ledger() -> (AccountRows, Vec<Entry>) {
        let id = AccountId::new("a").unwrap();
        let mut rows = AccountRows::open(Account::new(id.clone(), Currency::new("EUR").unwrap()));
        let mut entries = Vec::new();
        let (memo, amount) = (None, |minor| Amount::new(minor).unwrap());
        let credit = Operation::Credit {
            amount: amount(10),
            memo: memo.clone(),
        };
        let debit = Operation::Debit {
            amount: amount(4).into(),
            memo,
        };
        for (name, operation) in [("c", credit), ("d", debit)] {
            let request = RequestId::new(name).unwrap();
            let task = Task::Run(Command {
                account: id.clone(),
                request,
                operation,
            });
            let own = Rows {
                own: Some(&rows),
                ..Rows::default()
            };
            let context = Context {
                now: Timestamp(1),
                prefer: 0,
            };
            let mut decision = decide(&task, own, context).unwrap();
            rows.apply(&decision.changes).unwrap();
            entries.extend(decision.changes.entries.iter().cloned());
            assert!(matches!(
                decision.take_answer(),
                Some(Answer::Decided {
                    outcome: Outcome::Posted(_),
                    replayed: false
                })
            ));
        }
        (rows, entries)
    }

    fn check(rows: &AccountRows, entries: &[Entry]) -> Vec<(Rule, Option<u64>)> {
        let mut check = AccountCheck::new(rows.account().id.clone());
        for entry in entries {
            check.push(entry);
        }
        let named = |violation: Violation| (violation.rule, violation.version);
        check.finish(rows).into_iter().map(named).collect()
    }

    #[test]
    fn what_the_core_decides_is_proven() {
        let (rows, entries) = ledger();
        assert_eq!(check(&rows, &entries), []);
    }

    #[test]
    fn a_single_wrong_cent_is_named_with_its_version_and_once() {
        let (rows, mut entries) = ledger();
        entries[0].balance_after += 1;
        entries[1].balance_after += 1;
        let found = check(&rows, &entries);
        assert_eq!(
            found,
            [(Rule::BalanceChain, Some(1)), (Rule::SlotBalance, Some(2))]
        );
    }

    #[test]
    fn a_lost_entry_is_named() {
        let (rows, entries) = ledger();
        assert_eq!(check(&rows, &entries[1..]), [(Rule::VersionGap, Some(2)),]);
        assert_eq!(
            check(&rows, &entries[..1]),
            [(Rule::SlotVersion, Some(1)), (Rule::SlotBalance, Some(1)),]
        );
    }

    #[test]
    fn a_violation_reads_as_a_sentence_that_names_the_place() {
        let (rows, entries) = ledger();
        let mut check = AccountCheck::new(rows.account().id.clone());
        check.push(&entries[0]);
        let violation = check.finish(&rows).remove(0);
        let expected = "account a slot 0 version 1: not so that the slot's version is its last entry's: expected 1, found 2";
        assert_eq!(violation.to_string(), expected);
    }
}
