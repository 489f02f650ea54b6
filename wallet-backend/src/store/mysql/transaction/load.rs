//! Locking and reading what a plan asks for: one round trip.

use std::collections::{BTreeMap, HashMap, VecDeque};

use sqlx::Row as _;
use sqlx::mysql::MySqlRow;

use super::books::{Books, Loaded, SlotSet};
use super::plan::{Need, Plan};
use crate::account::{
    Account, AccountId, CreditMode, Hold, HoldState, Link, Pending, Slot, SlotCount, SlotIndex, Timestamp,
};
use crate::ledger::invariants::Violation;
use crate::ledger::rows::AccountRows;
use crate::money::Amount;
use crate::store::mysql::columns::{self, ColumnError};
use crate::store::mysql::requests;
use crate::store::mysql::text::{Lock, Reads, SlotsOf, Text};

/// Numbers of pending rows that a transaction adds begin here: far above any that the database gives out.
pub(super) const ADDED: u64 = 1 << 62;

/// Why rows are no books.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error(transparent)]
    Column(#[from] ColumnError),
    #[error("rows that contradict each other: {0}")]
    Rows(Violation),
}

impl From<sqlx::Error> for LoadError {
    fn from(error: sqlx::Error) -> Self {
        Self::Column(error.into())
    }
}

/// The text for a plan. `now` is a test's.
pub(super) fn text(plan: &Plan, now: Option<Timestamp>) -> Text {
    let mut text = Text::default();
    text.begin();
    lock_accounts(plan, &mut text);
    let of = |wanted: fn(&Need) -> bool| -> Vec<&AccountId> {
        let accounts = plan.accounts.iter().filter(|(_, need)| wanted(need));
        accounts.map(|(account, _)| account).collect()
    };
    let gate = SlotsOf::One(SlotIndex::PRIMARY);
    text.slots(&of(|need| need.gate), gate, Lock::Update);
    text.slots(&of(|need| need.whole), SlotsOf::All, Lock::Update);
    let lock = if plan.accounts.len() == 1 {
        Lock::Update
    } else {
        Lock::UpdateIfFree
    };
    for (account, need) in &plan.accounts {
        if let Some(slot) = need.landing {
            text.slots(&[account], SlotsOf::One(slot), lock);
        }
    }
    text.now();
    text.slots(&of(|need| need.waiting && !need.gate), gate, Lock::Nothing);
    for (account, need) in &plan.accounts {
        if need.waiting {
            text.waiting(account);
        }
        if need.whole {
            text.pending(account);
            text.expired_holds(account, now);
        }
        text.requests(account, &need.requests.iter().collect::<Vec<_>>());
        text.reversals(account, &need.reversed.iter().collect::<Vec<_>>());
        text.holds(account, &need.holds.iter().collect::<Vec<_>>());
    }
    text
}

/// In one order, whichever way each of them is locked.
fn lock_accounts(plan: &Plan, text: &mut Text) {
    let all: Vec<(&AccountId, bool)> = plan
        .accounts
        .iter()
        .map(|(account, need)| (account, need.update))
        .collect();
    for run in all.chunk_by(|(_, one), (_, other)| one == other) {
        let lock = if run.iter().any(|(_, update)| *update) {
            Lock::Update
        } else {
            Lock::Share
        };
        let accounts: Vec<&AccountId> = run.iter().map(|(account, _)| *account).collect();
        text.accounts(&accounts, lock);
    }
}

/// One account's rows as they were read.
#[derive(Debug)]
struct Raw {
    account: Account,
    slots: BTreeMap<SlotIndex, SlotRow>,
    /// Slot 0 without a lock.
    peek: Option<SlotRow>,
    waiting: i64,
    pending: VecDeque<Pending>,
    /// By id: one that is asked for by its id may have expired too.
    open: BTreeMap<String, Hold>,
}

#[derive(Clone, Copy, Debug)]
struct SlotRow {
    slot: Slot,
    held: i64,
    at: Timestamp,
}

/// What was read, in the making.
#[derive(Debug, Default)]
struct Reading {
    raw: HashMap<AccountId, Raw>,
    books: Books,
}

/// The books that the rows are, and the accounts as their rows say they are. `now` is a test's.
pub(super) fn books(
    plan: &Plan,
    answers: Vec<(Reads, Vec<MySqlRow>)>,
    now: Option<Timestamp>,
) -> Result<(Books, Vec<Account>), LoadError> {
    let mut reading = Reading::default();
    for (reads, rows) in &answers {
        for row in rows {
            reading.take(*reads, row)?;
        }
    }
    let Reading { raw, mut books } = reading;
    if let Some(now) = now {
        books.now = now;
    }
    let accounts = raw.values().map(|raw| raw.account.clone()).collect();
    for (id, raw) in raw {
        // A clock that was set back stands still for the account.
        let seen = raw.slots.values().chain(&raw.peek).map(|row| row.at);
        books.now = seen.fold(books.now, Ord::max);
        let need = plan.accounts.get(&id).cloned().unwrap_or_default();
        let loaded = loaded(raw, &need).map_err(LoadError::Rows)?;
        books.accounts.insert(id, loaded);
    }
    Ok((books, accounts))
}

