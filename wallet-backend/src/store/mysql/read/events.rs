//! Events: entries by their numbers.

use std::collections::HashMap;

use sqlx::mysql::MySqlRow;
use sqlx::{MySqlConnection, Row as _};

use super::entries::{Range, gap, of_ranges};
use super::{ReadError, Reading, within};
use crate::account::{AccountId, Entry, SlotIndex};
use crate::command::LedgerError;
use crate::store::mysql::events::Numbers;
use crate::store::mysql::{Mysql, columns};
use crate::store::{Event, EventCursor, EventPage};

/// The run that has a number or that comes next, and those behind it.
const OF_ALL: &str = "(SELECT * FROM event WHERE first_number <= ? ORDER BY first_number DESC LIMIT 1) \
    UNION ALL (SELECT * FROM event WHERE first_number > ? AND first_number <= ? ORDER BY first_number LIMIT ?)";
const OF_ACCOUNT: &str = "(SELECT * FROM event WHERE first_number <= ? AND account_id = ? \
    ORDER BY first_number DESC LIMIT 1) \
    UNION ALL (SELECT * FROM event WHERE first_number > ? AND first_number <= ? AND account_id = ? \
    ORDER BY first_number LIMIT ?)";

/// Consecutive numbers of consecutive versions.
#[derive(Clone, Debug)]
struct Run {
    first_number: u64,
    versions: Range,
}

impl Run {
    fn of(row: &MySqlRow) -> Result<Self, ReadError> {
        let (first, entries): (u64, u32) = (row.try_get("first_version")?, row.try_get("entries")?);
        Ok(Self {
            first_number: row.try_get("first_number")?,
            versions: Range {
                account: columns::account_id(row, "account_id")?,
                slot: columns::slot_index(row)?,
                first,
                last: first.saturating_add(u64::from(entries)).saturating_sub(1),
            },
        })
    }

    /// Without what has a number up to `after`, and with at most `most`; `None` where nothing is left.
    fn clipped(mut self, after: u64, most: u64) -> Option<Self> {
        let seen = after.saturating_add(1).saturating_sub(self.first_number);
        self.first_number = self.first_number.saturating_add(seen);
        self.versions.first = self.versions.first.saturating_add(seen);
        let last = self.versions.first.saturating_add(most).saturating_sub(1);
        self.versions.last = self.versions.last.min(last);
        (self.versions.first <= self.versions.last).then_some(self)
    }

    const fn len(&self) -> u64 {
        self.versions
            .last
            .saturating_sub(self.versions.first)
            .saturating_add(1)
    }
}

/// The versions of some runs, with those that follow each other in one range.
fn joined(runs: &[Run]) -> Vec<Range> {
    let mut ranges: Vec<Range> = runs.iter().map(|run| run.versions.clone()).collect();
    ranges.sort_unstable_by(|one, other| {
        (&one.account, one.slot, one.first).cmp(&(&other.account, other.slot, other.first))
    });
    let mut joined: Vec<Range> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last)
                if last.account == range.account
                    && last.slot == range.slot
                    && last.last.saturating_add(1) == range.first =>
            {
                last.last = range.last;
            }
            _ => joined.push(range),
        }
    }
    joined
}

async fn events(connection: &mut MySqlConnection, runs: &[Run]) -> Result<Vec<Event>, ReadError> {
    type Key = (AccountId, SlotIndex, u64);
    let read = of_ranges(connection, &joined(runs)).await?;
    let keyed = read
        .into_iter()
        .map(|entry| ((entry.account.clone(), entry.slot, entry.version), entry));
    let mut entries: HashMap<Key, Entry> = keyed.collect();
    let mut events = Vec::with_capacity(entries.len());
    for run in runs {
        let Range {
            account,
            slot,
            first,
            last,
        } = &run.versions;
        for (number, version) in (run.first_number..).zip(*first..=*last) {
            let entry = entries.remove(&(account.clone(), *slot, version));
            let entry = entry.ok_or_else(|| gap(account, *slot, version))?;
            events.push(Event { number, entry });
        }
    }
    Ok(events)
}

impl Reading {
    async fn events(
        &self,
        numbers: &Numbers,
        after: EventCursor,
        account: Option<&AccountId>,
        limit: usize,
    ) -> Result<Option<EventPage>, ReadError> {
        let newest = numbers.all(self).await?;
        after.check(newest)?;
        let mut connection = self.connection().await?;
        if let Some(account) = account {
            let known: i64 = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM account WHERE account_id = ?)")
                .bind(account.as_str().as_bytes())
                .fetch_one(&mut *connection)
                .await?;
            if known == 0 {
                connection.free();
                return Ok(None);
            }
        }
        let (begin, most) = (
            after.number.saturating_add(1),
            u64::try_from(limit).unwrap_or(u64::MAX),
        );
        let query = match account.map(|account| account.as_str().as_bytes()) {
            None => sqlx::query(OF_ALL)
                .bind(begin)
                .bind(begin)
                .bind(newest)
                .bind(most),
            Some(account) => sqlx::query(OF_ACCOUNT)
                .bind(begin)
                .bind(account)
                .bind(begin)
                .bind(newest)
                .bind(account)
                .bind(most),
        };
        let rows = query.fetch_all(&mut *connection).await?;
        let (mut runs, mut left) = (Vec::new(), most);
        for row in &rows {
            if let Some(run) = Run::of(row)?.clipped(after.number, left) {
                left = left.saturating_sub(run.len());
                runs.push(run);
            }
        }
        let events = events(&mut connection, &runs).await?;
        connection.free();
        let next = match events.last() {
            Some(last) if left == 0 => last.number,
            _ => newest,
        };
        let next = next.into();
        Ok(Some(EventPage { events, next }))
    }
}

impl Mysql {
    pub(in crate::store::mysql) async fn events(
        &self,
        after: EventCursor,
        account: Option<&AccountId>,
        limit: usize,
    ) -> Result<Option<EventPage>, LedgerError> {
        let (reading, numbers, account) = (self.reading(), self.numbers(), account.cloned());
        self.on_own_thread(
            async move { within(reading.events(&numbers, after, account.as_ref(), limit)).await },
        )
        .await
    }

    pub(in crate::store::mysql) async fn event_after(&self, number: u64) -> Result<(), LedgerError> {
        self.numbers().after(number).await
    }

    /// As far as this process knows, which is a second behind the others at most.
    pub(in crate::store::mysql) fn newest_event(&self) -> u64 {
        self.numbers().known()
    }
}
