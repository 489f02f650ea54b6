//! What wakes the watching thread: the folder changed, a reload was asked for, or it is time to stop.
//!
//! Rings are flags, not a queue: any number of them is one look at the folder. The bell also knows which files someone
//! has begun to write and not closed yet, as far as the kernel tells.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::super::folder;
use crate::clock::{Clock, Tick};

/// Shared between those who ring and the one thread that waits.
#[derive(Debug, Default)]
pub(super) struct Bell {
    state: Mutex<State>,
    ring: Condvar,
}

#[derive(Debug, Default)]
struct State {
    rung: Rung,
    /// Rule files by name that were written to and not closed since, with the time of the last write. Only those of the
    /// last while: [`Bell::being_written`] forgets the others.
    writing: BTreeMap<OsString, Tick>,
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
        self.lock().rung.changed = true;
        self.ring.notify_one();
    }

    pub(super) fn reload(&self) {
        self.lock().rung.reload = true;
        self.ring.notify_one();
    }

    pub(super) fn stop(&self) {
        self.lock().rung.stop = true;
        self.ring.notify_one();
    }

    /// Waits for a ring, at most so long, and takes it.
    pub(super) fn wait(&self, at_most: Duration) -> Rung {
        self.wait_while(at_most, |rung| *rung == Rung::default())
    }

    /// Waits so long, or until it is time to stop, and takes what was rung for meanwhile.
    pub(super) fn pause(&self, time: Duration) -> Rung {
        self.wait_while(time, |rung| !rung.stop)
    }

    fn wait_while(&self, at_most: Duration, silent: impl Fn(&Rung) -> bool) -> Rung {
        let waited = self
            .ring
            .wait_timeout_while(self.lock(), at_most, |state| silent(&state.rung));
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.rung)
    }

    /// The files that someone is writing: written to within the last `quiet` and not closed. With the time at which the
    /// first of them will have been quiet for so long.
    pub(super) fn being_written(&self, quiet: Duration, now: Tick) -> (Vec<OsString>, Option<Tick>) {
        let mut state = self.lock();
        state.writing.retain(|_, last| now < last.after(quiet));
        let until = state.writing.values().min().map(|last| last.after(quiet));
        (state.writing.keys().cloned().collect(), until)
    }

    /// Takes an event of the folder in. An error (an overflow, a watch that died) means that something may have been
    /// missed.
    fn hear(&self, event: notify::Result<Event>, now: Tick) {
        let event = event.unwrap_or_else(|_| Event::new(EventKind::Any));
        if !is_change(event.kind) {
            return;
        }
        let mut state = self.lock();
        let names = event.paths.iter().filter(|path| folder::is_rule_file(path));
        for name in names.filter_map(|path| path.file_name().map(OsStr::to_owned)) {
            if is_write(event.kind) {
                state.writing.insert(name, now);
            } else if ends_writing(event.kind) {
                state.writing.remove(&name);
            }
        }
        drop(state);
        self.changed();
    }

    /// Everything in it is whole at every moment, so a panic elsewhere leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub(super) fn events(dir: &Path, bell: &Arc<Bell>, clock: Clock) -> notify::Result<Self> {
        let bell = Arc::clone(bell);
        let mut watcher = notify::recommended_watcher(move |event| bell.hear(event, clock.now()))?;
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

/// Truncating a file is a write, too.
const fn is_write(kind: EventKind) -> bool {
    matches!(kind, EventKind::Modify(ModifyKind::Data(_)))
}

/// Whether a file's name stands for a whole file again, or for none.
const fn ends_writing(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Modify(ModifyKind::Name(_))
            | EventKind::Remove(_)
    )
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
    fn a_pause_lasts_until_it_is_time_to_stop_and_takes_what_was_rung() {
        let bell = Bell::default();
        bell.changed();
        assert!(bell.pause(Duration::from_millis(1)).changed);
        bell.stop();
        assert!(bell.pause(Duration::from_secs(3_600)).stop);
    }

    #[test]
    fn a_file_is_being_written_until_it_is_closed_replaced_or_quiet() {
        let bell = Bell::default();
        let hear = |kind, name: &str, at| {
            let event = Event::new(kind).add_path(Path::new("/rules").join(name));
            bell.hear(Ok(event), Tick::from_millis(at));
        };
        let writing = |at| bell.being_written(Duration::from_millis(100), Tick::from_millis(at));
        let write = EventKind::Modify(ModifyKind::Data(notify::event::DataChange::Any));
        let close = EventKind::Access(AccessKind::Close(AccessMode::Write));
        let rename = EventKind::Modify(ModifyKind::Name(notify::event::RenameMode::To));
        for name in ["a.yaml", "b.yaml", "c.yaml", "notes.txt"] {
            hear(write, name, 0);
        }
        hear(write, "c.yaml", 50);
        assert_eq!(
            writing(99),
            (
                ["a.yaml", "b.yaml", "c.yaml"].map(OsString::from).into(),
                Some(Tick::from_millis(100))
            )
        );
        hear(close, "a.yaml", 99);
        hear(rename, "b.yaml", 99);
        assert_eq!(
            writing(100),
            (vec!["c.yaml".into()], Some(Tick::from_millis(150)))
        );
        assert_eq!(writing(150), (vec![], None));
    }

    #[test]
    fn looking_at_a_file_is_no_change() {
        assert!(!is_change(EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert!(!is_change(EventKind::Access(AccessKind::Close(AccessMode::Read))));
        assert!(is_change(EventKind::Access(AccessKind::Close(AccessMode::Write))));
    }
}
