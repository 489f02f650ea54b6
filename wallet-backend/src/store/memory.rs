//! The model: a whole ledger in hash maps behind one mutex. Simple enough to be seen to be right, so that the
//! conformance suite can compare every other store with it. Keeps nothing beyond the process.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard};

use crate::account::{AccountId, Entry, RequestId};
use crate::clock::Clock;
use crate::command::{AccountView, Answer, Changes, LedgerError, Leg, RequestRecord, RequestView, Task};
use crate::ledger::decide::{Context, Decision, Rows, decide};
use crate::ledger::invariants::{AccountCheck, Violation};
use crate::ledger::rows::AccountRows;
use crate::ledger::slots::is_untidy;
use crate::store::page::merge;
use crate::store::{Cursor, EntryPage, Job, Preference, Store};

/// A ledger in memory.
#[derive(Debug, Default)]
pub struct Memory {
    clock: Clock,
    preference: Preference,
    state: Mutex<State>,
}

type RequestKey = (AccountId, RequestId);

#[derive(Debug, Default)]
struct State {
    accounts: BTreeMap<AccountId, AccountRows>,
    /// The last account that was found untidy: the next search begins after it, so that none is passed over for ever.
    untidy_after: Option<AccountId>,
    /// In version order per slot, at the slot's index.
    entries: HashMap<AccountId, Vec<Vec<Entry>>>,
    requests: HashMap<RequestKey, RequestRecord>,
    /// The legs that pending credits have become.
    settled: HashMap<RequestKey, Leg>,
    /// Why nothing more is decided.
    stopped: Option<String>,
}

impl Memory {
    /// An empty ledger.
    #[must_use]
    pub fn new(clock: Clock, preference: Preference) -> Self {
        Self {
            clock,
            preference,
            state: Mutex::default(),
        }
    }

    /// Decides and applies one task.
    ///
    /// # Errors
    /// As [`decide`]; `Unavailable` once the store has stopped.
    pub fn decide(&self, task: &Task) -> Result<Answer, LedgerError> {
        let context = Context {
            now: self.clock.now(),
            prefer: self.preference.next(),
        };
        self.lock()?.decide(task, context)
    }

    /// Proves every account's entries against its rows: what is broken, empty where all holds.
    ///
    /// # Errors
    /// `Unavailable` once the store has stopped.
    pub fn verify(&self) -> Result<Vec<Violation>, LedgerError> {
        Ok(self.lock()?.verify())
    }

    fn lock(&self) -> Result<MutexGuard<'_, State>, LedgerError> {
        let state = self.state.lock().map_err(|_| unavailable("the store panicked"))?;
        match &state.stopped {
            Some(reason) => Err(unavailable(reason)),
            None => Ok(state),
        }
    }
}

impl State {
    fn decide(&mut self, task: &Task, context: Context) -> Result<Answer, LedgerError> {
        loop {
            if let Some(answer) = self.step(task, context)? {
                return Ok(answer);
            }
        }
    }

    /// Decides and applies; `None` where that was only what had to come first.
    fn step(&mut self, task: &Task, context: Context) -> Result<Option<Answer>, LedgerError> {
        let account = task.account();
        let prior = task
            .request()
            .and_then(|request| self.requests.get(&(account.clone(), request.clone())));
        let rows = Rows {
            prior,
            own: self.accounts.get(account),
            target: task.target().and_then(|target| self.accounts.get(target)),
        };
        let Decision { changes, answer } = decide(task, rows, context)?;
        if let Err(violation) = self.apply(changes) {
            let reason = violation.to_string();
            self.stopped = Some(reason.clone());
            return Err(LedgerError::OutcomeUnknown { reason });
        }
        Ok(answer)
    }

    fn apply(&mut self, changes: Changes) -> Result<(), Violation> {
        if let Some(account) = &changes.account {
            self.accounts
                .entry(account.id.clone())
                .or_insert_with(|| AccountRows::open(account.clone()));
        }
        for id in changes.accounts() {
            if let Some(rows) = self.accounts.get_mut(id) {
                rows.apply(&changes)?;
            }
        }
        for entry in changes.entries {
            if let Some((account, request)) = entry.settles() {
                let key = (account.clone(), request.clone());
                self.settled.insert(key, Leg::from(&entry));
            }
            let slots = self.entries.entry(entry.account.clone()).or_default();
            let at = usize::from(entry.slot.get());
            if slots.len() <= at {
                slots.resize_with(at.saturating_add(1), Vec::new);
            }
            if let Some(slot) = slots.get_mut(at) {
                slot.push(entry);
            }
        }
        if let Some(record) = changes.request {
            let key = (record.account.clone(), record.request.clone());
            self.requests.insert(key, record);
        }
        Ok(())
    }

