//! Many callers of one wallet, each of whom asks again under the same id until there is an answer. What they were told is
//! held against the statements and the events at the end: what was acknowledged is there, once, and nothing else is.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use wallet_backend::Wallet;
use wallet_backend::account::Entry;
use wallet_backend::command::{Command, Decided, LedgerError, Outcome, Refusal, Task};
use wallet_backend::store::Cursor;

use crate::history::{self, History, Shortage, Span};
use crate::support::{
    Numbers, capture, capture_part, credit, debit, hear, hold, id, journal, ordinary, release, reversal,
    seen, slotted, transfer,
};

/// Money in the last but one is pending until somebody needs it. The last gets money by its own requests only, of which
/// none is ever pending.
const ACCOUNTS: [&str; 4] = ["plain", "split", "journal", "alone"];

/// How often a caller asks for one thing, at most.
const TRIES: usize = 1_000;

/// A wallet under load. Shared by its callers.
#[derive(Clone)]
pub(super) struct Load {
    wallet: Wallet,
    inner: Arc<Inner>,
}

struct Inner {
    /// One counter for the order of all calls and answers.
    ticks: AtomicU64,
    heard: Mutex<Heard>,
    /// How many operations were answered.
    answered: watch::Sender<u64>,
    /// Whether it is worth asking again.
    up: watch::Sender<bool>,
}

#[derive(Default)]
struct Heard {
    history: History,
    /// What was begun, when, and has no answer yet, by account and request.
    open: BTreeMap<(String, String), (Task, u64)>,
    /// What else was heard, by name.
    counts: BTreeMap<&'static str, u64>,
}

impl Load {
    /// Opens the accounts, and gives each some money.
    pub(super) async fn new(wallet: Wallet) -> Self {
        let inner = Inner {
            ticks: AtomicU64::new(1),
            heard: Mutex::default(),
            answered: watch::Sender::new(0),
            up: watch::Sender::new(true),
        };
        let load = Self {
            wallet,
            inner: Arc::new(inner),
        };
        for account in [
            ordinary("plain"),
            slotted("split", 4),
            journal("journal"),
            ordinary("alone"),
        ] {
            load.wallet.open(account).await.unwrap();
        }
        for account in ACCOUNTS {
            let task = credit(account, "opening", 100);
            let opening = load.ask(&task).await.unwrap();
            assert!(opening.is_success(), "{opening:?}");
        }
        load
    }

    /// So many operations of each of so many callers, all at once. What they do goes by `seed`.
    pub(super) fn start(&self, seed: u64, callers: u64, operations: u64) -> JoinSet<()> {
        let mut running = JoinSet::new();
        for caller in 0..callers {
            let caller = Caller {
                load: self.clone(),
                name: format!("{seed}-{caller}"),
                numbers: Numbers(seed * 1_000 + caller),
                holds: Vec::new(),
                reversible: Vec::new(),
            };
            running.spawn(caller.run(operations));
        }
        running
    }

    /// Resolves once so many operations were answered, those of [`Self::new`] and of earlier callers too.
    pub(super) async fn answered(&self, operations: u64) {
        let mut answered = self.inner.answered.subscribe();
        drop(
            answered
                .wait_for(|answered| *answered >= operations)
                .await
                .unwrap(),
        );
    }

    /// Whether callers who were told that nothing is to be had ask again.
    pub(super) fn set_up(&self, up: bool) {
        self.inner.up.send_replace(up);
    }

    fn tick(&self) -> u64 {
        self.inner.ticks.fetch_add(1, Ordering::SeqCst)
    }

    pub(super) fn count(&self, name: &'static str) {
        *self.inner.heard.lock().unwrap().counts.entry(name).or_default() += 1;
    }

