//! Traces and pasts as bytes.
//!
//! Sums after an entry follow from those after the one before it, but for when money was due. So of a record's traces
//! the first of an account is written whole, and of the rest what the entries do not tell: most take one byte.

use super::{Past, Returned, Sums, Trace, boxed};
use crate::account::{AccountId, Entry, SlotIndex, Timestamp};
use crate::store::codec::wire::{CodecError, Reader, Writer, kind};

// What is written of a trace, since it is not what the one before it leads to expect.
const LATE: u8 = 1;
const HELD: u8 = 2;
const SETTLED_SUM: u8 = 4;
const SETTLED_DUE: u8 = 8;
const SWEPT_SUM: u8 = 16;
const SWEPT_DUE: u8 = 32;

/// Traces as bytes: a record's are written as far as its entries and their first trace do not tell them.
#[derive(Default)]
pub(in crate::store::embedded) struct Traces {
    before: Vec<Before>,
}

/// What is known of an account in the record so far.
struct Before {
    account: AccountId,
    counted: Timestamp,
    /// After the last entry of slot 0.
    sums: Option<Sums>,
}

impl Traces {
    /// What an entry's trace is where nothing is written: from when on it counts, and its sums.
    fn expected(&self, entry: &Entry) -> (Timestamp, Sums) {
        let mut before = self.before.iter();
        let Some(before) = before.find(|before| before.account == entry.account) else {
            return (entry.at, Sums::default());
        };
        let sums = before.sums.filter(|_| entry.slot == SlotIndex::PRIMARY);
        let sums = sums.map_or_else(Sums::default, |sums| sums.after(entry));
        (before.counted.max(entry.at), sums)
    }

    fn keep(&mut self, entry: &Entry, counted: Timestamp, sums: Sums) {
        let sums = (entry.slot == SlotIndex::PRIMARY).then_some(sums);
        let mut before = self.before.iter_mut();
        match before.find(|before| before.account == entry.account) {
            Some(before) => {
                before.counted = counted;
                before.sums = sums.or(before.sums);
            }
            None => self.before.push(Before {
                account: entry.account.clone(),
                counted,
                sums,
            }),
        }
    }

    pub(in crate::store::embedded) fn write(&mut self, entry: &Entry, trace: &Trace, out: &mut Writer) {
        let (expected_counted, expected) = self.expected(entry);
        let (counted, sums) = (trace.counted(entry), &trace.sums);
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        out.byte(
            flag(counted != expected_counted, LATE)
                | flag(sums.held != expected.held, HELD)
                | flag(sums.settled.sum != expected.settled.sum, SETTLED_SUM)
                | flag(sums.settled.due != expected.settled.due, SETTLED_DUE)
                | flag(sums.swept.sum != expected.swept.sum, SWEPT_SUM)
                | flag(sums.swept.due != expected.swept.due, SWEPT_DUE),
        );
        if counted != expected_counted {
            out.signed(counted.0);
        }
        if sums.held != expected.held {
            out.signed(sums.held);
        }
        for (returned, expected) in [(&sums.settled, &expected.settled), (&sums.swept, &expected.swept)] {
            if returned.sum != expected.sum {
                write_sum(returned.sum, out);
            }
            if returned.due != expected.due {
                out.signed(returned.due.0.wrapping_sub(expected.due.0));
            }
        }
        self.keep(entry, counted, *sums);
    }

    pub(in crate::store::embedded) fn read(
        &mut self,
        entry: &Entry,
        from: &mut Reader<'_>,
    ) -> Result<Trace, CodecError> {
        let flags = from.byte("a trace")?;
        let primary = entry.slot == SlotIndex::PRIMARY;
        if flags >= SWEPT_DUE << 1 || (!primary && flags & !LATE != 0) {
            return Err(kind("a trace", flags));
        }
        let (mut counted, mut sums) = self.expected(entry);
        if flags & LATE != 0 {
            counted = from.timestamp()?;
        }
        if counted < entry.at {
            return Err(CodecError::Range("a time"));
        }
        if flags & HELD != 0 {
            sums.held = from.signed("a sum")?;
        }
        for (returned, sum, due) in [
            (&mut sums.settled, SETTLED_SUM, SETTLED_DUE),
            (&mut sums.swept, SWEPT_SUM, SWEPT_DUE),
        ] {
            if flags & sum != 0 {
                returned.sum = read_sum(from)?;
            }
            if flags & due != 0 {
                returned.due = Timestamp(returned.due.0.wrapping_add(from.signed("a time")?));
            }
        }
        self.keep(entry, counted, sums);
        let late = (counted > entry.at).then_some(counted);
        Ok(Trace { late, sums })
    }
}

/// What a checkpoint keeps of an account's past.
pub(in crate::store::embedded) fn write_past(past: &Past, out: &mut Writer) {
    let Sums { held, settled, swept } = past.sums();
    out.signed(past.latest.0);
    out.signed(held);
    for returned in [settled, swept] {
        write_sum(returned.sum, out);
        out.signed(returned.due.0);
    }
}

