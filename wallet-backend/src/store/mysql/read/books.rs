//! The books of every currency, added up over every row at one moment.

use sqlx::Row as _;

use super::{ReadError, Reading};
use crate::command::LedgerError;
use crate::ledger::flow::Currencies;
use crate::money::Currency;
use crate::store::GeneralLedger;
use crate::store::mysql::{Mysql, columns};

/// Accounts that are added up in one statement.
const PIECE: u64 = 256;

/// The last account of the next piece.
const PIECE_END: &str = "SELECT MAX(account_id) AS account_id FROM \
    (SELECT account_id FROM account WHERE account_id > ? ORDER BY account_id LIMIT ?) piece";

/// What a piece has in slots, held and pending, by currency.
const INSIDE: &str = "SELECT a.currency, CAST(SUM(x.amount) AS CHAR) AS amount FROM ( \
    SELECT account_id, SUM(balance) AS amount FROM wallet_slot WHERE account_id > ? AND account_id <= ? \
    GROUP BY account_id UNION ALL \
    SELECT account_id, SUM(amount - captured - released) FROM hold WHERE account_id > ? AND account_id <= ? \
    AND state = 0 GROUP BY account_id UNION ALL \
    SELECT account_id, SUM(amount) FROM pending_credit WHERE settled_version IS NULL AND account_id > ? \
    AND account_id <= ? GROUP BY account_id) x STRAIGHT_JOIN account a ON a.account_id = x.account_id GROUP BY a.currency";

/// What crossed the border in a piece: credits (0), when they were posted or, if they waited, accepted; debits (1);
/// captures (7); what undoes one of them (9), of which the two entries of an undone transfer add up to nothing.
const OUTSIDE: &str = "SELECT a.currency, CAST(SUM(x.amount) AS CHAR) AS amount FROM ( \
    SELECT account_id, SUM(CASE WHEN kind = 7 THEN held_delta ELSE delta END) AS amount FROM account_entry \
    WHERE account_id > ? AND account_id <= ? AND kind IN (0, 1, 7, 9) GROUP BY account_id UNION ALL \
    SELECT account_id, SUM(amount) FROM pending_credit WHERE account_id > ? AND account_id <= ? \
    AND source_id = account_id GROUP BY account_id) x STRAIGHT_JOIN account a ON a.account_id = x.account_id GROUP BY a.currency";

impl Reading {
    /// Takes as long as it takes to go through every entry, and keeps one connection.
    async fn general_ledger(&self) -> Result<GeneralLedger, ReadError> {
        let mut connection = self.connection().await?;
        connection.snapshot().await?;
        let (mut currencies, mut begin) = (Currencies::new(), Vec::new());
        loop {
            let query = sqlx::query(PIECE_END).bind(&begin).bind(PIECE);
            let row = query.fetch_one(&mut *connection).await?;
            let Some(end) = row.try_get::<Option<Vec<u8>>, _>("account_id")? else {
                break;
            };
            for (text, ranges) in [(INSIDE, 3), (OUTSIDE, 2)] {
                let mut query = sqlx::query(text);
                for _ in 0..ranges {
                    query = query.bind(&begin).bind(&end);
                }
                for row in query.fetch_all(&mut *connection).await? {
                    let currency: Currency = columns::currency(&row)?;
                    let amount: &str = row.try_get("amount")?;
                    let amount: i128 = amount
                        .parse()
                        .map_err(|_| ReadError::Rows(format!("{amount:?} is no sum of amounts")))?;
                    let totals = currencies.entry(currency).or_default();
                    let side = if text == INSIDE {
                        &mut totals.inside
                    } else {
                        &mut totals.outside
                    };
                    *side = side.saturating_add(amount);
                }
            }
            begin = end;
        }
        connection.end().await?;
        Ok(GeneralLedger {
            currencies,
            broken: Vec::new(),
            place: 0,
        })
    }
}

impl Mysql {
    /// Goes through every entry there is: `opening` saves nothing.
    pub(in crate::store::mysql) async fn general_ledger(
        &self,
        _opening: GeneralLedger,
    ) -> Result<GeneralLedger, LedgerError> {
        let reading = self.reading();
        let read = async move { reading.general_ledger().await.map_err(LedgerError::from) };
        self.on_own_thread(read).await
    }
}