impl Reading {
    fn take(&mut self, reads: Reads, row: &MySqlRow) -> Result<(), LoadError> {
        if reads == Reads::Now {
            self.books.now = Timestamp(row.try_get("now_us")?);
            return Ok(());
        }
        if reads == Reads::Accounts {
            let account = columns::account(row)?;
            let raw = Raw {
                account: account.clone(),
                slots: BTreeMap::new(),
                peek: None,
                waiting: 0,
                pending: VecDeque::new(),
                open: BTreeMap::new(),
            };
            self.raw.insert(account.id, raw);
            return Ok(());
        }
        let id = columns::account_id(row, "account_id")?;
        // Rows of an account that was opened after its own row was looked for: it is not there yet for this
        // transaction.
        let Some(raw) = self.raw.get_mut(&id) else {
            return Ok(());
        };
        match reads {
            Reads::Nothing | Reads::Accounts | Reads::Now => {}
            Reads::Slots => {
                let row = slot_row(row)?;
                raw.slots.insert(row.slot.index, row);
            }
            Reads::Peeks => raw.peek = Some(slot_row(row)?),
            Reads::Waiting => raw.waiting = row.try_get("waiting")?,
            Reads::Pending => raw.pending.push_back(pending(row, &id)?),
            Reads::Requests => {
                let record = requests::record(row, &id, raw.account.currency)?;
                let request = record.request.clone();
                self.books.known.of(&id, &request).record = Some(record);
            }
            Reads::Reversals => {
                let reverses = columns::request_id(row, "reverses")?;
                let by = columns::request_id(row, "request_id")?;
                self.books.known.of(&id, &reverses).reversed_by = Some(by);
            }
            Reads::Holds => {
                let hold = columns::hold(row)?;
                if hold.state == HoldState::Open {
                    raw.open.insert(hold.id.as_str().to_owned(), hold);
                } else {
                    let ended = hold.id.clone();
                    self.books.known.of(&id, &ended).ended = Some(hold);
                }
            }
        }
        Ok(())
    }
}

fn slot_row(row: &MySqlRow) -> Result<SlotRow, LoadError> {
    Ok(SlotRow {
        slot: columns::slot(row)?,
        held: row.try_get("held")?,
        at: Timestamp(row.try_get("at_us")?),
    })
}

fn pending(row: &MySqlRow, account: &AccountId) -> Result<Pending, LoadError> {
    let source = columns::account_id(row, "source_id")?;
    let minor: i64 = row.try_get("amount")?;
    let amount = Amount::new(minor).map_err(|error| ColumnError::Value {
        column: "amount",
        reason: error.to_string(),
    })?;
    Ok(Pending {
        number: row.try_get("id")?,
        amount,
        request: columns::request_id(row, "request_id")?,
        link: (source != *account).then_some(Link::Transfer(source)),
        at: Timestamp(row.try_get("at_us")?),
    })
}

/// What the core is shown of an account.
fn loaded(raw: Raw, need: &Need) -> Result<Loaded, Violation> {
    let Raw {
        mut account,
        slots,
        peek,
        waiting,
        pending,
        open,
    } = raw;
    // Of the whole account a slot that has no row yet is nobody else's either.
    let mut locked = if need.whole {
        SlotSet::ALL
    } else {
        SlotSet::default()
    };
    for index in slots.keys() {
        locked.insert(*index);
    }
    let gate = slots.get(&SlotIndex::PRIMARY);
    if need.landing.is_some_and(|slot| !locked.contains(slot)) {
        // Somebody has the slot where money was to come in. Under the gate it may go there; else it waits.
        if gate.is_some() {
            account.slots = SlotCount::ONE;
        } else {
            account.credit = CreditMode::Journal;
        }
    }
    let held = gate.map_or(0, |row| row.held);
    let hidden = open
        .values()
        .fold(held, |held, hold| held.saturating_sub(hold.rest()));
    let highest = slots.keys().next_back().map_or(0, |index| index.get());
    let shown = (0..=highest).filter_map(SlotIndex::new).map(|index| {
        let unlocked = peek.filter(|row| row.slot.index == index);
        let row = slots.get(&index).copied().or(unlocked);
        row.map_or_else(|| Slot::empty(index), |row| row.slot)
    });
    let (shown, open) = (shown.collect(), open.into_values().collect());
    // Holds that were asked for by name are of an account whose gate is locked.
    let rows = AccountRows::restore(account, shown, pending, ADDED, open)?;
    Ok(Loaded {
        rows: rows.hiding(hidden, waiting)?,
        locked,
        versions: slots
            .iter()
            .map(|(index, row)| (*index, row.slot.version))
            .collect(),
        held,
        whole: need.whole,
    })
}
