//! What deciding, writing, preparing and checkpointing share, behind one mutex: each method is one complete step.
//!
//! The open batch takes in records while the one before it is in flight. Its place is fixed when it begins, so every
//! record's position is known at once. A record is only decided into the log if there is room for it, so running out
//! of disk undoes nothing: what was decided has its place, and what has no place is refused before it changed anything.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "pages and payload bytes are bounded by a segment's size, batches are counted one by one"
)]

use std::sync::Arc;

use crate::command::{Answer, LedgerError};
use crate::mutants::{Mutant, is_on};
use crate::store::Job;
use crate::store::codec::wire::Writer;
use crate::store::embedded::books::Books;
use crate::store::embedded::events::{Durable, Part};
use crate::store::embedded::links::Links;
use crate::store::embedded::page::PAYLOAD;
use crate::store::embedded::record::{self, Record};
use crate::store::embedded::records::Records;
use crate::store::embedded::scan::{position, split_position};
use crate::store::embedded::segment::{Mark, Place, Segment, pages_for};

#[cfg(feature = "import")]
mod adopting;
mod deciding;
mod facts;

#[cfg(feature = "import")]
pub(super) use adopting::NotAdopted;

/// A batch takes in no more decisions than this, unless by one job. The combiner's largest batch, so that one of its
/// batches is one of ours.
const MAX_JOBS: usize = 8_192;
/// Nor more payload, unless by one record or one atomic batch. 8 MiB is some 20 ms of a disk's time.
const MAX_BYTES: usize = 8 << 20;

/// A job that has been decided and whose answer must not be heard yet.
#[derive(Debug)]
struct Waiting {
    job: Job,
    answer: Result<Answer, LedgerError>,
    /// The first log batch with a record of it.
    wrote: Option<u64>,
}

/// The batch that takes in records.
#[derive(Debug)]
struct OpenBatch {
    segment: Arc<Segment>,
    first: u32,
    batch: u64,
    payload: Vec<u8>,
    jobs: Vec<Waiting>,
    /// Decisions that those are.
    load: usize,
}

/// A batch on its way to the disk.
#[derive(Clone, Debug)]
pub(super) struct Sealed {
    pub(super) segment: Arc<Segment>,
    pub(super) first: u32,
    pub(super) batch: u64,
    pub(super) payload: Arc<Vec<u8>>,
    /// Entries of all accounts up to its end.
    entries: u64,
}

#[derive(Debug)]
struct InFlight {
    sealed: Sealed,
    jobs: Vec<Waiting>,
    load: usize,
}

/// The segment after the one in use.
#[derive(Debug)]
pub(super) enum Next {
    Idle,
    Wanted,
    Preparing,
    Ready(Arc<Segment>),
    /// The disk had no room, or failed; it is tried again.
    Failed(String),
}

/// A checkpoint that is due or being written.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    /// The last batch in it.
    pub(super) batch: u64,
    /// Its end, once it is durable.
    pub(super) mark: Option<Mark>,
    pub(super) full: bool,
}

/// Answers that may be heard, to be given without the lock.
pub(super) type Answers = Vec<(Job, Result<Answer, LedgerError>)>;

/// Why a record has no place in the log.
#[derive(Debug)]
enum NoPlace {
    /// The next segment could not be prepared, for this reason; it is tried again.
    Failed(String),
    /// It has this many bytes, and no segment does.
    TooLong(usize),
}

impl From<NoPlace> for LedgerError {
    fn from(error: NoPlace) -> Self {
        unavailable(&match error {
            NoPlace::Failed(reason) => format!("no room for the next segment: {reason}"),
            NoPlace::TooLong(bytes) => format!("a record of {bytes} bytes fits no segment"),
        })
    }
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) books: Books,
    open: OpenBatch,
    in_flight: Option<InFlight>,
    pub(super) next: Next,
    /// The newest batch that is durable, and its end.
    pub(super) durable: Mark,
    /// Entries of all accounts up to there.
    pub(super) durable_entries: u64,
    /// The live log, as far as a segment of it is in use.
    pub(super) parts: Arc<Vec<Part>>,
    pub(super) cut: Option<Cut>,
    /// Log bytes since the last cut.
    pub(super) since_cut: u64,
    /// Whether the next checkpoint must hold every account.
    pub(super) next_full: bool,
    /// A checkpoint is wanted as soon as a batch is sealed, however little there is for it.
    pub(super) cut_due: bool,
    /// Where the newest checkpoint stands.
    pub(super) saved: Mark,
    /// Checkpoints that failed.
    pub(super) failed_saves: u64,
    /// Why nothing is decided any more.
    pub(super) stopped: Option<String>,
    /// No more jobs; the writer ends when everything is written.
    pub(super) closing: bool,
    pub(super) writer_ended: bool,
    scratch: Writer,
    /// Those of the record in `scratch`.
    links: Vec<Links>,
}

