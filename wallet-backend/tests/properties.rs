//! What holds after every step of every sequence, over the pure core and the model.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use wallet_backend::account::{Account, AccountId, CreditMode, Hold, HoldState, RequestId, Status};
use wallet_backend::command::{
    AccountView, Amendment, Answer, HoldView, LedgerError, Operation, Outcome, Receipt, Refusal, RequestView,
    Task,
};
use wallet_backend::money::Currency;
use wallet_backend::store::Preference;
use wallet_backend::store::memory::Memory;

use crate::history::{self, History, Span};
use crate::support::{
    Bench, SECOND, Time, abandon, acknowledged, amend, capture, capture_part, credit, debit, drain, hashed,
    hold, journal, ordinary, release, reslot, reversal, seen, slotted, status, tidy, transfer,
};

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

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Ask(Task),
    /// Half seconds.
    Wait(i64),
}

/// Small ids and amounts: replays, reuse, refusals and collections all happen often.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        30 => tasks().prop_map(Step::Ask),
        1 => (1..5_i64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..150)
}

pub(crate) fn tasks() -> impl Strategy<Value = Task> {
    let name = || prop::sample::select(vec!["a", "b", "c", "d", "e", "f"]);
    let id = || (0..40_u8).prop_map(|number| format!("r{number}"));
    // Few, so that most holds are met again.
    let held = || (0..5_u8).prop_map(|number| format!("r{number}"));
    let moves = prop_oneof![
        5 => (name(), id(), 1..60_i64).prop_map(|(account, id, minor)| credit(account, &id, minor)),
        4 => (name(), id(), 1..60_i64).prop_map(|(account, id, minor)| debit(account, &id, minor)),
        1 => (name(), id()).prop_map(|(account, id)| drain(account, &id)),
        4 => (name(), id(), name(), 1..60_i64)
            .prop_map(|(from, id, to, minor)| transfer(from, &id, to, minor)),
    ];
    let holds = prop_oneof![
        3 => (name(), held(), 1..40_i64, 0..5_u32)
            .prop_map(|(account, id, minor, seconds)| hold(account, &id, minor, seconds)),
        2 => (name(), id(), held(), 0..40_i64)
            .prop_map(|(account, id, of, minor)| capture(account, &id, &of, minor)),
        2 => (name(), id(), held(), 0..20_i64)
            .prop_map(|(account, id, of, minor)| capture_part(account, &id, &of, minor)),
        1 => (name(), id(), held()).prop_map(|(account, id, of)| release(account, &id, &of)),
    ];
    let others = prop_oneof![
        4 => (name(), id(), id()).prop_map(|(account, id, of)| reversal(account, &id, &of)),
        1 => (name(), id()).prop_map(|(account, id)| abandon(account, &id)),
        2 => name().prop_map(tidy),
        1 => (name(), id(), 1..7_u8).prop_map(|(account, id, slots)| reslot(account, &id, slots)),
        1 => (name(), id(), any_status()).prop_map(|(account, id, to)| status(account, &id, to)),
        1 => (name(), id(), 0..20_i64).prop_map(|(account, id, floor)| {
            let floor = Some(floor);
            amend(account, &id, Amendment { floor, ..Amendment::default() })
        }),
    ];
    prop_oneof![
        14 => moves,
        8 => holds,
        8 => others,
    ]
}

/// Mostly active, so that something happens.
fn any_status() -> impl Strategy<Value = Status> {
    prop::sample::select(vec![
        Status::Active,
        Status::Active,
        Status::Active,
        Status::DebitFrozen,
        Status::Frozen,
        Status::Closed,
    ])
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
}

type Views = HashMap<AccountId, AccountView>;

struct World {
    bench: Bench<Memory>,
    expected: Expected,
}

impl World {
    fn new() -> Self {
        let time = Time::default();
        let bench = Bench::at(Memory::new(time.clock(), Preference::default()), time);
        for account in accounts() {
            bench.open(account);
        }
        Self {
            bench,
            expected: Expected::default(),
        }
    }

    fn views(&self) -> Views {
        accounts()
            .into_iter()
            .map(|account| (account.id.clone(), self.bench.account(account.id.as_str())))
            .collect()
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Ask(task) => self.ask(task),
            Step::Wait(halves) => self.bench.time.pass(halves * SECOND / 2),
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

    /// Look-ups agree with the first answers, and the whole history is possible.
    fn finish(mut self) {
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
        assert_eq!(&self.first[&key].1, outcome, "a replay is the first outcome");
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

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        rng_seed: RngSeed::Fixed(20_260_101),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_invariants_hold_after_every_step(steps in steps()) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        world.finish();
    }
}
