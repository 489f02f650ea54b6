//! The model: a whole ledger in hash maps behind one mutex. Simple enough to be seen to be right, so that the
//! conformance suite can compare every other store with it. Keeps nothing beyond the process.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::watch;

use crate::account::{AccountId, Entry, RequestId, SlotIndex, Timestamp};
use crate::clock::Clock;
use crate::command::{
    AccountView, Answer, Batch, Batched, Changes, HoldView, LedgerError, Leg, PastView, RequestView, Task,
    Work,
};
use crate::ledger::atomic::Hand as _;
use crate::ledger::decide::{Context, Decision, decide};
use crate::ledger::facts::KnownRequests;
use crate::ledger::invariants::{AccountCheck, Standing, Violation};
use crate::ledger::rows::AccountRows;
use crate::ledger::slots::is_untidy;
use crate::mutants::{Mutant, is_on};
use crate::store::page::merge;
use crate::store::{
    Cursor, Cut, EntryPage, Event, EventCursor, EventPage, GeneralLedger, Job, Moment, Preference, Store,
    new_id,
};

mod batches;
mod books;
mod past;

use books::Books;

use past::Past;

/// A ledger in memory.
#[derive(Debug)]
pub struct Memory {
    id: u64,
    clock: Clock,
    preference: Preference,
    state: Mutex<Box<State>>,
    /// How many entries there are, and whether there will be more.
    entries: watch::Sender<(u64, Ending)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    GoesOn,
    Ended,
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(Clock::default(), Preference::default())
    }
}

type RequestKey = (AccountId, RequestId);

#[derive(Debug, Default)]
struct State {
    accounts: BTreeMap<AccountId, AccountRows>,
    /// The last account that was found untidy: the next search begins after it, so that none is passed over for ever.
    untidy_after: Option<AccountId>,
    /// In version order per slot, at the slot's index.
    entries: HashMap<AccountId, Vec<Vec<Entry>>>,
    /// The keys of all of them, in the order in which they were committed.
    events: Vec<(AccountId, SlotIndex, u64)>,
    pasts: HashMap<AccountId, Past>,
    books: Books,
    requests: KnownRequests,
    /// By request: the leg that its pending credit has become.
    settled: HashMap<RequestKey, Leg>,
    /// Why nothing more is decided.
    stopped: Option<String>,
}

impl Memory {
    /// An empty ledger.
    #[must_use]
    pub fn new(clock: Clock, preference: Preference) -> Self {
        Self {
            id: new_id(),
            clock,
            preference,
            state: Mutex::default(),
            entries: watch::Sender::new((0, Ending::GoesOn)),
        }
    }

    /// Decides and applies one task.
    ///
    /// # Errors
    /// As [`decide`]; `Unavailable` once the store has stopped.
    pub fn decide(&self, task: &Task) -> Result<Answer, LedgerError> {
        let mut state = self.lock()?;
        let answer = state.decide(task, self.context());
        self.announce(&state);
        answer
    }

    /// Decides and applies a batch.
    ///
    /// # Errors
    /// `Unavailable` once the store has stopped. Each command's own are among the results.
    pub fn decide_batch(&self, batch: &Batch) -> Result<Batched, LedgerError> {
        let mut state = self.lock()?;
        let batched = state.decide_batch(batch, &mut || self.context());
        self.announce(&state);
        batched
    }

    /// Says how many entries there are, before the state is free, so that no earlier count replaces a later one.
    fn announce(&self, state: &State) {
        let count = u64::try_from(state.events.len()).unwrap_or(u64::MAX);
        self.entries.send_replace((count, state.ending()));
    }

    fn context(&self) -> Context {
        Context {
            now: self.clock.now(),
            prefer: self.preference.next(),
        }
    }

    /// Proves every account's entries against its rows: what is broken, empty where all holds.
    ///
    /// # Errors
    /// `Unavailable` once the store has stopped.
    pub fn verify(&self) -> Result<Vec<Violation>, LedgerError> {
        Ok(self.lock()?.verify())
    }