    /// Asks until there is an answer, and keeps what was heard. `None` for what is never stored: a hold or a request
    /// that is not there because it was refused.
    pub(super) async fn ask(&self, task: &Task) -> Option<Decided> {
        let Task::Run(command) = task else {
            panic!("no command: {task:?}");
        };
        let key = (command.account.to_string(), command.request.to_string());
        let begun = self.tick();
        let begun = {
            let mut heard = self.inner.heard.lock().unwrap();
            heard.open.entry(key.clone()).or_insert((task.clone(), begun)).1
        };
        let decided = self.ask_until_it_is_answered(task, command, begun).await;
        self.inner.heard.lock().unwrap().open.remove(&key);
        decided
    }

    async fn ask_until_it_is_answered(&self, task: &Task, command: &Command, begun: u64) -> Option<Decided> {
        for _ in 0..TRIES {
            let decided = self.wallet.run(command.clone()).await;
            match decided {
                Ok(decided) => {
                    let ended = self.tick();
                    self.keep(task, &decided, Span { begun, ended });
                    self.inner.answered.send_modify(|answered| *answered += 1);
                    return Some(decided);
                }
                Err(LedgerError::HoldNotFound { .. } | LedgerError::NothingToReverse { .. }) => {
                    self.count("not there");
                    return None;
                }
                Err(LedgerError::OutcomeUnknown { .. }) => self.count("unknown"),
                Err(LedgerError::Unavailable { .. }) => self.count("unavailable"),
                Err(LedgerError::InProgress { .. }) => self.count("in progress"),
                Err(error) => panic!("{task:?}: {error:?}"),
            }
            drop(self.inner.up.subscribe().wait_for(|up| *up).await.unwrap());
        }
        panic!("{task:?}: no answer in {TRIES} tries");
    }

    /// Asks again for what callers have given up, one after the other; says how much that was.
    pub(super) async fn resolve(&self) -> usize {
        let open = self.inner.heard.lock().unwrap().open.clone();
        for (task, _) in open.values() {
            self.ask(task).await;
        }
        open.len()
    }

    fn keep(&self, task: &Task, decided: &Decided, span: Span) {
        let mut heard = self.inner.heard.lock().unwrap();
        let Decided { outcome, replayed } = decided;
        hear(&mut heard.history, task, outcome, *replayed, span);
        let name = match outcome {
            Outcome::Refused(Refusal::InsufficientFunds {
                account,
                asked,
                available,
            }) => {
                heard.history.shortages.push(Shortage {
                    account: account.to_string(),
                    request: task.request().unwrap().to_string(),
                    asked: *asked,
                    available: *available,
                    floor: 0,
                    exact: account.as_str() == "alone",
                    span,
                });
                "short"
            }
            Outcome::Refused(_) => "refused",
            Outcome::Posted(_) | Outcome::Amended(_) if *replayed => "replayed",
            Outcome::Posted(_) | Outcome::Amended(_) => "posted",
        };
        *heard.counts.entry(name).or_default() += 1;
    }

    async fn look(&self, account: &str) {
        let begun = self.tick();
        match self.wallet.account(&id(account)).await {
            Ok(view) => {
                let ended = self.tick();
                let read = seen(&view, Span { begun, ended });
                self.inner.heard.lock().unwrap().history.reads.push(read);
                self.count("read");
            }
            Err(LedgerError::Unavailable { .. }) => self.count("unavailable"),
            Err(error) => panic!("{account}: {error:?}"),
        }
    }

    /// Reads everything and holds it against what was heard; says how much that was, by name.
    pub(super) async fn check(self) -> BTreeMap<&'static str, u64> {
        for account in ACCOUNTS {
            self.look(account).await;
        }
        let Self { wallet, inner } = self;
        let inner = Arc::into_inner(inner).expect("the callers are done");
        let Heard {
            mut history,
            open,
            counts,
        } = inner.heard.into_inner().unwrap();
        assert!(open.is_empty(), "{open:?}");
        let mut statements = HashSet::new();
        for account in ACCOUNTS {
            let mut pages = wallet.statement(&id(account), Cursor::default()).await.unwrap();
            while let Some(entries) = pages.next().await.unwrap() {
                statements.extend(entries.iter().map(history::Entry::from));
            }
        }
        let events = events(&wallet, statements.len()).await;
        history.entries = events.iter().map(history::Entry::from).collect();
        assert_eq!(
            history.entries.iter().cloned().collect::<HashSet<_>>(),
            statements
        );
        assert_eq!(history.faults(), Vec::<String>::new());
        assert_eq!(drift(&wallet, &history).await, 0);
        counts
    }
}

