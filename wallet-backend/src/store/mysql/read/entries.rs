//! Entries, one page at a time. Of each slot only as many are read as the page may take, and a few.

use std::collections::{BTreeMap, VecDeque};

use sqlx::{AssertSqlSafe, MySqlConnection, Row as _};

use super::{ReadError, Reading, within};
use crate::account::{AccountId, Entry, SlotIndex};
use crate::command::LedgerError;
use crate::store::mysql::{Mysql, columns};
use crate::store::page::merge;
use crate::store::{Cursor, EntryPage};

/// The fewest entries of a slot that are worth asking for.
const LEAST: usize = 16;
/// Ranges in one statement.
const RANGES: usize = 64;

/// Consecutive versions of a slot, `first` to `last`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) account: AccountId,
    pub(super) slot: SlotIndex,
    pub(super) first: u64,
    pub(super) last: u64,
}

/// The entries of some ranges, each range in the order of its versions.
pub(super) async fn of_ranges(
    connection: &mut MySqlConnection,
    ranges: &[Range],
) -> Result<Vec<Entry>, ReadError> {
    let mut entries = Vec::new();
    for ranges in ranges.chunks(RANGES) {
        let mut text = String::new();
        for range in ranges {
            if !text.is_empty() {
                text.push_str(" UNION ALL ");
            }
            let slot = range.slot.get();
            text.push_str(&format!(
                "(SELECT * FROM account_entry WHERE account_id = ? AND slot_index = {slot} AND version BETWEEN \
                 ? AND ? ORDER BY version LIMIT 18446744073709551615)"
            ));
        }
        let mut query = sqlx::query(AssertSqlSafe(text));
        for range in ranges {
            query = query
                .bind(range.account.as_str().as_bytes())
                .bind(range.first)
                .bind(range.last);
        }
        for row in query.fetch_all(&mut *connection).await? {
            entries.push(columns::entry(&row)?);
        }
    }
    Ok(entries)
}

/// One slot of the page: what was read of it, and how far it goes.
struct Unseen {
    slot: SlotIndex,
    read: VecDeque<Entry>,
    /// The version after the last that was read, and the newest one.
    next: u64,
    newest: u64,
}

/// The page needs more of a slot than was read of it.
struct Hungry(SlotIndex);

/// What was read of a slot, then a complaint if there is more.
struct Rest<'a> {
    unseen: &'a Unseen,
    at: usize,
}

impl Iterator for Rest<'_> {
    type Item = Result<Entry, Hungry>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.unseen.read.get(self.at);
        self.at = self.at.saturating_add(1);
        match found {
            Some(entry) => Some(Ok(entry.clone())),
            None if self.unseen.next <= self.unseen.newest => Some(Err(Hungry(self.unseen.slot))),
            None => None,
        }
    }
}

impl Unseen {
    /// Its next entries.
    fn range(&self, account: &AccountId, count: usize) -> Option<Range> {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let last = self.next.saturating_add(count).saturating_sub(1).min(self.newest);
        (self.next <= last).then(|| Range {
            account: account.clone(),
            slot: self.slot,
            first: self.next,
            last,
        })
    }
}

/// Adds entries to the slots that they are of.
fn take(slots: &mut BTreeMap<SlotIndex, Unseen>, entries: Vec<Entry>) -> Result<(), ReadError> {
    for entry in entries {
        let Some(slot) = slots.get_mut(&entry.slot) else {
            continue;
        };
        if entry.version != slot.next {
            return Err(gap(&entry.account, entry.slot, slot.next));
        }
        slot.next = slot.next.saturating_add(1);
        slot.read.push_back(entry);
    }
    Ok(())
}

pub(super) fn gap(account: &AccountId, slot: SlotIndex, version: u64) -> ReadError {
    let slot = slot.get();
    ReadError::Rows(format!(
        "slot {slot} of {account} has no entry of version {version}"
    ))
}

impl Reading {
    /// Entries never change, so it takes no snapshot: what is written meanwhile is behind what is read.
    async fn entries(
        &self,
        id: &AccountId,
        after: &Cursor,
        limit: usize,
    ) -> Result<Option<EntryPage>, ReadError> {
        let mut connection = self.connection().await?;
        let rows = sqlx::query("SELECT slot_index, version FROM wallet_slot WHERE account_id = ?")
            .bind(id.as_str().as_bytes())
            .fetch_all(&mut *connection)
            .await?;
        // An account has a slot from its opening on.
        if rows.is_empty() {
            connection.free();
            return Ok(None);
        }
        let mut slots = BTreeMap::new();
        for row in &rows {
            let (slot, newest): (_, u64) = (columns::slot_index(row)?, row.try_get("version")?);
            let (next, read) = (after.seen(slot).saturating_add(1), VecDeque::new());
            let unseen = Unseen {
                slot,
                read,
                next,
                newest,
            };
            slots.insert(slot, unseen);
        }
        let open = slots.values().filter(|slot| slot.next <= slot.newest).count();
        let mut count = limit.div_ceil(open.max(1)).saturating_add(1).max(LEAST);
        let first: Vec<Range> = slots.values().filter_map(|slot| slot.range(id, count)).collect();
        let read = of_ranges(&mut connection, &first).await?;
        take(&mut slots, read)?;
        let page = loop {
            let unseen = slots.values().map(|unseen| Rest { unseen, at: 0 });
            match merge(after, unseen, limit) {
                Ok(page) => break page,
                Err(Hungry(slot)) => {
                    count = count.saturating_mul(2).min(limit.saturating_add(1).max(LEAST));
                    let more = slots.get(&slot).and_then(|slot| slot.range(id, count));
                    let read = of_ranges(&mut connection, more.as_slice()).await?;
                    if read.is_empty() {
                        return Err(gap(id, slot, slots.get(&slot).map_or(0, |slot| slot.next)));
                    }
                    take(&mut slots, read)?;
                }
            }
        };
        connection.free();
        Ok(Some(page))
    }
}

impl Mysql {
    pub(in crate::store::mysql) async fn entries(
        &self,
        id: &AccountId,
        after: &Cursor,
        limit: usize,
    ) -> Result<Option<EntryPage>, LedgerError> {
        let (reading, id, after) = (self.reading(), id.clone(), after.clone());
        self.on_own_thread(async move { within(reading.entries(&id, &after, limit)).await })
            .await
    }
}
