//! The embedded engine: the log is the ledger. One machine, one process, no replication.
//!
//! Every decided task is one record in an append-only log of effects. An operation is acknowledged when the log is
//! durable to it, and everything else here is derived from the log and can be rebuilt from it. Reading from top to
//! bottom:
//!
//! # Files
//! | name | what | module |
//! |---|---|---|
//! | the directory itself | `flock`: one process at a time | [`disk`] |
//! | `log/NNNNNNNNNN.seg` | the log: segments of 4 KiB pages, zero-filled ahead, used once | `segment`, `page` |
//! | `state/NNNNNNNNNN.ckpt` | checkpoints: every account (base), or those that changed (delta) | `checkpoint`, `blocks` |
//! | `index/NNNNNNNNNN.run` | where the requests up to a checkpoint are, sorted by fingerprint | `run`, `blocks` |
//! | `roots/YYYY-MM-DD.ndjson` | the root of the history at a day's end, published | `roots`, `daily` |
//! | `heads/NNNNNNNNNN.heads` | the heads of the chains under the newest root | `heads`, `blocks` |
//!
//! Every file begins with a magic number and a format version; an unknown version is refused by name.
//!
//! # Writing: group commit with early lock release
//! Deciding ([`Store::run`]) happens under one mutex, over rows in memory, and appends the record to the open batch
//! (`state`). One thread (`threads`) takes the whole open batch, writes its pages, calls `fdatasync`, and only then
//! gives the answers that waited for it. Meanwhile the next batch fills. Batch n + 1 is written only after the sync of
//! batch n has returned.
//!
//! **Every answer waits until the log is durable up to the newest batch that its decision saw**: receipts, refusals,
//! replays, reads. A failed write or sync of a batch stops the store for good, since nothing more can be known of the
//! file: what was in flight is `OutcomeUnknown`, what was never written is `Unavailable`. No room for the next segment
//! is `Unavailable` until there is room: a record is only decided once it has its place.
//!
//! Every record counts the entries before it. That number is an event's name for ever: places in the log change when a
//! tail is written again, numbers do not (`events`).
//!
//! # Recovery rules (`scan`), each with its reason
//! 1. A page with all eight sector stamps and a wrong checksum is damage, wherever it is: it was written whole.
//! 2. A batch that lacks a page or a stamp is torn: it is dropped, with all its pages, if nothing follows. It was never
//!    acknowledged, as its sync had not returned.
//! 3. If something follows a torn batch, it is damage: what follows was written after that batch's sync.
//! 4. Damage is never repaired or skipped: opening is refused, with segment and byte.
//! 5. At opening (`open`) everything after the newest checkpoint is written again into a fresh segment and synced
//!    before the first answer: the page cache is not the disk. The segment's head names the place from which it
//!    replaces the old tail (`layout`), and it counts once its closing page is whole.
//! 6. Checkpoints and runs are derived: damage in one is reported, and more of the log is read instead. They are
//!    published only once the log is durable to their mark, so a log that does not reach it has lost something: refused.
//!
//! A sector of the last batch that a disk loses after it said it was synced looks like a torn one: the stated limit.
//!
//! # Bounds
//! Memory: an account takes some 300 bytes, whatever its history; a request takes 16 bytes until the next checkpoint
//! and about 10 bits after it (the filter of its run; the request itself stays on disk for ever). Open batch and
//! batch in flight: 8 MiB and 8 192 jobs each. Open files for reading: 32.
//! Disk: a lone operation costs a 4 KiB page; opening writes such pages again densely, after a checkpoint they stay.

use std::sync::{Arc, Mutex, PoisonError};

use crate::account::{AccountId, RequestId, SlotIndex};
use crate::clock::Clock;
use crate::command::{AccountView, HoldView, LedgerError, PastView, RequestView};
use crate::ledger::decide::Context;
use crate::store::embedded::daily::Daily;
use crate::store::embedded::disk::Lock;
use crate::store::embedded::links::Chain;
use crate::store::embedded::look_up::{Candidates, failed_read};
use crate::store::embedded::open::{Opened, Tail};
use crate::store::embedded::readers::{Readers, blocking};
use crate::store::embedded::requests::Filed;
use crate::store::embedded::shared::Shared;
use crate::store::embedded::state::{Next, State};
use crate::store::embedded::statement::{SlotEntries, SlotReader};
use crate::store::embedded::threads::Pace;
use crate::store::page::merge;
use crate::store::{
    self, Cursor, EntryPage, EventCursor, EventPage, FEW, GeneralLedger, Job, Moment, Preference, Store,
    new_id,
};
use crate::sync::MutexGuard;
use crate::sync::thread::JoinHandle;

