//! Follows every event for as long as the bank is open, over every kill.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use wallet_backend::client::{CallError, Client};

use crate::history::Entry;

/// The longest that what is in a statement stays away from the stream.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Default)]
struct Seen {
    /// By account and slot: the version that was seen last.
    versions: HashMap<(String, u8), u64>,
    /// In the order of their commit, since they were last taken.
    entries: Vec<Entry>,
    faults: Vec<String>,
    count: u64,
}

/// Ends with this.
pub(super) struct Follower {
    seen: Arc<Mutex<Seen>>,
    count: watch::Receiver<u64>,
    _following: JoinSet<()>,
}

impl Follower {
    pub(super) fn of(client: &Client) -> Self {
        let (told, count) = watch::channel(0);
        let seen = Arc::<Mutex<Seen>>::default();
        let mut following = JoinSet::new();
        following.spawn(follow(client.clone(), Arc::clone(&seen), told));
        Self {
            seen,
            count,
            _following: following,
        }
    }

    /// Everything that was seen of accounts whose names begin with `prefix`, once their slots have come so far.
    pub(super) async fn take(
        &mut self,
        prefix: &str,
        heads: &HashMap<(String, u8), u64>,
    ) -> Result<Vec<Entry>, String> {
        let seen = Arc::clone(&self.seen);
        let all_there = |_: &u64| {
            let seen = lock(&seen);
            let there = |(slot, version)| seen.versions.get(slot).is_some_and(|last| last >= version);
            !seen.faults.is_empty() || heads.iter().all(there)
        };
        let came = timeout(PATIENCE, self.count.wait_for(all_there)).await;
        let came = came.is_ok_and(|came| came.is_ok());
        let mut seen = lock(&self.seen);
        let (taken, rest) = std::mem::take(&mut seen.entries)
            .into_iter()
            .partition(|entry| entry.account.starts_with(prefix));
        // Of accounts that are closed to the bank: their order is watched, their story is told.
        drop::<Vec<Entry>>(rest);
        if came || !seen.faults.is_empty() {
            Ok(taken)
        } else {
            Err("the stream of events lacks what the statements have".to_owned())
        }
    }

    /// What was wrong with the stream.
    pub(super) fn faults(&self) -> Vec<String> {
        lock(&self.seen).faults.clone()
    }

    pub(super) fn count(&self) -> u64 {
        lock(&self.seen).count
    }
}

async fn follow(client: Client, seen: Arc<Mutex<Seen>>, told: watch::Sender<u64>) {
    let mut events = client.events(None, None);
    loop {
        match events.next().await {
            Ok(event) => {
                let mut seen = lock(&seen);
                seen.take(Entry::from(&event.entry));
                told.send_replace(seen.count);
            }
            // Nobody is there: it is asked again.
            Err(CallError::Unknown { .. } | CallError::NotDone { .. }) => {}
            Err(error) => {
                let mut seen = lock(&seen);
                seen.faults.push(format!("the stream of events ended: {error}"));
                told.send_replace(seen.count);
                return;
            }
        }
    }
}

impl Seen {
    fn take(&mut self, entry: Entry) {
        self.count += 1;
        let last = self
            .versions
            .entry((entry.account.clone(), entry.slot))
            .or_default();
        if entry.version != *last + 1 {
            self.faults.push(format!(
                "after version {last} of its slot came the event {entry:?}"
            ));
        }
        *last = entry.version;
        self.entries.push(entry);
    }
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