    fn page(&self, id: &AccountId, after: &Cursor, limit: usize) -> EntryPage {
        let slots = self.entries.get(id).map_or(&[][..], Vec::as_slice);
        let unseen = slots.iter().map(|entries| {
            entries
                .iter()
                .filter(|entry| entry.version > after.seen(entry.slot))
                .cloned()
                .map(Ok::<_, Infallible>)
        });
        let Ok(page) = merge(after, unseen, limit);
        page
    }

    fn request(&self, key: &RequestKey) -> RequestView {
        let Some(record) = self.requests.get(key) else {
            return RequestView::NotFound;
        };
        let outcome = record.outcome.clone();
        RequestView::Decided(match self.settled.get(key) {
            Some(leg) => outcome.settled_by(leg.clone()),
            None => outcome,
        })
    }

    fn untidy(&mut self, limit: usize) -> Vec<AccountId> {
        let begin = match &self.untidy_after {
            Some(last) => Bound::Excluded(last.clone()),
            None => Bound::Unbounded,
        };
        let before = match &self.untidy_after {
            Some(last) => Bound::Included(last.clone()),
            None => Bound::Unbounded,
        };
        let first = self.accounts.range((begin, Bound::Unbounded));
        let wrapped = self.accounts.range((Bound::Unbounded, before));
        let untidy: Vec<AccountId> = first
            .chain(wrapped)
            .take(self.accounts.len())
            .filter(|(_, rows)| is_untidy(rows))
            .map(|(id, _)| id.clone())
            .take(limit)
            .collect();
        self.untidy_after = untidy.last().cloned();
        untidy
    }

    fn verify(&self) -> Vec<Violation> {
        self.accounts
            .iter()
            .flat_map(|(id, rows)| {
                let mut check = AccountCheck::new(id.clone());
                for entry in self.entries.get(id).into_iter().flatten().flatten() {
                    check.push(entry);
                }
                check.finish(rows)
            })
            .collect()
    }
}

impl Store for Memory {
    async fn run(&self, batch: Vec<Job>) {
        for job in batch {
            let answer = self.decide(&job.task);
            job.answer(answer);
        }
    }

    async fn account(&self, id: &AccountId) -> Result<Option<AccountView>, LedgerError> {
        Ok(self.lock()?.accounts.get(id).map(AccountRows::view))
    }

    async fn accounts(
        &self,
        after: Option<&AccountId>,
        limit: usize,
    ) -> Result<Vec<AccountView>, LedgerError> {
        let state = self.lock()?;
        let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
        let found = state.accounts.range::<AccountId, _>((begin, Bound::Unbounded));
        Ok(found.take(limit).map(|(_, rows)| rows.view()).collect())
    }

    async fn entries(
        &self,
        id: &AccountId,
        after: &Cursor,
        limit: usize,
    ) -> Result<Option<EntryPage>, LedgerError> {
        let state = self.lock()?;
        let known = state.accounts.contains_key(id);
        Ok(known.then(|| state.page(id, after, limit)))
    }

    async fn request(
        &self,
        account: &AccountId,
        request: &RequestId,
    ) -> Result<Option<RequestView>, LedgerError> {
        let state = self.lock()?;
        let known = state.accounts.contains_key(account);
        Ok(known.then(|| state.request(&(account.clone(), request.clone()))))
    }

    fn untidy(&self, limit: usize) -> Vec<AccountId> {
        self.lock()
            .map_or_else(|_| Vec::new(), |mut state| state.untidy(limit))
    }

    fn pending(&self) -> u64 {
        self.lock().map_or(0, |state| {
            let rows = state.accounts.values().map(|rows| rows.pending().len());
            u64::try_from(rows.fold(0, usize::saturating_add)).unwrap_or(u64::MAX)
        })
    }

    fn health(&self) -> Result<(), LedgerError> {
        self.lock().map(drop)
    }

    async fn close(&self) {
        if let Ok(mut state) = self.state.lock() {
            state
                .stopped
                .get_or_insert_with(|| "the store is closed".to_owned());
        }
    }
}

fn unavailable(reason: &str) -> LedgerError {
    let reason = reason.to_owned();
    LedgerError::Unavailable { reason }
}
