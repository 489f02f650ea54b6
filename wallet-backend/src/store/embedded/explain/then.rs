//! What an account was when a request was decided.

use crate::account::{Account, AccountId, Slot};
use crate::command::Changes;
use crate::ledger::rows::AccountRows;
use crate::store::embedded::error::{Damage, OpenError};
use crate::store::embedded::layout::Layout;
use crate::store::embedded::record::decode;
use crate::store::embedded::scan::Scan;
use crate::store::embedded::segment::Mark;

/// An account as a decision saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Then {
    pub account: Account,
    pub slots: Vec<Slot>,
    /// Minor units in pending rows.
    pub pending: i64,
    /// Minor units in holds, expired or not.
    pub held: i64,
}

impl Then {
    /// Slots and pending rows: with the holds that had expired, what could be taken were there no floor.
    #[must_use]
    pub fn at_hand(&self) -> i64 {
        let slots = self.slots.iter().map(|slot| slot.balance);
        slots.fold(self.pending, i64::saturating_add)
    }
}

/// The account before the record at `until`, from the beginning of the log. Takes as long as reading the log up to
/// there; `progress` hears how many pages of how many have been read.
pub(super) fn before(
    layout: &Layout,
    id: &AccountId,
    until: u64,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Option<Then>, OpenError> {
    let pages = layout.extents.iter().map(|extent| u64::from(extent.end)).sum();
    let (mut rows, mut scan, mut read) = (None, Scan::after(layout, Mark::default())?, 0_u64);
    'log: while let Some(batch) = scan.next()? {
        let (segment, page) = (batch.first.segment, batch.first.page);
        for (position, bytes) in batch.records()? {
            if position >= until {
                break 'log;
            }
            // A record that is about an account has its id in it; most are about others.
            if contains(bytes, id.as_str().as_bytes()) {
                let record = decode(bytes).map_err(|error| Damage::record(segment, page, &error))?;
                apply(&mut rows, id, &record.changes).map_err(|what| Damage::at(segment, page, what))?;
            }
        }
        read = read.saturating_add(batch.end.place.page.saturating_sub(page).into());
        progress(read, pages);
    }
    progress(pages, pages);
    Ok(rows.map(|rows| Then {
        account: rows.account().clone(),
        slots: rows.slots().to_vec(),
        pending: rows.in_pending(),
        held: rows.in_held(),
    }))
}

fn apply(rows: &mut Option<AccountRows>, id: &AccountId, changes: &Changes) -> Result<(), String> {
    if rows.is_none() {
        let opened = changes.account.clone().filter(|account| account.id == *id);
        *rows = opened.map(AccountRows::open);
    }
    match rows {
        Some(rows) => rows.apply(changes).map_err(|violation| violation.to_string()),
        None => Ok(()),
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len().max(1)).any(|window| window == wanted)
}
