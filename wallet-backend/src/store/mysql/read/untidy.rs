//! Accounts that have something to tidy, a bounded number of candidates at a time.

use std::collections::HashSet;

use sqlx::Row as _;
use sqlx::mysql::{MySqlConnection, MySqlRow};

use super::{ReadError, Reading, within};
use crate::account::AccountId;
use crate::command::LedgerError;
use crate::store::mysql::{Mysql, columns};

/// Split accounts that are looked at for one answer.
const SPLIT: u64 = 1_024;
/// Expired holds that are looked at for one answer.
const HOLDS: u64 = 4_096;

/// Where the next search goes on, so that none is passed over for ever: of each kind after what was found last;
/// from the beginning where nothing was left behind that.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    waiting: Option<AccountId>,
    /// A deadline.
    expired: Option<i64>,
    split: Option<(u8, AccountId)>,
}

/// One kind of what there is to tidy: accounts in the order in which they were found, and where the search ended.
struct Found<T> {
    accounts: Vec<AccountId>,
    /// `None` at the end of all there is.
    last: Option<T>,
}

const WAITING: &str = "SELECT account_id FROM pending_credit WHERE settled_version IS NULL AND account_id > ? \
    GROUP BY account_id ORDER BY account_id LIMIT ?";

const EXPIRED: &str = concat!(
    "SELECT account_id, expires_at_us FROM hold WHERE state = 0 AND expires_at_us > ? AND expires_at_us <= ",
    now!(),
    " ORDER BY expires_at_us LIMIT ?"
);

/// Of split accounts what decides: the least and the most in a slot in use, what is in the others, and all of it.
const SPLIT_SUMS: &str = "SELECT a.account_id, a.slots, a.debit_mode, \
    CAST(COALESCE(SUM(s.balance), 0) AS SIGNED) AS in_slots, \
    CAST(COALESCE(SUM(CASE WHEN s.slot_index > 0 THEN s.balance END), 0) AS SIGNED) AS in_others, \
    CAST(COALESCE(SUM(CASE WHEN s.slot_index >= a.slots THEN s.balance END), 0) AS SIGNED) AS out_of_use, \
    COALESCE(MIN(CASE WHEN s.slot_index < a.slots THEN s.balance END), 0) AS least \
    FROM (SELECT account_id, slots, debit_mode FROM account FORCE INDEX (split) WHERE slots >= 2 \
    AND (slots > ? OR slots = ? AND account_id > ?) ORDER BY slots, account_id LIMIT ?) a \
    JOIN wallet_slot s ON s.account_id = a.account_id \
    GROUP BY a.account_id, a.slots, a.debit_mode ORDER BY a.slots, a.account_id";

const PENDING: &str = "SELECT COUNT(*) FROM pending_credit WHERE settled_version IS NULL";

/// Whether tidying moves something: the rule of `ledger::slots::is_untidy` over sums.
fn is_untidy(row: &MySqlRow) -> Result<bool, ReadError> {
    let (hashed, slots): (u8, u8) = (row.try_get("debit_mode")?, row.try_get("slots")?);
    let (in_slots, in_others): (i64, i64) = (row.try_get("in_slots")?, row.try_get("in_others")?);
    let (out_of_use, least): (i64, i64) = (row.try_get("out_of_use")?, row.try_get("least")?);
    let half_share = in_slots.checked_div(i64::from(slots)).unwrap_or(0) / 2;
    Ok(if hashed == 1 {
        least < half_share || out_of_use > 0
    } else {
        in_others > 0
    })
}

async fn waiting(
    connection: &mut MySqlConnection,
    after: Option<&AccountId>,
    limit: u64,
) -> Result<Found<AccountId>, ReadError> {
    let query = sqlx::query(WAITING)
        .bind(after.map_or("", AccountId::as_str).as_bytes())
        .bind(limit);
    let rows = query.fetch_all(connection).await?;
    let accounts = rows.iter().map(|row| columns::account_id(row, "account_id"));
    let accounts: Vec<AccountId> = accounts.collect::<Result<_, _>>()?;
    let last = accounts.last().filter(|_| is_full(&rows, limit)).cloned();
    Ok(Found { accounts, last })
}

async fn expired(
    connection: &mut MySqlConnection,
    now: Option<i64>,
    after: Option<i64>,
) -> Result<Found<i64>, ReadError> {
    let query = sqlx::query(EXPIRED).bind(after.unwrap_or(i64::MIN)).bind(now);
    let rows = query.bind(HOLDS).fetch_all(connection).await?;
    let accounts = rows.iter().map(|row| columns::account_id(row, "account_id"));
    let accounts = accounts.collect::<Result<_, _>>()?;
    let last = rows.last().filter(|_| is_full(&rows, HOLDS));
    let last = last.map(|row| row.try_get("expires_at_us")).transpose()?;
    Ok(Found { accounts, last })
}

