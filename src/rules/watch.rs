//! Keeps the newest good rule set published while files change.
//!
//! A thread of its own looks at the folder when the kernel reports a change, when a reload is asked for, and every two
//! seconds in any case, so that events only make it faster. A file that is still being written counts as it was. What a look means is decided by `follow`, which is pure. A
//! good set is handed to admission and then swapped in as one `Arc`: there is no instant without rules. A bad one changes
//! nothing but the status.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use arc_swap::{ArcSwap, Guard};

use super::{RuleError, RuleSet, Source, folder};
use crate::clock::Clock;

mod bell;
mod follow;
mod last_good;
mod thread;

use bell::Bell;
use follow::{Follower, Verdict};

/// The rule set in force and how the newest reload went. Readers never wait.
pub struct RuleStore {
    current: ArcSwap<RuleSet>,
    status: ArcSwap<RulesStatus>,
    accepted: AtomicU64,
    refused: AtomicU64,
}

/// What `/readyz` says about the rule files.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RulesStatus {
    /// Whether what is in the folder is what is in force.
    pub ok: bool,
    /// What is wrong with it otherwise.
    pub files: Vec<FileStatus>,
}

/// One error of a rule file. `file` is the path as given, `line` counts from 1, 0 when the file as a whole is meant.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FileStatus {
    pub file: String,
    pub line: u32,
    pub error: String,
}

impl RulesStatus {
    const GOOD: Self = Self {
        ok: true,
        files: Vec::new(),
    };

    /// The status after a reload that found these errors.
    #[must_use]
    pub fn bad(errors: &[RuleError]) -> Self {
        let file = |error: &RuleError| FileStatus {
            file: error.place.file.display().to_string(),
            line: error.place.line,
            error: error.message.clone(),
        };
        Self {
            ok: false,
            files: errors.iter().map(file).collect(),
        }
    }
}

/// How many reloads there were, for `sluice_rules_reloads_total{result}`. The first load counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReloadCounts {
    pub ok: u64,
    pub failed: u64,
}

impl RuleStore {
    /// A store that begins with `set` in force.
    #[must_use]
    pub fn new(set: RuleSet) -> Self {
        Self {
            current: ArcSwap::from_pointee(set),
            status: ArcSwap::from_pointee(RulesStatus::GOOD),
            accepted: AtomicU64::new(1),
            refused: AtomicU64::new(0),
        }
    }

    /// A store that begins with an older set because what is in the folder is wrong.
    fn fallen_back(set: RuleSet, errors: &[RuleError]) -> Self {
        Self {
            status: ArcSwap::from_pointee(RulesStatus::bad(errors)),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(1),
            ..Self::new(set)
        }
    }

    /// The set in force, for one look.
    #[must_use]
    pub fn current(&self) -> Guard<Arc<RuleSet>> {
        self.current.load()
    }

    /// The set in force, to keep for a request's life.
    #[must_use]
    pub fn snapshot(&self) -> Arc<RuleSet> {
        self.current.load_full()
    }

    /// How the newest reload went.
    #[must_use]
    pub fn status(&self) -> Arc<RulesStatus> {
        self.status.load_full()
    }

    /// Reloads since the start. Relaxed: two counters for a scrape, nothing is ordered by them.
    #[must_use]
    pub fn reloads(&self) -> ReloadCounts {
        ReloadCounts {
            ok: self.accepted.load(Ordering::Relaxed),
            failed: self.refused.load(Ordering::Relaxed),
        }
    }

    /// Puts a good set in force, after `on_swap` has seen it; whether it is another than the one in force.
    fn accept(&self, mut set: RuleSet, on_swap: &OnSwap) -> bool {
        let current = self.snapshot();
        let changes = set.content_hash != current.content_hash;
        if changes {
            set.generation = current.generation.saturating_add(1);
            let set = Arc::new(set);
            on_swap(&set);
            self.current.store(set);
        }
        self.accepted.fetch_add(1, Ordering::Relaxed);
        self.status.store(Arc::new(RulesStatus::GOOD));
        changes
    }

    /// Notes a reload that changes nothing.
    fn refuse(&self, errors: &[RuleError]) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.status.store(Arc::new(RulesStatus::bad(errors)));
    }
}

impl fmt::Debug for RuleStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleStore")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

/// Where the rule files are and where the last good copy is kept.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// The rules folder.
    pub dir: PathBuf,
    /// The data folder (`--data`); the copy is `rules-last-good.json` in it. `None` keeps none.
    pub data: Option<PathBuf>,
}

