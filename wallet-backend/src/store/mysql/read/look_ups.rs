//! One request, one hold.

use sqlx::Row as _;
use sqlx::mysql::MySqlRow;

use super::{ReadError, Reading, within};
use crate::account::{AccountId, RequestId, Timestamp};
use crate::command::{HoldView, LedgerError, Leg, RequestView};
use crate::store::mysql::{Mysql, columns, requests};

/// What is filed under a request id, with the entry that its pending credit has become. No row: no such account.
const REQUEST: &str = "SELECT a.currency, r.request_id, r.operation, r.outcome, r.slot_index, r.version, \
    r.balance_after, r.at_us, p.account_id AS settled_account, p.settled_version \
    FROM account a \
    LEFT JOIN request r ON r.account_id = a.account_id AND r.request_id = ? \
    LEFT JOIN pending_credit p ON p.source_id = r.account_id AND p.request_id = r.request_id \
    AND p.settled_version IS NOT NULL \
    WHERE a.account_id = ?";

const ENTRY: &str = "SELECT * FROM account_entry WHERE account_id = ? AND slot_index = 0 AND version = ?";

const HOLD: &str = concat!(
    "SELECT h.hold_id, h.amount, h.captured, h.released, h.state, h.expires_at_us, ",
    now!(),
    " AS now_us FROM account a LEFT JOIN hold h ON h.account_id = a.account_id AND h.hold_id = ? \
     WHERE a.account_id = ?"
);

fn is_null(row: &MySqlRow, column: &str) -> Result<bool, ReadError> {
    let value: Option<&[u8]> = row.try_get(column)?;
    Ok(value.is_none())
}

impl Reading {
    /// The settled row and its entry are there for ever: it takes no snapshot to read one after the other.
    async fn request(
        &self,
        account: &AccountId,
        request: &RequestId,
    ) -> Result<Option<RequestView>, ReadError> {
        let mut connection = self.connection().await?;
        let query = sqlx::query(REQUEST)
            .bind(request.as_str().as_bytes())
            .bind(account.as_str().as_bytes());
        let Some(row) = query.fetch_optional(&mut *connection).await? else {
            connection.free();
            return Ok(None);
        };
        if is_null(&row, "request_id")? {
            connection.free();
            return Ok(Some(RequestView::NotFound));
        }
        let settled: Option<u64> = row.try_get("settled_version")?;
        let leg = match settled {
            Some(version) => {
                let settled_account = columns::account_id(&row, "settled_account")?;
                let query = sqlx::query(ENTRY)
                    .bind(settled_account.as_str().as_bytes())
                    .bind(version);
                let entry = query.fetch_one(&mut *connection).await?;
                Some(Leg::from(&columns::entry(&entry)?))
            }
            None => None,
        };
        connection.free();
        let outcome = requests::record(&row, account, columns::currency(&row)?)?.outcome;
        Ok(Some(RequestView::Decided(match leg {
            Some(leg) => outcome.settled_by(leg),
            None => outcome,
        })))
    }

    async fn hold(&self, account: &AccountId, hold: &RequestId) -> Result<Option<HoldView>, ReadError> {
        let mut connection = self.connection().await?;
        let query = sqlx::query(HOLD)
            .bind(self.now())
            .bind(hold.as_str().as_bytes())
            .bind(account.as_str().as_bytes());
        let row = query.fetch_optional(&mut *connection).await?;
        connection.free();
        let Some(row) = row else { return Ok(None) };
        if is_null(&row, "hold_id")? {
            return Ok(Some(HoldView::NotFound));
        }
        let now = Timestamp(row.try_get("now_us")?);
        Ok(Some(HoldView::Found(columns::hold(&row)?.seen_at(now))))
    }
}

impl Mysql {
    pub(in crate::store::mysql) async fn request(
        &self,
        account: &AccountId,
        request: &RequestId,
    ) -> Result<Option<RequestView>, LedgerError> {
        let (reading, account, request) = (self.reading(), account.clone(), request.clone());
        self.on_own_thread(async move { within(reading.request(&account, &request)).await })
            .await
    }

    pub(in crate::store::mysql) async fn hold(
        &self,
        account: &AccountId,
        hold: &RequestId,
    ) -> Result<Option<HoldView>, LedgerError> {
        let (reading, account, hold) = (self.reading(), account.clone(), hold.clone());
        self.on_own_thread(async move { within(reading.hold(&account, &hold)).await })
            .await
    }
}