async fn split(
    connection: &mut MySqlConnection,
    after: Option<&(u8, AccountId)>,
) -> Result<Found<(u8, AccountId)>, ReadError> {
    let slots = after.map_or(0, |(slots, _)| *slots);
    let query = sqlx::query(SPLIT_SUMS)
        .bind(slots)
        .bind(slots)
        .bind(after.map_or("", |(_, id)| id.as_str()).as_bytes())
        .bind(SPLIT);
    let rows = query.fetch_all(connection).await?;
    let mut accounts = Vec::new();
    for row in &rows {
        if is_untidy(row)? {
            accounts.push(columns::account_id(row, "account_id")?);
        }
    }
    let last = rows.last().filter(|_| is_full(&rows, SPLIT));
    let last =
        last.map(|row| Ok::<_, ReadError>((row.try_get("slots")?, columns::account_id(row, "account_id")?)));
    Ok(Found {
        accounts,
        last: last.transpose()?,
    })
}

fn is_full(rows: &[MySqlRow], limit: u64) -> bool {
    u64::try_from(rows.len()).unwrap_or(u64::MAX) >= limit
}

impl Reading {
    async fn untidy(&self, limit: usize) -> Result<Vec<AccountId>, ReadError> {
        let mut turns = self.turns().clone();
        let most = u64::try_from(limit).unwrap_or(u64::MAX);
        let mut connection = self.connection().await?;
        let mut found = [Vec::new(), Vec::new(), Vec::new()];
        let [is_waiting, has_expired, is_split] = &mut found;
        // From where the last search ended, and, where it had begun late and comes to the end, from the beginning.
        loop {
            let begun = turns.waiting.is_some();
            let next = waiting(&mut connection, turns.waiting.as_ref(), most).await?;
            is_waiting.extend(next.accounts);
            turns.waiting = next.last;
            if !begun || turns.waiting.is_some() {
                break;
            }
        }
        loop {
            let begun = turns.expired.is_some();
            let next = expired(&mut connection, self.now(), turns.expired).await?;
            has_expired.extend(next.accounts);
            turns.expired = next.last;
            if !begun || turns.expired.is_some() {
                break;
            }
        }
        loop {
            let begun = turns.split.is_some();
            let next = split(&mut connection, turns.split.as_ref()).await?;
            is_split.extend(next.accounts);
            turns.split = next.last;
            if !begun || turns.split.is_some() {
                break;
            }
        }
        connection.free();
        *self.turns() = turns;
        Ok(in_turn(found, limit))
    }

    async fn pending(&self) -> Result<u64, ReadError> {
        let mut connection = self.connection().await?;
        let query = sqlx::query_scalar(PENDING);
        let count: i64 = query.fetch_one(&mut *connection).await?;
        connection.free();
        Ok(u64::try_from(count).unwrap_or(0))
    }
}

/// One of each kind after the other, each account once.
fn in_turn(kinds: [Vec<AccountId>; 3], limit: usize) -> Vec<AccountId> {
    let mut kinds = kinds.map(Vec::into_iter);
    let (mut seen, mut accounts) = (HashSet::new(), Vec::new());
    loop {
        let mut none = true;
        for kind in &mut kinds {
            let Some(id) = kind.next() else { continue };
            none = false;
            if seen.insert(id.clone()) {
                accounts.push(id);
            }
            if accounts.len() == limit {
                return accounts;
            }
        }
        if none {
            return accounts;
        }
    }
}

impl Mysql {
    pub(in crate::store::mysql) async fn untidy(&self, limit: usize) -> Result<Vec<AccountId>, LedgerError> {
        let reading = self.reading();
        self.on_own_thread(async move { within(reading.untidy(limit)).await })
            .await
    }

    pub(in crate::store::mysql) async fn pending(&self) -> Result<u64, LedgerError> {
        let reading = self.reading();
        self.on_own_thread(async move { within(reading.pending()).await })
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_take_turns_and_an_account_comes_once() {
        let ids = |names: &[&str]| names.iter().map(|name| AccountId::new(name).unwrap()).collect();
        let kinds = || [ids(&["a", "b", "c"]), ids(&["b"]), ids(&["x", "y"])];
        assert_eq!(in_turn(kinds(), 4), ids(&["a", "b", "x", "y"]) as Vec<_>);
        assert_eq!(in_turn(kinds(), 9), ids(&["a", "b", "x", "y", "c"]) as Vec<_>);
    }
}
