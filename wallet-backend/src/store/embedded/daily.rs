//! The thread that publishes the daily root.

use std::sync::PoisonError;
use std::time::Duration;

use jiff::civil::Date;

use crate::account::Timestamp;
use crate::clock::Clock;
use crate::store::embedded::roots::{self, Published, RootFailure};
use crate::store::embedded::segment::Mark;
use crate::store::embedded::shared::Shared;

/// After a root that failed, the next try waits this much longer.
const AFTER_FAILURE: u32 = 6;
/// Whoever waits for a checkpoint looks this often whether the store is closing.
const LOOK: Duration = Duration::from_millis(100);

/// How roots are published.
#[derive(Debug)]
pub(super) struct Daily {
    pub(super) clock: Clock,
    /// How often the time of day is looked at.
    pub(super) every: Duration,
    /// When the store was made, if that was just now: it has no history of the day before.
    pub(super) began: Option<Timestamp>,
}

/// Publishes the root of every UTC day, until the store closes.
pub(super) fn publish_roots(shared: &Shared, daily: &Daily) {
    let Daily { clock, every, began } = daily;
    let every = *every;
    let mut newest = match roots::newest_day(shared.disk.as_ref()) {
        Ok(None) => began.and_then(|began| roots::due(None, began)),
        Ok(newest) => newest,
        Err(error) => {
            tracing::warn!(%error, "the published roots cannot be listed");
            None
        }
    };
    let mut wait = Duration::ZERO;
    while !pause(shared, wait) {
        wait = every;
        let Some(day) = roots::due(newest, clock.now()) else {
            continue;
        };
        match publish(shared, clock, every, day) {
            Ok(true) => newest = Some(day),
            // Closing.
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%day, %error, "the root of the day was not published; it is tried again");
                wait = every.saturating_mul(AFTER_FAILURE);
            }
        }
    }
}

/// Waits. `true` once the store is closing.
fn pause(shared: &Shared, wait: Duration) -> bool {
    let mut state = shared.lock();
    if !state.is_ending() {
        let waited = shared.roots.wait_timeout(state, wait);
        (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
    }
    state.is_ending()
}

/// `false` if the store began to close meanwhile.
fn publish(shared: &Shared, clock: &Clock, every: Duration, day: Date) -> Result<bool, RootFailure> {
    let Some(mark) = checkpoint(shared, every)? else {
        return Ok(false);
    };
    let at = clock.now();
    let stopping = || shared.lock().is_ending();
    let Some(root) = roots::root_at(shared.disk.as_ref(), shared.store, &mark, &stopping)? else {
        return Ok(false);
    };
    roots::publish(shared.disk.as_ref(), &Published { day, root, at })?;
    tracing::info!(%day, %root, "the root of the day; keep it elsewhere for verify --against");
    Ok(true)
}

/// The mark of a checkpoint that has everything decided before this call: its place in the log is final. `None` if
/// the store is closing.
fn checkpoint(shared: &Shared, every: Duration) -> Result<Option<Mark>, RootFailure> {
    let mut state = shared.lock();
    let (wanted, failed) = (state.newest(), state.failed_saves);
    loop {
        if state.is_ending() {
            return Ok(None);
        }
        if state.saved.batch >= wanted {
            return Ok(Some(state.saved));
        }
        if state.failed_saves != failed {
            return Err(std::io::Error::other("its checkpoint failed").into());
        }
        state.want_cut();
        shared.save.notify_all();
        let waited = shared.saved.wait_timeout(state, every.min(LOOK));
        (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
    }
}