impl State {
    pub(super) fn new(
        books: Books,
        (segment, parts): (Arc<Segment>, Vec<Part>),
        end: Mark,
        since_cut: u64,
        next_full: bool,
    ) -> Self {
        let first = end.place.page.max(segment.head.first_page());
        Self {
            durable_entries: books.entries(),
            parts: Arc::new(parts),
            books,
            open: OpenBatch {
                first: if end.place.segment == segment.head.number {
                    first
                } else {
                    segment.head.first_page()
                },
                segment,
                batch: end.batch + 1,
                payload: Vec::new(),
                jobs: Vec::new(),
                load: 0,
            },
            in_flight: None,
            next: Next::Idle,
            durable: end,
            cut: None,
            since_cut,
            next_full,
            cut_due: false,
            saved: Mark::default(),
            failed_saves: 0,
            stopped: None,
            closing: false,
            writer_ended: false,
            scratch: Writer::default(),
            links: Vec::new(),
        }
    }

    /// The batch until which a reader must wait that sees everything there is now.
    pub(super) fn newest(&self) -> u64 {
        if !self.open.payload.is_empty() {
            self.open.batch
        } else if let Some(in_flight) = &self.in_flight {
            in_flight.sealed.batch
        } else {
            self.durable.batch
        }
    }

    /// Where the next record is at the earliest: all that are in the books lie before it, and none that will be.
    pub(super) fn next_position(&self) -> u64 {
        let first = Place {
            segment: self.open.segment.head.number,
            page: self.open.first,
        };
        position(first, self.open.payload.len())
    }

    /// The log as far as it is durable.
    pub(super) fn durable_log(&self) -> Durable {
        Durable {
            parts: Arc::clone(&self.parts),
            end: self.durable.place,
            entries: self.durable_entries,
        }
    }

    /// The number of the segment in use.
    pub(super) fn segment(&self) -> &Segment {
        &self.open.segment
    }

    /// Why a caller is turned away, once the store has stopped or is closing.
    pub(super) fn refusal(&self) -> Option<LedgerError> {
        let closing = self.closing.then_some("the store is closed");
        let reason = self.stopped.as_deref().or(closing)?;
        Some(unavailable(reason))
    }

    /// Whether nothing more is decided until a batch is on its way.
    fn is_full(&self) -> bool {
        let waiting = self.open.load + self.in_flight.as_ref().map_or(0, |flight| flight.load);
        self.open.payload.len() >= MAX_BYTES || waiting >= 2 * MAX_JOBS || self.open.load >= MAX_JOBS
    }

    /// Where a record of `length` bytes goes; `None` if that has to be waited for.
    fn place(&mut self, length: usize) -> Result<Option<u64>, NoPlace> {
        if !self.fits(length) {
            if !self.open.payload.is_empty() {
                return Ok(None);
            }
            match &self.next {
                Next::Ready(segment) => {
                    self.open.segment = Arc::clone(segment);
                    self.open.first = segment.head.first_page();
                    Arc::make_mut(&mut self.parts).push(Part::of(&segment.head, segment.head.pages));
                    self.next = Next::Idle;
                }
                Next::Idle => {
                    self.next = Next::Wanted;
                    return Ok(None);
                }
                Next::Wanted | Next::Preparing => return Ok(None),
                Next::Failed(reason) => return Err(NoPlace::Failed(reason.clone())),
            }
            if !self.fits(length) {
                return Err(NoPlace::TooLong(length));
            }
        }
        let first = Place {
            segment: self.open.segment.head.number,
            page: self.open.first,
        };
        let end = self.open.first + pages_for(self.open.payload.len() + length);
        if matches!(self.next, Next::Idle) && end > self.open.segment.head.pages / 2 {
            self.next = Next::Wanted;
        }
        Ok(Some(position(first, self.open.payload.len())))
    }

    fn fits(&self, length: usize) -> bool {
        let pages = pages_for(self.open.payload.len().saturating_add(length));
        self.open.first.saturating_add(pages) <= self.open.segment.head.pages
    }

    /// The record at `position`, be it on disk yet or not.
    pub(super) fn read(&self, position: u64, records: &Records) -> Result<Record, LedgerError> {
        let (segment, page, into) = split_position(position);
        let open = (&self.open.segment, self.open.first, &self.open.payload);
        let flight = self.in_flight.as_ref().map(|flight| &flight.sealed);
        let flight = flight.map(|sealed| (&sealed.segment, sealed.first, &*sealed.payload));
        for (held, first, payload) in [Some(open), flight].into_iter().flatten() {
            let pages = pages_for(payload.len());
            if held.head.number == segment && (first..first + pages).contains(&page) {
                let at = usize::try_from(page - first).unwrap_or(usize::MAX) * PAYLOAD + into;
                return read_buffered(payload, at);
            }
        }
        records
            .read(position)
            .map_err(|error| unavailable(&error.whole()))
    }

