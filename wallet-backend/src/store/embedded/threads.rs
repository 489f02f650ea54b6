//! The store's own threads: one writes batches, one prepares the next segment, one writes checkpoints, and one, where
//! it is wanted, publishes the daily root.
//!
//! The writer is the only one that writes to the log. It takes the whole open batch when the sync of the one before
//! has returned, never earlier: that is what lets a reader of the log tell a torn end from damage.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::mutants::{Mutant, Seed, is_on};
use crate::store::embedded::checkpoint::{Checkpoints, Written};
use crate::store::embedded::daily::{Daily, publish_roots};
use crate::store::embedded::segment::{MAX_PAGES, Mark, Segment, SegmentHead};
use crate::store::embedded::shared::{Reached, Shared};
use crate::store::embedded::state::{Cut, Next, Sealed};
use crate::store::embedded::write::write_batch;
use crate::sync::thread::{Builder, JoinHandle};

/// Accounts that are captured for a checkpoint under one hold of the lock: well under a millisecond.
const CAPTURE: usize = 256;

/// How the threads behave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Pages of a segment.
    pub(super) segment_pages: u32,
    /// A checkpoint is due after this many bytes of log.
    pub(super) checkpoint_bytes: u64,
    /// At closing, after this many: less is quicker to replay than one more run is to keep.
    pub(super) checkpoint_bytes_at_close: u64,
    /// After this long a segment that could not be prepared is tried again.
    pub(super) retry: Duration,
}

/// Starts them all; the last one if roots are wanted.
///
/// # Errors
/// The system has no thread to give.
pub(super) fn start(
    shared: &Arc<Shared>,
    pace: Pace,
    checkpoints: Checkpoints,
    daily_root: Option<Daily>,
) -> io::Result<Vec<JoinHandle<()>>> {
    let seed = Seed::here();
    let named = |name: &str| Builder::new().name(format!("ledger-{name}"));
    let for_writer = Arc::clone(shared);
    let mut threads = vec![named("log").spawn(move || {
        seed.sow();
        guard(&for_writer, |shared| write_batches(shared, pace));
        for_writer.lock().writer_ended = true;
        for_writer.save.notify_all();
        for_writer.space.notify_all();
    })?];
    let for_preparer = Arc::clone(shared);
    threads.push(named("space").spawn(move || {
        seed.sow();
        guard(&for_preparer, |shared| prepare_segments(shared, pace));
    })?);
    let for_saver = Arc::clone(shared);
    threads.push(named("checkpoint").spawn(move || {
        seed.sow();
        guard(&for_saver, |shared| save_checkpoints(shared, checkpoints));
    })?);
    if let Some(daily) = daily_root {
        let for_roots = Arc::clone(shared);
        threads.push(named("roots").spawn(move || {
            guard(&for_roots, |shared| publish_roots(shared, &daily));
        })?);
    }
    Ok(threads)
}

/// A panic of one thread stops the store: nobody may wait for it for ever.
fn guard(shared: &Shared, work: impl FnOnce(&Shared)) {
    struct Alarm<'a>(&'a Shared);
    impl Drop for Alarm<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                self.0.stop("a thread of the store panicked");
            }
        }
    }
    let alarm = Alarm(shared);
    work(shared);
    drop(alarm);
}

fn write_batches(shared: &Shared, pace: Pace) {
    while let Some((sealed, before)) = next_batch(shared, pace) {
        let written = write_batch(&sealed.segment, sealed.first, &before, 0, &sealed.payload)
            .and_then(|end| sync(shared, &sealed.segment, &end).map(|()| end));
        match written {
            Ok(end) => {
                let (answers, durable) = {
                    let mut state = shared.lock();
                    (state.committed(end), Reached::of(&state))
                };
                shared.save.notify_all();
                shared.announce(durable, answers);
            }
            // The batch may be on disk, in part or whole, now or later. Only reading the log again can tell.
            Err(error) => shared.stop(&format!("writing the log failed: {error}")),
        }
    }
    // Whoever stopped the store may have died of it: nobody shall wait for an answer that cannot come.
    let stopped = shared.lock().stopped.clone();
    if let Some(reason) = stopped {
        shared.stop(&reason);
    }
}

fn is_cutting(shared: &Shared) -> bool {
    let state = shared.lock();
    state.cut.is_some() && state.stopped.is_none()
}

fn sync(shared: &Shared, segment: &Segment, end: &Mark) -> io::Result<()> {
    if is_on(Mutant::SyncsNothing) {
        return Ok(());
    }
    if is_on(Mutant::WritesBesideTheSync) {
        return sync_beside_the_next(shared, segment, end);
    }
    match segment.file.sync() {
        Err(_) if is_on(Mutant::GoesOnAfterAFailedSync) => Ok(()),
        synced => synced,
    }
}

/// What a mutant does: while this batch is synced, the next one is written already, as far as it has come.
fn sync_beside_the_next(shared: &Shared, segment: &Segment, end: &Mark) -> io::Result<()> {
    std::thread::scope(|scope| {
        let syncing = scope.spawn(|| segment.file.sync());
        loop {
            let synced = syncing.is_finished();
            let opened = shared.lock().opened();
            if let Some((segment, first, payload)) = opened {
                write_batch(&segment, first, end, 0, &payload)?;
                break;
            }
            if synced {
                break;
            }
            std::thread::yield_now();
        }
        syncing.join().unwrap_or(Ok(()))
    })
}

