//! Why an account has what it has, and what became of a request: for people, from the files alone.
//!
//! Read without the lock, in use or not, as of the last batch that is whole in the files (`live` says why that is
//! sound). Of a store in use that may be a batch whose answers are still on their way.

use std::sync::Arc;

use self::snapshot::Snapshot;
use crate::account::{AccountId, Entry, Hold, Pending, RequestId, Timestamp};
use crate::command::{AccountView, Changes, Outcome, Refusal};
use crate::store::Event;
use crate::store::embedded::accounts::Held;
use crate::store::embedded::disk::Disk;
use crate::store::embedded::error::OpenError;
use crate::store::embedded::live;
use crate::store::embedded::requests::Filed;
use crate::store::embedded::scan::split_position;
use crate::store::embedded::segment;
use crate::store::embedded::statement::{Located, SlotEntries, SlotReader};

mod snapshot;
mod then;

pub use then::Then;

/// Why nothing can be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    #[error("there is no store in this directory")]
    NoStore,
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Where something stands in the log: the page's file and its byte in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPlace {
    pub file: String,
    pub byte: u64,
}

/// An account, as of the last whole batch.
#[derive(Clone, Debug)]
pub struct Explained {
    /// What has expired by then counts as expired.
    pub at: Timestamp,
    /// Where the log ends.
    pub end: LogPlace,
    /// Entries of all accounts before it.
    pub entries: u64,
    pub view: AccountView,
    /// With something left in them, expired or not.
    pub holds: Vec<Hold>,
    /// Oldest first.
    pub pending: Vec<Pending>,
    /// The account's last entries, oldest first.
    pub last: Vec<Event>,
    /// What became of the request that was asked about, if one was.
    pub request: Option<Found>,
}

/// What is known of a request.
#[derive(Clone, Debug)]
pub enum Found {
    /// Not decided up to here.
    Nothing,
    Decided(Box<Decided>),
}

/// A request that was decided, and what became of it since.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The whole record: the command as received, its outcome, and every entry that it wrote.
    pub changes: Changes,
    /// The number of the first of these entries.
    pub first: u64,
    pub place: LogPlace,
    /// What was pending then has reached a slot.
    pub settled: Option<Entry>,
    /// The request that reversed it.
    pub reversed_by: Option<RequestId>,
    /// The hold that it placed, as it is.
    pub hold: Option<Hold>,
    /// Of a refusal, the account that it is about, as the decision saw it.
    pub then: Option<Then>,
}

/// Explains an account with its last `last` entries, and a request of it. `now` says what has expired;
/// `progress` hears how many pages of how many were read for the proof of a refusal. `None`: no such account. Blocks.
///
/// # Errors
/// [`ExplainError`]: no store, damage, what the disk says.
pub fn explain(
    disk: &Arc<dyn Disk>,
    account: &AccountId,
    request: Option<&RequestId>,
    (now, last): (Timestamp, usize),
    mut progress: impl FnMut(u64, u64),
) -> Result<Option<Explained>, ExplainError> {
    // Whether there is a store does not depend on who writes to it.
    let mut none = false;
    let explained = live::patiently(|| match Snapshot::read(disk) {
        Ok(snapshot) => gather(&snapshot, account, request, (now, last), &mut progress),
        Err(ExplainError::Open(error)) => Err(error),
        Err(ExplainError::NoStore) => {
            none = true;
            Ok(None)
        }
    });
    if none {
        return Err(ExplainError::NoStore);
    }
    Ok(explained?)
}

