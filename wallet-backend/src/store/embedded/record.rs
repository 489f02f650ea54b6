//! A record of the log: everything one decided task changed, and the links that make its entries findable.
//!
//! A record is self-contained. Account ids are written once and then by number; an entry of the record's own request
//! and a leg that is one of its entries cost a byte. [`Changes`] is the meaning, the rest is how it is found again:
//! each entry carries the position of the entry before it on its slot and one [`Links::skip`] further back, and, where
//! there is something to tell, its [`Trace`]; the record counts the entries before it in the whole log. That number is
//! the same wherever the record is written again.
//!
//! The first byte is the version of this format. Reading never panics and never trusts a length.

use self::entry::{read_entry, write_entry};
use crate::account::{AccountId, Hold, RequestId};
use crate::command::{Changes, RequestRecord};
use crate::store::codec::{
    CodecError, Ids, Named, Reader, Writer, kind, read_account, read_operation, read_outcome, write_account,
    write_operation, write_outcome,
};
use crate::store::embedded::links::Links;
use crate::store::embedded::sums::{Trace, Traces};

mod entry;

pub(super) use entry::{read_hold, read_pending, write_hold, write_pending};

/// The version of the format, the first byte of every record.
const VERSION: u8 = 1;

// What a record has, beside what every record has.
const HAS_REQUEST: u8 = 1;
const HAS_ACCOUNT: u8 = 2;
const HAS_HOLDS: u8 = 4;
const HAS_TRACES: u8 = 8;

/// A record as it is kept: `links[i]` belongs to `changes.entries[i]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) changes: Changes,
    pub(super) links: Vec<Links>,
    /// Entries of all accounts in the log before this record: its first one is numbered one more.
    pub(super) number: u64,
}

/// Appends a record to `out`. `links` has one for each entry; `number` as [`Record::number`].
pub(super) fn encode(number: u64, changes: &Changes, links: &[Links], out: &mut Writer) {
    let mut ids = Named::default();
    out.byte(VERSION);
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let traced = links.iter().any(|links| links.trace != Trace::default());
    out.byte(
        flag(changes.request.is_some(), HAS_REQUEST)
            | flag(changes.account.is_some(), HAS_ACCOUNT)
            | flag(!changes.holds.is_empty(), HAS_HOLDS)
            | flag(traced, HAS_TRACES),
    );
    out.number(number);
    if let Some(account) = &changes.account {
        write_account(account, out);
    }
    let own = changes.request.as_ref().map(|record| {
        ids.write(&record.account, out);
        out.text(record.request.as_str());
        &record.request
    });
    out.length(changes.entries.len());
    let mut traces = Traces::default();
    for (entry, links) in changes.entries.iter().zip(links) {
        write_entry(entry, own, &mut ids, out);
        out.number(links.before);
        out.number(links.skip);
        if traced {
            traces.write(entry, &links.trace, out);
        }
    }
    out.length(changes.pending_added.len());
    for (account, row) in &changes.pending_added {
        ids.write(account, out);
        write_pending(row, out);
    }
    out.length(changes.pending_settled.len());
    for (account, number) in &changes.pending_settled {
        ids.write(account, out);
        out.number(*number);
    }
    if !changes.holds.is_empty() {
        out.length(changes.holds.len());
        for (account, hold) in &changes.holds {
            ids.write(account, out);
            write_hold(hold, out);
        }
    }
    if let Some(record) = &changes.request {
        write_operation(record.operation.as_ref(), &mut ids, out);
        write_outcome(record, &changes.entries, &mut ids, out);
    }
}

/// The number of the record that `bytes` begin with, without reading the rest.
pub(super) fn number_of(bytes: &[u8]) -> Result<u64, CodecError> {
    read_head(&mut Reader::new(bytes)).map(|(_, number)| number)
}

fn read_head(from: &mut Reader<'_>) -> Result<(u8, u64), CodecError> {
    match from.byte("a record")? {
        VERSION => {}
        found => return Err(kind("a record", found)),
    }
    let flags = from.byte("a record")?;
    if flags > HAS_REQUEST | HAS_ACCOUNT | HAS_HOLDS | HAS_TRACES {
        return Err(kind("a record", flags));
    }
    Ok((flags, from.number("a record's number")?))
}

/// Reads one record, which must be all of `bytes`.
pub(super) fn decode(bytes: &[u8]) -> Result<Record, CodecError> {
    let mut from = Reader::new(bytes);
    let mut ids = Ids::default();
    let (flags, number) = read_head(&mut from)?;
    let account = (flags & HAS_ACCOUNT != 0)
        .then(|| read_account(&mut from))
        .transpose()?;
    let own = if flags & HAS_REQUEST != 0 {
        Some((ids.read(&mut from)?, from.request()?))
    } else {
        None
    };
    let mut record = Record {
        number,
        ..Record::default()
    };
    let request = own.as_ref().map(|(_, request)| request);
    read_entries(&mut from, request, &mut ids, flags & HAS_TRACES != 0, &mut record)?;
    for _ in 0..from.length("pending rows")? {
        let account = ids.read(&mut from)?;
        record
            .changes
            .pending_added
            .push((account, read_pending(&mut from)?));
    }
    for _ in 0..from.length("settled rows")? {
        let account = ids.read(&mut from)?;
        record
            .changes
            .pending_settled
            .push((account, from.number("a pending number")?));
    }
    if flags & HAS_HOLDS != 0 {
        record.changes.holds = read_holds(&mut from, &mut ids)?;
    }
    if let Some((account, request)) = own {
        let operation = read_operation(&mut from, &mut ids)?;
        let outcome = read_outcome(&mut from, &account, &request, &record.changes.entries, &mut ids)?;
        record.changes.request = Some(RequestRecord {
            account,
            request,
            operation,
            outcome,
        });
    }
    record.changes.account = account;
    from.end()?;
    Ok(record)
}

fn read_entries(
    from: &mut Reader<'_>,
    own: Option<&RequestId>,
    ids: &mut Ids,
    traced: bool,
    record: &mut Record,
) -> Result<(), CodecError> {
    let mut traces = Traces::default();
    for _ in 0..from.length("entries")? {
        let entry = read_entry(from, own, ids)?;
        let (before, skip) = (from.number("a link")?, from.number("a link")?);
        let trace = if traced {
            traces.read(&entry, from)?
        } else {
            Trace::default()
        };
        record.changes.entries.push(entry);
        record.links.push(Links { before, skip, trace });
    }
    Ok(())
}

/// A record without holds does not say that it has some, so that there is one way to write it.
fn read_holds(from: &mut Reader<'_>, ids: &mut Ids) -> Result<Vec<(AccountId, Hold)>, CodecError> {
    let count = from.length("holds")?;
    if count == 0 {
        return Err(CodecError::Range("holds"));
    }
    let mut holds = Vec::new();
    for _ in 0..count {
        holds.push((ids.read(from)?, read_hold(from)?));
    }
    Ok(holds)
}

#[cfg(test)]
mod tests;
