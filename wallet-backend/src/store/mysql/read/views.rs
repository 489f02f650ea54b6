//! Accounts with their money, each from one statement.

use sqlx::Row as _;
use sqlx::mysql::MySqlRow;

use super::{ReadError, Reading, within};
use crate::account::{Account, AccountId, Slot, SlotIndex};
use crate::command::{AccountView, LedgerError};
use crate::store::mysql::{Mysql, columns};

/// The accounts that `$from` names `a`: a row for each of their slots. The first parameter is `now`.
///
/// What waits and what has expired is in the row of slot 0 only, so that it is added up once. Holds are for ever, and
/// only those that are open are to be looked at, whatever the server believes.
macro_rules! views {
    ($from:literal, $rest:literal) => {
        concat!(
            "SELECT a.account_id, a.currency, a.status, a.floor, a.slots, a.credit_mode, a.debit_mode, \
             s.slot_index, s.balance, s.version, s.held, \
             CASE WHEN s.slot_index = 0 THEN (SELECT CAST(COALESCE(SUM(p.amount), 0) AS SIGNED) \
             FROM pending_credit p WHERE p.settled_version IS NULL AND p.account_id = a.account_id) \
             END AS waiting, \
             CASE WHEN s.slot_index = 0 THEN (SELECT CAST(COALESCE(SUM(h.amount - h.captured - h.released), 0) \
             AS SIGNED) FROM hold h FORCE INDEX (of_account) WHERE h.account_id = a.account_id AND h.state = 0 \
             AND h.expires_at_us <= ",
            now!(),
            ") END AS expired FROM ",
            $from,
            " JOIN wallet_slot s ON s.account_id = a.account_id ",
            $rest,
            " ORDER BY a.account_id, s.slot_index"
        )
    };
}

const ONE: &str = views!("account a", "WHERE a.account_id = ?");
const PAGE: &str = views!(
    "(SELECT * FROM account WHERE account_id > ? ORDER BY account_id LIMIT ?) a",
    ""
);

/// An account's rows at one moment, as far as sums tell them.
#[derive(Debug)]
pub(super) struct Sums {
    pub(super) account: Account,
    /// Every slot row, ascending.
    pub(super) slots: Vec<Slot>,
    /// Of holds that are open, expired or not, as slot 0 counts it.
    pub(super) held: i64,
    /// Of those the ones that have expired.
    expired: i64,
    /// Of pending credits.
    waiting: i64,
}

impl Sums {
    /// Of rows as [`views!`] selects them, some accounts.
    fn of(rows: &[MySqlRow]) -> Result<Vec<Self>, ReadError> {
        let mut all: Vec<Self> = Vec::new();
        for row in rows {
            let account = columns::account(row)?;
            let slot = columns::slot(row)?;
            if all.last().is_none_or(|last| last.account.id != account.id) {
                all.push(Self {
                    account,
                    slots: Vec::new(),
                    held: row.try_get("held")?,
                    expired: row.try_get::<Option<i64>, _>("expired")?.unwrap_or(0),
                    waiting: row.try_get::<Option<i64>, _>("waiting")?.unwrap_or(0),
                });
            }
            if let Some(last) = all.last_mut() {
                last.fill(slot.index.get());
                last.slots.push(slot);
            }
        }
        for sums in &mut all {
            sums.fill(sums.account.slots.get());
        }
        Ok(all)
    }

    /// A slot without a row is empty.
    fn fill(&mut self, end: u8) {
        let have = u8::try_from(self.slots.len()).unwrap_or(u8::MAX);
        self.slots
            .extend((have..end).filter_map(SlotIndex::new).map(Slot::empty));
    }

    fn view(self) -> AccountView {
        AccountView {
            account: self.account,
            slots: self.slots,
            held: self.held.saturating_sub(self.expired),
            pending: self.waiting.saturating_add(self.expired),
        }
    }
}

impl Reading {
    async fn views(&self, after: Option<&AccountId>, limit: usize) -> Result<Vec<AccountView>, ReadError> {
        let mut connection = self.connection().await?;
        let query = sqlx::query(PAGE)
            .bind(self.now())
            .bind(after.map_or("", AccountId::as_str).as_bytes())
            .bind(u64::try_from(limit).unwrap_or(u64::MAX));
        let rows = query.fetch_all(&mut *connection).await?;
        connection.free();
        Ok(Sums::of(&rows)?.into_iter().map(Sums::view).collect())
    }

    async fn view(&self, id: &AccountId) -> Result<Option<AccountView>, ReadError> {
        let mut connection = self.connection().await?;
        let query = sqlx::query(ONE).bind(self.now()).bind(id.as_str().as_bytes());
        let rows = query.fetch_all(&mut *connection).await?;
        connection.free();
        Ok(Sums::of(&rows)?.pop().map(Sums::view))
    }
}

impl Mysql {
    pub(in crate::store::mysql) async fn account(
        &self,
        id: &AccountId,
    ) -> Result<Option<AccountView>, LedgerError> {
        let (reading, id) = (self.reading(), id.clone());
        self.on_own_thread(async move { within(reading.view(&id)).await })
            .await
    }

    pub(in crate::store::mysql) async fn accounts(
        &self,
        after: Option<&AccountId>,
        limit: usize,
    ) -> Result<Vec<AccountView>, LedgerError> {
        let (reading, after) = (self.reading(), after.cloned());
        self.on_own_thread(async move { within(reading.views(after.as_ref(), limit)).await })
            .await
    }
}
