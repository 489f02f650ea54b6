//! One transaction over a batch of jobs: lock and read, decide, write.
//!
//! ```text
//! plan -> 1. BEGIN, account rows, gates, slots, the time, look-ups  -> decide -> 2. everything that is written, COMMIT
//!           ^                                                         |
//!           +---- begin again: all of an account, or its true shape --+
//! ```
//!
//! Locks are always taken in one order: account rows, gates, the slots of accounts that are needed wholly, each by id,
//! waiting; then other slots, waiting for one only where there is no second account, else only if they are free; at the
//! end the rows that are inserted: accounts, requests, reversals, each by key. A gate holder alone changes an account's
//! pending rows and holds, so that those need no locks of their own.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use sqlx::MySqlConnection;
use sqlx::mysql::MySqlRow;
use tokio::time::{Instant, timeout_at};

use self::books::{Books, Stop};
use self::decide::Told;
use self::load::LoadError;
use self::plan::{Foreseen, Key, Plan};
use crate::account::{Account, AccountId, RequestId, Timestamp};
use crate::command::{Answer, Operation, RequestRecord, Task, Work};
use crate::ledger::atomic::Hand as _;
use crate::store::mysql::attempt::Trouble;
use crate::store::mysql::text::{Lock, Reads, Text, writing};

mod books;
mod decide;
mod load;
mod plan;
mod write;

pub(super) use self::plan::Shape;

/// A transaction that has begun so often without an end is given up. Each beginning locks more than the one before, or
/// has learnt what an account looks like.
const MOST_PASSES: usize = 8;
/// Accounts of which a process remembers what they look like.
const MOST_SHAPES: usize = 100_000;

/// What accounts looked like when they were last seen.
#[derive(Debug, Default)]
pub(super) struct Shapes(Mutex<HashMap<AccountId, Shape>>);

impl Shapes {
    fn of(&self, account: &AccountId) -> Shape {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(account).copied().unwrap_or_default()
    }

    /// Whether all of them were known.
    fn learn(&self, accounts: &[Account]) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = true;
        for account in accounts {
            let shape = Shape::from(account);
            if known.get(&account.id).copied().unwrap_or_default() != shape {
                all = false;
                if known.len() >= MOST_SHAPES {
                    known.clear();
                }
                known.insert(account.id.clone(), shape);
            }
        }
        all
    }
}

/// What does not change from one attempt to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting<'a> {
    pub(super) shapes: &'a Shapes,
    /// A test's time.
    pub(super) now: Option<Timestamp>,
    pub(super) prefer: u64,
    pub(super) until: Instant,
}

/// What attempts at the same jobs have learnt.
#[derive(Debug, Default)]
pub(super) struct Learnt {
    whole: BTreeSet<AccountId>,
    /// Of requests that are to be reversed, the other account that they moved money to.
    targets: HashMap<Key, AccountId>,
    /// Requests that were decided here in a transaction of which nobody knows whether it was committed: found, they
    /// are no repetitions.
    ours: HashSet<Key>,
    /// The same of accounts that were opened.
    opened: HashSet<AccountId>,
    /// Whether the outcome of an attempt is unknown.
    pub(super) unknown: bool,
}

/// Decides all jobs and commits that: an answer for each.
pub(super) async fn run(
    connection: &mut MySqlConnection,
    works: &[&Work],
    setting: Setting<'_>,
    learnt: &mut Learnt,
) -> Result<Vec<Told>, Trouble> {
    let reverses = works
        .iter()
        .flat_map(|work| work.tasks())
        .any(|task| reversal(task).is_some());
    if reverses {
        look_ahead(connection, works, setting, learnt).await?;
    }
    for _ in 0..MOST_PASSES {
        let foreseen = Foreseen {
            targets: &learnt.targets,
            whole: &learnt.whole,
            prefer: setting.prefer,
        };
        let tasks = works.iter().flat_map(|work| work.tasks());
        let plan = Plan::of(tasks, &foreseen, |account| setting.shapes.of(account));
        let text = load::text(&plan, setting.now);
        let answers = exchange(connection, text, setting.until, Commits::No).await?;
        let (mut books, accounts) = load::books(&plan, answers, setting.now)?;
        if !setting.shapes.learn(&accounts) || learn_targets(works, &books, &plan, learnt) {
            continue;
        }
        match decide(&mut books, works, setting.prefer)? {
            Ok(told) => {
                commit(connection, &books, setting, learnt).await?;
                return Ok(learnt.as_first(works, told));
            }
            Err(account) => learnt.needs_whole(account, &plan),
        }
    }
    Err(Trouble::again("its rows changed each time they were read"))
}

/// The answers, or the account of which everything is needed.
fn decide(books: &mut Books, works: &[&Work], prefer: u64) -> Result<Result<Vec<Told>, AccountId>, Trouble> {
    let told: Result<Vec<Told>, Stop> = works.iter().map(|work| books.work(work, prefer)).collect();
    match told {
        Ok(told) => Ok(Ok(told)),
        Err(Stop::Whole(account)) => Ok(Err(account)),
        Err(Stop::Broken(violation)) => Err(Trouble::Broken(violation.to_string())),
    }
}

