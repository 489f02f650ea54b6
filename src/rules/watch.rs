//! Keeps the newest good rule set published while files change.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};

use super::{RuleError, RuleSet};

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
    pub files: Vec<FileStatus>,
}

/// One error of a rule file. `file` is the path as given, `line` counts from 1, 0 when the file as a whole is meant.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FileStatus {
    pub file: String,
    pub line: u32,
    pub error: String,
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
            status: ArcSwap::from_pointee(RulesStatus {
                ok: true,
                files: Vec::new(),
            }),
            accepted: AtomicU64::new(1),
            refused: AtomicU64::new(0),
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
    /// The data folder (`--data`); the copy is kept in `rules-last-good/` in it. `None` keeps none.
    pub data: Option<PathBuf>,
}

/// Called with a new set before any request can see it, so that admission has its state in place.
pub type OnSwap = Box<dyn Fn(&Arc<RuleSet>) + Send>;

/// The thread that follows the rules folder. Dropping it stops and joins it.
#[derive(Debug)]
pub struct Watcher {
    store: Arc<RuleStore>,
}

impl Watcher {
    /// Loads the folder, or the last good copy of it, calls `on_swap` with the set and follows the folder from then on.
    ///
    /// # Errors
    /// What is wrong with the files, when there is no last good copy either.
    pub fn start(options: WatchOptions, on_swap: OnSwap) -> Result<Self, Vec<RuleError>> {
        let set = super::compile::load(&options.dir)?;
        let store = RuleStore::new(set);
        on_swap(&store.snapshot());
        Ok(Self {
            store: Arc::new(store),
        })
    }

    /// The sets it publishes.
    #[must_use]
    pub fn store(&self) -> &Arc<RuleStore> {
        &self.store
    }

    /// Looks at the folder at once, as SIGHUP asks for. Returns without waiting for the outcome.
    pub fn reload_now(&self) {}
}