/// The reverse of [`write_past`].
pub(in crate::store::embedded) fn read_past(from: &mut Reader<'_>) -> Result<Past, CodecError> {
    let latest = from.timestamp()?;
    let held = from.signed("a sum")?;
    let (settled, swept) = (read_returned(from)?, read_returned(from)?);
    let sums = boxed(Sums { held, settled, swept });
    Ok(Past { latest, sums })
}

fn read_returned(from: &mut Reader<'_>) -> Result<Returned, CodecError> {
    Ok(Returned {
        sum: read_sum(from)?,
        due: from.timestamp()?,
    })
}

/// The low half, and the high one, which is 0 in most lives.
fn write_sum(sum: u128, out: &mut Writer) {
    out.number(u64::try_from(sum & u128::from(u64::MAX)).unwrap_or(u64::MAX));
    out.number(u64::try_from(sum >> 64).unwrap_or(u64::MAX));
}

fn read_sum(from: &mut Reader<'_>) -> Result<u128, CodecError> {
    let low = u128::from(from.number("a sum")?);
    Ok((u128::from(from.number("a sum")?) << 64) | low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{EntryKind, RequestId};

    fn entry(slot: u8, kind: EntryKind, delta: i64) -> Entry {
        Entry {
            account: AccountId::new("a").unwrap(),
            slot: SlotIndex::new(slot).unwrap(),
            version: 7,
            kind,
            request: Some(RequestId::new("r").unwrap()),
            delta,
            held_delta: 0,
            balance_after: 100,
            at: Timestamp(50),
            link: None,
        }
    }

    /// Entries of slot 0 and of another, with all that they may tell, and what an account of its own tells.
    fn traced() -> Vec<(Entry, Trace)> {
        let sweep = Entry {
            request: None,
            held_delta: -4,
            ..entry(0, EntryKind::Release, 4)
        };
        let other = Entry {
            account: AccountId::new("b").unwrap(),
            ..entry(0, EntryKind::TransferIn, 5)
        };
        let settle = entry(0, EntryKind::Settle, 6);
        let first = Sums {
            held: 9,
            settled: Returned {
                sum: (1 << 64) + 7,
                due: Timestamp(3),
            },
            swept: Returned::default(),
        };
        let mut second = first.after(&settle);
        second.settled.due = Timestamp(8);
        let mut third = second.after(&sweep);
        third.swept.due = Timestamp(-2);
        let (late, none) = (Some(Timestamp(60)), Sums::default());
        [
            (entry(0, EntryKind::Settle, 5), None, first),
            (entry(3, EntryKind::Credit, 5), late, none),
            (settle, late, second),
            (other, None, none),
            (sweep, late, third),
            (entry(0, EntryKind::Debit, -1), late, third),
        ]
        .map(|(entry, late, sums)| (entry, Trace { late, sums }))
        .to_vec()
    }

    fn written(traced: &[(Entry, Trace)]) -> Vec<u8> {
        let (mut traces, mut out) = (Traces::default(), Writer::default());
        for (entry, trace) in traced {
            traces.write(entry, trace, &mut out);
        }
        out.bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<(Entry, Trace)>, CodecError> {
        let (mut traces, mut from) = (Traces::default(), Reader::new(bytes));
        let entries = traced().into_iter().map(|(entry, _)| entry);
        let read = entries.map(|entry| {
            let trace = traces.read(&entry, &mut from);
            trace.map(|trace| (entry, trace))
        });
        let read = read.collect::<Result<_, _>>()?;
        from.end()?;
        Ok(read)
    }

    #[test]
    fn traces_come_back_as_they_were_and_what_their_entries_tell_takes_a_byte() {
        let bytes = written(&traced());
        assert_eq!(read(&bytes), Ok(traced()));
        let (whole, but_the_last) = (bytes.len(), written(&traced()[..5]).len());
        assert_eq!(whole - but_the_last, 1);
    }

    #[test]
    fn no_bytes_make_reading_traces_panic_and_what_is_read_is_written_back() {
        let bytes = written(&traced());
        for at in 0..bytes.len() {
            assert!(read(&bytes[..at]).is_err());
            for value in 0..=u8::MAX {
                let mut changed = bytes.clone();
                changed[at] = value;
                if let Ok(found) = read(&changed) {
                    assert_eq!(read(&written(&found)), Ok(found));
                }
            }
        }
    }

    #[test]
    fn what_a_checkpoint_keeps_of_a_past_comes_back() {
        for sums in [None, traced().last().and_then(|(_, trace)| boxed(trace.sums))] {
            let past = Past {
                latest: Timestamp(77),
                sums,
            };
            let mut out = Writer::default();
            write_past(&past, &mut out);
            let mut from = Reader::new(&out.bytes);
            assert_eq!(read_past(&mut from), Ok(past));
            assert_eq!(from.end(), Ok(()));
        }
    }
}
