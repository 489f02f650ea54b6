//! What an account had at a moment of its past.
//!
//! Entries of a slot never go back in time, so what a slot had is what its last entry by then left in it, and that is
//! found by halves. What was held is in that entry of slot 0. What was pending was accepted by then, and settled
//! after; what had expired and was still held was due by then, and swept after. Both are read in the order in which
//! they went to slot 0, from the moment on, and no further than there can be more of it.
//!
//! An answer about the past never changes: transactions of the account that are under way are waited for, and the
//! time of those that begin later is later than the moment, which is over.

use std::collections::BTreeMap;

use sqlx::mysql::MySqlRow;
use sqlx::{AssertSqlSafe, MySqlConnection, Row as _};

use super::{Lease, ReadError, Reading, within};
use crate::account::{AccountId, Slot, SlotIndex, Timestamp};
use crate::command::{LedgerError, PastView};
use crate::money::Currency;
use crate::store::mysql::{Mysql, columns};
use crate::store::{Cursor, Moment};

/// Rows that are read at once of what settled, and of what was swept.
const PAGE: u64 = 1_000;

/// The longest that a transaction may take from reading its time to its commit, in microseconds. A credit that was
/// accepted by a moment can settle behind those only that were accepted before it was committed.
const LONGEST: i64 = 60_000_000;

/// Its currency, and the time now.
const NOW: &str = concat!(
    "SELECT currency, ",
    now!(),
    " AS now_us FROM account WHERE account_id = ?"
);

/// Waits for every transaction that has the account. Ends with its own statement.
const WAIT: &str = "SELECT account_id FROM account WHERE account_id = ? FOR UPDATE";

const HEADS: &str = "SELECT slot_index, version FROM wallet_slot WHERE account_id = ? ORDER BY slot_index";

const WAITING: &str = "SELECT CAST(COALESCE(SUM(amount), 0) AS SIGNED) FROM pending_credit \
    WHERE account_id = ? AND settled_version IS NULL AND at_us <= ?";
const SETTLED: &str = "SELECT amount, at_us, settled_version FROM pending_credit \
    WHERE account_id = ? AND settled_version > ? ORDER BY settled_version LIMIT ?";

const EXPIRED: &str = "SELECT CAST(COALESCE(SUM(amount - captured - released), 0) AS SIGNED) FROM hold \
    FORCE INDEX (of_account) WHERE account_id = ? AND state = 0 AND expires_at_us <= ?";
const SWEPT: &str = "SELECT hold_id, released, expires_at_us, swept_version FROM hold \
    FORCE INDEX (of_account) WHERE account_id = ? AND state = 3 AND (expires_at_us < ? OR expires_at_us = ? AND hold_id < ?) \
    ORDER BY expires_at_us DESC, hold_id DESC LIMIT ?";

/// A slot as an entry left it.
#[derive(Clone, Copy, Debug)]
struct Then {
    slot: Slot,
    held: i64,
    at: Timestamp,
}

/// Entries of several slots, one of each, that are there.
async fn read(
    connection: &mut MySqlConnection,
    id: &AccountId,
    wanted: &BTreeMap<SlotIndex, u64>,
) -> Result<Vec<Then>, ReadError> {
    let keys = wanted.iter().filter(|(_, version)| **version > 0);
    let keys: Vec<String> = keys
        .map(|(slot, version)| {
            let slot = slot.get();
            format!(
                "SELECT slot_index, version, balance_after, held_after, at_us FROM account_entry \
                 WHERE account_id = ? AND slot_index = {slot} AND version = {version}"
            )
        })
        .collect();
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = sqlx::query(AssertSqlSafe(keys.join(" UNION ALL ")));
    for _ in &keys {
        query = query.bind(id.as_str().as_bytes());
    }
    let rows = query.fetch_all(connection).await?;
    if rows.len() != keys.len() {
        return Err(ReadError::Rows(format!(
            "{id} has slots whose entries are not there"
        )));
    }
    rows.iter().map(Then::of).collect()
}