/// The first so many entries of all accounts, by their numbers, which have no gap.
async fn events(wallet: &Wallet, most: usize) -> Vec<Entry> {
    let mut reader = wallet.events(0, None);
    let mut found = Vec::new();
    while found.len() < most {
        let there = timeout(Duration::from_secs(30), reader.wait()).await;
        there.expect("every entry has a number").unwrap();
        for event in reader.read(500).await.unwrap() {
            found.push(event.entry);
            assert_eq!(event.number, u64::try_from(found.len()).unwrap());
        }
    }
    found
}

/// What is there and never came, or came and is not there.
async fn drift(wallet: &Wallet, history: &History) -> i64 {
    let mut there = 0;
    for account in ACCOUNTS {
        there += wallet.account(&id(account)).await.unwrap().balance();
    }
    // Of what crosses the border, every success was heard: callers ask until they know.
    let mut came = BTreeMap::new();
    for receipt in &history.receipts {
        let amount = match receipt.kind.as_str() {
            "credit" => receipt.amount,
            "debit" | "capture" => -receipt.amount,
            "reversal" => continue,
            _ => 0,
        };
        came.insert((&receipt.account, &receipt.request), amount);
    }
    let reversed = history.entries.iter().filter(|entry| entry.kind == "reversal");
    let reversed: i64 = reversed.map(|entry| entry.delta).sum();
    there - came.values().sum::<i64>() - reversed
}

/// One caller: its operations go one after the other.
struct Caller {
    load: Load,
    name: String,
    numbers: Numbers,
    /// Account and request of holds that were placed.
    holds: Vec<(&'static str, String)>,
    reversible: Vec<(&'static str, String)>,
}

impl Caller {
    async fn run(mut self, operations: u64) {
        for n in 0..operations {
            let name = format!("{}-{n}", self.name);
            let task = self.task(&name);
            let account = ACCOUNTS
                .into_iter()
                .find(|account| *account == task.account().as_str())
                .unwrap();
            let decided = self.load.ask(&task).await;
            if let Some(Outcome::Posted(receipt)) = decided.map(|decided| decided.outcome) {
                match receipt.kind.as_str() {
                    "hold" => self.holds.push((account, name)),
                    "credit" | "debit" | "transfer" => self.reversible.push((account, name)),
                    _ => {}
                }
            }
            if self.numbers.below(4) == 0 {
                self.load.look(account).await;
            }
        }
    }

    fn task(&mut self, name: &str) -> Task {
        let account = self.account();
        let minor = i64::try_from(1 + self.numbers.below(60)).unwrap();
        match self.numbers.below(20) {
            0..4 => credit(account, name, minor),
            4..10 => debit(account, name, minor),
            10..14 => transfer(account, name, self.other(account), minor),
            14..16 => hold(account, name, minor, 0),
            16 | 17 if let Some((account, of)) = self.holds.last() => capture_part(account, name, of, 1),
            18 if let Some((account, of)) = self.holds.pop() => {
                if minor % 2 == 0 {
                    release(account, name, &of)
                } else {
                    capture(account, name, &of, 0)
                }
            }
            19 if let Some((account, of)) = self.reversible.pop() => reversal(account, name, &of),
            _ => credit(account, name, minor),
        }
    }

    fn account(&mut self) -> &'static str {
        ACCOUNTS[usize::try_from(self.numbers.below(4)).unwrap()]
    }

    fn other(&mut self, than: &str) -> &'static str {
        loop {
            let other = self.account();
            if other != than && other != "alone" {
                return other;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_under_load_has_a_possible_history() {
    let load = Load::new(Wallet::memory().unwrap()).await;
    load.start(1, 8, 60).join_all().await;
    let counts = load.check().await;
    for name in ["posted", "short", "read"] {
        assert!(counts.contains_key(name), "{counts:?}");
    }
}
