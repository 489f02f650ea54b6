//! Whose turn a duty is, among the processes on one ledger: a row of `job` for each.
//!
//! A turn is taken where nobody has it, or where whoever has it has not taken it again for longer than its lease: that
//! process is gone, or as good as. Each time it changes hands the fence rises, so that a process that was only slow is
//! told when it writes something down.

use std::time::Duration;

use sqlx::Row as _;

use super::Mysql;
use super::read::{ReadError, Reading, within};
use crate::command::LedgerError;
use crate::store::duty::{Duty, Turn};

const MAKE: &str = "INSERT IGNORE INTO job (name) VALUES (?)";
/// Assignments are done from the left to the right: the fence looks at who had the turn before.
const TAKE: &str = concat!(
    "UPDATE job SET fence = fence + CASE WHEN task_id = ? THEN 0 ELSE 1 END, task_id = ?, lease_until_us = ? + ",
    now!(),
    " WHERE name = ? AND (task_id IS NULL OR task_id = ? OR lease_until_us <= ",
    now!(),
    ")"
);
const HELD: &str = "SELECT fence FROM job WHERE name = ? AND task_id = ?";
const GIVE_BACK: &str = "UPDATE job SET task_id = NULL WHERE task_id = ?";

/// Who this process is, to the others.
pub(super) type TaskId = [u8; 8];

fn micros(lease: Duration) -> i64 {
    i64::try_from(lease.as_micros()).unwrap_or(i64::MAX)
}

impl Reading {
    async fn claim(&self, task: &TaskId, duty: Duty) -> Result<Option<Turn>, ReadError> {
        let (task, name, now) = (&task[..], duty.as_str().as_bytes(), self.now());
        let mut connection = self.connection().await?;
        let take = || {
            sqlx::query(TAKE)
                .bind(task)
                .bind(task)
                .bind(micros(duty.lease()))
                .bind(now)
                .bind(name)
                .bind(task)
                .bind(now)
        };
        let taken = take().execute(&mut *connection).await?;
        if taken.rows_affected() == 0 {
            // There is no row yet, or it is somebody else's, or it says already what it was to say.
            let made = sqlx::query(MAKE).bind(name).execute(&mut *connection).await?;
            if made.rows_affected() > 0 {
                take().execute(&mut *connection).await?;
            }
        }
        let held = sqlx::query(HELD).bind(name).bind(task);
        let held = held.fetch_optional(&mut *connection).await?;
        connection.free();
        let fence = held.map(|row| row.try_get("fence")).transpose()?;
        Ok(fence.map(|fence| Turn { duty, fence }))
    }

    /// Whatever turns this process has are the next one's to take.
    async fn give_back(&self, task: &TaskId) -> Result<(), ReadError> {
        let mut connection = self.connection().await?;
        let given = sqlx::query(GIVE_BACK).bind(&task[..]);
        given.execute(&mut *connection).await?;
        connection.free();
        Ok(())
    }
}

impl Mysql {
    pub(super) async fn claim(&self, duty: Duty) -> Result<Option<Turn>, LedgerError> {
        let (reading, task) = (self.reading(), self.task);
        self.on_own_thread(async move { within(reading.claim(&task, duty)).await })
            .await
    }

    /// Lets others take the turns of this process at once.
    pub(super) async fn give_back(&self) -> Result<(), LedgerError> {
        let (reading, task) = (self.reading(), self.task);
        self.on_own_thread(async move { within(reading.give_back(&task)).await })
            .await
    }
}