impl Then {
    fn of(row: &MySqlRow) -> Result<Self, ReadError> {
        Ok(Self {
            slot: Slot {
                index: columns::slot_index(row)?,
                balance: row.try_get("balance_after")?,
                version: row.try_get("version")?,
            },
            held: row.try_get("held_after")?,
            at: Timestamp(row.try_get("at_us")?),
        })
    }
}

/// The versions that slots had at a time: by halves, all slots at once. `heads`: those they have.
async fn versions_at(
    connection: &mut MySqlConnection,
    id: &AccountId,
    heads: &BTreeMap<SlotIndex, u64>,
    at: Timestamp,
) -> Result<BTreeMap<SlotIndex, u64>, ReadError> {
    // Of each slot the last that is known to be in, and the first that is known to be later.
    let mut bounds: BTreeMap<SlotIndex, (u64, u64)> = heads
        .iter()
        .map(|(slot, newest)| (*slot, (0, newest.saturating_add(1))))
        .collect();
    // The newest first: mostly it is in.
    let mut ask: BTreeMap<SlotIndex, u64> = heads.clone();
    loop {
        for then in read(connection, id, &ask).await? {
            if let Some((low, high)) = bounds.get_mut(&then.slot.index) {
                if then.at <= at {
                    *low = then.slot.version;
                } else {
                    *high = then.slot.version;
                }
            }
        }
        let open = bounds
            .iter()
            .filter(|(_, (low, high))| high.saturating_sub(*low) > 1);
        ask = open
            .map(|(slot, (low, high))| (*slot, low.midpoint(*high)))
            .collect();
        if ask.is_empty() {
            return Ok(bounds.into_iter().map(|(slot, (low, _))| (slot, low)).collect());
        }
    }
}

/// Of the credits that had been accepted by `at`, those that had not settled with `version` of slot 0.
async fn pending(
    connection: &mut MySqlConnection,
    id: &AccountId,
    version: u64,
    at: Timestamp,
) -> Result<i64, ReadError> {
    let mut sum: i64 = sqlx::query_scalar(WAITING)
        .bind(id.as_str().as_bytes())
        .bind(at.0)
        .fetch_one(&mut *connection)
        .await?;
    let mut after = version;
    loop {
        let query = sqlx::query(SETTLED)
            .bind(id.as_str().as_bytes())
            .bind(after)
            .bind(PAGE);
        let rows = query.fetch_all(&mut *connection).await?;
        for row in &rows {
            let (amount, accepted): (i64, i64) = (row.try_get("amount")?, row.try_get("at_us")?);
            if accepted <= at.0 {
                sum = sum.saturating_add(amount);
            } else if accepted > at.0.saturating_add(LONGEST) {
                return Ok(sum);
            }
            after = row.try_get("settled_version")?;
        }
        if u64::try_from(rows.len()).unwrap_or(u64::MAX) < PAGE {
            return Ok(sum);
        }
    }
}

/// Of the holds that had expired by `at`, what was still held with `version` of slot 0.
async fn expired(
    connection: &mut MySqlConnection,
    id: &AccountId,
    version: u64,
    at: Timestamp,
) -> Result<i64, ReadError> {
    let mut sum: i64 = sqlx::query_scalar(EXPIRED)
        .bind(id.as_str().as_bytes())
        .bind(at.0)
        .fetch_one(&mut *connection)
        .await?;
    let mut before = (at.0.saturating_add(1), Vec::new());
    loop {
        let query = sqlx::query(SWEPT).bind(id.as_str().as_bytes()).bind(before.0);
        let query = query.bind(before.0).bind(&before.1).bind(PAGE);
        let rows = query.fetch_all(&mut *connection).await?;
        for row in &rows {
            let swept: u64 = row.try_get("swept_version")?;
            // They are swept in this order, backwards.
            if swept <= version {
                return Ok(sum);
            }
            let released: i64 = row.try_get("released")?;
            sum = sum.saturating_add(released);
            before = (row.try_get("expires_at_us")?, row.try_get("hold_id")?);
        }
        if u64::try_from(rows.len()).unwrap_or(u64::MAX) < PAGE {
            return Ok(sum);
        }
    }
}

