//! Which event goes out next, and what becomes of one that does not arrive. Pure: `now` is an argument.
//!
//! Events come in the order of the ledger and are dealt to a lane per account. A lane has one event under way, so an
//! account's events arrive in their order; another lane's failure is none of its affair. A lane that failed, or that is
//! far behind, keeps none of its events in memory: it knows where it stands and reads them from the ledger again. So
//! memory is bounded by [`MAX_QUEUED`] events and [`MAX_LANES`] lanes. While there are as many lanes, no more
//! events are taken in, and nothing is lost: they are in the ledger.
//!
//! ```text
//! ready ──next──► busy ──delivered──► ready, or gone where nothing is left
//!   ▲               └──failed──► waiting (later: ready) ──last round──► the event is a dead letter, and the lane goes on
//!   └───────────────────────────────┘
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::rounds::{Next, Rounds};
use crate::account::{AccountId, SlotIndex, Timestamp};
use crate::store::Event;

/// Accounts with something undelivered that are looked after at once.
pub(super) const MAX_LANES: usize = 4_096;
/// Events in memory, but for one page that may go beyond it.
pub(super) const MAX_QUEUED: usize = 1_024;
/// Of one account; more it reads again itself.
const MAX_LANE: usize = 64;
/// Dead letters that are kept. With so many, an event is not given up but tried on at the longest interval.
pub(super) const MAX_DEAD: usize = 10_000;
/// The longest reason that is kept, in characters.
const MAX_REASON: usize = 200;

/// Something to do. Each is answered by the method of its name, exactly once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Send this; then [`Deliveries::sent`].
    Send(Event),
    /// Read the events of `account` after number `after`; then [`Deliveries::read`].
    Read { account: AccountId, after: u64 },
    /// Send the event with this number, a dead letter, once more; then [`Deliveries::resent`].
    Resend { account: AccountId, number: u64 },
}

/// An event that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeadLetter {
    pub(super) account: AccountId,
    pub(super) slot: SlotIndex,
    pub(super) version: u64,
    /// When it was given up, or last tried again.
    pub(super) at: Timestamp,
    pub(super) reason: String,
    pub(super) again: Again,
}

/// Whether a dead letter is to be tried once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    No,
    Asked,
    UnderWay,
}

/// An account that has fallen behind, as it is kept over a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lagging {
    pub(super) account: AccountId,
    /// The number of its last event that is done with.
    pub(super) after: u64,
    /// Failed tries of the one behind it.
    pub(super) tries: u32,
    pub(super) not_before: Timestamp,
}

/// All that a restart needs: every event is done with up to `head`, but for those of `lagging`, and `dead` ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) head: u64,
    pub(super) lagging: Vec<Lagging>,
    pub(super) dead: BTreeMap<u64, DeadLetter>,
}

#[derive(Debug)]
struct Lane {
    /// The next ones, in their order.
    queue: VecDeque<Event>,
    /// Every event of the account up to here is done with, or in the queue.
    known: u64,
    /// There may be events behind `known` that are to be read from the ledger.
    lagging: bool,
    /// Failed tries of the first undelivered event.
    tries: u32,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In no list: just made, or about to go.
    Idle,
    Ready,
    Busy,
    Waiting(Timestamp),
}

/// The state of all deliveries.
#[derive(Debug)]
pub(super) struct Deliveries {
    rounds: Rounds,
    /// The last event that was taken in.
    head: u64,
    lanes: HashMap<AccountId, Lane>,
    ready: VecDeque<AccountId>,
    waiting: BTreeSet<(Timestamp, AccountId)>,
    /// Events in all queues.
    queued: usize,
    dead: BTreeMap<u64, DeadLetter>,
    /// Something is different from what was last kept.
    changed: bool,
}

impl Deliveries {
    pub(super) fn new(rounds: Rounds, standing: Standing) -> Self {
        let mut deliveries = Self {
            rounds,
            head: standing.head,
            lanes: HashMap::new(),
            ready: VecDeque::new(),
            waiting: BTreeSet::new(),
            queued: 0,
            dead: standing.dead,
            changed: false,
        };
        for lagging in standing.lagging {
            let lane = Lane {
                queue: VecDeque::new(),
                known: lagging.after,
                lagging: true,
                tries: lagging.tries,
                place: Place::Idle,
            };
            deliveries.lanes.insert(lagging.account.clone(), lane);
            deliveries.put(&lagging.account, Place::Waiting(lagging.not_before));
        }
        deliveries
    }

    /// The last event that was taken in.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Whether more events may be taken in.
    pub(super) fn has_room(&self) -> bool {
        self.queued < MAX_QUEUED && self.lanes.len() < MAX_LANES
    }

