//! What holds after every step of every sequence, over the pure core and the model.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use wallet_backend::account::{Account, AccountId, CreditMode, Hold, HoldState, RequestId};
use wallet_backend::command::{
    AccountView, Answer, HoldView, LedgerError, Operation, Outcome, Receipt, Refusal, RequestView, Task,
};
use wallet_backend::money::Currency;
use wallet_backend::store::Preference;
use wallet_backend::store::memory::Memory;

pub(crate) use self::steps::{Step, steps, tasks};
use crate::conformance::replies::{Met, names};
use crate::history::{self, History, Span};
use crate::support::{Bench, SECOND, Time, acknowledged, hashed, journal, ordinary, seen, slotted};

mod steps;

pub(crate) fn accounts() -> Vec<Account> {
    vec![
        Account {
            floor: 12,
            ..ordinary("a")
        },
        slotted("b", 4),
        Account {
            floor: 7,
            credit: CreditMode::Journal,
            ..slotted("c", 3)
        },
        hashed("d", 3),
        Account {
            credit: CreditMode::Upsert,
            ..slotted("e", 2)
        },
        Account {
            currency: Currency::new("USD").unwrap(),
            ..journal("f")
        },
    ]
}

/// What the ledger should be, kept apart from it.
#[derive(Default)]
struct Expected {
    /// What came in from outside minus what went out.
    money: HashMap<Currency, i64>,
    first: HashMap<(AccountId, RequestId), (Option<Operation>, Outcome)>,
    /// What was reversed, and by which request.
    reversed: HashMap<(AccountId, RequestId), RequestId>,
    /// Holds that have ended, as they were seen then.
    ended: HashMap<(AccountId, RequestId), Hold>,
    history: History,
    ticks: u64,
    met: Met,
}

type Views = HashMap<AccountId, AccountView>;

pub(crate) struct World {
    bench: Bench<Memory>,
    expected: Expected,
    asked: Vec<Task>,
}

impl World {
    pub(crate) fn new() -> Self {
        let time = Time::default();
        let bench = Bench::at(Memory::new(time.clock(), Preference::default()), time);
        for account in accounts() {
            bench.open(account);
        }
        Self {
            bench,
            expected: Expected::default(),
            asked: Vec::new(),
        }
    }

    fn views(&self) -> Views {
        accounts()
            .into_iter()
            .map(|account| (account.id.clone(), self.bench.account(account.id.as_str())))
            .collect()
    }

    pub(crate) fn step(&mut self, step: &Step) {
        if let Step::Wait(halves) = step {
            self.bench.time.pass(halves * SECOND / 2);
        }
        if let Some(task) = step.task(&self.asked) {
            self.ask(&task);
            self.asked.push(task);
        }
        self.check_holds();
    }

    /// No hold is worth more than it was, and one that has ended stays as it ended.
    fn check_holds(&mut self) {
        for (account, id) in self.expected.first.keys() {
            let Some(HoldView::Found(hold)) = self.bench.look_up_hold(account.as_str(), id.as_str()) else {
                continue;
            };
            assert!(
                hold.rest() >= 0 && hold.captured >= 0 && hold.released >= 0,
                "{hold:?}"
            );
            assert_eq!(hold.rest() > 0, hold.state == HoldState::Open, "{hold:?}");
            if hold.state != HoldState::Open {
                let key = (account.clone(), id.clone());
                let ended = self.expected.ended.entry(key).or_insert_with(|| hold.clone());
                assert_eq!(*ended, hold, "a hold has one end");
            }
        }
    }

    fn ask(&mut self, task: &Task) {
        let before = self.views();
        let begun = self.expected.ticks;
        let answer = self.bench.ask(task.clone());
        for name in names(&answer) {
            *self.expected.met.entry(name).or_default() += 1;
        }
        let after = self.views();
        self.expected.ticks += 2;
        let span = Span {
            begun,
            ended: begun + 1,
        };
        match answer {
            Ok(Answer::Decided {
                outcome,
                replayed: true,
            }) => {
                assert_eq!(before, after, "a replay changes nothing");
                self.expected.repeat(task, &outcome, span);
            }
            Ok(Answer::Decided {
                outcome,
                replayed: false,
            }) => {
                self.expected.decide(task, &outcome, &before, &after, span);
            }
            Ok(Answer::Tidied { .. }) => {
                let balances = |views: &Views| -> HashMap<_, _> {
                    views
                        .iter()
                        .map(|(id, view)| (id.clone(), view.balance()))
                        .collect()
                };
                assert_eq!(balances(&before), balances(&after), "tidying moves no money");
            }
            Ok(Answer::Opened { .. } | Answer::Batched(_)) => unreachable!("no step opens or is a batch"),
            Err(error) => {
                assert_eq!(before, after, "{error} changes nothing");
                self.expected.fail(task, &error);
            }
        }
        let reads = after.values().map(|view| {
            seen(
                view,
                Span {
                    begun: begun + 1,
                    ended: begun + 2,
                },
            )
        });
        self.expected.history.reads.extend(reads);
        self.check(&after);
    }

