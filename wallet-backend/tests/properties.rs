//! What holds after every step of every sequence, over the pure core and the model.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use wallet_backend::account::{Account, AccountId, CreditMode, RequestId};
use wallet_backend::clock::Clock;
use wallet_backend::command::{
    AccountView, Answer, LedgerError, Operation, Outcome, Refusal, RequestView, Task,
};
use wallet_backend::money::Currency;
use wallet_backend::store::Preference;
use wallet_backend::store::memory::Memory;

use crate::history::{self, History, Span};
use crate::support::{
    Bench, abandon, acknowledged, credit, debit, hashed, journal, ordinary, seen, slotted, tidy, transfer,
};

fn accounts() -> Vec<Account> {
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

/// Small ids and amounts: replays, reuse, refusals and collections all happen often.
fn steps() -> impl Strategy<Value = Vec<Task>> {
    let name = || prop::sample::select(vec!["a", "b", "c", "d", "e", "f"]);
    let id = || (0..40_u8).prop_map(|number| format!("r{number}"));
    let step = prop_oneof![
        5 => (name(), id(), 1..60_i64).prop_map(|(account, id, minor)| credit(account, &id, minor)),
        5 => (name(), id(), 1..60_i64).prop_map(|(account, id, minor)| debit(account, &id, minor)),
        4 => (name(), id(), name(), 1..60_i64)
            .prop_map(|(from, id, to, minor)| transfer(from, &id, to, minor)),
        1 => (name(), id()).prop_map(|(account, id)| abandon(account, &id)),
        2 => name().prop_map(tidy),
    ];
    prop::collection::vec(step, 1..120)
}

/// What the ledger should be, kept apart from it.
#[derive(Default)]
struct Expected {
    /// What came in from outside minus what went out.
    money: HashMap<Currency, i64>,
    first: HashMap<(AccountId, RequestId), (Option<Operation>, Outcome)>,
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
        let bench = Bench::new(Memory::new(Clock::System, Preference::default()));
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

    fn step(&mut self, task: &Task) {
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
            Ok(Answer::Opened { .. }) => unreachable!("no step opens"),
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
                let minor = operation.amount().minor();
                let money = self.money.entry(before[own].account.currency).or_default();
                match operation {
                    Operation::Credit { .. } => *money += minor,
                    Operation::Debit { .. } => *money -= minor,
                    Operation::Transfer { .. } => {}
                }
                if !matches!(operation, Operation::Credit { .. }) {
                    let view = &after[own];
                    assert!(
                        view.balance() >= view.account.floor,
                        "the floor is kept: {view:?}"
                    );
                }
                self.history.receipts.push(acknowledged(receipt, false, span));
            }
            Outcome::Refused(refusal) => {
                assert_eq!(before, after, "a refusal changes nothing but its own record");
                if let Refusal::InsufficientFunds { asked, available, .. } = refusal {
                    assert_eq!(*available, before[own].available());
                    assert!(asked > available, "the refusal is proven");
                }
                let (account, request) = (key.0.to_string(), key.1.to_string());
                self.history.refusals.push(history::Refusal { account, request });
            }
        }
        let known = self.first.insert(key, (operation, outcome.clone()));
        assert!(known.is_none(), "decided twice: {known:?}");
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
                assert_eq!(task.target(), Some(task.account()));
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
        for task in &steps {
            world.step(task);
        }
        world.finish();
    }
}
