//! The numbers of events: entries get them after they were committed, so that no number is ever missing.
//!
//! A transaction that writes entries leaves a row in `outbox` for each run of consecutive versions of a slot. Whoever
//! numbers locks the row of `ledger`, takes the rows of `outbox` that are committed by then, in the order of their
//! ids, and moves them to `event` with the next numbers. A slot's runs come in the order of their versions, since
//! whoever writes a later one has waited for the earlier one's commit before it got an id. Numbers are given out on
//! demand, by everybody who reads events, and once a second.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor as _, MySql, QueryBuilder, Row as _};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::sleep;

use super::read::{Lease, ReadError, Reading, within};
use super::{columns, unavailable};
use crate::account::{AccountId, SlotIndex};
use crate::command::LedgerError;

/// Rows of `outbox` that are numbered together.
const TOGETHER: usize = 1_000;
/// How often others' commits are looked for while somebody waits for them.
const EVERY: Duration = Duration::from_millis(100);
/// How often while nobody does.
const IDLE: Duration = Duration::from_secs(1);
/// Between one round and the next, however much is written: what comes meanwhile is numbered together.
const APART: Duration = Duration::from_millis(5);
/// Rounds for one reader: others write meanwhile, and it is to end.
const ROUNDS: usize = 1_000;

/// How far numbers have got, as this process knows, and who waits for more.
#[derive(Debug)]
pub(super) struct Numbers {
    known: watch::Sender<Known>,
    /// One round of this process at a time: the next one then finds what it was to do done.
    turn: Semaphore,
    waiting: AtomicUsize,
    /// There is something to number, or somebody who waits for it.
    nudged: Notify,
    /// Why the last round of the job failed; told once.
    failed: Mutex<Option<String>>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    newest: u64,
    ended: bool,
}

/// Consecutive entries of a slot that have no numbers yet.
#[derive(Debug)]
struct Unnumbered {
    id: u64,
    account: AccountId,
    slot: SlotIndex,
    first_version: u64,
    entries: u32,
}

/// Somebody who waits for an event.
struct Waiting<'a>(&'a Numbers);

