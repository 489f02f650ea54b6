//! Everything that is read of a ledger in a database, over connections that only read: however slow they are, those
//! that write are free.
//!
//! A read is one statement, or several of one snapshot. What one statement of a session that reads committed rows
//! sees, it sees at one moment, its subqueries too.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Executor as _, MySql, MySqlConnection, MySqlPool};
use tokio::time::timeout;

use super::columns::ColumnError;
use super::connect;
use super::unavailable;
use crate::clock::Clock;
use crate::command::LedgerError;

mod books;
mod cuts;
mod entries;
mod events;
mod look_ups;
mod past;
mod untidy;
mod views;

use untidy::Turns;

/// How long one read may take, with waiting for its connection. Below what callers wait for.
const READ_WITHIN: Duration = Duration::from_secs(20);

/// The connections that read, and what reading keeps.
#[derive(Debug)]
pub(super) struct Reading {
    pool: MySqlPool,
    clock: Clock,
    turns: Mutex<Turns>,
}

/// Why something was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error(transparent)]
    Sql(#[from] sqlx::Error),
    #[error(transparent)]
    Column(#[from] ColumnError),
    /// Rows that do not belong together.
    #[error("{0}")]
    Rows(String),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl From<ReadError> for LedgerError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Ledger(error) => error,
            other @ (ReadError::Sql(_) | ReadError::Column(_) | ReadError::Rows(_)) => {
                unavailable(&format!("cannot read the database: {}", chain(&other)))
            }
        }
    }
}

/// An error with everything that caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

impl Reading {
    pub(super) fn new(pool: MySqlPool, clock: Clock) -> Self {
        Self {
            pool,
            clock,
            turns: Mutex::default(),
        }
    }

    /// A free connection.
    pub(super) async fn connection(&self) -> Result<Lease, ReadError> {
        Ok(Lease::new(connect::acquire(&self.pool).await?))
    }

    /// What a statement takes for `now`: `None` is the database's own, by [`now!`].
    pub(super) fn now(&self) -> Option<i64> {
        self.clock.set().map(|now| now.0)
    }

    /// Turns are only ever replaced whole.
    fn turns(&self) -> std::sync::MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
    }
}

/// Ends a read that takes too long.
pub(super) async fn within<T>(read: impl Future<Output = Result<T, ReadError>>) -> Result<T, LedgerError> {
    match timeout(READ_WITHIN, read).await {
        Ok(read) => Ok(read?),
        Err(_) => Err(unavailable("the database did not answer a read in time")),
    }
}

/// A connection in use. Goes back to the pool by [`Lease::free`] only: one that was given up half-way, for an error or
/// for the time that it took, is closed.
#[derive(Debug)]
pub(super) struct Lease {
    connection: PoolConnection<MySql>,
    /// Nothing is under way on it.
    free: bool,
}

impl Lease {
    pub(super) const fn new(connection: PoolConnection<MySql>) -> Self {
        let free = false;
        Self { connection, free }
    }

    pub(super) fn free(mut self) {
        self.free = true;
    }

    /// Several statements that take nothing, in one round trip.
    pub(super) async fn run(&mut self, text: &'static str) -> Result<(), ReadError> {
        self.connection.execute(text).await?;
        Ok(())
    }

    /// From here to [`Lease::end`] every statement sees one moment, and writes nothing.
    async fn snapshot(&mut self) -> Result<(), ReadError> {
        self.run(
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; \
             START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        )
        .await
    }

    pub(super) async fn end(mut self) -> Result<(), ReadError> {
        self.run("COMMIT").await?;
        self.free();
        Ok(())
    }
}

impl Deref for Lease {
    type Target = MySqlConnection;

    fn deref(&self) -> &MySqlConnection {
        &self.connection
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut MySqlConnection {
        &mut self.connection
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.free {
            self.connection.close_on_drop();
        }
    }
}