impl Reading {
    async fn past(&self, id: &AccountId, moment: &Moment) -> Result<Option<PastView>, ReadError> {
        let mut connection = self.connection().await?;
        let query = sqlx::query(NOW).bind(self.now()).bind(id.as_str().as_bytes());
        let Some(row) = query.fetch_optional(&mut *connection).await? else {
            connection.free();
            return Ok(None);
        };
        let (currency, now): (_, i64) = (columns::currency(&row)?, row.try_get("now_us")?);
        if let Moment::Time(at) = moment
            && at.0 >= now
        {
            connection.free();
            return Err(Moment::not_over().into());
        }
        sqlx::query(WAIT)
            .bind(id.as_str().as_bytes())
            .fetch_optional(&mut *connection)
            .await?;
        connection.snapshot().await?;
        let view = view(&mut connection, id, currency, moment).await;
        // Refused or not, there is nothing under way.
        if matches!(view, Ok(_) | Err(ReadError::Ledger(_))) {
            connection.end().await?;
        }
        view.map(Some)
    }
}

/// In a snapshot.
async fn view(
    connection: &mut Lease,
    id: &AccountId,
    currency: Currency,
    moment: &Moment,
) -> Result<PastView, ReadError> {
    let rows = sqlx::query(HEADS)
        .bind(id.as_str().as_bytes())
        .fetch_all(&mut **connection)
        .await?;
    let heads = rows
        .iter()
        .map(|row| Ok((columns::slot_index(row)?, row.try_get("version")?)));
    let heads = heads.collect::<Result<BTreeMap<SlotIndex, u64>, ReadError>>()?;
    let versions = match moment {
        Moment::Time(at) => versions_at(connection, id, &heads, *at).await?,
        Moment::Cursor(cursor) => seen(cursor, &heads)?,
    };
    let then = read(connection, id, &versions).await?;
    let at = match moment {
        Moment::Time(at) => Some(*at),
        Moment::Cursor(_) => then.iter().map(|then| then.at).max(),
    };
    let primary = then.iter().find(|then| then.slot.index == SlotIndex::PRIMARY);
    let (version, held) = primary.map_or((0, 0), |then| (then.slot.version, then.held));
    let mut slots: Vec<Slot> = then.iter().map(|then| then.slot).collect();
    slots.sort_unstable_by_key(|slot| slot.index);
    let (expired, waiting) = match at {
        // A cursor that no page gave may name entries so unlike in time that holds expired before they were placed.
        Some(at) => (
            expired(connection, id, version, at).await?.min(held),
            pending(connection, id, version, at).await?,
        ),
        None => (0, 0),
    };
    Ok(PastView {
        account: id.clone(),
        currency,
        at,
        slots,
        held: held.saturating_sub(expired),
        pending: waiting.saturating_add(expired),
    })
}

/// The versions that a cursor names, of which none may be ahead.
fn seen(cursor: &Cursor, heads: &BTreeMap<SlotIndex, u64>) -> Result<BTreeMap<SlotIndex, u64>, LedgerError> {
    let is_ahead = |(slot, version): &(SlotIndex, u64)| *version > heads.get(slot).copied().unwrap_or(0);
    if cursor.0.iter().any(is_ahead) {
        return Err(Moment::ahead());
    }
    Ok(heads.keys().map(|slot| (*slot, cursor.seen(*slot))).collect())
}

impl Mysql {
    pub(in crate::store::mysql) async fn past(
        &self,
        id: &AccountId,
        moment: &Moment,
    ) -> Result<Option<PastView>, LedgerError> {
        let (reading, id, moment) = (self.reading(), id.clone(), moment.clone());
        self.on_own_thread(async move { within(reading.past(&id, &moment)).await })
            .await
    }
}