impl<'a> Waiting<'a> {
    fn new(numbers: &'a Numbers) -> Self {
        numbers.waiting.fetch_add(1, Ordering::AcqRel);
        numbers.nudged.notify_one();
        Self(numbers)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Numbers {
    pub(super) fn new() -> Self {
        let known = Known {
            newest: 0,
            ended: false,
        };
        Self {
            known: watch::Sender::new(known),
            turn: Semaphore::new(1),
            waiting: AtomicUsize::new(0),
            nudged: Notify::new(),
            failed: Mutex::default(),
        }
    }

    /// Entries were committed. Cheap.
    pub(super) fn nudge(&self) {
        if self.waiting.load(Ordering::Acquire) > 0 {
            self.nudged.notify_one();
        }
    }

    /// The newest number that this process has heard of.
    pub(super) fn known(&self) -> u64 {
        self.known.borrow().newest
    }

    fn heard(&self, newest: u64) {
        self.known.send_if_modified(|known| {
            let news = newest > known.newest;
            known.newest = known.newest.max(newest);
            news
        });
    }

    pub(super) fn end(&self) {
        self.known.send_modify(|known| known.ended = true);
    }

    /// Waits for an event with a number above `number`.
    pub(super) async fn after(&self, number: u64) -> Result<(), LedgerError> {
        let mut known = self.known.subscribe();
        let _waiting = Waiting::new(self);
        let reached = known.wait_for(|known| known.newest > number || known.ended).await;
        match reached.map(|known| known.newest > number) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(unavailable("the store ended before there was more")),
        }
    }

    /// Numbers what was committed before, and says the newest number.
    pub(super) async fn all(&self, reading: &Reading) -> Result<u64, ReadError> {
        let mut connection = reading.connection().await?;
        let row = sqlx::query(
            "SELECT newest_event, EXISTS (SELECT 1 FROM outbox) AS more FROM ledger WHERE one = 1",
        )
        .fetch_one(&mut *connection)
        .await?;
        let (newest, more): (u64, i64) = (row.try_get("newest_event")?, row.try_get("more")?);
        connection.free();
        self.heard(newest);
        if more == 0 {
            return Ok(newest);
        }
        // Whoever waits for its turn keeps no connection from others.
        let _turn = self.turn.acquire().await;
        let mut connection = reading.connection().await?;
        for _ in 0..ROUNDS {
            let round = begin(&mut connection).await?;
            let all = round.rows.len() < TOGETHER;
            let newest = give(&mut connection, round).await?;
            connection.run("COMMIT").await?;
            self.heard(newest);
            if all {
                connection.free();
                return Ok(newest);
            }
        }
        Err(ReadError::Ledger(unavailable(
            "there are too many events without a number",
        )))
    }

    /// Until dropped: numbers, as often as somebody waits for it.
    pub(super) async fn run(self: Arc<Self>, reading: Arc<Reading>) {
        loop {
            let every = if self.waiting.load(Ordering::Acquire) > 0 {
                EVERY
            } else {
                IDLE
            };
            tokio::select! {
                () = self.nudged.notified() => sleep(APART).await,
                () = sleep(every) => {}
            }
            let ended = within(self.all(&reading)).await;
            self.tell(ended.err());
            if self.known.borrow().ended {
                return;
            }
        }
    }

    fn tell(&self, error: Option<LedgerError>) {
        let error = error.map(|error| error.to_string());
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match &error {
            Some(error) if failed.is_none() => {
                tracing::warn!(error, "events have no numbers for now; it is tried again");
            }
            None if failed.is_some() => tracing::info!("events have numbers again"),
            _ => {}
        }
        *failed = error;
    }
}

/// What is to be numbered, and from where on. The row of `ledger` is locked from here to the commit, and everything
/// that the transaction reads without a lock is of the moment at which the rows were read.
#[derive(Debug)]
pub(super) struct Round {
    newest: u64,
    rows: Vec<Unnumbered>,
}

/// Begins a transaction.
async fn begin(connection: &mut Lease) -> Result<Round, ReadError> {
    connection
        .run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION")
        .await?;
    let newest = sqlx::query_scalar("SELECT newest_event FROM ledger WHERE one = 1 FOR UPDATE")
        .fetch_one(&mut **connection)
        .await?;
    let rows = sqlx::query(
        "SELECT id, account_id, slot_index, first_version, entries FROM outbox ORDER BY id LIMIT ?",
    )
    .bind(u64::try_from(TOGETHER).unwrap_or(u64::MAX))
    .fetch_all(&mut **connection)
    .await?;
    let rows = rows.iter().map(|row| {
        Ok(Unnumbered {
            id: row.try_get("id")?,
            account: columns::account_id(row, "account_id")?,
            slot: columns::slot_index(row)?,
            first_version: row.try_get("first_version")?,
            entries: row.try_get("entries")?,
        })
    });
    let rows = rows.collect::<Result<_, ReadError>>()?;
    Ok(Round { newest, rows })
}

/// Gives the numbers out. The newest is what it is once the transaction is committed.
async fn give(connection: &mut Lease, round: Round) -> Result<u64, ReadError> {
    let Round { mut newest, rows } = round;
    if rows.is_empty() {
        return Ok(newest);
    }
    let mut numbered: QueryBuilder<MySql> = QueryBuilder::new(
        "INSERT INTO event (first_number, entries, account_id, slot_index, first_version) ",
    );
    numbered.push_values(&rows, |mut row, run| {
        row.push_bind(newest.saturating_add(1))
            .push_bind(run.entries)
            .push_bind(run.account.as_str().as_bytes())
            .push_bind(run.slot.get())
            .push_bind(run.first_version);
        newest = newest.saturating_add(u64::from(run.entries));
    });
    numbered
        .build()
        .persistent(false)
        .execute(&mut **connection)
        .await?;
    // By key, one by one: each locks its own row and no gap, into which somebody is writing.
    let taken = rows
        .iter()
        .map(|run| format!("DELETE FROM outbox WHERE id = {};", run.id));
    let taken: String = taken.collect();
    let taken = connection.execute(AssertSqlSafe(taken)).await?;
    if usize::try_from(taken.rows_affected()) != Ok(rows.len()) {
        return Err(ReadError::Rows(
            "somebody else has numbered the same events".to_owned(),
        ));
    }
    sqlx::query("UPDATE ledger SET newest_event = ? WHERE one = 1")
        .bind(newest)
        .execute(&mut **connection)
        .await?;
    Ok(newest)
}

/// Numbers everything, and leaves the transaction open in which nothing was left to number: what is read in it is of
/// the moment up to which the numbers go. Says the newest.
pub(super) async fn up_to_here(connection: &mut Lease) -> Result<u64, ReadError> {
    for _ in 0..ROUNDS {
        let round = begin(connection).await?;
        let all = round.rows.len() < TOGETHER;
        let newest = give(connection, round).await?;
        if all {
            return Ok(newest);
        }
        connection.run("COMMIT").await?;
    }
    Err(ReadError::Ledger(unavailable(
        "there are too many events without a number",
    )))
}
