//! The books of every currency at one cut, without stopping anybody.
//!
//! What the accounts have is added up a few accounts at a time, and deciding goes on in between: every piece is of a
//! moment of its own. For each the place in the log is kept which that moment was. Then the log is read from the
//! opening to the place of the last piece, the cut: what came in and went out since the opening is added up, and to an
//! account's money is added what happened to it between its own moment and the cut.
//!
//! ```text
//! accounts   a..f | g..m   | n..z            each piece added up at its place
//! log     ───────p1───────p2──────p3 = cut
//!                 └ of a..f ───────┘         these records count for the accounts of that piece
//! ```

use std::sync::Arc;

use crate::account::AccountId;
use crate::command::LedgerError;
use crate::ledger::flow::{Currencies, Flow};
use crate::store::GeneralLedger;
use crate::store::embedded::Embedded;
use crate::store::embedded::events::records_from;
use crate::store::embedded::look_up::failed_read;
use crate::store::embedded::readers::blocking;
use crate::store::embedded::record::Record;

/// Accounts of one piece: some 50 us of holding up deciding.
const PIECE: usize = 256;

/// What all accounts have, each piece of them at its place.
#[derive(Debug, Default)]
struct Census {
    /// What is inside; nothing is outside yet.
    currencies: Currencies,
    /// The last id of each piece and its place, both rising.
    pieces: Vec<(AccountId, u64)>,
    /// The place of the last piece, of which every further id is one.
    cut: u64,
    /// The batch with which all of it is durable.
    newest: u64,
}

/// The books now: those of `opening`, and what has happened since.
pub(super) async fn read(store: &Embedded, opening: GeneralLedger) -> Result<GeneralLedger, LedgerError> {
    let census = Census::take(store).await?;
    store.shared.durable(census.newest).await?;
    let log = store.reading()?.durable_log();
    let mut closing = census.over(opening);
    let mut from = Some(std::mem::replace(&mut closing.place, census.cut));
    let (census, log) = (Arc::new(census), Arc::new(log));
    while let Some(place) = from {
        let (shared, census, log) = (Arc::clone(&store.shared), Arc::clone(&census), Arc::clone(&log));
        let piece = move || {
            let each = |at, record: &Record| census.add(&mut closing, at, record);
            let next = records_from(&shared.records, &log, place, each);
            Ok((next.map_err(|error| failed_read(&error))?, closing))
        };
        (from, closing) = blocking(piece).await?;
        from = from.filter(|place| *place < closing.place);
    }
    Ok(closing)
}

impl Census {
    async fn take(store: &Embedded) -> Result<Self, LedgerError> {
        let mut census = Self::default();
        while census.piece(store)? {
            tokio::task::yield_now().await;
        }
        Ok(census)
    }

    /// One more piece; `false` where it was the last.
    fn piece(&mut self, store: &Embedded) -> Result<bool, LedgerError> {
        let state = store.reading()?;
        let after = self.pieces.last().map(|(last, _)| last);
        let (mut last, mut count) = (None, 0_usize);
        for held in state.books.after(after, PIECE) {
            let totals = self.currencies.entry(held.rows.account().currency).or_default();
            totals.inside = totals.inside.saturating_add(held.rows.total().into());
            (last, count) = (Some(&held.rows.account().id), count.saturating_add(1));
        }
        self.cut = state.next_position();
        self.newest = state.newest();
        if let Some(last) = last.filter(|_| count == PIECE) {
            self.pieces.push((last.clone(), self.cut));
        }
        Ok(count == PIECE)
    }

    /// The place at which an account was added up.
    fn place_of(&self, id: &AccountId) -> u64 {
        let at = self.pieces.partition_point(|(last, _)| last < id);
        self.pieces.get(at).map_or(self.cut, |(_, place)| *place)
    }

    /// What is inside, and what had crossed the border by the opening.
    fn over(&self, opening: GeneralLedger) -> GeneralLedger {
        let mut closing = opening;
        for totals in closing.currencies.values_mut() {
            totals.inside = 0;
        }
        for (currency, totals) in &self.currencies {
            closing.currencies.entry(*currency).or_default().inside = totals.inside;
        }
        closing
    }

    /// Adds what the record at a place did.
    fn add(&self, closing: &mut GeneralLedger, at: u64, record: &Record) {
        if at >= self.cut {
            return;
        }
        let flow = Flow::of(&record.changes);
        if let Err(violation) = flow.check(&record.changes)
            && closing.broken.len() < GeneralLedger::MOST_BROKEN
        {
            closing.broken.push(violation);
        }
        // Without one nothing crossed the border, and nothing may have moved: that was checked.
        let Some(currency) = flow.currency else { return };
        let totals = closing.currencies.entry(currency).or_default();
        totals.outside = totals.outside.saturating_add(flow.outside.into());
        let missed = flow.accounts.iter().filter(|(id, _)| at >= self.place_of(id));
        for (_, amount) in missed {
            totals.inside = totals.inside.saturating_add((*amount).into());
        }
    }
}
