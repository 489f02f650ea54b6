//! Reading the log from an entry's number on: where events, and whatever else follows the log, come from.
//!
//! A number is found without an index. Every record counts the entries before it, every batch begins on a page of its
//! own, and every page knows how far into its batch it is: a search by halves over the segments, and then over the
//! pages of one, ends at the batch to begin with after some thirty pages, whatever the log's size. Of one account, the
//! links of its slots lead to its entries alone. Nothing is read beyond where the log was durable when reading began.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "page numbers are below a segment's page count, offsets below its payload, entries are counted one by one"
)]

use std::sync::Arc;

use crate::account::{AccountId, SlotIndex};
use crate::store::embedded::error::{Damage, OpenError};
use crate::store::embedded::layout::read_page;
use crate::store::embedded::links::Chain;
use crate::store::embedded::page::{self, Found, LAST, PageHead, PageId};
use crate::store::embedded::record::{Record, decode, number_of};
use crate::store::embedded::records::Records;
use crate::store::embedded::scan::{Window, position, split_position};
use crate::store::embedded::segment::{Place, SegmentHead};
use crate::store::embedded::statement::{Located, SlotEntries, SlotReader};
use crate::store::{Event, EventCursor, EventPage};

/// One call reads no more of the log than this, and one record: entries may be far apart among refusals.
const MOST_BYTES: u64 = 8 << 20;

/// A live part of the log: pages `first` to `end` of a segment, without `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    segment: u64,
    first: u32,
    end: u32,
}

impl Part {
    /// All of a segment's pages before `end`.
    pub(super) fn of(head: &SegmentHead, end: u32) -> Self {
        Self {
            segment: head.number,
            first: head.first_page(),
            end,
        }
    }

    fn begin(self) -> Place {
        Place {
            segment: self.segment,
            page: self.first,
        }
    }
}

/// The log as far as it was durable at one moment.
#[derive(Clone, Debug)]
pub(super) struct Durable {
    /// In the order of the log; some may lie beyond `end`.
    pub(super) parts: Arc<Vec<Part>>,
    pub(super) end: Place,
    /// Entries before `end`, of all accounts.
    pub(super) entries: u64,
}

/// The events of all accounts after `after`, which the log has reached.
///
/// # Errors
/// Damage, or what the disk says.
pub(super) fn of_all(
    records: &Records,
    log: &Durable,
    after: EventCursor,
    limit: usize,
) -> Result<EventPage, OpenError> {
    let (mut events, mut next) = (Vec::new(), after);
    next.place = begin(records, log, after)?;
    let mut walk = Walk::from(records, log, next.place);
    while next.number < log.entries
        && events.len() < limit
        && walk.read_bytes < MOST_BYTES
        && let Some((at, record)) = walk.next()?
    {
        next.place = at;
        for (number, entry) in (record.number + 1..).zip(record.changes.entries) {
            if number > next.number && events.len() < limit {
                events.push(Event { number, entry });
                next.number = number;
            }
        }
        if next.number >= walk.number {
            next.place = walk.position();
        }
    }
    if next.number == log.entries {
        // What is left has no entries, and need not be passed over once more.
        next.place = position(log.end, 0);
    }
    Ok(EventPage { events, next })
}

/// The records at `from` (0: the first) and after it, for a while, to `each` with their positions. Where to go on;
/// `None` at the end of what is durable.
///
/// # Errors
/// Damage, or what the disk says.
pub(super) fn records_from(
    records: &Records,
    log: &Durable,
    from: u64,
    mut each: impl FnMut(u64, &Record),
) -> Result<Option<u64>, OpenError> {
    let first = log.parts.first().map_or(log.end, |part| part.begin());
    let mut walk = Walk::from(records, log, if from == 0 { position(first, 0) } else { from });
    while walk.read_bytes < MOST_BYTES {
        match walk.next()? {
            Some((at, record)) => each(at, &record),
            None => return Ok(None),
        }
    }
    Ok(Some(walk.position()))
}