mod accounts;
mod backup;
mod blocks;
mod books;
mod checkpoint;
mod cuts;
mod daily;
pub mod disk;
mod error;
mod events;
mod explain;
mod export;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod general_ledger;
mod heads;
mod history;
#[cfg(feature = "import")]
mod import;
mod layout;
mod links;
mod live;
mod look_up;
mod open;
mod options;
mod page;
mod past;
mod readers;
mod record;
mod records;
mod report;
mod requests;
mod roots;
mod rows;
mod run;
mod scan;
mod segment;
mod shared;
#[cfg(feature = "sqlite")]
mod sqlite;
mod state;
mod statement;
mod sums;
mod threads;
mod verify;
mod write;

pub use backup::{Backup, BackupError, Phase, Restored, backup, restore};
pub use error::{Damage, OpenError};
pub use explain::{Decided, ExplainError, Explained, Found, LogPlace, Then, explain};
pub use export::{ExportError, export};
#[cfg(feature = "import")]
pub use import::{ImportError, Imported, import};
pub use layout::is_there;
pub use options::Options;
pub use report::{Finding, Report};
#[cfg(feature = "sqlite")]
pub use sqlite::export_database;
pub use verify::{VerifyError, verify, verify_against, verify_on};

/// A ledger in a directory.
#[derive(Debug)]
pub struct Embedded {
    shared: Arc<Shared>,
    clock: Clock,
    preference: Preference,
    readers: Readers,
    running: Mutex<Option<Running>>,
}

/// A list holds up deciding for so many accounts at a time.
const LISTED_AT_A_TIME: usize = 64;

/// One moment of the ledger.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// The batch to wait for.
    batch: u64,
    /// Entries of all accounts.
    entries: u64,
}

/// Of an account, what its statement is read from.
type SlotChains = Vec<(SlotIndex, Chain)>;

/// What ends with the store.
#[derive(Debug)]
struct Running {
    threads: Vec<JoinHandle<()>>,
    /// Falls last: then the directory is free.
    lock: Box<dyn Lock>,
}

impl Embedded {
    /// Opens a directory, made if it is missing: reads the newest checkpoint and the log after it. Blocks.
    ///
    /// # Errors
    /// [`OpenError`]: in use, damaged, of an unknown version, or what the file system says.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let disk = Arc::clone(&options.disk);
        disk.create_folder("")
            .map_err(OpenError::io("make the data directory"))?;
        let lock = open::take_lock(disk.as_ref())?;
        let tail = Tail {
            most: options.rewrite_bytes,
            spare_pages: Options::pages(options.fresh_bytes, 1),
        };
        let Opened {
            store,
            books,
            segment,
            parts,
            end,
            checkpoints,
            saved,
            tail,
        } = open::open(&disk, tail, new_id())?;
        let daily_root = options.daily_root.map(|every| Daily {
            clock: options.clock.clone(),
            every,
            began: (end.batch == 0).then(|| options.clock.now()),
        });
        let mut state = State::new(books, (segment, parts), end, tail, !checkpoints.has_base());
        state.saved = saved;
        let shared = Arc::new(Shared::new(disk, store, state));
        let pace = Pace {
            segment_pages: Options::pages(options.segment_bytes, 16),
            checkpoint_bytes: options.checkpoint_bytes,
            checkpoint_bytes_at_close: options.checkpoint_bytes / 16,
            retry: options.retry,
        };
        let threads = threads::start(&shared, pace, checkpoints, daily_root).map_err(|error| {
            // Those that did start have nothing to do and end at this.
            shared.stop("not all of its threads could be started");
            OpenError::io("start the store's threads")(error)
        })?;
        Ok(Self {
            shared,
            clock: options.clock,
            preference: options.preference,
            readers: Readers::new(),
            running: Mutex::new(Some(Running { threads, lock })),
        })
    }

    /// Ends the threads once everything decided is written, and frees the directory.
    fn end(running: Running) {
        for thread in running.threads {
            // A thread that panicked has stopped the store already, and said so.
            drop(thread.join());
        }
        drop(running.lock);
    }

    fn begin_closing(&self) -> Option<Running> {
        self.shared.lock().closing = true;
        self.shared.work.notify_all();
        self.shared.announce_closing();
        self.shared.roots.notify_all();
        self.running.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Every slot's chain, and what it is as of.
    fn chains(&self, id: &AccountId) -> Result<(Cut, Option<SlotChains>), LedgerError> {
        let state = self.reading()?;
        let slots = state.books.get(id).map(|held| {
            let slots = held.rows.slots().iter();
            slots
                .filter_map(|slot| Some((slot.index, held.chains.of(slot.index)?.clone())))
                .collect()
        });
        let cut = Cut {
            batch: state.newest(),
            entries: state.books.entries(),
        };
        Ok((cut, slots))
    }

    fn reading(&self) -> Result<MutexGuard<'_, State>, LedgerError> {
        let state = self.shared.lock();
        match state.refusal() {
            Some(refusal) => Err(refusal),
            None => Ok(state),
        }
    }
}

