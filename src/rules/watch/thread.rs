//! The watching thread: waits, looks, publishes. What it decides is decided in `follow`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::super::{Place, RuleError, Source, folder};
use super::bell::{Bell, Notice};
use super::follow::{Follower, Verdict};
use super::{OnSwap, RuleStore, RulesStatus, WatchOptions, keep_copy, log_errors};
use crate::clock::{Clock, Tick};

/// How long until the folder is looked at though no event came.
const RESCAN: Duration = Duration::from_secs(2);

/// The same where there are no events: an edit is still in force within a second.
const RESCAN_BLIND: Duration = Duration::from_millis(500);

/// How long until events are asked for again: where inotify is exhausted, each try costs a thread.
const RETRY: Duration = Duration::from_secs(1);

/// What two scans so far apart agree about, with no event in between, is not being written at this moment. With the most
/// such waits per look: an edit is in force within a second even if the writer of another file never ends.
const SETTLE: (Duration, u32) = (Duration::from_millis(50), 6);

/// The same where there are no events to tell of a writer.
const SETTLE_BLIND: (Duration, u32) = (Duration::from_millis(200), 2);

/// A file that was not closed counts all the same once its writer has been quiet for so long: some never close it.
const QUIET: Duration = Duration::from_secs(2);

/// Whether the kernel is asked for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    Events,
    #[cfg(test)]
    Looking,
    /// With events, and whoever does not close a file is waited for.
    #[cfg(test)]
    Patient,
}

impl Sight {
    const fn quiet(self) -> Duration {
        match self {
            Self::Events => QUIET,
            #[cfg(test)]
            Self::Looking => QUIET,
            #[cfg(test)]
            Self::Patient => Duration::MAX,
        }
    }

    const fn has_events(self) -> bool {
        match self {
            Self::Events => true,
            #[cfg(test)]
            Self::Patient => true,
            #[cfg(test)]
            Self::Looking => false,
        }
    }
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
            if sight.has_events() && !notice.is_of(&self.options.dir) && next_try <= self.clock.now() {
                notice = self.renew(&mut warned);
                next_try = self.clock.now().after(RETRY);
            }
            let Some((scan, mut written)) = self.scan(&notice, sight.quiet()) else {
                return;
            };
            let (writing, quiet_at) = self.bell.being_written(sight.quiet(), self.clock.now());
            written.extend(writing);
            self.look(scan, &written, again);
            let rung = self.bell.wait(self.patience(&notice, quiet_at));
            if rung.stop {
                return;
            }
            again = rung.reload;
        }
    }

    /// Asks for events anew; complains about the first time that there are none.
    fn renew(&self, warned: &mut bool) -> Notice {
        match Notice::events(&self.options.dir, &self.bell, self.clock) {
            Ok(notice) => notice,
            Err(error) => {
                if !std::mem::replace(warned, true) {
                    tracing::warn!(%error, "no events for the rules folder: looking at it twice a second instead");
                }
                Notice::Looking
            }
        }
    }

    /// How long to wait for a ring; until `quiet_at` at most, when a file that nobody closed begins to count.
    fn patience(&self, notice: &Notice, quiet_at: Option<Tick>) -> Duration {
        let rescan = if matches!(notice, Notice::Looking) {
            RESCAN_BLIND
        } else {
            RESCAN
        };
        let due = self.follower.due().into_iter().chain(quiet_at).min();
        due.map_or(rescan, |due| due.since(self.clock.now()).min(rescan))
    }

    /// What is in the folder. If that is news, it is what two scans in a row found, with the names of the files that
    /// were being written at the second or did not come to rest in time; nothing if it is time to stop.
    fn scan(&self, notice: &Notice, quiet: Duration) -> Option<(Scan, Vec<OsString>)> {
        let (settle, most) = if matches!(notice, Notice::Looking) {
            SETTLE_BLIND
        } else {
            SETTLE
        };
        let mut scan = folder::read(&self.options.dir);
        let mut written = Vec::new();
        for _ in 0..most {
            if !self.follower.is_news(&scan) {
                break;
            }
            let rung = self.bell.pause(settle);
            if rung.reload {
                self.bell.reload();
            }
            if rung.stop {
                return None;
            }
            (written, _) = self.bell.being_written(quiet, self.clock.now());
            let before = std::mem::replace(&mut scan, folder::read(&self.options.dir));
            written.extend(rewritten(&before, &scan));
            if !rung.changed && before == scan {
                break;
            }
        }
        Some((scan, written))
    }

    fn look(&mut self, scan: Scan, written: &[OsString], again: bool) {
        let grace_was_running = self.follower.due().is_some();
        let verdict = self.follower.look(scan, written, again, self.clock.now());
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

type Scan = Result<Vec<Source>, RuleError>;

/// The names of the files whose contents differ between two scans.
fn rewritten(before: &Scan, after: &Scan) -> Vec<OsString> {
    let (Ok(before), Ok(after)) = (before, after) else {
        return Vec::new();
    };
    let differs = |source: &&Source| {
        let old = before.iter().find(|old| old.path == source.path);
        old.is_some_and(|old| old.bytes != source.bytes)
    };
    let names = after
        .iter()
        .filter(differs)
        .filter_map(|source| source.path.file_name());
    names.map(OsString::from).collect()
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
