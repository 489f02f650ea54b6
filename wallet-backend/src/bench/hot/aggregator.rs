//! What settles the credits of mode journal, while they come in: a thousand at a time, each with an entry of its own, in
//! one transaction that holds slot 0.

use std::fmt::Write as _;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::{AssertSqlSafe, Row as _, raw_sql};
use tokio::time::sleep;

use super::ask::HOT;
use super::direct::session;
use super::text::{COMMIT, ROLLBACK, hex};

/// Credits to a transaction.
const MOST: usize = 1_000;
/// Between two looks when nothing waits.
const PAUSE: Duration = Duration::from_millis(5);

/// Settles until it is dropped.
///
/// # Errors
/// What the server says.
pub(super) async fn settle_for_ever(options: &MySqlConnectOptions) -> anyhow::Result<()> {
    let mut connection = session(options).await?;
    loop {
        if settle(&mut connection).await? < MOST {
            sleep(PAUSE).await;
        }
    }
}

/// Settles all there is, once nobody adds to it.
///
/// # Errors
/// What the server says.
pub(super) async fn settle_all(options: &MySqlConnectOptions) -> anyhow::Result<()> {
    let mut connection = session(options).await?;
    while settle(&mut connection).await? > 0 {}
    Ok(())
}

/// How many were settled.
async fn settle(connection: &mut MySqlConnection) -> Result<usize, sqlx::Error> {
    let account = hex(HOT);
    let waiting = format!(
        "SELECT balance, version, NULL, NULL FROM wallet_slot WHERE account_id = {account} AND slot_index = 0 FOR UPDATE; \
         SELECT amount, id, request_id, at_us FROM pending_credit WHERE settled_version IS NULL \
         AND account_id = {account} ORDER BY id LIMIT {MOST} FOR UPDATE SKIP LOCKED"
    );
    let rows: Vec<_> = raw_sql(AssertSqlSafe(waiting))
        .fetch(&mut *connection)
        .try_collect()
        .await?;
    let Some((slot, credits)) = rows.split_first().filter(|(_, credits)| !credits.is_empty()) else {
        raw_sql(ROLLBACK).execute(&mut *connection).await?;
        return Ok(0);
    };
    let mut balance: i64 = slot.try_get_unchecked(0)?;
    let mut version: u64 = slot.try_get_unchecked(1)?;
    let (mut entries, mut settled) = (
        String::from(
            "INSERT INTO account_entry (account_id, slot_index, version, kind, request_id, delta, held_delta, \
             balance_after, held_after, at_us) VALUES ",
        ),
        String::from("UPDATE pending_credit SET settled_version = CASE id"),
    );
    let mut ids = String::new();
    for (number, credit) in credits.iter().enumerate() {
        let amount: i64 = credit.try_get_unchecked(0)?;
        let id: u64 = credit.try_get_unchecked(1)?;
        let request: String = credit.try_get_unchecked(2)?;
        let at: i64 = credit.try_get_unchecked(3)?;
        balance = balance.saturating_add(amount);
        version = version.saturating_add(1);
        let comma = if number == 0 { "" } else { ", " };
        let request = hex(&request);
        // Kind 5 is settle. Into strings: can't fail.
        let _ = write!(
            entries,
            "{comma}({account}, 0, {version}, 5, {request}, {amount}, 0, {balance}, 0, {at})"
        );
        let _ = write!(settled, " WHEN {id} THEN {version}");
        let _ = write!(ids, "{comma}{id}");
    }
    let text = format!(
        "{entries}; {settled} END WHERE id IN ({ids}); UPDATE wallet_slot SET balance = {balance}, \
         version = {version} WHERE account_id = {account} AND slot_index = 0; {COMMIT}"
    );
    raw_sql(AssertSqlSafe(text)).execute(&mut *connection).await?;
    Ok(credits.len())
}