    fn lock(&self) -> Result<MutexGuard<'_, Box<State>>, LedgerError> {
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
            if let Some(reason) = &self.stopped {
                return Err(unavailable(reason));
            }
            if let Some(answer) = self.step(task, context)? {
                return Ok(answer);
            }
        }
    }

    /// Decides and applies; `None` where that was only what had to come first.
    fn step(&mut self, task: &Task, context: Context) -> Result<Option<Answer>, LedgerError> {
        let facts = self.facts(task)?;
        let rows = facts.rows(task, |id| self.accounts.get(id));
        let Decision { changes, reply } = decide(task, rows, context)?;
        let answer = reply.answer(&changes);
        self.apply(changes).map_err(|violation| self.stop(&violation))?;
        Ok(answer)
    }

    /// A decision broke the rows: nothing more is decided.
    fn stop(&mut self, violation: &Violation) -> LedgerError {
        let reason = violation.to_string();
        self.stopped = Some(reason.clone());
        LedgerError::OutcomeUnknown { reason }
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
                self.pasts.entry(id.clone()).or_default().apply(id, &changes);
            }
        }
        self.books.take(&changes);
        self.requests.learn(&changes);
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
                let key = (entry.account.clone(), entry.slot, entry.version);
                self.events.push(key);
                slot.push(entry);
            }
        }
        Ok(())
    }

    fn page(&self, id: &AccountId, after: &Cursor, limit: usize) -> EntryPage {
        let slots = self.entries.get(id).map_or(&[][..], Vec::as_slice);
        let unseen = slots.iter().map(|entries| {
            let seen = entries.first().map_or(0, |first| after.seen(first.slot));
            entries
                .iter()
                .skip(usize::try_from(seen).unwrap_or(usize::MAX))
                .cloned()
                .map(Ok::<_, Infallible>)
        });
        let Ok(page) = merge(after, unseen, limit);
        page
    }

    fn ending(&self) -> Ending {
        if self.stopped.is_some() {
            Ending::Ended
        } else {
            Ending::GoesOn
        }
    }

    fn events(&self, after: EventCursor, account: Option<&AccountId>, limit: usize) -> EventPage {
        let skip = usize::try_from(after.number).unwrap_or(usize::MAX);
        let wanted = (1..).zip(&self.events).skip(skip);
        let wanted = wanted.filter(|(_, (of, _, _))| account.is_none_or(|account| account == of));
        let found = wanted.filter_map(|(number, (account, slot, version))| {
            let slots = self.entries.get(account)?;
            let entries = slots.get(usize::from(slot.get()))?;
            let at = usize::try_from(version.checked_sub(1)?).ok()?;
            let entry = entries.get(at)?.clone();
            Some(Event { number, entry })
        });
        let events: Vec<Event> = found.take(limit).collect();
        let next = match events.last() {
            Some(last) if events.len() == limit && is_on(Mutant::EventsByWatermark) => {
                last.number.saturating_add(1)
            }
            Some(last) if events.len() == limit => last.number,
            _ => u64::try_from(self.events.len()).unwrap_or(u64::MAX),
        };
        let next = next.into();
        EventPage { events, next }
    }

    fn past(&self, id: &AccountId, moment: &Moment) -> Result<Option<PastView>, LedgerError> {
        let (Some(rows), Some(past)) = (self.accounts.get(id), self.pasts.get(id)) else {
            return Ok(None);
        };
        let slots = self.entries.get(id).map_or(&[][..], Vec::as_slice);
        past.view((id, rows.account().currency), slots, moment).map(Some)
    }

    fn request(&self, key: &RequestKey) -> RequestView {
        let known = self.requests.get(&key.0, &key.1);
        let Some(record) = known.and_then(|known| known.record.as_ref()) else {
            return RequestView::NotFound;
        };
        let outcome = record.outcome.clone();
        RequestView::Decided(match self.settled.get(key) {
            Some(leg) => outcome.settled_by(leg.clone()),
            None => outcome,
        })
    }

    fn hold(&self, account: &AccountId, hold: &RequestId, now: Timestamp) -> Option<HoldView> {
        let open = self.accounts.get(account)?.hold(hold);
        let found = open.or_else(|| self.requests.get(account, hold)?.ended.as_ref());
        Some(found.map_or(HoldView::NotFound, |hold| HoldView::Found(hold.seen_at(now))))
    }

    fn untidy(&mut self, limit: usize, now: Timestamp) -> Vec<AccountId> {
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
            .filter(|(_, rows)| is_untidy(rows) || rows.expired(now).next().is_some())
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
    async fn run(&self, jobs: Vec<Job>) {
        for job in jobs {
            let answer = match &job.work {
                Work::Task(task) => self.decide(task),
                Work::Batch(batch) => self.decide_batch(batch).map(Answer::Batched),
            };
            job.answer(answer);
        }
    }

    async fn account(&self, id: &AccountId) -> Result<Option<AccountView>, LedgerError> {
        let state = self.lock()?;
        let now = self.clock.now();
        Ok(state.accounts.get(id).map(|rows| rows.view(now)))
    }

    async fn past(&self, id: &AccountId, moment: &Moment) -> Result<Option<PastView>, LedgerError> {
        let state = self.lock()?;
        if let Moment::Time(at) = moment
            && *at >= self.clock.now()
        {
            return Err(Moment::not_over());
        }
        state.past(id, moment)
    }

    async fn accounts(
        &self,
        after: Option<&AccountId>,
        limit: usize,
    ) -> Result<Vec<AccountView>, LedgerError> {
        let state = self.lock()?;
        let now = self.clock.now();
        let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
        let found = state.accounts.range::<AccountId, _>((begin, Bound::Unbounded));
        Ok(found.take(limit).map(|(_, rows)| rows.view(now)).collect())
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

    async fn hold(&self, account: &AccountId, hold: &RequestId) -> Result<Option<HoldView>, LedgerError> {
        let state = self.lock()?;
        Ok(state.hold(account, hold, self.clock.now()))
    }

    fn id(&self) -> u64 {
        self.id
    }

    async fn events(
        &self,
        after: EventCursor,
        account: Option<&AccountId>,
        limit: usize,
    ) -> Result<Option<EventPage>, LedgerError> {
        let state = self.lock()?;
        after.check(u64::try_from(state.events.len()).unwrap_or(u64::MAX))?;
        let known = account.is_none_or(|account| state.accounts.contains_key(account));
        Ok(known.then(|| state.events(after, account, limit)))
    }

    async fn event_after(&self, number: u64) -> Result<(), LedgerError> {
        let mut entries = self.entries.subscribe();
        let reached = entries.wait_for(|(count, ending)| *count > number || *ending == Ending::Ended);
        match reached.await.map(|reached| reached.0 > number) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(unavailable("the store ended before there was more")),
        }
    }

    fn newest_event(&self) -> u64 {
        self.entries.borrow().0
    }

    async fn cuts(&self, ids: &[AccountId]) -> Result<Vec<Cut>, LedgerError> {
        let mut cuts = Vec::with_capacity(ids.len());
        for id in ids {
            let state = self.lock()?;
            let entries = u64::try_from(state.events.len()).unwrap_or(u64::MAX);
            let standing = state.accounts.get(id).map(Standing::of);
            cuts.extend(standing.map(|standing| Cut { standing, entries }));
        }
        Ok(cuts)
    }

    async fn general_ledger(&self, _: GeneralLedger) -> Result<GeneralLedger, LedgerError> {
        let state = self.lock()?;
        Ok(state.books.general_ledger(state.accounts.values()))
    }

    async fn untidy(&self, limit: usize) -> Result<Vec<AccountId>, LedgerError> {
        let now = self.clock.now();
        Ok(self.lock()?.untidy(limit, now))
    }

    async fn pending(&self) -> Result<u64, LedgerError> {
        let state = self.lock()?;
        let rows = state.accounts.values().map(|rows| rows.pending().len());
        Ok(u64::try_from(rows.fold(0, usize::saturating_add)).unwrap_or(u64::MAX))
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
        self.entries.send_modify(|(_, ending)| *ending = Ending::Ended);
    }
}

fn unavailable(reason: &str) -> LedgerError {
    let reason = reason.to_owned();
    LedgerError::Unavailable { reason }
}

#[cfg(test)]
mod fixtures;