async fn commit(
    connection: &mut MySqlConnection,
    books: &Books,
    setting: Setting<'_>,
    learnt: &mut Learnt,
) -> Result<(), Trouble> {
    let writes = write::writes(books);
    if writes.is_empty() {
        let mut text = Text::default();
        text.roll_back();
        return exchange(connection, text, setting.until, Commits::No)
            .await
            .map(drop);
    }
    let mut texts = writing(&writes);
    let last = texts.pop();
    for text in texts {
        exchange(connection, text, setting.until, Commits::No).await?;
    }
    let Some(last) = last else {
        return Ok(());
    };
    let ended = exchange(connection, last, setting.until, Commits::Yes).await;
    if let Err(Trouble::Unknown(_)) = &ended {
        learnt.unknown = true;
        let decided = writes.requests.iter().map(|(record, _)| *record);
        learnt.ours.extend(decided.map(key_of));
        learnt
            .opened
            .extend(writes.opened.iter().map(|account| account.id.clone()));
    }
    ended.map(drop)
}

fn key_of(record: &RequestRecord) -> Key {
    (record.account.clone(), record.request.clone())
}

impl Learnt {
    /// The second time everything is needed of all accounts that money is taken from.
    fn needs_whole(&mut self, account: AccountId, plan: &Plan) {
        if !self.whole.is_empty() {
            self.whole.extend(plan.gates().cloned());
        }
        self.whole.insert(account);
    }

    /// What was decided by an earlier attempt of ours is told as what it was then.
    fn as_first(&mut self, works: &[&Work], mut told: Vec<Told>) -> Vec<Told> {
        if self.ours.is_empty() && self.opened.is_empty() {
            return told;
        }
        for (work, told) in works.iter().zip(&mut told) {
            match told {
                Ok(Answer::Decided { replayed, .. }) => self.first(work.tasks().first(), replayed),
                Ok(Answer::Batched(batched)) => {
                    for (task, decided) in work.tasks().iter().zip(&mut batched.results) {
                        if let Ok(decided) = decided {
                            self.first(Some(task), &mut decided.replayed);
                        }
                    }
                }
                Ok(Answer::Opened { account, created }) => {
                    *created |= self.opened.remove(&account.account.id)
                }
                Ok(Answer::Tidied { .. }) | Err(_) => {}
            }
        }
        told
    }

    fn first(&mut self, task: Option<&Task>, replayed: &mut bool) {
        if let Some(task) = task
            && let Some(request) = task.request()
            && self.ours.remove(&(task.account().clone(), request.clone()))
        {
            *replayed = false;
        }
    }
}

fn reversal(task: &Task) -> Option<&RequestId> {
    task.operation().and_then(Operation::reverses)
}

/// Reads what is to be reversed: whose gates that takes has to be known before the first lock. A decided request never
/// changes, so it needs no lock.
async fn look_ahead(
    connection: &mut MySqlConnection,
    works: &[&Work],
    setting: Setting<'_>,
    learnt: &mut Learnt,
) -> Result<(), Trouble> {
    let mut wanted: HashMap<&AccountId, Vec<&RequestId>> = HashMap::new();
    for task in works.iter().flat_map(|work| work.tasks()) {
        if let Some(reverses) = reversal(task) {
            wanted.entry(task.account()).or_default().push(reverses);
        }
    }
    let mut text = Text::default();
    text.roll_back();
    text.accounts(&wanted.keys().copied().collect::<Vec<_>>(), Lock::Nothing);
    for (account, requests) in &wanted {
        text.requests(account, requests);
    }
    let answers = exchange(connection, text, setting.until, Commits::No).await?;
    let (books, _) = load::books(&Plan::default(), answers, setting.now)?;
    learn_targets(works, &books, &Plan::default(), learnt);
    Ok(())
}

/// Takes in which other accounts reversals need. Whether the plan lacked one of them.
fn learn_targets(works: &[&Work], books: &Books, plan: &Plan, learnt: &mut Learnt) -> bool {
    let mut lacks = false;
    for task in works.iter().flat_map(|work| work.tasks()) {
        let Some(reverses) = reversal(task) else {
            continue;
        };
        let Ok(facts) = books.facts(task) else {
            continue;
        };
        if let Some(target) = facts.target(task) {
            let key = (task.account().clone(), reverses.clone());
            lacks |= plan.accounts.get(target).is_none_or(|need| !need.gate);
            learnt.targets.insert(key, target.clone());
        }
    }
    lacks
}

/// Whether a text ends with a COMMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Commits {
    No,
    Yes,
}

type Answers = Vec<(Reads, Vec<MySqlRow>)>;

async fn exchange(
    connection: &mut MySqlConnection,
    text: Text,
    until: Instant,
    commits: Commits,
) -> Result<Answers, Trouble> {
    let committing = commits == Commits::Yes;
    match timeout_at(until, text.run(connection)).await {
        Ok(Ok(answers)) => Ok(answers),
        Ok(Err(error)) => Err(Trouble::of(&error, committing)),
        Err(_) => Err(Trouble::lost("the database did not answer in time", committing)),
    }
}

impl From<LoadError> for Trouble {
    fn from(error: LoadError) -> Self {
        Self::Broken(error.to_string())
    }
}
