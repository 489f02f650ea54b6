//! The mutex around the state, and how the threads wake each other.

use std::sync::{Arc, PoisonError};

use crate::command::LedgerError;
use crate::mutants::{Mutant, is_on};
use crate::store::embedded::disk::Disk;
use crate::store::embedded::records::Records;
use crate::store::embedded::state::{Answers, State, unavailable};
use crate::sync::{Condvar, Mutex, MutexGuard, watch};

/// How far the log is durable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reached {
    batch: u64,
    /// Entries of all accounts.
    entries: u64,
}

impl Reached {
    pub(super) fn of(state: &State) -> Self {
        Self {
            batch: state.durable.batch,
            entries: state.durable_entries,
        }
    }
}

/// What readers wait for.
#[derive(Clone, Copy, Debug)]
struct Progress {
    durable: Reached,
    stopped: bool,
    /// No more batches will come but those that are there.
    closing: bool,
}

/// What the store's threads and its callers share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) store: u64,
    pub(super) records: Records,
    state: Mutex<State>,
    /// Held by whoever is next to have the state: nobody overtakes, so a long decision is followed by who waited for it.
    turn: Mutex<()>,
    /// Wakes the writer, the preparer, the checkpointer, and the publisher of roots: at a checkpoint, and at the end.
    pub(super) work: Condvar,
    pub(super) space: Condvar,
    pub(super) save: Condvar,
    pub(super) saved: Condvar,
    pub(super) roots: Condvar,
    progress: watch::Sender<Progress>,
    /// Changes whenever there may be room for what waited.
    room: watch::Sender<()>,
}

impl Shared {
    pub(super) fn new(disk: Arc<dyn Disk>, store: u64, state: State) -> Self {
        let progress = Progress {
            durable: Reached::of(&state),
            stopped: false,
            closing: false,
        };
        Self {
            records: Records::new(Arc::clone(&disk), store),
            disk,
            store,
            state: Mutex::new(state),
            turn: Mutex::new(()),
            work: Condvar::new(),
            space: Condvar::new(),
            save: Condvar::new(),
            saved: Condvar::new(),
            roots: Condvar::new(),
            progress: watch::Sender::new(progress),
            room: watch::Sender::new(()),
        }
    }

    /// Wakes the writer once it falls, also when deciding panics: it is the one that then answers for the store.
    pub(super) fn waking(&self) -> Waking<'_> {
        Waking(self)
    }

    /// The state. Whoever panicked with it may have left it half changed: then the store has stopped.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.lock().unwrap_or_else(|poisoned| halt(poisoned))
    }

    /// Waits on a condition variable with the state.
    pub(super) fn wait<'a>(&self, on: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        on.wait(state).unwrap_or_else(halt)
    }

    /// A receiver that is told when there may be room.
    pub(super) fn room(&self) -> watch::Receiver<()> {
        self.room.subscribe()
    }

    /// Tells those who wait for room to look again.
    pub(super) fn announce_room(&self) {
        self.room.send_replace(());
    }

    /// A batch is durable: gives the answers, in that order.
    pub(super) fn announce(&self, durable: Reached, answers: Answers) {
        self.progress.send_modify(|progress| progress.durable = durable);
        self.give(answers);
    }

    /// No more jobs are taken: nobody shall wait for what they would bring.
    pub(super) fn announce_closing(&self) {
        self.progress.send_modify(|progress| progress.closing = true);
        self.announce_room();
    }

    fn give(&self, answers: Answers) {
        self.announce_room();
        for (job, answer) in answers {
            job.answer(answer);
        }
    }

    /// Stops for good.
    pub(super) fn stop(&self, reason: &str) {
        let answers = {
            let mut state = self.lock();
            if state.stopped.is_none() {
                tracing::error!(reason, "the store has stopped");
            }
            state.stop(reason)
        };
        self.progress.send_modify(|progress| progress.stopped = true);
        self.give(answers);
        self.work.notify_all();
        self.space.notify_all();
        self.save.notify_all();
    }

    /// Waits until `batch` is durable.
    ///
    /// # Errors
    /// `Unavailable` if the store stops before.
    pub(super) async fn durable(&self, batch: u64) -> Result<(), LedgerError> {
        if is_on(Mutant::ReadsBeforeTheSync) {
            return Ok(());
        }
        let mut progress = self.progress.subscribe();
        let reached = progress
            .wait_for(|progress| progress.durable.batch >= batch || progress.stopped)
            .await
            .map(|progress| progress.durable.batch >= batch);
        match reached {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(unavailable("the store stopped before it was durable")),
        }
    }

    /// Waits until an entry with a number above `number` is durable.
    ///
    /// # Errors
    /// `Unavailable` once the store stops or closes.
    pub(super) async fn entry_after(&self, number: u64) -> Result<(), LedgerError> {
        if is_on(Mutant::TellsEventsBeforeTheSync) {
            return Ok(());
        }
        let mut progress = self.progress.subscribe();
        let changed =
            |progress: &Progress| progress.durable.entries > number || progress.stopped || progress.closing;
        let reached = progress.wait_for(changed).await;
        match reached.map(|progress| progress.durable.entries > number) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(unavailable("the store ended before there was more")),
        }
    }
}

fn halt(poisoned: PoisonError<MutexGuard<'_, State>>) -> MutexGuard<'_, State> {
    let mut state = poisoned.into_inner();
    state
        .stopped
        .get_or_insert_with(|| "the store panicked".to_owned());
    state
}

/// See [`Shared::waking`].
#[must_use]
pub(super) struct Waking<'a>(&'a Shared);

impl Drop for Waking<'_> {
    fn drop(&mut self) {
        self.0.work.notify_one();
    }
}
