//! The model's decisions: `ledger::decide` itself, over the rows that a transaction has locked.
//!
//! Slots that it has not locked are shown to the core as empty: the core moves nothing out of an empty slot, so it
//! never writes what was not locked (the session would notice). A credit that found no slot free is shown to the core
//! as one of an account in journal mode.

use std::collections::VecDeque;

use wallet_backend::account::{
    Account as Terms, AccountId, CreditMode, DebitMode, Hold, HoldState, Pending, RequestId, Slot, SlotCount,
    SlotIndex, Status, Timestamp,
};
use wallet_backend::command::{
    Amendment, Answer, Changes, Command, DebitAmount, LedgerError, Operation, Outcome, Refusal,
    RequestRecord, Task,
};
use wallet_backend::ledger::decide::{Context, Rows, decide};
use wallet_backend::ledger::rows::AccountRows;
use wallet_backend::ledger::slots::plan_hashed_debit;
use wallet_backend::money::Amount;

use super::scenario::{Account, Accounts, Act, Op, terms};
use super::world::{HOLDS, PENDING, Row, SLOTS};
use crate::support::{id, ordinary, request};

/// An account's rows as far as a transaction has them. What it has not is 0.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct View {
    /// The account row.
    pub(super) terms: i8,
    pub(super) slots: [i8; SLOTS as usize],
    pub(super) pending: [i8; PENDING as usize],
    pub(super) holds: [i8; HOLDS as usize],
    /// Credits wait as pending rows, whatever the account's mode.
    pub(super) journal: bool,
    /// Debits collect at the gate, whatever the account's mode.
    pub(super) primary: bool,
    /// The floor is taken for 0.
    pub(super) no_floor: bool,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decided {
    /// `moved`, and what to write.
    Posted(i8, Vec<Write>),
    /// `insufficient_funds`: not final before it is proven.
    Short,
    /// Refused for another reason, which rows decide that are locked.
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Write {
    Add(Row, i8),
    Set(Row, i8),
    /// A pending row of the operation's own.
    Wait {
        account: u8,
        amount: i8,
    },
    /// A hold of the operation's own.
    Place {
        account: u8,
        amount: i8,
    },
}

const NAMES: [&str; 2] = ["A", "B"];
/// The holds' deadline.
const DEADLINE: Timestamp = Timestamp(10);

/// Decides an operation over its own account's rows and, of a transfer, the target's. `slot` is where a credit goes.
pub(super) fn run(
    accounts: &Accounts,
    op: Op,
    own: &View,
    target: Option<&View>,
    slot: u8,
    late: bool,
) -> Result<Decided, String> {
    let source = op.act.source().or(op.act.target()).unwrap();
    let rows = |of: u8, view: &View| rows(&accounts[usize::from(of)], of, view);
    let own = rows(source, own);
    let target = target.zip(op.act.target()).map(|(view, of)| rows(of, view));
    let original = original(accounts, op.act);
    let command = Command {
        account: id(NAMES[usize::from(source)]),
        request: request_id(accounts, op),
        operation: operation(op.act),
    };
    let rows = Rows {
        own: Some(&own),
        target: target.as_ref(),
        original: original.as_ref(),
        ..Rows::default()
    };
    settle(&Task::Run(command), rows, u64::from(slot.saturating_sub(1)), late)
}

pub(super) fn tidy(accounts: &Accounts, account: u8, view: &View, late: bool) -> Result<Decided, String> {
    let own = rows(&accounts[usize::from(account)], account, view);
    let rows = Rows {
        own: Some(&own),
        ..Rows::default()
    };
    let account = id(NAMES[usize::from(account)]);
    settle(&Task::Tidy { account }, rows, 0, late)
}

/// Sets the number of slots, or closes the account for `None`.
pub(super) fn amend(
    accounts: &Accounts,
    account: u8,
    slots: Option<u8>,
    view: &View,
    late: bool,
) -> Result<Decided, String> {
    let own = rows(&accounts[usize::from(account)], account, view);
    let amendment = Amendment {
        slots: slots.and_then(SlotCount::new),
        status: slots.is_none().then_some(Status::Closed),
        ..Amendment::default()
    };
    let command = Command {
        account: id(NAMES[usize::from(account)]),
        request: request("amend"),
        operation: Operation::Amend(amendment),
    };
    let rows = Rows {
        own: Some(&own),
        ..Rows::default()
    };
    settle(&Task::Run(command), rows, 0, late)
}

fn settle(task: &Task, rows: Rows<'_>, prefer: u64, late: bool) -> Result<Decided, String> {
    let now = if late { DEADLINE } else { Timestamp(1) };
    let decision = match decide(task, rows, Context { now, prefer }) {
        Ok(decision) => decision,
        Err(LedgerError::HoldNotFound { .. }) => return Ok(Decided::Refused),
        Err(error) => return Err(error.to_string()),
    };
    let moved = match decision.reply.answer(&decision.changes) {
        Some(Answer::Decided { outcome, .. }) => match outcome {
            Outcome::Posted(receipt) => receipt.amount.minor(),
            Outcome::Amended(_) => 0,
            Outcome::Refused(Refusal::InsufficientFunds { .. }) => return Ok(Decided::Short),
            Outcome::Refused(_) => return Ok(Decided::Refused),
        },
        Some(Answer::Tidied { .. }) => 0,
        other => return Err(format!("an answer out of place: {other:?}")),
    };
    Ok(Decided::Posted(small(moved), writes(&decision.changes)))
}

fn writes(changes: &Changes) -> Vec<Write> {
    let of = |account: &AccountId| u8::from(account.as_str() == NAMES[1]);
    let entries = changes
        .entries
        .iter()
        .filter(|entry| entry.delta != 0)
        .map(|entry| {
            Write::Add(
                Row::slot(of(&entry.account), entry.slot.get()),
                small(entry.delta),
            )
        });
    let settled = changes.pending_settled.iter().map(|(account, number)| {
        let place = u8::try_from(*number).unwrap() - 1;
        Write::Set(Row::pending(of(account), place), 0)
    });
    let waiting = changes.pending_added.iter().map(|(account, row)| Write::Wait {
        account: of(account),
        amount: small(row.amount.minor()),
    });
    let holds = changes.holds.iter().map(|(account, hold)| {
        let rest = if hold.state == HoldState::Open {
            small(hold.rest())
        } else {
            0
        };
        match place_of(&hold.id) {
            Some(place) => Write::Set(Row::hold(of(account), place), rest),
            None => Write::Place {
                account: of(account),
                amount: rest,
            },
        }
    });
    let terms = changes.account.iter().map(|account| {
        let row = terms::of(account.slots.get(), account.status == Status::Closed);
        Write::Set(Row::account(of(&account.id)), row)
    });
    entries
        .chain(settled)
        .chain(waiting)
        .chain(holds)
        .chain(terms)
        .collect()
}

fn rows(account: &Account, of: u8, view: &View) -> AccountRows {
    let terms = Terms {
        slots: SlotCount::new(terms::slots(view.terms)).unwrap(),
        status: if terms::is_closed(view.terms) {
            Status::Closed
        } else {
            Status::Active
        },
        floor: if view.no_floor { 0 } else { account.floor.into() },
        credit: if account.journal || view.journal {
            CreditMode::Journal
        } else {
            CreditMode::Slot
        },
        debit: if account.hashed && !view.primary {
            DebitMode::Hashed
        } else {
            DebitMode::Primary
        },
        ..ordinary(NAMES[usize::from(of)])
    };
    let slots = (0..).zip(view.slots).map(|(index, balance)| Slot {
        index: SlotIndex::new(index).unwrap(),
        balance: balance.into(),
        version: 1,
    });
    let pending: VecDeque<_> = (1..)
        .zip(view.pending)
        .filter_map(|(number, minor)| {
            Some(Pending {
                number,
                amount: Amount::new(minor.into()).ok()?,
                request: request("earlier"),
                link: None,
                at: Timestamp(0),
            })
        })
        .collect();
    let holds = (0..).zip(view.holds).filter_map(|(place, minor)| {
        let amount = Amount::new(minor.into()).ok()?;
        Some(Hold::new(
            hold_id(place),
            amount,
            (place == 0).then_some(DEADLINE),
        ))
    });
    AccountRows::restore(
        terms,
        slots.collect(),
        pending,
        u64::from(PENDING) + 1,
        holds.collect(),
    )
    .unwrap()
}

/// The id of the hold in a place. One that is being placed bears its operation's.
fn hold_id(place: u8) -> RequestId {
    request(&format!("hold-{place}"))
}

fn place_of(hold: &RequestId) -> Option<u8> {
    (0..HOLDS).find(|place| hold_id(*place) == *hold)
}

fn operation(act: Act) -> Operation {
    let amount = |minor: i8| Amount::new(minor.into()).unwrap();
    let memo = None;
    match act {
        Act::Credit { amount: minor, .. } => Operation::Credit {
            amount: amount(minor),
            memo,
        },
        Act::Debit { amount: minor, .. } => Operation::Debit {
            amount: amount(minor).into(),
            memo,
        },
        Act::Max { .. } => Operation::Debit {
            amount: DebitAmount::Max,
            memo,
        },
        Act::Hold { amount: minor, .. } => Operation::Hold {
            amount: amount(minor),
            expires_in: None,
        },
        Act::Capture { .. } => Operation::Capture {
            hold: hold_id(0),
            amount: None,
            remainder: wallet_backend::command::Remainder::Release,
        },
        Act::Transfer {
            to, amount: minor, ..
        } => {
            let to = id(NAMES[usize::from(to)]);
            Operation::Transfer {
                to,
                amount: amount(minor),
                memo,
            }
        }
        Act::Reversal { .. } => Operation::Reversal {
            reverses: request("original"),
        },
    }
}

/// The record of what a reversal undoes.
fn original(accounts: &Accounts, act: Act) -> Option<RequestRecord> {
    let Act::Reversal { from, amount, .. } = act else {
        return None;
    };
    let account = id(NAMES[usize::from(from)]);
    let credit = Command {
        account: account.clone(),
        request: request("original"),
        operation: operation(Act::Credit {
            to: from,
            amount,
            slot: 0,
        }),
    };
    let view = View {
        terms: terms::of(accounts[usize::from(from)].slots, false),
        ..View::default()
    };
    let own = rows(&accounts[usize::from(from)], from, &view);
    let own = Rows {
        own: Some(&own),
        ..Rows::default()
    };
    let context = Context {
        now: Timestamp(0),
        prefer: 0,
    };
    decide(&Task::Run(credit), own, context).unwrap().changes.request
}

/// An id for the operation; of a hashed debit, one that hashes to its slot.
fn request_id(accounts: &Accounts, op: Op) -> RequestId {
    let hashed = |from: u8| accounts[usize::from(from)].hashed;
    let (from, slot) = match op.act {
        Act::Debit { from, slot, .. } if hashed(from) => (from, slot),
        _ => return request(&format!("r{}", op.key)),
    };
    let account = &accounts[usize::from(from)];
    let rich = View {
        terms: terms::of(SLOTS, false),
        slots: [1; SLOTS as usize],
        ..View::default()
    };
    let rich = rows(&Account { floor: 0, ..*account }, from, &rich);
    let goes_to = |request: &RequestId| {
        plan_hashed_debit(&rich, Amount::new(1).unwrap(), request, Timestamp(0))
            .unwrap()
            .slot
    };
    let ids = (0..1_000).map(|n| request(&format!("r{}-{n}", op.key)));
    ids.into_iter()
        .find(|id| goes_to(id).map(SlotIndex::get) == Some(slot))
        .expect("some id hashes to any slot")
}

fn small(minor: i64) -> i8 {
    i8::try_from(minor).expect("amounts are small here")
}
