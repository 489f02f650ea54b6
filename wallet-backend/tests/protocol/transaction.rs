//! What a process does next: the transactions of its job, one after the other.

use super::batch::Batch;
use super::core::{self, Decided, View, Write};
use super::rules::{Rule, Rules};
use super::scenario::{Accounts, Act, Job, Op, outcome};
use super::session::{Ask, End, Money, Proof, Session, Step};
use super::world::{Mode, Row};

/// Where a job is between two transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    Run(Run),
    Done,
    /// An atomic batch that stored nothing.
    Aborted,
}

/// The next transaction of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Run {
    pub(super) pass: Pass,
    /// The operations it runs, by their places in the batch: a bit each.
    pub(super) ops: u8,
    /// Operations that were handed on, each to a transaction of its own after this one.
    pub(super) alone: u8,
    /// How often this was begun before.
    pub(super) tries: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Pass {
    /// Gates, and then what is free.
    First,
    /// The same, and hashed debits take the gate too.
    Gated,
    /// Gates, and then every slot in order.
    Waiting,
}

impl Stage {
    pub(super) fn first(rules: Rules, job: &Job) -> Stage {
        let ops = job.ops();
        let max = ops.iter().any(|op| matches!(op.act, Act::Max { .. }));
        let together = job.is_atomic() || is_of_one_account(ops);
        Stage::Run(Run {
            pass: if max && together && rules.keep(Rule::MaxTakesThePassAtOnce) {
                Pass::Waiting
            } else {
                Pass::First
            },
            ops: ops.iter().enumerate().fold(0, |set, (place, _)| set | 1 << place),
            alone: 0,
            tries: 0,
        })
    }
}

/// Whether one account is all that slots are waited for of: operations on one account, or a lone transfer, whose
/// credit leg never waits.
pub(super) fn is_of_one_account(ops: &[Op]) -> bool {
    let mut accounts = ops.iter().flat_map(|op| op.act.accounts());
    let first = accounts.next();
    ops.len() == 1 || accounts.all(|account| Some(account) == first)
}

/// What the job asks next, in `stage`, after these answers.
pub(super) fn next(accounts: &Accounts, rules: Rules, job: &Job, stage: Stage, answers: &[i8]) -> Ask {
    let Stage::Run(run) = stage else {
        return Ask::Wrong("a job that has ended goes on".to_owned());
    };
    let again = Stage::Run(Run {
        tries: run.tries + 1,
        ..run
    });
    let mut session = Session::new(rules, again, answers);
    let end = match job {
        Job::Batch { .. } => Batch::new(accounts, job, run, session).run(),
        Job::Tidy { account, slot } => tidy(accounts, *account, *slot, &mut session),
        Job::Resize { key, account, slots } => amend(accounts, *key, *account, Some(*slots), &mut session),
        Job::Close { key, account } => amend(accounts, *key, *account, None, &mut session),
        Job::Read { account } => read(*account, &mut session),
        Job::Tick => tick(&mut session),
    };
    end.map_or_else(|ask| ask, Ask::End)
}

/// Rule 5. Small, and gives up where the gate is busy.
///
/// The core evens hashed slots out over all of them, so that takes them all, or none: then it only settles.
fn tidy(accounts: &Accounts, account: u8, slot: u8, s: &mut Session<'_>) -> Step<End> {
    let terms = s.lock(Row::account(account), Mode::Shared)?;
    let gate_first = s.rules.keep(Rule::TidyTakesTheGateBeforeRows);
    if !gate_first {
        s.try_lock(Row::all_pending(account))?;
    }
    if !gate_first || !s.rules.keep(Rule::TidyGivesUpAtABusyGate) {
        s.lock(Row::gate(account), Mode::Exclusive)?;
    } else if !s.probe(Row::gate(account))? {
        return Ok(s.roll_back(Stage::Done));
    }
    lock_hold(account, s)?;
    s.try_lock(Row::all_pending(account))?;
    let hashed = accounts[usize::from(account)].hashed;
    let mut even = false;
    if hashed {
        s.try_lock(Row::slots(account))?;
        even = Row::slots(account).all(|row| s.holds(row));
    } else {
        s.probe(Row::slot(account, slot))?;
    }
    let mut view = view(s, account, terms);
    if hashed && !even {
        view.slots = [view.slots[0], 0, 0];
        view.primary = true;
    }
    let decided = core::tidy(accounts, account, &view, s.is_late()).map_err(Ask::Wrong)?;
    if let Decided::Posted(_, writes) = decided {
        apply(s, &writes, None)?;
    }
    Ok(s.commit(Stage::Done))
}

