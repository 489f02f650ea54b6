//! A client with a connection of its own: one operation, retried where the server says that it lost a race.

use anyhow::{Context as _, bail};
use futures_util::TryStreamExt as _;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlDatabaseError};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _, raw_sql};

use super::ask::{Ask, Asks, Turn};
use super::text::{self, published};
use crate::config::bench::hot::{Direction, Mode};

/// Of one operation, before the measurement is given up.
const TRIES: u32 = 1_000;

/// What became of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// It moved this many minor units.
    Posted(i64),
    /// It would have moved this many: no row took them, and the published design answers success all the same.
    Lost(i64),
    /// There was not enough, and nothing is kept of it.
    Refused,
    /// It was refused, and the refusal is kept under its id.
    Kept,
}

/// What an operation cost besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Again {
    /// Times that it was run again, for whatever reason.
    pub(super) retries: u64,
    /// Those because of a deadlock.
    pub(super) deadlocks: u64,
}

/// One client.
#[derive(Debug)]
pub(super) struct Direct {
    connection: MySqlConnection,
    mode: Mode,
    asks: Asks,
}

/// A session as clients have it.
///
/// # Errors
/// What the server says.
pub(super) async fn session(options: &MySqlConnectOptions) -> anyhow::Result<MySqlConnection> {
    let mut connection = options.clone().disable_statement_logging().connect().await?;
    raw_sql(text::SESSION).execute(&mut connection).await?;
    Ok(connection)
}

impl Direct {
    /// Client `number`, of all processes'.
    ///
    /// # Errors
    /// What the server says.
    pub(super) async fn connect(
        options: &MySqlConnectOptions,
        mode: Mode,
        direction: Direction,
        number: u32,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            connection: session(options).await?,
            mode,
            asks: Asks::of(number, mode, direction),
        })
    }

    /// One operation.
    ///
    /// # Errors
    /// An error that another try does not mend; too many tries.
    pub(super) async fn once(&mut self, at: i64) -> anyhow::Result<(Done, Again)> {
        let ask = self.asks.next(at);
        let mut again = Again::default();
        for _ in 0..TRIES {
            let error = match self.attempt(&ask).await {
                Ok(done) => return Ok((done, again)),
                Err(error) => error,
            };
            let number = number(&error).with_context(|| format!("{} failed: {error}", self.mode.name()))?;
            self.run(text::ROLLBACK.to_owned()).await?;
            match number {
                // A version that is NULL: the update found no row that had enough.
                1048 => return Ok((Done::Refused, again)),
                1213 => again.deadlocks = again.deadlocks.saturating_add(1),
                1205 | 1020 | 1467 => {}
                _ => return Err(error).with_context(|| format!("{} failed", self.mode.name())),
            }
            again.retries = again.retries.saturating_add(1);
        }
        bail!(
            "{}: an operation was run {TRIES} times without success",
            self.mode.name()
        )
    }

    async fn attempt(&mut self, ask: &Ask) -> Result<Done, sqlx::Error> {
        let text = match (self.mode, ask.turn) {
            (Mode::PublishedRandSkipLocked, Turn::Credit) => return self.credit_any_free_slot(ask).await,
            (Mode::PublishedRandSkipLocked, Turn::Debit) => return self.debit_primary(ask).await,
            (Mode::PublishedSumHaving, _) => return self.upsert_or_sum_having(ask).await,
            (Mode::SlotSkipLocked, Turn::Credit) => {
                text::skip_locked(ask, self.asks.credit_slot(), self.asks.credit_slot())
            }
            (Mode::SlotBlind, Turn::Credit) => text::one_slot(ask, &self.asks.credit_slot().to_string()),
            (Mode::Upsert, Turn::Credit) => text::upsert(ask, self.asks.credit_slot()),
            (Mode::Journal, Turn::Credit) => text::pending(ask),
            (Mode::Hashed, _) => text::one_slot(ask, &self.asks.hashed_slot().to_string()),
            // The last three are the product's, and never come here.
            (Mode::Single | Mode::ColdSingle | Mode::Combined | Mode::CombinedSlots | Mode::Cold, _)
            | (Mode::SlotSkipLocked | Mode::SlotBlind | Mode::Upsert | Mode::Journal, Turn::Debit) => {
                text::one_slot(ask, "0")
            }
        };
        self.run(text).await?;
        Ok(Done::Posted(ask.delta))
    }

    async fn credit_any_free_slot(&mut self, ask: &Ask) -> Result<Done, sqlx::Error> {
        self.run(text::BEGIN.to_owned()).await?;
        let picked = self.number(published::any_free_slot(ask)).await?;
        let slot = picked.map_or_else(|| "NULL".to_owned(), |slot| slot.to_string());
        self.run(published::add(ask, &slot)).await?;
        self.finish(ask, &slot).await?;
        Ok(match picked {
            Some(_) => Done::Posted(ask.delta),
            None => Done::Lost(ask.delta),
        })
    }

    async fn debit_primary(&mut self, ask: &Ask) -> Result<Done, sqlx::Error> {
        self.run(text::BEGIN.to_owned()).await?;
        let balance = self.number(published::primary(ask)).await?.unwrap_or_default();
        if balance.saturating_add(ask.delta) < 0 {
            self.run(text::ROLLBACK.to_owned()).await?;
            return Ok(Done::Refused);
        }
        self.run(published::add(ask, "0")).await?;
        self.finish(ask, "0").await?;
        Ok(Done::Posted(ask.delta))
    }

    async fn upsert_or_sum_having(&mut self, ask: &Ask) -> Result<Done, sqlx::Error> {
        let slot = self.asks.rounded_slot();
        self.run(text::BEGIN.to_owned()).await?;
        let changed = match ask.turn {
            Turn::Credit => self.run(published::upsert(ask, slot)).await?,
            Turn::Debit => self.run(published::sum_having(ask, slot)).await?,
        };
        if changed == 0 {
            self.run(text::ROLLBACK.to_owned()).await?;
            return Ok(Done::Refused);
        }
        self.finish(ask, &slot.to_string()).await?;
        Ok(Done::Posted(ask.delta))
    }

    async fn finish(&mut self, ask: &Ask, slot: &str) -> Result<(), sqlx::Error> {
        self.run(published::entry(ask, slot)).await?;
        self.run(published::request(ask)).await?;
        self.run(text::COMMIT.to_owned()).await?;
        Ok(())
    }

    /// Rows changed.
    async fn run(&mut self, text: String) -> Result<u64, sqlx::Error> {
        let result = raw_sql(AssertSqlSafe(text)).execute(&mut self.connection).await?;
        Ok(result.rows_affected())
    }

    /// The first column of the first row.
    async fn number(&mut self, text: String) -> Result<Option<i64>, sqlx::Error> {
        let rows: Vec<_> = raw_sql(AssertSqlSafe(text))
            .fetch(&mut self.connection)
            .try_collect()
            .await?;
        rows.first().map(|row| row.try_get_unchecked(0)).transpose()
    }
}

/// The server's number for an error, if it was the server's.
fn number(error: &sqlx::Error) -> Option<u16> {
    let told = error.as_database_error()?;
    Some(told.try_downcast_ref::<MySqlDatabaseError>()?.number())
}