fn gather(
    snapshot: &Snapshot,
    account: &AccountId,
    request: Option<&RequestId>,
    (now, last): (Timestamp, usize),
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Option<Explained>, OpenError> {
    let Some(held) = snapshot.books.get(account) else {
        return Ok(None);
    };
    let request = request.map(|request| find(snapshot, account, request, progress));
    let rows = &held.rows;
    Ok(Some(Explained {
        at: now,
        end: place(snapshot.end),
        entries: snapshot.books.entries(),
        view: rows.view(now),
        holds: rows.holds().cloned().collect(),
        pending: rows.pending().cloned().collect(),
        last: newest(snapshot, held, last)?,
        request: request.transpose()?,
    }))
}

fn place(position: u64) -> LogPlace {
    let (number, page, _) = split_position(position);
    LogPlace {
        file: segment::name(number),
        byte: segment::offset(page),
    }
}

/// The last entries of all slots, in the order in which they were committed.
fn newest(snapshot: &Snapshot, held: &Held, count: usize) -> Result<Vec<Event>, OpenError> {
    let id = &held.rows.account().id;
    let step = u64::try_from(count).unwrap_or(u64::MAX);
    let mut found: Vec<Located> = Vec::new();
    for slot in held.rows.slots() {
        let Some(chain) = held.chains.of(slot.index) else {
            continue;
        };
        let reader = SlotReader::new(&snapshot.records, id, (slot.index, chain.clone()));
        let mut entries = SlotEntries::after(reader, slot.version.saturating_sub(step), step);
        while let Some(entry) = entries.next_located()? {
            found.push(entry);
        }
    }
    found.sort_by_key(|located| located.number);
    let passed = found.len().saturating_sub(count);
    let last = found.into_iter().skip(passed);
    Ok(last
        .map(|Located { entry, number, .. }| Event { number, entry })
        .collect())
}

fn find(
    snapshot: &Snapshot,
    account: &AccountId,
    request: &RequestId,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Found, OpenError> {
    let decided = snapshot.find(account, request, Filed::Decision, |record| {
        let filed = record.changes.request.as_ref();
        filed.is_some_and(|filed| filed.account == *account && filed.request == *request)
    })?;
    let Some((position, record)) = decided else {
        return Ok(Found::Nothing);
    };
    let key = Some((account, request));
    let settled = snapshot.find(account, request, Filed::Settlement, |record| {
        record.changes.entries.iter().any(|entry| entry.settles() == key)
    })?;
    let settled = settled.and_then(|(_, record)| {
        let mut entries = record.changes.entries.into_iter();
        entries.find(|entry| entry.settles() == key)
    });
    let is_reversal = |changes: &Changes| {
        let reversal = changes.reversal();
        reversal.is_some_and(|(of, reverses, _)| of == account && reverses == request)
    };
    let reversed = snapshot.find(account, request, Filed::Reversal, |record| {
        is_reversal(&record.changes)
    })?;
    let ended = snapshot.find(account, request, Filed::HoldEnd, |record| {
        record.changes.ended_hold(account, request).is_some()
    })?;
    let ended = ended.and_then(|(_, record)| record.changes.ended_hold(account, request).cloned());
    let open = snapshot
        .books
        .get(account)
        .and_then(|held| held.rows.hold(request));
    let refusal = record.changes.request.as_ref().map(|filed| &filed.outcome);
    let then = match refusal {
        Some(Outcome::Refused(refusal)) => {
            let about = about(refusal).unwrap_or(account);
            then::before(&snapshot.layout, about, position, progress)?
        }
        Some(Outcome::Posted(_) | Outcome::Amended(_)) | None => None,
    };
    Ok(Found::Decided(Box::new(Decided {
        first: record.number.saturating_add(1),
        place: place(position),
        settled,
        reversed_by: reversed.and_then(|(_, record)| Some(record.changes.reversal()?.2.clone())),
        hold: open.cloned().or(ended),
        then,
        changes: record.changes,
    })))
}

/// The account that a refusal names.
fn about(refusal: &Refusal) -> Option<&AccountId> {
    match refusal {
        Refusal::InsufficientFunds { account, .. }
        | Refusal::AccountFrozen { account }
        | Refusal::AccountClosed { account }
        | Refusal::BalanceLimit { account, .. }
        | Refusal::AccountNotEmpty { account, .. } => Some(account),
        Refusal::CurrencyMismatch { .. }
        | Refusal::HoldNotOpen { .. }
        | Refusal::HoldExceeded { .. }
        | Refusal::AlreadyReversed { .. }
        | Refusal::NotReversible { .. }
        | Refusal::Abandoned => None,
    }
}
