//! The whole history as a database of SQLite, for whoever wants to ask it something that nobody thought of.
//!
//! Rows are what the ledger's are: entries and requests as they were decided, slots, holds and pending credits as they
//! became. `sqlite.sql` is the layout.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, Statement, params};

use crate::account::{Account, AccountId, Entry, Hold, Link, Pending, RequestId, SlotIndex, Timestamp};
use crate::command::{Changes, DebitAmount, Operation, Outcome, Posting, RequestRecord};
use crate::journal::Root;
use crate::ledger::invariants::signed;
use crate::money::Amount;
use crate::store::embedded::disk::Disk;
use crate::store::embedded::export::{ExportError, each_record};

/// Nothing is to be undone in a file that has no name yet, nor to be on the disk before its end.
const FAST: &str =
    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; BEGIN";
const LAYOUT: &str = include_str!("sqlite.sql");
/// Made at the end, which is quicker.
const INDEXES: &str = "
CREATE INDEX entry_by_request ON entry (account_id, request_id);
CREATE INDEX entry_by_time ON entry (at);
CREATE INDEX entry_by_link ON entry (link_kind, link_id);
CREATE INDEX request_by_time ON request (at);
CREATE INDEX hold_by_status ON hold (status, expires_at);
COMMIT";

/// Writes the history of a log that is not in use into a database that is made by this, in a file that is not there yet.
/// `progress` as for [`export`](super::export). Returns the root of what was written. Blocks. The file is not synced.
///
/// # Errors
/// [`ExportError`]; then the file is of no use.
pub fn export_database(
    disk: &Arc<dyn Disk>,
    file: &Path,
    mut progress: impl FnMut(u64, u64),
) -> Result<Root, ExportError> {
    let connection = Connection::open(file)?;
    connection.execute_batch(FAST)?;
    connection.execute_batch(LAYOUT)?;
    let mut tables = Tables::new(&connection)?;
    let root = each_record(disk, &mut progress, |changes| Ok(tables.record(changes)?))?;
    drop(tables);
    let records = signed(root.records);
    connection.execute(
        "INSERT INTO export VALUES (?, ?)",
        params![root.to_string(), records],
    )?;
    connection.execute_batch(INDEXES)?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(root)
}

impl From<rusqlite::Error> for ExportError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(Box::new(error))
    }
}

/// What is written, a statement each.
struct Tables<'a> {
    /// Records so far.
    records: i64,
    account: Statement<'a>,
    open_slot: Statement<'a>,
    slot: Statement<'a>,
    entry: Statement<'a>,
    request: Statement<'a>,
    hold: Statement<'a>,
    pending: Statement<'a>,
    settled: Statement<'a>,
}