    /// Takes in the events after [`Deliveries::head`], which then is `head`.
    pub(super) fn take_in(&mut self, events: Vec<Event>, head: u64) {
        self.changed |= head != self.head;
        for event in events {
            let account = event.entry.account.clone();
            let lane = self.lanes.entry(account.clone()).or_insert_with(|| Lane {
                queue: VecDeque::new(),
                known: 0,
                lagging: false,
                tries: 0,
                place: Place::Idle,
            });
            if lane.lagging || event.number <= lane.known {
                continue;
            }
            if lane.queue.len() >= MAX_LANE {
                lane.lagging = true;
                continue;
            }
            lane.known = event.number;
            lane.queue.push_back(event);
            self.queued = self.queued.saturating_add(1);
            if lane.place == Place::Idle {
                self.put(&account, Place::Ready);
            }
        }
        self.head = head;
    }

    /// What to do next, if there is anything to do now.
    pub(super) fn next(&mut self, now: Timestamp) -> Option<Step> {
        while let Some((at, account)) = self.waiting.first().cloned()
            && at <= now
        {
            self.put(&account, Place::Ready);
        }
        if let Some(account) = self.ready.front().cloned() {
            self.put(&account, Place::Busy);
            let lane = self.lanes.get(&account)?;
            return Some(match lane.queue.front() {
                Some(event) => Step::Send(event.clone()),
                None => {
                    let after = lane.known;
                    Step::Read { account, after }
                }
            });
        }
        let asked = self
            .dead
            .iter_mut()
            .find(|(_, letter)| letter.again == Again::Asked);
        asked.map(|(number, letter)| {
            letter.again = Again::UnderWay;
            let (account, number) = (letter.account.clone(), *number);
            Step::Resend { account, number }
        })
    }

