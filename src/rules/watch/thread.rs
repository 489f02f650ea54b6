//! The watching thread: waits, looks, publishes. What it decides is decided in `follow`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::super::{Place, RuleError, folder};
use super::bell::{Bell, Notice};
use super::follow::{Follower, Verdict};
use super::{OnSwap, RuleStore, RulesStatus, WatchOptions, keep_copy, log_errors};
use crate::clock::Clock;

/// How long until the folder is looked at though no event came.
const RESCAN: Duration = Duration::from_secs(2);

/// The same where there are no events: an edit is still in force within a second.
const RESCAN_BLIND: Duration = Duration::from_millis(500);

/// How long until events are asked for again: where inotify is exhausted, each try costs a thread.
const RETRY: Duration = Duration::from_secs(1);

/// A writer that was quiet for so long is done. Looking earlier would do no harm but complain about half a file.
const SETTLE: Duration = Duration::from_millis(50);

/// The most waits of [`SETTLE`] for one writer: an edit is in force within a second even if another never ends.
const MAX_SETTLES: u32 = 6;

/// Whether the kernel is asked for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    Events,
    #[cfg(test)]
    Looking,
}

/// Everything the thread owns.
pub(super) struct Watch {
    pub(super) options: WatchOptions,
    pub(super) clock: Clock,
    pub(super) follower: Follower,
    pub(super) store: Arc<RuleStore>,
    pub(super) bell: Arc<Bell>,
    pub(super) on_swap: OnSwap,
}

impl Watch {
    /// Follows the folder until the bell says stop.
    pub(super) fn run(mut self, sight: Sight) {
        let _obituary = Obituary {
            dir: Arc::new(self.options.dir.clone()),
            store: Arc::clone(&self.store),
        };
        let mut notice = Notice::Looking;
        let mut next_try = self.clock.now();
        let mut warned = false;
        let mut again = false;
        loop {
            if sight == Sight::Events && !notice.is_of(&self.options.dir) && next_try <= self.clock.now() {
                notice = self.renew(&mut warned);
                next_try = self.clock.now().after(RETRY);
            }
            self.look(again);
            let rung = self.bell.wait(self.patience(&notice));
            if rung.stop || (rung.changed && self.settle()) {
                return;
            }
            again = rung.reload;
        }
    }

    /// Asks for events anew; complains about the first time that there are none.
    fn renew(&self, warned: &mut bool) -> Notice {
        match Notice::events(&self.options.dir, &self.bell) {
            Ok(notice) => notice,
            Err(error) => {
                if !std::mem::replace(warned, true) {
                    tracing::warn!(%error, "no events for the rules folder: looking at it twice a second instead");
                }
                Notice::Looking
            }
        }
    }

    /// How long to wait for a ring.
    fn patience(&self, notice: &Notice) -> Duration {
        let rescan = if matches!(notice, Notice::Looking) {
            RESCAN_BLIND
        } else {
            RESCAN
        };
        self.follower
            .due()
            .map_or(rescan, |due| due.since(self.clock.now()).min(rescan))
    }

    /// Waits until the writer is done; whether it is time to stop. A reload asked for meanwhile is rung again.
    fn settle(&self) -> bool {
        for _ in 0..MAX_SETTLES {
            let rung = self.bell.wait(SETTLE);
            if rung.reload {
                self.bell.reload();
            }
            if rung.stop || !rung.changed {
                return rung.stop;
            }
        }
        false
    }

    fn look(&mut self, again: bool) {
        let grace_was_running = self.follower.due().is_some();
        let verdict = self
            .follower
            .look(folder::read(&self.options.dir), again, self.clock.now());
        if !grace_was_running {
            for file in self.follower.missing() {
                tracing::warn!(file = %file.display(), "a rule file is gone; it counts as present for two seconds");
            }
        }
        match verdict {
            Verdict::Same => {}
            Verdict::Good(set, sources) => {
                let resources = set.resources.len();
                let changed = self.store.accept(*set, &self.on_swap);
                tracing::info!(
                    changed,
                    resources,
                    generation = self.store.current().generation,
                    "rules in force"
                );
                keep_copy(&self.options, &sources);
            }
            Verdict::Bad(errors) => {
                self.store.refuse(&errors);
                log_errors(&errors);
            }
        }
    }
}

/// Says in the status that nobody follows the folder any more, if the thread ends by a panic.
struct Obituary {
    dir: Arc<PathBuf>,
    store: Arc<RuleStore>,
}

impl Drop for Obituary {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let message = "the thread that follows the rules has died; the rules in force stay".to_owned();
            let error = RuleError {
                place: Place::whole(&self.dir),
                message,
            };
            self.store.status.store(Arc::new(RulesStatus::bad(&[error])));
        }
    }
}