impl Store for Embedded {
    async fn run(&self, jobs: Vec<Job>) {
        let many = jobs.iter().map(|job| job.work.weight()).sum::<usize>() >= FEW;
        let mut room = self.shared.room();
        let (mut jobs, mut put_back) = (jobs.into_iter(), None);
        loop {
            room.mark_unchanged();
            let wake = self.shared.waking();
            let (answers, wants_space, begins, broken) = {
                let mut state = self.shared.lock();
                // What is decided under one lock is decided at one moment.
                let now = self.clock.now();
                let mut context = || Context {
                    now,
                    prefer: self.preference.next(),
                };
                let answers = state.take_jobs(&mut jobs, &mut put_back, &mut context, &self.shared.records);
                let wants_space = matches!(state.next, Next::Wanted);
                (answers, wants_space, state.has_batch(), state.stopped.clone())
            };
            drop(wake);
            if wants_space {
                self.shared.space.notify_one();
            }
            if let Some(reason) = broken {
                self.shared.stop(&reason);
            }
            for (job, answer) in answers {
                job.answer(answer);
            }
            if put_back.is_none() {
                // What is decided next may be long: the writer goes first, so that the disk has something to do.
                if many && begins {
                    drop(room.changed().await);
                }
                return;
            }
            if room.changed().await.is_err() {
                return;
            }
        }
    }

    async fn settled(&self) {
        let newest = self.shared.lock().newest();
        // It never will be where the store has stopped.
        drop(self.shared.durable(newest).await);
    }

    async fn account(&self, id: &AccountId) -> Result<Option<AccountView>, LedgerError> {
        let (newest, view) = {
            let state = self.reading()?;
            let now = self.clock.now();
            let held = state.books.get(id);
            (state.newest(), held.map(|held| held.rows.view(now)))
        };
        self.shared.durable(newest).await?;
        Ok(view)
    }

    async fn past(&self, id: &AccountId, moment: &Moment) -> Result<Option<PastView>, LedgerError> {
        past::read(self, id, moment).await
    }

    async fn accounts(
        &self,
        after: Option<&AccountId>,
        limit: usize,
    ) -> Result<Vec<AccountView>, LedgerError> {
        cuts::views(self, after, limit).await
    }

    async fn entries(
        &self,
        id: &AccountId,
        after: &Cursor,
        limit: usize,
    ) -> Result<Option<EntryPage>, LedgerError> {
        let (cut, slots) = self.chains(id)?;
        self.shared.durable(cut.batch).await?;
        let Some(slots) = slots else { return Ok(None) };
        let (shared, id, after) = (Arc::clone(&self.shared), id.clone(), after.clone());
        self.readers
            .page(move || {
                let step = u64::try_from(limit.div_ceil(slots.len().max(1))).unwrap_or(1);
                let slots = slots.into_iter().map(|slot| {
                    let seen = after.seen(slot.0);
                    let reader = SlotReader::new(&shared.records, &id, slot);
                    SlotEntries::after(reader, seen, step)
                });
                let page = merge(&after, slots, limit);
                page.map(Some).map_err(|error| failed_read(&error))
            })
            .await
    }

