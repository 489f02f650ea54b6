//! What wakes the watching thread: the folder changed, a reload was asked for, or it is time to stop.
//!
//! Rings are flags, not a queue: any number of them is one look at the folder.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

/// Shared between those who ring and the one thread that waits.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rung: Mutex<Rung>,
    ring: Condvar,
}

/// What was rung for since the last wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rung {
    pub(super) changed: bool,
    pub(super) reload: bool,
    pub(super) stop: bool,
}

impl Bell {
    pub(super) fn changed(&self) {
        self.lock().changed = true;
        self.ring.notify_one();
    }

    pub(super) fn reload(&self) {
        self.lock().reload = true;
        self.ring.notify_one();
    }

    pub(super) fn stop(&self) {
        self.lock().stop = true;
        self.ring.notify_one();
    }

    /// Waits for a ring, at most so long, and takes it.
    pub(super) fn wait(&self, at_most: Duration) -> Rung {
        let silent = |rung: &mut Rung| *rung == Rung::default();
        let waited = self.ring.wait_timeout_while(self.lock(), at_most, silent);
        let (mut rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *rung)
    }

    /// Flags are whole at every moment, so a panic elsewhere leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, Rung> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How changes of the folder are noticed.
#[derive(Debug)]
pub(super) enum Notice {
    /// By the kernel's events, for as long as the watcher lives, for the folder that was `of` when they were asked for.
    Events {
        _watcher: RecommendedWatcher,
        of: Option<FolderId>,
    },
    /// Only by looking: there are no events to be had (inotify is exhausted, the folder is away).
    Looking,
}

/// Device and inode: a folder that was deleted and made anew, or a link that points elsewhere, is another.
type FolderId = (u64, u64);

impl Notice {
    /// Events for a folder, or the reason why there are none.
    pub(super) fn events(dir: &Path, bell: &Arc<Bell>) -> notify::Result<Self> {
        let bell = Arc::clone(bell);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // An error (an overflow, a watch that died) means that something may have been missed.
            if event.map_or(true, |event| is_change(event.kind)) {
                bell.changed();
            }
        })?;
        let of = folder_id(dir);
        watcher.watch(dir, RecursiveMode::NonRecursive)?;
        Ok(Self::Events {
            _watcher: watcher,
            of,
        })
    }

    /// Whether the events, if any, are those of the folder that is there now.
    pub(super) fn is_of(&self, dir: &Path) -> bool {
        match self {
            Self::Events { of, .. } => of.is_some() && *of == folder_id(dir),
            Self::Looking => false,
        }
    }
}

/// Opening and reading files, as every look does, is no change.
const fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    }
}

fn folder_id(dir: &Path) -> Option<FolderId> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::metadata(dir).ok()?;
    Some((meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_rings_is_one() {
        let bell = Bell::default();
        bell.changed();
        bell.changed();
        bell.reload();
        assert_eq!(
            bell.wait(Duration::ZERO),
            Rung {
                changed: true,
                reload: true,
                stop: false
            }
        );
        assert_eq!(bell.wait(Duration::ZERO), Rung::default());
    }

    #[test]
    fn looking_at_a_file_is_no_change() {
        assert!(!is_change(EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert!(!is_change(EventKind::Access(AccessKind::Close(AccessMode::Read))));
        assert!(is_change(EventKind::Access(AccessKind::Close(AccessMode::Write))));
    }
}