    /// When the first of those that wait may go on.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        self.waiting.first().map(|(at, _)| *at)
    }

    /// What became of [`Step::Send`]: the error is the reason.
    pub(super) fn sent(&mut self, event: &Event, result: Result<(), String>, now: Timestamp) {
        self.changed = true;
        let account = &event.entry.account;
        let Some(lane) = self.lanes.get_mut(account) else {
            return;
        };
        let Err(reason) = result else {
            self.done(account);
            return;
        };
        lane.tries = lane.tries.saturating_add(1);
        let next = self.rounds.after(lane.tries, spread(event, lane.tries));
        let wait = match next {
            Next::Dead if self.dead.len() < MAX_DEAD => {
                tracing::error!(
                    account = %account,
                    slot = event.entry.slot.get(),
                    version = event.entry.version,
                    reason,
                    "an event is undelivered after its last round: it is a dead letter"
                );
                self.dead
                    .insert(event.number, DeadLetter::new(event, reason, now));
                self.done(account);
                return;
            }
            Next::Dead => self.rounds.longest,
            Next::After(wait) => wait,
        };
        // It stands before this event again, and reads what follows once more.
        lane.known = event.number.saturating_sub(1);
        lane.lagging = true;
        self.queued = self.queued.saturating_sub(lane.queue.len());
        lane.queue = VecDeque::new();
        self.put(account, Place::Waiting(later(now, wait)));
    }

    /// What [`Step::Read`] gave: the account's events in their order, all of them up to `upto`.
    pub(super) fn read(&mut self, account: &AccountId, events: Vec<Event>, upto: u64) {
        let Some(lane) = self.lanes.get_mut(account) else {
            return;
        };
        let before = lane.queue.len();
        // What lies beyond the head comes in with everybody else's.
        let behind_head = |event: &Event| event.number <= self.head;
        lane.queue.extend(events.into_iter().filter(behind_head));
        let more = lane.queue.len().saturating_sub(before);
        lane.lagging = more > 0 || upto < self.head;
        lane.known = lane.known.max(upto.min(self.head));
        self.queued = self.queued.saturating_add(more);
        self.go_on(account);
    }

    /// What became of [`Step::Resend`].
    pub(super) fn resent(&mut self, number: u64, result: Result<(), String>, now: Timestamp) {
        self.changed = true;
        match result {
            Ok(()) => drop(self.dead.remove(&number)),
            Err(reason) => {
                if let Some(letter) = self.dead.get_mut(&number) {
                    letter.again = Again::No;
                    letter.reason = clipped(reason);
                    letter.at = now;
                }
            }
        }
    }

    /// Asks for dead letters once more: for these, or for all. Says how many that are, or the first that is none.
    pub(super) fn ask_again(&mut self, numbers: Option<&[u64]>) -> Result<usize, u64> {
        let all: Vec<u64> = match numbers {
            Some(numbers) => numbers.to_vec(),
            None => self.dead.keys().copied().collect(),
        };
        if let Some(missing) = all.iter().find(|number| !self.dead.contains_key(number)) {
            return Err(*missing);
        }
        self.changed = true;
        for number in &all {
            if let Some(letter) = self.dead.get_mut(number)
                && letter.again == Again::No
            {
                letter.again = Again::Asked;
            }
        }
        Ok(all.len())
    }

    /// At most `limit` dead letters after number `after`.
    pub(super) fn dead_after(&self, after: u64, limit: usize) -> Vec<(u64, DeadLetter)> {
        let found = self.dead.range(after.saturating_add(1)..);
        let found = found.map(|(number, letter)| (*number, letter.clone()));
        found.take(limit).collect()
    }

    /// How many dead letters there are.
    pub(super) fn dead(&self) -> usize {
        self.dead.len()
    }

    /// How many accounts wait for their next try.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// All events up to here are done with, but for those of lanes that lag.
    pub(super) fn done_to(&self) -> u64 {
        let first = self.lanes.values().filter(|lane| !lane.lagging);
        let first = first.filter_map(|lane| lane.queue.front());
        let least = first.map(|event| event.number.saturating_sub(1)).min();
        least.unwrap_or(self.head).min(self.head)
    }

    /// Whether something is different from what was last kept.
    pub(super) fn has_changed(&self) -> bool {
        self.changed
    }

    /// What to keep, if it is different from what was last kept.
    pub(super) fn standing(&mut self) -> Option<Standing> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let lagging = self.lanes.iter().filter(|(_, lane)| lane.lagging);
        let lagging = lagging.map(|(account, lane)| {
            let first = lane.queue.front();
            Lagging {
                account: account.clone(),
                after: first.map_or(lane.known, |event| event.number.saturating_sub(1)),
                tries: lane.tries,
                not_before: match lane.place {
                    Place::Waiting(at) => at,
                    Place::Idle | Place::Ready | Place::Busy => Timestamp::default(),
                },
            }
        });
        Some(Standing {
            head: self.done_to(),
            lagging: lagging.collect(),
            dead: self.dead.clone(),
        })
    }

    /// Keeping it failed: it is to be tried again.
    pub(super) fn not_kept(&mut self) {
        self.changed = true;
    }

    /// The first event of a lane is done with.
    fn done(&mut self, account: &AccountId) {
        if let Some(lane) = self.lanes.get_mut(account) {
            lane.tries = 0;
            if lane.queue.pop_front().is_some() {
                self.queued = self.queued.saturating_sub(1);
            }
            self.go_on(account);
        }
    }

    /// A lane that was busy is not any more.
    fn go_on(&mut self, account: &AccountId) {
        let Some(lane) = self.lanes.get(account) else {
            return;
        };
        if lane.lagging || !lane.queue.is_empty() {
            self.put(account, Place::Ready);
        } else {
            self.put(account, Place::Idle);
            self.lanes.remove(account);
        }
    }

    /// Moves a lane, and keeps the two lists true.
    fn put(&mut self, account: &AccountId, place: Place) {
        let Some(lane) = self.lanes.get_mut(account) else {
            return;
        };
        match lane.place {
            Place::Ready => {
                // Only its first is ever taken out of this list.
                if let Some(at) = self.ready.iter().position(|ready| ready == account) {
                    self.ready.remove(at);
                }
            }
            Place::Waiting(at) => drop(self.waiting.take(&(at, account.clone()))),
            Place::Idle | Place::Busy => {}
        }
        lane.place = place;
        match place {
            Place::Ready => self.ready.push_back(account.clone()),
            Place::Waiting(at) => {
                self.waiting.insert((at, account.clone()));
            }
            Place::Idle | Place::Busy => {}
        }
    }
}

impl DeadLetter {
    fn new(event: &Event, reason: String, at: Timestamp) -> Self {
        Self {
            account: event.entry.account.clone(),
            slot: event.entry.slot,
            version: event.entry.version,
            at,
            reason: clipped(reason),
            again: Again::No,
        }
    }
}

fn clipped(mut reason: String) -> String {
    if let Some((end, _)) = reason.char_indices().nth(MAX_REASON) {
        reason.truncate(end);
    }
    reason
}

pub(super) fn later(now: Timestamp, wait: Duration) -> Timestamp {
    let micros = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
    Timestamp(now.0.saturating_add(micros))
}

/// Differs from event to event and from try to try.
fn spread(event: &Event, tries: u32) -> u64 {
    xxh3_64_with_seed(
        event.entry.account.as_str().as_bytes(),
        event.number ^ u64::from(tries),
    )
}

#[cfg(test)]
mod tests;