    async fn request(
        &self,
        account: &AccountId,
        request: &RequestId,
    ) -> Result<Option<RequestView>, LedgerError> {
        let (newest, known, found) = {
            let state = self.reading()?;
            let found = Candidates::of(
                &state.books,
                self.shared.store,
                (account, request),
                [Filed::Decision, Filed::Settlement],
            );
            (state.newest(), state.books.get(account).is_some(), found)
        };
        self.shared.durable(newest).await?;
        if !known {
            return Ok(None);
        }
        let (shared, account, request) = (Arc::clone(&self.shared), account.clone(), request.clone());
        self.readers
            .look_up(move || look_up::request(&shared.records, &account, &request, found).map(Some))
            .await
    }

    async fn hold(&self, account: &AccountId, hold: &RequestId) -> Result<Option<HoldView>, LedgerError> {
        let (newest, known, open, found) = {
            let state = self.reading()?;
            let held = state.books.get(account);
            let open = held.and_then(|held| held.rows.hold(hold));
            let open = open.map(|hold| hold.seen_at(self.clock.now()));
            let found = Candidates::of(&state.books, self.shared.store, (account, hold), [Filed::HoldEnd]);
            (state.newest(), held.is_some(), open, found)
        };
        self.shared.durable(newest).await?;
        if !known {
            return Ok(None);
        }
        if let Some(hold) = open {
            return Ok(Some(HoldView::Found(hold)));
        }
        let (shared, account, hold) = (Arc::clone(&self.shared), account.clone(), hold.clone());
        self.readers
            .look_up(move || look_up::ended_hold(&shared.records, &account, &hold, found).map(Some))
            .await
    }

    fn id(&self) -> u64 {
        self.shared.store
    }

    async fn events(
        &self,
        after: EventCursor,
        account: Option<&AccountId>,
        limit: usize,
    ) -> Result<Option<EventPage>, LedgerError> {
        let of = match account {
            None => None,
            Some(id) => {
                let (cut, slots) = self.chains(id)?;
                self.shared.durable(cut.batch).await?;
                let Some(slots) = slots else { return Ok(None) };
                Some((id.clone(), slots, cut.entries))
            }
        };
        let mut log = self.reading()?.durable_log();
        after.check(log.entries)?;
        let shared = Arc::clone(&self.shared);
        self.readers
            .page(move || {
                let page = match of {
                    None => events::of_all(&shared.records, &log, after, limit),
                    Some((id, slots, entries)) => {
                        log.entries = entries;
                        events::of_account(&shared.records, &log, after, (&id, slots), limit)
                    }
                };
                page.map(Some).map_err(|error| failed_read(&error))
            })
            .await
    }

    async fn event_after(&self, number: u64) -> Result<(), LedgerError> {
        self.shared.entry_after(number).await
    }

    fn newest_event(&self) -> u64 {
        self.shared.lock().durable_entries
    }

    async fn cuts(&self, ids: &[AccountId]) -> Result<Vec<store::Cut>, LedgerError> {
        cuts::standings(self, ids).await
    }

    async fn general_ledger(&self, opening: GeneralLedger) -> Result<GeneralLedger, LedgerError> {
        general_ledger::read(self, opening).await
    }

    async fn untidy(&self, limit: usize) -> Result<Vec<AccountId>, LedgerError> {
        let now = self.clock.now();
        let mut state = self.reading()?;
        Ok(state.books.untidy(limit, now))
    }

    async fn pending(&self) -> Result<u64, LedgerError> {
        Ok(self.reading()?.books.pending())
    }

    fn health(&self) -> Result<(), LedgerError> {
        self.reading().map(drop)
    }

    async fn close(&self) {
        if let Some(running) = self.begin_closing() {
            let ended = blocking(move || {
                Self::end(running);
                Ok(())
            });
            // Broken off with its runtime, the threads end all the same.
            drop(ended.await);
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if let Some(running) = self.begin_closing() {
            Self::end(running);
        }
    }
}

#[cfg(test)]
pub(crate) mod fixtures;
