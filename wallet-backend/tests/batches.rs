//! A batch is what its commands are one by one; an atomic one is that, or nothing.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use wallet_backend::command::{Answer, BatchMode, Decided, LedgerError, Task};
use wallet_backend::store::Preference;
use wallet_backend::store::memory::Memory;

use crate::properties::{accounts, tasks};
use crate::support::{Bench, SECOND, Time};

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    Send(BatchMode, Vec<Task>),
    /// Half seconds.
    Wait(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let command = tasks().prop_filter("no command", |task| task.operation().is_some());
    let mode = prop::sample::select(vec![BatchMode::Each, BatchMode::Atomic, BatchMode::Atomic]);
    let step = prop_oneof![
        9 => (mode, prop::collection::vec(command, 0..6)).prop_map(|(mode, tasks)| Step::Send(mode, tasks)),
        1 => (1..5_i64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..40)
}

fn opened() -> Bench<Memory> {
    let time = Time::default();
    let bench = Bench::at(Memory::new(time.clock(), Preference::Fixed(3)), time);
    for account in accounts() {
        bench.open(account);
    }
    bench
}

fn ask(bench: &Bench<Memory>, task: &Task) -> Result<Decided, LedgerError> {
    match bench.ask(task.clone())? {
        Answer::Decided { outcome, replayed } => Ok(Decided { outcome, replayed }),
        other => panic!("no decision: {other:?}"),
    }
}

/// One store is sent batches, the other one their commands.
struct Twins {
    batched: Bench<Memory>,
    single: Bench<Memory>,
    /// What the second one was asked, to make a third of it.
    asked: Vec<Step>,
    counts: Counts,
}

/// Batches, by what became of them, and commands in all.
#[derive(Debug, Default)]
struct Counts {
    each: usize,
    applied: usize,
    aborted: usize,
    commands: usize,
}

impl Twins {
    fn new() -> Self {
        Self {
            batched: opened(),
            single: opened(),
            asked: Vec::new(),
            counts: Counts::default(),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Wait(halves) => {
                for bench in [&self.batched, &self.single] {
                    bench.time.pass(halves * SECOND / 2);
                }
                self.asked.push(step.clone());
            }
            Step::Send(mode, tasks) => self.send(*mode, tasks),
        }
    }

    fn send(&mut self, mode: BatchMode, tasks: &[Task]) {
        let got = self.batched.batch(mode, tasks).unwrap();
        self.counts.commands += tasks.len();
        if got.applied {
            match mode {
                BatchMode::Each => self.counts.each += 1,
                BatchMode::Atomic => self.counts.applied += 1,
            }
            let expected: Vec<_> = tasks.iter().map(|task| ask(&self.single, task)).collect();
            assert_eq!(got.results, expected, "{tasks:?}");
            self.asked.push(Step::Send(mode, tasks.to_vec()));
        } else {
            assert_eq!(mode, BatchMode::Atomic);
            self.counts.aborted += 1;
            self.check_aborted(tasks, &got.results);
        }
        self.check_the_same();
    }

    /// The first that a third store, which knows all that the others do, refuses is the culprit.
    fn check_aborted(&self, tasks: &[Task], results: &[Result<Decided, LedgerError>]) {
        let third = opened();
        for step in &self.asked {
            match step {
                Step::Wait(halves) => third.time.pass(halves * SECOND / 2),
                Step::Send(_, tasks) => tasks.iter().for_each(|task| drop(ask(&third, task))),
            }
        }
        let refused = |result: &Result<Decided, LedgerError>| !result.as_ref().is_ok_and(Decided::is_success);
        let mut answers = tasks.iter().map(|task| ask(&third, task)).enumerate();
        let (culprit, refusal) = answers.find(|(_, result)| refused(result)).unwrap();
        for (number, result) in results.iter().enumerate() {
            if number == culprit {
                assert_eq!(*result, refusal, "{tasks:?}");
            } else {
                assert_eq!(*result, Err(LedgerError::BatchAborted { culprit }), "{tasks:?}");
            }
        }
    }

    fn check_the_same(&self) {
        assert_eq!(self.batched.store.verify(), Ok(Vec::new()));
        for account in accounts() {
            let name = account.id.as_str();
            assert_eq!(self.batched.account(name), self.single.account(name));
            assert_eq!(self.batched.entries(name), self.single.entries(name));
        }
    }

    /// Every id is known to both, with the same outcome, or to neither.
    fn check_requests(&self) {
        for account in accounts() {
            for number in 0..40 {
                let (name, id) = (account.id.as_str(), format!("r{number}"));
                let views = (
                    self.batched.look_up(name, &id),
                    self.batched.look_up_hold(name, &id),
                );
                let expected = (
                    self.single.look_up(name, &id),
                    self.single.look_up_hold(name, &id),
                );
                assert_eq!(views, expected, "{name} {id}");
            }
        }
    }
}

#[test]
fn a_batch_is_what_its_commands_are_one_by_one_and_an_atomic_one_that_or_nothing() {
    let mut runner = TestRunner::new(Config {
        cases: 64,
        rng_seed: RngSeed::Fixed(20_260_202),
        failure_persistence: None,
        ..Config::default()
    });
    let total = std::cell::RefCell::new(Counts::default());
    let run = |steps: Vec<Step>| {
        let mut twins = Twins::new();
        for step in &steps {
            twins.step(step);
        }
        twins.check_requests();
        let mut total = total.borrow_mut();
        total.each += twins.counts.each;
        total.applied += twins.counts.applied;
        total.aborted += twins.counts.aborted;
        total.commands += twins.counts.commands;
        Ok(())
    };
    runner.run(&steps(), run).unwrap();
    let Counts {
        each,
        applied,
        aborted,
        commands,
    } = total.into_inner();
    assert!(each > 100 && applied > 100 && aborted > 100);
    println!(
        "64 sequences, {commands} commands: {each} batches of each by itself, {applied} atomic ones applied, \
         {aborted} given up, 0 other than one by one"
    );
}