    fn check(&self, views: &Views) {
        assert_eq!(self.bench.store.verify(), Ok(Vec::new()));
        let mut money: HashMap<Currency, i64> = HashMap::new();
        for view in views.values() {
            *money.entry(view.account.currency).or_default() += view.balance();
            assert!(view.slots.iter().all(|slot| slot.balance >= 0), "{view:?}");
        }
        money.retain(|_, sum| *sum != 0);
        let mut expected = self.expected.money.clone();
        expected.retain(|_, sum| *sum != 0);
        assert_eq!(money, expected, "money is conserved");
    }

    /// Look-ups agree with the first answers, and the whole history is possible. Says what was met.
    pub(crate) fn finish(mut self) -> Met {
        for ((account, id), (_, outcome)) in &self.expected.first {
            let view = self.bench.look_up(account.as_str(), id.as_str());
            let Some(RequestView::Decided(now)) = view else {
                panic!("{account} {id} is forgotten");
            };
            match (outcome, &now) {
                (Outcome::Posted(first), Outcome::Posted(now)) => {
                    assert!(now.legs.starts_with(&first.legs), "{first:?} became {now:?}");
                }
                _ => assert_eq!(outcome, &now),
            }
        }
        for account in accounts() {
            let entries = self.bench.entries(account.id.as_str());
            self.expected
                .history
                .entries
                .extend(entries.iter().map(history::Entry::from));
        }
        assert_eq!(self.expected.history.faults(), Vec::<String>::new());
        self.expected.met
    }
}

impl Expected {
    fn decide(&mut self, task: &Task, outcome: &Outcome, before: &Views, after: &Views, span: Span) {
        let own = task.account();
        let operation = match task {
            Task::Run(command) => Some(command.operation.clone()),
            Task::Open(_) | Task::Abandon { .. } | Task::Tidy { .. } => None,
        };
        let key = (own.clone(), task.request().unwrap().clone());
        match outcome {
            Outcome::Posted(receipt) => {
                let operation = operation.as_ref().unwrap();
                let minor = self.came_in_by(own, operation, receipt);
                *self.money.entry(before[own].account.currency).or_default() += minor;
                if let Some(taken) = receipt.legs.iter().find(|leg| leg.delta < 0) {
                    let view = &after[&taken.account];
                    let loose = view.balance() - view.held;
                    assert!(loose >= view.account.floor, "the floor is kept: {view:?}");
                }
                if let Some(reverses) = operation.reverses() {
                    let key = (own.clone(), reverses.clone());
                    let known = self.reversed.insert(key, receipt.request.clone());
                    assert_eq!(known, None, "{reverses} was reversed twice");
                }
                self.history.receipts.push(acknowledged(receipt, false, span));
            }
            Outcome::Amended(view) => {
                assert_eq!(**view, after[own]);
                assert_eq!(view.balance(), before[own].balance(), "amending moves no money");
            }
            Outcome::Refused(refusal) => {
                assert_eq!(before, after, "a refusal changes nothing but its own record");
                if let Refusal::InsufficientFunds {
                    account,
                    asked,
                    available,
                } = refusal
                {
                    let of_a_hold = operation
                        .as_ref()
                        .is_some_and(|operation| operation.hold().is_some());
                    assert!(!of_a_hold, "what ends a hold is never short: {refusal:?}");
                    let view = &before[account];
                    let there = match operation {
                        Some(Operation::Amend(_)) => view.balance() - view.held,
                        _ => view.available(),
                    };
                    assert_eq!(*available, there);
                    assert!(asked > available, "the refusal is proven");
                }
                let (account, request) = (key.0.to_string(), key.1.to_string());
                self.history.refusals.push(history::Refusal { account, request });
            }
        }
        let known = self.first.insert(key, (operation, outcome.clone()));
        assert!(known.is_none(), "decided twice: {known:?}");
    }