/// A change of the account, with everything that is the account's under lock.
fn amend(accounts: &Accounts, key: u8, account: u8, slots: Option<u8>, s: &mut Session<'_>) -> Step<End> {
    if !s.rules.keep(Rule::AccountRowIsLockedOutright) {
        s.lock(Row::account(account), Mode::Shared)?;
    }
    let terms = s.lock(Row::account(account), Mode::Exclusive)?;
    for row in Row::slots(account) {
        s.lock(row, Mode::Exclusive)?;
    }
    for row in Row::holds(account) {
        s.lock(row, Mode::Exclusive)?;
    }
    lock_free_pending(&[account], s)?;
    let claim = Row::claim(key);
    if s.read(std::iter::once(claim))? != [0] {
        return Ok(s.commit(Stage::Done));
    }
    let view = view(s, account, terms);
    let becomes = match core::amend(accounts, account, slots, &view, s.is_late()).map_err(Ask::Wrong)? {
        Decided::Posted(_, writes) => {
            apply(s, &writes, None)?;
            outcome::POSTED
        }
        Decided::Short | Decided::Refused => outcome::REFUSED,
    };
    s.claim(claim, becomes, s.rules.keep(Rule::ClaimsAreTaken))?;
    Ok(s.commit(Stage::Done))
}

/// Rule 6.
fn read(account: u8, s: &mut Session<'_>) -> Step<End> {
    let values = read_money(account, s.rules.keep(Rule::ReadIsOneSnapshot), s)?;
    let (clock, money) = values.split_first().unwrap();
    let (hold, loose) = money.split_last().unwrap();
    let sum = loose.iter().sum::<i8>() + if *clock == 1 { *hold } else { 0 };
    s.proofs.push(Proof {
        account,
        money: Money::Exactly(sum),
    });
    Ok(s.commit(Stage::Done))
}

fn tick(s: &mut Session<'_>) -> Step<End> {
    s.lock(Row::CLOCK, Mode::Exclusive)?;
    s.write(Row::CLOCK, 1)?;
    Ok(s.commit(Stage::Done))
}

/// What a statement that adds up an account's money reads: the clock, slots, pending rows, and the hold that can
/// expire. In one snapshot, or in a snapshot for each row.
pub(super) fn read_money(account: u8, at_once: bool, s: &mut Session<'_>) -> Step<Vec<i8>> {
    let loose = Row::slots(account).chain(Row::all_pending(account));
    let mut rows = std::iter::once(Row::CLOCK)
        .chain(loose)
        .chain([Row::hold(account, 0)]);
    if at_once {
        return s.read(rows);
    }
    rows.try_fold(Vec::new(), |mut values, row| {
        values.extend(s.read(std::iter::once(row))?);
        Ok(values)
    })
}

/// Locks the hold that may have expired, and asks for the time.
pub(super) fn lock_hold(account: u8, s: &mut Session<'_>) -> Step<()> {
    s.lock(Row::hold(account, 0), Mode::Exclusive)?;
    s.now().map(drop)
}

/// Locks the pending rows that are free, which under the gate are all but those that are being inserted. The time is
/// the statement's.
pub(super) fn lock_free_pending(accounts: &[u8], s: &mut Session<'_>) -> Step<()> {
    let all = accounts.iter().flat_map(|account| Row::all_pending(*account));
    if !s.rules.keep(Rule::PassTakesFreeRowsOnly) {
        for row in all {
            s.lock(row, Mode::Exclusive)?;
        }
    } else if s.rules.keep(Rule::TimeIsOfTheSnapshot) {
        s.try_lock(std::iter::once(Row::CLOCK).chain(all))?;
    } else {
        s.now()?;
        s.try_lock(all)?;
    }
    s.now().map(drop)
}

/// What the transaction has of an account under its locks.
pub(super) fn view(s: &Session<'_>, account: u8, terms: i8) -> View {
    let held = |row| s.held(row).unwrap_or(0);
    View {
        terms,
        slots: std::array::from_fn(|slot| held(Row::slots(account).nth(slot).unwrap())),
        pending: std::array::from_fn(|place| held(Row::all_pending(account).nth(place).unwrap())),
        holds: std::array::from_fn(|place| held(Row::holds(account).nth(place).unwrap())),
        ..View::default()
    }
}

/// Writes what was decided. `own` is where rows go that the operation makes: a pending row, a hold.
pub(super) fn apply(s: &mut Session<'_>, writes: &[Write], own: Option<(u8, u8)>) -> Step<()> {
    let own = || own.ok_or_else(|| Ask::Wrong("a row of nobody".to_owned()));
    for write in writes {
        match *write {
            Write::Add(row, delta) => {
                let value = s.held(row).unwrap_or(0) + delta;
                s.write(row, value)?;
            }
            Write::Set(row, value) => s.write(row, value)?,
            Write::Wait { account, amount } => s.insert(Row::pending(account, own()?.0), amount)?,
            Write::Place { account, amount } => s.insert(Row::hold(account, own()?.1), amount)?,
        }
    }
    Ok(())
}
