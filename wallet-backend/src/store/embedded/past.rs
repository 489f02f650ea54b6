//! What an account had at a moment of its past, read from the log.

use std::sync::Arc;

use crate::account::{AccountId, Slot, SlotIndex, Timestamp};
use crate::command::{LedgerError, PastView};
use crate::money::Currency;
use crate::store::embedded::Embedded;
use crate::store::embedded::accounts::Held;
use crate::store::embedded::error::OpenError;
use crate::store::embedded::links::Chain;
use crate::store::embedded::look_up::failed_read;
use crate::store::embedded::records::Records;
use crate::store::embedded::statement::SlotReader;
use crate::store::embedded::sums::Sums;
use crate::store::{Cursor, Moment};

/// An account as it is now, as far as its past is told from it. Taken at one cut.
#[derive(Debug)]
struct Now {
    account: AccountId,
    currency: Currency,
    slots: Vec<(SlotIndex, Chain)>,
    sums: Sums,
}

/// Of what is outstanding now, what was due at the moment: minor units.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    accepted: i64,
    expired: i64,
}

/// What the account had at the moment; `None` for an unknown one.
pub(super) async fn read(
    store: &Embedded,
    id: &AccountId,
    moment: &Moment,
) -> Result<Option<PastView>, LedgerError> {
    let at = match moment {
        Moment::Time(at) => *at,
        Moment::Cursor(cursor) => {
            let (newest, now) = {
                let state = store.reading()?;
                (state.newest(), state.books.get(id).map(Now::of))
            };
            store.shared.durable(newest).await?;
            let Some(now) = now else { return Ok(None) };
            let (shared, cursor) = (Arc::clone(&store.shared), cursor.clone());
            let read = store
                .readers
                .look_up(move || Ok((now.time_of(&cursor, &shared.records)?, now)));
            match read.await? {
                (Some(at), _) => at,
                (None, now) => return Ok(Some(now.nothing())),
            }
        }
    };
    let (newest, known) = {
        let state = store.reading()?;
        // Whatever is decided from here on is decided later: the lock is what deciding takes.
        if matches!(moment, Moment::Time(_)) && at >= store.clock.now() {
            return Err(Moment::not_over());
        }
        let known = state.books.get(id);
        (
            state.newest(),
            known.map(|held| (Now::of(held), Outstanding::of(held, at))),
        )
    };
    store.shared.durable(newest).await?;
    let Some((now, outstanding)) = known else {
        return Ok(None);
    };
    let (shared, moment) = (Arc::clone(&store.shared), moment.clone());
    let read = move || now.at(&moment, at, outstanding, &shared.records);
    store
        .readers
        .look_up(move || read().map(Some).map_err(|error| failed_read(&error)))
        .await
}

impl Now {
    fn of(held: &Held) -> Self {
        let slots = held.rows.slots().iter();
        let chains = slots.filter_map(|slot| Some((slot.index, held.chains.of(slot.index)?.clone())));
        Self {
            account: held.rows.account().id.clone(),
            currency: held.rows.account().currency,
            slots: chains.collect(),
            sums: held.chains.past.sums(),
        }
    }

    fn readers<'a>(&'a self, records: &'a Records) -> impl Iterator<Item = SlotReader<'a>> {
        let slots = self.slots.iter().cloned();
        slots.map(|slot| SlotReader::new(records, &self.account, slot))
    }

    /// The time of the newest entry before a cursor, `None` before the first one.
    fn time_of(&self, cursor: &Cursor, records: &Records) -> Result<Option<Timestamp>, LedgerError> {
        let known = |slot| self.slots.iter().find(|(index, _)| *index == slot);
        let newest = |slot| {
            known(slot)
                .and_then(|(_, chain)| chain.newest())
                .map_or(0, |(version, _)| version)
        };
        if cursor.0.iter().any(|(slot, version)| *version > newest(*slot)) {
            return Err(Moment::ahead());
        }
        let mut latest = None;
        for (slot, version) in cursor.0.iter().filter(|(_, version)| *version > 0) {
            let Some(slot) = known(*slot) else { continue };
            let mut reader = SlotReader::new(records, &self.account, slot.clone());
            let (entry, links) = reader.get(*version).map_err(|error| failed_read(&error))?;
            latest = latest.max(Some(links.trace.counted(&entry)));
        }
        Ok(latest)
    }

    /// The account at `at`; of a cursor, which is not ahead of it, with the entries that the cursor names.
    fn at(
        &self,
        moment: &Moment,
        at: Timestamp,
        outstanding: Outstanding,
        records: &Records,
    ) -> Result<PastView, OpenError> {
        let (mut slots, mut then) = (Vec::new(), Sums::default());
        for mut reader in self.readers(records) {
            let found = match moment {
                Moment::Time(at) => reader.last(|entry, links| links.trace.counted(entry) <= *at)?,
                Moment::Cursor(cursor) => match cursor.seen(reader.slot()) {
                    0 => None,
                    version => Some(reader.get(version)?),
                },
            };
            let Some((entry, links)) = found else { continue };
            if entry.slot == SlotIndex::PRIMARY {
                then = links.trace.sums;
            }
            slots.push(Slot {
                index: entry.slot,
                balance: entry.balance_after,
                version: entry.version,
            });
        }
        let settled = self.last_sums(records, |sums| sums.settled.was_due(at))?.settled;
        let swept = self.last_sums(records, |sums| sums.swept.was_due(at))?.swept;
        let accepted = settled.since(&then.settled).saturating_add(outstanding.accepted);
        let expired = swept.since(&then.swept).saturating_add(outstanding.expired);
        // A cursor that no page gave may name entries so unlike in time that holds expired before they were placed.
        let expired = expired.min(then.held);
        Ok(PastView {
            account: self.account.clone(),
            currency: self.currency,
            at: Some(at),
            slots,
            held: then.held.saturating_sub(expired),
            pending: accepted.saturating_add(expired),
        })
    }

    /// The last sums of which this is so: it is so of all before them, and of none after.
    fn last_sums(&self, records: &Records, so: impl Fn(&Sums) -> bool) -> Result<Sums, OpenError> {
        if so(&self.sums) {
            return Ok(self.sums);
        }
        let primary = self
            .readers(records)
            .find(|reader| reader.slot() == SlotIndex::PRIMARY);
        let last = match primary {
            Some(mut primary) => primary.last(|_, links| so(&links.trace.sums))?,
            None => None,
        };
        Ok(last.map_or_else(Sums::default, |(_, links)| links.trace.sums))
    }

    /// Before the first entry.
    fn nothing(&self) -> PastView {
        PastView {
            account: self.account.clone(),
            currency: self.currency,
            at: None,
            slots: Vec::new(),
            held: 0,
            pending: 0,
        }
    }
}

impl Outstanding {
    fn of(held: &Held, at: Timestamp) -> Self {
        let (accepted, expired) = held.chains.past.outstanding(&held.rows, at);
        Self { accepted, expired }
    }
}