/// Waits for a batch and seals it. `None` when there is nothing more to come.
fn next_batch(shared: &Shared, pace: Pace) -> Option<(Sealed, Mark)> {
    let mut state = shared.lock();
    loop {
        if state.stopped.is_some() {
            return None;
        }
        if state.has_batch() {
            let sealed = state.seal();
            let before = state.durable;
            let due = state.cut_due || state.since_cut >= pace.checkpoint_bytes;
            if due && state.cut.is_none() {
                state.begin_cut();
                shared.save.notify_all();
            }
            drop(state);
            while is_on(Mutant::PublishesCheckpointsEarly) && is_cutting(shared) {
                std::thread::sleep(Duration::from_millis(1));
            }
            shared.announce_room();
            return Some((sealed, before));
        }
        if state.closing {
            if state.since_cut >= pace.checkpoint_bytes_at_close {
                state.begin_cut();
            }
            return None;
        }
        state = shared.wait(&shared.work, state);
    }
}

fn prepare_segments(shared: &Shared, pace: Pace) {
    while let Some(head) = next_segment(shared, pace) {
        let prepared = Segment::prepare(shared.disk.as_ref(), head);
        shared.lock().next = match prepared {
            Ok(segment) => Next::Ready(Arc::new(segment)),
            Err(error) => {
                tracing::warn!(segment = head.number, %error, "no room for the next segment");
                Next::Failed(error.to_string())
            }
        };
        shared.announce_room();
    }
}

fn next_segment(shared: &Shared, pace: Pace) -> Option<SegmentHead> {
    let mut state = shared.lock();
    loop {
        if state.stopped.is_some() || state.writer_ended {
            return None;
        }
        match state.next {
            Next::Wanted => break,
            Next::Failed(_) => {
                let waited = shared.space.wait_timeout(state, pace.retry);
                let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                state = woken;
                if timeout.timed_out() {
                    break;
                }
            }
            Next::Idle | Next::Preparing | Next::Ready(_) => state = shared.wait(&shared.space, state),
        }
    }
    state.next = Next::Preparing;
    let in_use = state.segment().head;
    Some(SegmentHead {
        store: in_use.store,
        number: in_use.number.saturating_add(1),
        pages: pace.segment_pages.min(MAX_PAGES),
        previous: in_use.number,
        replaces: None,
    })
}

fn save_checkpoints(shared: &Shared, mut checkpoints: Checkpoints) {
    while let Some(cut) = next_cut(shared) {
        let written = save(shared, &mut checkpoints, &cut);
        let mut state = shared.lock();
        state.books.end_snapshot();
        state.cut = None;
        match written {
            Ok((next_full, mark)) => (state.next_full, state.saved) = (next_full, mark),
            Err(error) => {
                tracing::warn!(%error, "a checkpoint failed; the log is complete without it");
                state.next_full = true;
                state.failed_saves = state.failed_saves.saturating_add(1);
            }
        }
        drop(state);
        shared.saved.notify_all();
    }
}

fn next_cut(shared: &Shared) -> Option<Cut> {
    let mut state = shared.lock();
    loop {
        match &state.cut {
            _ if state.stopped.is_some() => return None,
            Some(cut) => return Some(cut.clone()),
            None if state.writer_ended => return None,
            None => state = shared.wait(&shared.save, state),
        }
    }
}

/// Writes one checkpoint with its run. Returns whether the next one should hold every account again, and its mark.
fn save(shared: &Shared, checkpoints: &mut Checkpoints, cut: &Cut) -> io::Result<(bool, Mark)> {
    let mut file = checkpoints.begin(shared.disk.as_ref())?;
    let accounts = loop {
        let (bytes, done) = shared.lock().books.capture_some(CAPTURE);
        file.write(&bytes)?;
        if let Some(accounts) = done {
            break accounts;
        }
    };
    let older = Arc::clone(&shared.lock().books.older);
    let items = older.frozen_items();
    let mark = loop {
        let state = shared.lock();
        if state.stopped.is_some() {
            return Err(io::Error::other("the store has stopped"));
        }
        match state.cut.as_ref().and_then(|cut| cut.mark) {
            Some(mark) => break mark,
            None if is_on(Mutant::PublishesCheckpointsEarly) => break state.durable,
            // Published only once the log is durable to where the checkpoint ends.
            None => drop(shared.wait(&shared.save, state)),
        }
    };
    let Written { run, next_full } =
        checkpoints.publish(shared.disk.as_ref(), file, cut.full, mark, accounts, &items)?;
    if let Some(run) = run {
        let mut state = shared.lock();
        let older = Arc::make_mut(&mut state.books.older);
        older.frozen.clear();
        older.runs.push(Arc::new(run));
    }
    checkpoints.remove_superseded(shared.disk.as_ref())?;
    Ok((next_full, mark))
}