/// Called with a new set before any request can see it, so that admission has its state in place.
pub type OnSwap = Box<dyn Fn(&Arc<RuleSet>) + Send>;

/// The thread that follows the rules folder. Dropping it stops and joins it.
#[derive(Debug)]
pub struct Watcher {
    store: Arc<RuleStore>,
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Loads the folder, or the last good copy of it, calls `on_swap` with the set and follows the folder from then on.
    ///
    /// # Errors
    /// What is wrong with the files, when there is no good copy of them either.
    pub fn start(options: WatchOptions, on_swap: OnSwap) -> Result<Self, Vec<RuleError>> {
        Self::start_with(options, on_swap, thread::Sight::Events)
    }

    fn start_with(
        options: WatchOptions,
        on_swap: OnSwap,
        sight: thread::Sight,
    ) -> Result<Self, Vec<RuleError>> {
        let clock = Clock::start();
        let mut follower = Follower::new(options.dir.clone());
        let store = Arc::new(first(&mut follower, &options, clock)?);
        on_swap(&store.snapshot());
        let bell = Arc::new(Bell::default());
        let watch = thread::Watch {
            options,
            clock,
            follower,
            store: Arc::clone(&store),
            bell: Arc::clone(&bell),
            on_swap,
        };
        let dir = watch.options.dir.clone();
        let thread = std::thread::Builder::new()
            .name("sluice-rules".to_owned())
            .spawn(move || watch.run(sight));
        match thread {
            Ok(thread) => Ok(Self {
                store,
                bell,
                thread: Some(thread),
            }),
            Err(error) => Err(vec![RuleError {
                place: super::Place::whole(&Arc::new(dir)),
                message: format!("cannot start the thread that follows the rules: {error}"),
            }]),
        }
    }

    /// The sets it publishes.
    #[must_use]
    pub const fn store(&self) -> &Arc<RuleStore> {
        &self.store
    }

    /// Looks at the folder at once and judges it even if nothing changed, as SIGHUP asks for. Returns without waiting.
    pub fn reload_now(&self) {
        self.bell.reload();
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.bell.stop();
        // A panic of the thread is in the log and in the status already.
        self.thread.take().map(JoinHandle::join);
    }
}

/// The set to start with.
fn first(follower: &mut Follower, options: &WatchOptions, clock: Clock) -> Result<RuleStore, Vec<RuleError>> {
    match follower.look(folder::read(&options.dir), &[], true, clock.now()) {
        Verdict::Good(set, sources) => {
            tracing::info!(dir = %options.dir.display(), resources = set.resources.len(), "rules in force");
            keep_copy(options, &sources);
            Ok(RuleStore::new(*set))
        }
        Verdict::Bad(errors) => match last_good(options) {
            None => Err(errors),
            Some(set) => {
                tracing::error!("the rules are wrong: starting with the last good copy of them");
                log_errors(&errors);
                Ok(RuleStore::fallen_back(set, &errors))
            }
        },
        Verdict::Same => Err(Vec::new()),
    }
}

fn last_good(options: &WatchOptions) -> Option<RuleSet> {
    let sources = match last_good::read(options.data.as_ref()?) {
        Ok(sources) => sources?,
        Err(error) => {
            tracing::error!(%error, "the last good copy of the rules cannot be read");
            return None;
        }
    };
    match super::compile::compile(&options.dir, &sources) {
        Ok(set) => Some(set),
        Err(errors) => {
            tracing::error!("the last good copy of the rules is not good for this version");
            log_errors(&errors);
            None
        }
    }
}

fn keep_copy(options: &WatchOptions, sources: &[Source]) {
    let Some(data) = &options.data else { return };
    if let Err(error) = last_good::keep(data, sources) {
        tracing::warn!(%error, data = %data.display(), "no copy of the good rules could be kept");
    }
}

/// The most errors of one reload that are logged one by one.
const MAX_LOGGED: usize = 20;

fn log_errors(errors: &[RuleError]) {
    for error in errors.iter().take(MAX_LOGGED) {
        let place = &error.place;
        tracing::error!(file = %place.file.display(), line = place.line, column = place.column, error = %error.message, "rules refused");
    }
    if errors.len() > MAX_LOGGED {
        tracing::error!(more = errors.len() - MAX_LOGGED, "rules refused");
    }
}

#[cfg(test)]
mod tests;