/// Those of one account, whose `slots` are as they were when the log had `log.entries`.
///
/// # Errors
/// Damage, or what the disk says.
pub(super) fn of_account(
    records: &Records,
    log: &Durable,
    after: EventCursor,
    (account, slots): (&AccountId, Vec<(SlotIndex, Chain)>),
    limit: usize,
) -> Result<EventPage, OpenError> {
    let mut next = after;
    next.place = begin(records, log, after)?;
    let step = u64::try_from(limit.div_ceil(slots.len().max(1))).unwrap_or(1);
    let mut heads: Vec<(Located, SlotEntries<'_>)> = Vec::new();
    for slot in slots {
        let reader = SlotReader::new(records, account, slot);
        let mut rest = SlotEntries::since(reader, next.place, step)?;
        if let Some(head) = after_number(&mut rest, after.number)? {
            heads.push((head, rest));
        }
    }
    let mut events = Vec::new();
    while events.len() < limit {
        // At most 64 slots: looking at all of them is quick.
        let numbers = heads.iter().map(|(head, _)| head.number).enumerate();
        let Some((first, _)) = numbers.min_by_key(|(_, number)| *number) else {
            next.number = log.entries;
            break;
        };
        let (head, mut rest) = heads.swap_remove(first);
        next.number = head.number;
        next.place = head.position;
        events.push(Event {
            number: head.number,
            entry: head.entry,
        });
        if let Some(head) = rest.next_located()? {
            heads.push((head, rest));
        }
    }
    Ok(EventPage { events, next })
}

/// The first one with a number above `number`.
fn after_number(rest: &mut SlotEntries<'_>, number: u64) -> Result<Option<Located>, OpenError> {
    while let Some(found) = rest.next_located()? {
        if found.number > number {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// A record's position before which there is nothing that follows `after`.
fn begin(records: &Records, log: &Durable, after: EventCursor) -> Result<u64, OpenError> {
    if after.place != 0 {
        return Ok(after.place);
    }
    if after.number == log.entries {
        return Ok(position(log.end, 0));
    }
    seek(records, log, after.number)
}

/// Where a batch begins that has no more than `number` entries before it; a late one, if not the last.
fn seek(records: &Records, log: &Durable, number: u64) -> Result<u64, OpenError> {
    let mut best = log.parts.first().map_or(log.end, |part| part.begin());
    let mut part = None;
    let (mut low, mut high) = (0, log.parts.len());
    while low < high {
        let middle = low.midpoint(high);
        let Some(candidate) = log.parts.get(middle).copied() else {
            break;
        };
        match first_number(records, log, candidate.begin())? {
            Some(first) if first <= number => {
                (best, part) = (candidate.begin(), Some(candidate));
                low = middle + 1;
            }
            Some(_) | None => high = middle,
        }
    }
    if let Some(part) = part {
        best = seek_in(records, log, part, number)?;
    }
    Ok(position(best, 0))
}

/// The same in one part, whose first batch will do.
fn seek_in(records: &Records, log: &Durable, part: Part, number: u64) -> Result<Place, OpenError> {
    let mut best = part.begin();
    let (mut low, mut high) = (part.first, log.end_of(part));
    while low < high {
        let mut place = Place {
            segment: part.segment,
            page: low.midpoint(high),
        };
        let Some((head, _)) = read(records, place)? else {
            high = place.page;
            continue;
        };
        let behind = place.page + 1;
        place.page = place.page.saturating_sub(head.index).max(part.first);
        match first_number(records, log, place)? {
            Some(first) if first <= number => {
                best = place;
                low = behind;
            }
            Some(_) | None => high = place.page,
        }
    }
    Ok(best)
}

/// How many entries the log has before the batch that begins at `place`; `None` where there is none.
fn first_number(records: &Records, log: &Durable, place: Place) -> Result<Option<u64>, OpenError> {
    if place >= log.end {
        return Ok(None);
    }
    let Some((_, payload)) = read(records, place)? else {
        return Ok(None);
    };
    let number = number_of(payload.get(4..).unwrap_or_default());
    let number = number.map_err(|error| Damage::record(place.segment, place.page, &error))?;
    Ok(Some(number))
}

/// One page; `None` where none was written.
fn read(records: &Records, place: Place) -> Result<Option<(PageHead, Vec<u8>)>, OpenError> {
    let file = records.file(place.segment)?;
    let buffer = read_page(place.segment, file.as_ref(), place.page)?;
    let mut payload = Vec::new();
    let head = inspect(records, place, &buffer)?;
    if let Some(head) = head {
        page::payload(&buffer, head.len, &mut payload);
    }
    Ok(head.map(|head| (head, payload)))
}

fn inspect(records: &Records, place: Place, buffer: &page::PageBuffer) -> Result<Option<PageHead>, Damage> {
    let Place { segment, page } = place;
    let store = records.store();
    let id = PageId { store, segment, page };
    match page::inspect(id, buffer) {
        Found::Empty => Ok(None),
        Found::Good { head, .. } => Ok(Some(head)),
        Found::Torn => Err(Damage::at(segment, page, "a page that was synced is not whole")),
        Found::Damaged { expected, found } => Err(Damage::checksum(segment, page, expected, found)),
    }
}

impl Durable {
    /// The end of what is durable in a part.
    fn end_of(&self, part: Part) -> u32 {
        if part.segment == self.end.segment {
            part.end.min(self.end.page)
        } else {
            part.end
        }
    }

    fn part(&self, segment: u64) -> Option<Part> {
        let at = self.parts.partition_point(|part| part.segment < segment);
        self.parts.get(at).filter(|part| part.segment == segment).copied()
    }

    /// Where the log goes on behind a segment.
    fn behind(&self, segment: u64) -> Place {
        let at = self.parts.partition_point(|part| part.segment <= segment);
        self.parts.get(at).map_or(self.end, |part| part.begin())
    }
}

/// A walk over records, from one of them to where the log is durable.
struct Walk<'a> {
    records: &'a Records,
    log: &'a Durable,
    /// The page to read next, and how much of it is passed over.
    page: Place,
    skip: usize,
    /// Payload that was read, of which `taken` bytes are done with. `start` is the position of the first one.
    buffer: Vec<u8>,
    taken: usize,
    start: u64,
    /// The next record begins a batch.
    at_end_of_batch: bool,
    /// Entries before the next record; what the record itself says is held to it.
    number: u64,
    begun: bool,
    read_bytes: u64,
    window: Window,
}

impl<'a> Walk<'a> {
    fn from(records: &'a Records, log: &'a Durable, at: u64) -> Self {
        let (segment, page, skip) = split_position(at);
        Self {
            records,
            log,
            page: Place { segment, page },
            skip,
            buffer: Vec::new(),
            taken: 0,
            start: at,
            at_end_of_batch: true,
            number: 0,
            begun: false,
            read_bytes: 0,
            window: Window::default(),
        }
    }

    /// Where the next record is, or will be at the earliest.
    fn position(&self) -> u64 {
        if self.taken < self.buffer.len() {
            self.start + u64::try_from(self.taken).unwrap_or(u64::MAX)
        } else {
            position(self.page, self.skip)
        }
    }

    fn next(&mut self) -> Result<Option<(u64, Record)>, OpenError> {
        loop {
            let rest = self.buffer.get(self.taken..).unwrap_or_default();
            if let Some((length, rest)) = rest.split_first_chunk()
                && let Ok(length) = usize::try_from(u32::from_le_bytes(*length))
                && let Some(bytes) = rest.get(..length)
            {
                let at = self.position();
                let (segment, page, _) = split_position(at);
                let record = decode(bytes).map_err(|error| Damage::record(segment, page, &error))?;
                self.taken += 4 + length;
                self.count(at, &record)?;
                return Ok(Some((at, record)));
            }
            let begun = !rest.is_empty();
            if begun && self.at_end_of_batch || !self.load()? {
                if begun {
                    let (segment, page, _) = split_position(self.start);
                    return Err(Damage::at(segment, page, "a record has no end").into());
                }
                return Ok(None);
            }
        }
    }

    /// That the record goes on counting where the one before it ended.
    fn count(&mut self, at: u64, record: &Record) -> Result<(), Damage> {
        if self.begun && record.number != self.number {
            let (segment, page, _) = split_position(at);
            let (found, expected) = (record.number, self.number);
            let what = format!("a record counts {found} entries before it, and there are {expected}");
            return Err(Damage::at(segment, page, what));
        }
        self.begun = true;
        let entries = u64::try_from(record.changes.entries.len()).unwrap_or(u64::MAX);
        self.number = record.number.saturating_add(entries);
        Ok(())
    }

    /// Reads another page; `false` at the end of what is durable.
    fn load(&mut self) -> Result<bool, OpenError> {
        while self.page < self.log.end {
            let Place { segment, page } = self.page;
            let end = self.log.part(segment).map_or(0, |part| self.log.end_of(part));
            if page >= end {
                (self.page, self.skip) = (self.log.behind(segment), 0);
                continue;
            }
            let file = self.records.file(segment)?;
            let buffer = self.window.page(segment, file.as_ref(), end, page)?;
            let Some(head) = inspect(self.records, self.page, buffer)? else {
                // A segment that ended before it was full.
                (self.page, self.skip) = (self.log.behind(segment), 0);
                continue;
            };
            self.buffer.drain(..self.taken);
            self.start += u64::try_from(self.taken).unwrap_or(u64::MAX);
            self.taken = 0;
            if self.buffer.is_empty() {
                self.start = position(self.page, 0);
                self.taken = self.skip;
            }
            page::payload(buffer, head.len, &mut self.buffer);
            self.at_end_of_batch = head.flags & LAST != 0;
            self.read_bytes += u64::from(head.len);
            self.page.page += 1;
            self.skip = 0;
            return Ok(true);
        }
        Ok(false)
    }
}