    /// What an operation brings in from outside, less what it takes out.
    fn came_in_by(&self, own: &AccountId, operation: &Operation, receipt: &Receipt) -> i64 {
        let minor = receipt.amount.minor();
        match operation {
            Operation::Credit { .. } => minor,
            Operation::Debit { .. } | Operation::Capture { .. } => -minor,
            Operation::Transfer { .. } | Operation::Hold { .. } | Operation::Release { .. } => 0,
            Operation::Reversal { reverses } => {
                let (original, outcome) = &self.first[&(own.clone(), reverses.clone())];
                let Outcome::Posted(first) = outcome else {
                    panic!("nothing was done: {outcome:?}");
                };
                assert_eq!(first.amount, receipt.amount, "it is undone wholly");
                -self.came_in_by(own, original.as_ref().unwrap(), first)
            }
            Operation::Amend(_) => unreachable!("an amendment has no receipt"),
        }
    }

    fn repeat(&mut self, task: &Task, outcome: &Outcome, span: Span) {
        let key = (task.account().clone(), task.request().unwrap().clone());
        let (first, expected) = &self.first[&key];
        assert_eq!(expected, outcome, "a replay is the first outcome");
        if let (Some(first), Task::Run(command)) = (first, task) {
            assert_eq!(*first, command.operation, "only the same command is a replay");
        }
        if let Outcome::Posted(receipt) = outcome {
            self.history.receipts.push(acknowledged(receipt, true, span));
        }
    }

    fn fail(&self, task: &Task, error: &LedgerError) {
        match error {
            LedgerError::RequestReused { .. } => {
                let key = (task.account().clone(), task.request().unwrap().clone());
                let Task::Run(command) = task else {
                    panic!("only a command can differ: {task:?}");
                };
                assert_ne!(self.first[&key].0, Some(command.operation.clone()));
            }
            LedgerError::Invalid { field: "to", .. } => {
                assert_eq!(task.target(None), Some(task.account()));
            }
            // The account whose debits are hashed cannot have a floor.
            LedgerError::Invalid { field: "floor", .. } => {
                assert_eq!(task.account().as_str(), "d");
            }
            LedgerError::HoldNotFound { account, hold } => {
                let placed = self.first.get(&(account.clone(), hold.clone()));
                let placed = placed.is_some_and(|(operation, outcome)| {
                    matches!(
                        (operation, outcome),
                        (Some(Operation::Hold { .. }), Outcome::Posted(_))
                    )
                });
                assert!(!placed, "{hold} of {account} was placed");
            }
            LedgerError::NothingToReverse { account, reverses } => {
                assert!(!self.first.contains_key(&(account.clone(), reverses.clone())));
            }
            _ => panic!("unexpected: {error}"),
        }
    }
}

/// What the sequences must have met between them.
const EVERYTHING: [&str; 17] = [
    "credit",
    "debit",
    "hold",
    "capture",
    "release",
    "transfer",
    "reversal",
    "amended",
    "tidied",
    "replayed",
    "insufficient funds",
    "hold not open",
    "hold exceeded",
    "already reversed",
    "not reversible",
    "currency",
    "not empty",
];

#[test]
fn the_invariants_hold_after_every_step() {
    let config = ProptestConfig {
        cases: 96,
        rng_seed: RngSeed::Fixed(20_260_101),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let (met, sequences) = (RefCell::new(Met::new()), Cell::new(0));
    let run = TestRunner::new(config).run(&steps(), |steps| {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        for (name, count) in world.finish() {
            *met.borrow_mut().entry(name).or_default() += count;
        }
        sequences.set(sequences.get() + 1);
        Ok(())
    });
    run.unwrap();
    let (met, sequences) = (met.into_inner(), sequences.get());
    let missed = EVERYTHING.iter().filter(|name| !met.contains_key(*name));
    let missed: Vec<_> = missed.collect();
    assert!(missed.is_empty(), "never met: {missed:?} among {met:?}");
    let steps: usize = met.values().sum();
    println!("{sequences} sequences, {steps} steps, the invariants after each: {met:?}");
}