    /// Files an answer behind the newest batch; gives it back if that is durable already.
    fn await_durable(&mut self, waiting: Waiting) -> Option<(Job, Result<Answer, LedgerError>)> {
        let load = waiting.job.work.weight();
        if is_on(Mutant::AnswersBeforeTheSync) {
            return Some((waiting.job, waiting.answer));
        }
        if !self.open.payload.is_empty() {
            self.open.load += load;
            self.open.jobs.push(waiting);
        } else if let Some(in_flight) = &mut self.in_flight {
            in_flight.load += load;
            in_flight.jobs.push(waiting);
        } else {
            return Some((waiting.job, waiting.answer));
        }
        None
    }

    /// Whether the writer has something to do.
    pub(super) fn has_batch(&self) -> bool {
        !self.open.payload.is_empty() && self.in_flight.is_none()
    }

    /// The open batch as it is: segment, first page, payload. For the mutant that writes it too early.
    pub(super) fn opened(&self) -> Option<(Arc<Segment>, u32, Vec<u8>)> {
        let open = &self.open;
        (!open.payload.is_empty()).then(|| (Arc::clone(&open.segment), open.first, open.payload.clone()))
    }

    /// Seals the open batch and begins the next one behind it.
    pub(super) fn seal(&mut self) -> Sealed {
        let pages = pages_for(self.open.payload.len());
        // The next batch will be about as large.
        let payload = Vec::with_capacity(self.open.payload.len());
        let jobs = Vec::with_capacity(self.open.jobs.len());
        let sealed = Sealed {
            segment: Arc::clone(&self.open.segment),
            first: self.open.first,
            batch: self.open.batch,
            payload: Arc::new(std::mem::replace(&mut self.open.payload, payload)),
            entries: self.books.entries(),
        };
        self.in_flight = Some(InFlight {
            sealed: sealed.clone(),
            jobs: std::mem::replace(&mut self.open.jobs, jobs),
            load: std::mem::take(&mut self.open.load),
        });
        self.open.first += pages;
        self.open.batch += 1;
        self.since_cut += u64::from(pages) * crate::store::embedded::page::PAGE as u64;
        sealed
    }

    /// Asks for a checkpoint with everything decided so far: at once, or once the open batch is sealed.
    pub(super) fn want_cut(&mut self) {
        self.cut_due = true;
        self.begin_cut();
    }

    /// Whether nothing more is to be begun.
    pub(super) fn is_ending(&self) -> bool {
        self.closing || self.stopped.is_some()
    }

    /// Begins a checkpoint after the newest sealed batch, if none is under way. Only with an empty open batch.
    pub(super) fn begin_cut(&mut self) {
        if self.cut.is_some() || !self.open.payload.is_empty() {
            return;
        }
        self.cut_due = false;
        let batch = self.open.batch - 1;
        let full = self.next_full;
        self.books.begin_snapshot(full);
        self.since_cut = 0;
        let mark = (self.durable.batch == batch).then_some(self.durable);
        self.cut = Some(Cut { batch, mark, full });
    }

    /// The batch in flight is durable.
    pub(super) fn committed(&mut self, end: Mark) -> Answers {
        self.durable = end;
        if let Some(cut) = &mut self.cut
            && cut.batch == end.batch
        {
            cut.mark = Some(end);
        }
        let Some(flight) = self.in_flight.take() else {
            return Answers::new();
        };
        self.durable_entries = flight.sealed.entries;
        let jobs = flight.jobs.into_iter();
        jobs.map(|waiting| (waiting.job, waiting.answer)).collect()
    }

    /// Stops for good and says what is true of everything that waits: what may be on disk is unknown, what was never
    /// written did not happen, and a repetition of an earlier answer proves nothing.
    pub(super) fn stop(&mut self, reason: &str) -> Answers {
        let reason = self.stopped.get_or_insert_with(|| reason.to_owned()).clone();
        let unknown = || LedgerError::OutcomeUnknown {
            reason: reason.clone(),
        };
        let mut answers = Vec::new();
        for waiting in self.in_flight.take().into_iter().flat_map(|flight| flight.jobs) {
            let error = match (waiting.wrote, &waiting.answer) {
                (None, Err(_)) => unavailable(&reason),
                _ => unknown(),
            };
            answers.push((waiting.job, Err(error)));
        }
        self.open.payload.clear();
        for waiting in std::mem::take(&mut self.open.jobs) {
            let error = match (waiting.wrote, &waiting.answer) {
                (None, Ok(_)) => unknown(),
                (Some(first), _) if first < self.open.batch => unknown(),
                _ => unavailable(&reason),
            };
            answers.push((waiting.job, Err(error)));
        }
        answers
    }
}

fn read_buffered(payload: &[u8], at: usize) -> Result<Record, LedgerError> {
    let record = payload.get(at..).and_then(|from| {
        let (length, from) = from.split_first_chunk()?;
        from.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)
    });
    let broken = || unavailable("a record that is not written yet cannot be read");
    record::decode(record.ok_or_else(broken)?).map_err(|_| broken())
}

pub(super) fn unavailable(reason: &str) -> LedgerError {
    LedgerError::Unavailable {
        reason: reason.to_owned(),
    }
}