impl<'a> Tables<'a> {
    fn new(connection: &'a Connection) -> rusqlite::Result<Self> {
        let prepare = |sql| connection.prepare(sql);
        Ok(Self {
            records: 0,
            account: prepare("INSERT OR REPLACE INTO account VALUES (?, ?, ?, ?, ?, ?, ?)")?,
            open_slot: prepare("INSERT OR IGNORE INTO slot VALUES (?, ?, 0, 0)")?,
            slot: prepare("UPDATE slot SET balance = ?3, version = ?4 WHERE account_id = ?1 AND slot = ?2")?,
            entry: prepare("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?,
            request: prepare("INSERT INTO request VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?,
            hold: prepare("INSERT OR REPLACE INTO hold VALUES (?, ?, ?, ?, ?, ?, ?)")?,
            pending: prepare("INSERT INTO pending_credit VALUES (?, ?, ?, ?, ?, ?)")?,
            settled: prepare("DELETE FROM pending_credit WHERE account_id = ? AND number = ?")?,
        })
    }

    fn record(&mut self, changes: &Changes) -> rusqlite::Result<()> {
        self.records = self.records.saturating_add(1);
        if let Some(account) = &changes.account {
            self.account(account)?;
        }
        if let Some(record) = &changes.request {
            self.request(record)?;
        }
        for entry in &changes.entries {
            self.entry(entry)?;
        }
        for (account, number) in &changes.pending_settled {
            self.settled.execute(params![account.as_str(), signed(*number)])?;
        }
        for (account, row) in &changes.pending_added {
            self.pending(account, row)?;
        }
        for (account, hold) in &changes.holds {
            self.hold(account, hold)?;
        }
        Ok(())
    }

    fn account(&mut self, account: &Account) -> rusqlite::Result<()> {
        let (id, slots) = (account.id.as_str(), account.slots.get());
        self.account.execute(params![
            id,
            account.currency.as_str(),
            account.status.as_str(),
            account.floor,
            slots,
            account.credit.as_str(),
            account.debit.as_str(),
        ])?;
        for slot in SlotIndex::all().take(slots.into()) {
            self.open_slot.execute(params![id, slot.get()])?;
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Entry) -> rusqlite::Result<()> {
        let (account, slot, version) = (entry.account.as_str(), entry.slot.get(), signed(entry.version));
        let (link_kind, link_id) = entry.link.as_ref().map(link).unzip();
        self.entry.execute(params![
            account,
            slot,
            version,
            entry.kind.as_str(),
            entry.request.as_ref().map(RequestId::as_str),
            entry.delta,
            entry.held_delta,
            entry.balance_after,
            entry.at.to_string(),
            link_kind,
            link_id,
            self.records,
        ])?;
        self.slot
            .execute(params![account, slot, entry.balance_after, version])?;
        Ok(())
    }

    fn request(&mut self, record: &RequestRecord) -> rusqlite::Result<()> {
        let operation = record.operation.as_ref();
        let (result, code, amount, at) = match &record.outcome {
            Outcome::Posted(receipt) => {
                let result = match receipt.posting {
                    Posting::Posted => "posted",
                    Posting::Pending => "pending",
                };
                (result, None, Some(receipt.amount), Some(receipt.at))
            }
            Outcome::Amended(_) => ("amended", None, None, None),
            Outcome::Refused(refusal) => ("refused", Some(refusal.code()), None, None),
        };
        self.request.execute(params![
            record.account.as_str(),
            record.request.as_str(),
            operation.map(kind),
            operation.and_then(asked).map(Amount::minor),
            operation.and_then(Operation::target).map(AccountId::as_str),
            operation.and_then(Operation::hold).map(RequestId::as_str),
            operation.and_then(Operation::reverses).map(RequestId::as_str),
            operation.and_then(Operation::memo),
            result,
            code,
            amount.map(Amount::minor),
            at.as_ref().map(Timestamp::to_string),
            self.records,
        ])?;
        Ok(())
    }

    fn pending(&mut self, account: &AccountId, row: &Pending) -> rusqlite::Result<()> {
        let from = match &row.link {
            Some(Link::Transfer(from)) => Some(from.as_str()),
            Some(Link::Slot(_) | Link::Hold(_) | Link::Reversed(_)) | None => None,
        };
        self.pending.execute(params![
            account.as_str(),
            signed(row.number),
            row.amount.minor(),
            row.request.as_str(),
            from,
            row.at.to_string(),
        ])?;
        Ok(())
    }

    fn hold(&mut self, account: &AccountId, hold: &Hold) -> rusqlite::Result<()> {
        self.hold.execute(params![
            account.as_str(),
            hold.id.as_str(),
            hold.amount.minor(),
            hold.captured,
            hold.released,
            hold.state.as_str(),
            hold.expires_at.as_ref().map(Timestamp::to_string),
        ])?;
        Ok(())
    }
}

fn link(link: &Link) -> (&'static str, String) {
    match link {
        Link::Transfer(account) => ("transfer", account.to_string()),
        Link::Slot(slot) => ("slot", slot.get().to_string()),
        Link::Hold(hold) => ("hold", hold.to_string()),
        Link::Reversed(request) => ("reversed", request.to_string()),
    }
}

/// As the export's lines name it.
fn kind(operation: &Operation) -> &'static str {
    match operation {
        Operation::Credit { .. } => "credit",
        Operation::Debit { .. } => "debit",
        Operation::Hold { .. } => "hold",
        Operation::Capture { .. } => "capture",
        Operation::Release { .. } => "release",
        Operation::Transfer { .. } => "transfer",
        Operation::Reversal { .. } => "reversal",
        Operation::Amend(_) => "amend",
    }
}

fn asked(operation: &Operation) -> Option<Amount> {
    match operation {
        Operation::Credit { amount, .. }
        | Operation::Hold { amount, .. }
        | Operation::Transfer { amount, .. }
        | Operation::Debit {
            amount: DebitAmount::Exactly(amount),
            ..
        } => Some(*amount),
        Operation::Capture { amount, .. } => *amount,
        Operation::Debit {
            amount: DebitAmount::Max,
            ..
        }
        | Operation::Release { .. }
        | Operation::Reversal { .. }
        | Operation::Amend(_) => None,
    }
}
