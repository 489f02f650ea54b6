//! What accounts' rows say, with the number of the last entry that they have seen.

use std::collections::BTreeMap;

use sqlx::{MySql, QueryBuilder, Row as _};

use super::{ReadError, Reading, within};
use crate::account::{AccountId, Slot, SlotIndex};
use crate::command::LedgerError;
use crate::ledger::invariants::{AccountCheck, Rule, Standing, Violation};
use crate::store::mysql::events::{Numbers, up_to_here};
use crate::store::mysql::{Mysql, columns};
use crate::store::{Cursor, Cut};

/// Entries that are read at once.
const PAGE: usize = 1_000;
/// Accounts whose rows are read together.
const TOGETHER: usize = 64;

/// An account's rows at one moment.
#[derive(Debug)]
struct Rows {
    in_use: u8,
    slots: Vec<Slot>,
    /// As slot 0 counts it, and as the holds add up to.
    held: (i64, i64),
}

impl Rows {
    fn standing(mut self, account: AccountId) -> Standing {
        let mut violations = Vec::new();
        let mut report = |slot: Option<SlotIndex>, rule, expected, found| {
            violations.push(Violation {
                account: account.clone(),
                slot,
                version: None,
                rule,
                expected,
                found,
            });
        };
        for (expected, slot) in (0..).zip(&self.slots) {
            if i64::from(slot.index.get()) != expected {
                let found = i64::from(slot.index.get());
                report(Some(slot.index), Rule::SlotMissing, expected, found);
            }
        }
        let missing = (0..self.in_use).skip(self.slots.len());
        self.slots
            .extend(missing.filter_map(SlotIndex::new).map(Slot::empty));
        let (counted, summed) = self.held;
        if counted != summed {
            report(None, Rule::CachedSum, summed, counted);
        }
        Standing {
            account,
            slots: self.slots,
            held: summed,
            violations,
        }
    }
}

impl Reading {
    async fn cuts(&self, numbers: &Numbers, ids: &[AccountId]) -> Result<Vec<Cut>, ReadError> {
        let mut cuts = Vec::with_capacity(ids.len());
        for ids in ids.chunks(TOGETHER) {
            // Most of it is numbered without holding anybody up.
            numbers.all(self).await?;
            let mut connection = self.connection().await?;
            let entries = up_to_here(&mut connection).await?;
            let mut query: QueryBuilder<MySql> = QueryBuilder::new(
                "SELECT a.account_id, a.slots, s.slot_index, s.balance, s.version, s.held, \
                 CASE WHEN s.slot_index = 0 THEN (SELECT CAST(COALESCE(SUM(h.amount - h.captured - h.released), 0) \
                 AS SIGNED) FROM hold h FORCE INDEX (of_account) WHERE h.account_id = a.account_id \
                 AND h.state = 0) END AS open_holds \
                 FROM account a JOIN wallet_slot s ON s.account_id = a.account_id WHERE a.account_id IN (",
            );
            let mut list = query.separated(", ");
            for id in ids {
                list.push_bind(id.as_str().as_bytes());
            }
            query.push(") ORDER BY a.account_id, s.slot_index");
            let rows = query
                .build()
                .persistent(false)
                .fetch_all(&mut *connection)
                .await?;
            connection.end().await?;
            let mut accounts: BTreeMap<AccountId, Rows> = BTreeMap::new();
            for row in &rows {
                let id = columns::account_id(row, "account_id")?;
                let slot = columns::slot(row)?;
                let (slots, held): (u8, i64) = (row.try_get("slots")?, row.try_get("held")?);
                let open: Option<i64> = row.try_get("open_holds")?;
                let rows = accounts.entry(id).or_insert_with(|| Rows {
                    in_use: slots,
                    slots: Vec::new(),
                    held: (held, open.unwrap_or(0)),
                });
                rows.slots.push(slot);
            }
            cuts.extend(accounts.into_iter().map(|(id, rows)| Cut {
                standing: rows.standing(id),
                entries,
            }));
        }
        Ok(cuts)
    }
}

impl Mysql {
    pub(in crate::store::mysql) async fn cuts(&self, ids: &[AccountId]) -> Result<Vec<Cut>, LedgerError> {
        let (reading, numbers, ids) = (self.reading(), self.numbers(), ids.to_vec());
        self.on_own_thread(async move { within(reading.cuts(&numbers, &ids)).await })
            .await
    }

    /// Proves every account's entries against its rows: what is broken, empty where all holds. Others may write
    /// meanwhile: each account is looked at at one cut.
    ///
    /// # Errors
    /// `Unavailable` where the database cannot be read.
    pub async fn verify(&self) -> Result<Vec<Violation>, LedgerError> {
        let (mut violations, mut last) = (Vec::new(), None::<AccountId>);
        loop {
            let views = self.accounts(last.as_ref(), TOGETHER).await?;
            let ids: Vec<AccountId> = views.into_iter().map(|view| view.account.id).collect();
            let Some(end) = ids.last() else {
                return Ok(violations);
            };
            last = Some(end.clone());
            for cut in self.cuts(&ids).await? {
                violations.extend(self.prove(cut.standing).await?);
            }
        }
    }

    async fn prove(&self, standing: Standing) -> Result<Vec<Violation>, LedgerError> {
        let mut check = AccountCheck::new(standing.account.clone());
        let mut cursor = Cursor::default();
        let behind = |cursor: &Cursor| {
            let mut slots = standing.slots.iter();
            slots.any(|slot| cursor.seen(slot.index) < slot.version)
        };
        while behind(&cursor) {
            let page = self.entries(&standing.account, &cursor, PAGE).await?;
            let Some(page) = page.filter(|page| !page.entries.is_empty()) else {
                break;
            };
            for entry in &page.entries {
                if entry.version <= standing.version(entry.slot) {
                    check.push(entry);
                }
            }
            cursor = page.next;
        }
        Ok(check.compare(standing))
    }
}
