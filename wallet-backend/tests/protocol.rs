//! The lock order of a store on an SQL server, checked by trying every interleaving of it.
//!
//! # The order
//! Account rows, shared, by id (of a change of the account: exclusively). Gates, by id: of every account that is taken
//! from, and of one with a single slot that is credited. Other slots, by `SKIP LOCKED`; waiting only for one slot of one
//! account, or, under the gate, for all of them, and then for the pending rows that are free. The time, once the gates
//! are locked. Look-ups of what was decided before. The decisions, with more of the `SKIP LOCKED` where something is
//! short, and with the proof of a refusal. Then the last waits: request claims, sorted, with their outcomes; rows that
//! make a reversal happen once. Whoever finds one taken rolls back and runs again. Then what is written, pending rows and
//! all.
//!
//! # What is modelled
//! Rows with a committed value, shared and exclusive locks, `SKIP LOCKED`, `NOWAIT`, and snapshots that see what is
//! committed and the reader's own changes, as at READ COMMITTED (`world`); the transactions of credits, debits, debits
//! of all there is, holds, captures, transfers, reversals, batches of one and of two accounts, atomic batches, tidying,
//! re-slotting, closing and reading (`transaction`, `batch`). A transaction is plain code that is left at each question
//! it puts to the world (`session`), and the search tries every order of the answers (`search`).
//!
//! What a transaction decides, it decides with `ledger::decide` over the rows that it has locked (`core`), so what is
//! checked is the core's planning, not a copy of it. A write to a row that was not locked is a fault.
//!
//! # What must hold (`properties`)
//! Nobody waits for ever. `insufficient_funds` only where, at some moment since the operation began, the committed money
//! was too little. `max` takes, and a read says, what the account had at one moment. What was answered is what the rows
//! have, to the cent, floors included; once for each request id, once for each reversal, all or nothing for an atomic
//! batch. A closed account is empty and stays so.
//!
//! Then each rule is dropped in turn ([`scenes`]), and that has to be noticed. Some rules only save work, or are backed
//! up by another one, and some things a store may do in two ways: that nothing goes wrong without them is checked too.
//!
//! # What is not
//! The opening of accounts, which inserts one more row before the claims; reversals of transfers, which take two gates.
//! InnoDB's own deadlocks (three inserts of one key, of which the first is rolled back) and lock wait timeouts: a store
//! begins such a transaction again, whole. Crashes: a transaction is all or nothing. More than two accounts, three slots
//! and four jobs at once.

use std::collections::HashMap;

use self::rules::{FREE, NOT_ALONE, Rule, Rules};
use self::scenario::Scenario;
use self::scenes::{choices, scenes};
use self::search::{Automata, Report, Steps, search};

mod batch;
mod core;
mod properties;
mod rules;
mod scenario;
mod scenes;
mod search;
mod session;
mod transaction;
mod world;

/// Far more than any of these has: a scenario without an end stops here.
const MOST_STATES: usize = 5_000_000;

/// The long versions, as `tests/run --long` asks for them.
fn long() -> bool {
    std::env::var_os("SLUICE_LONG").is_some()
}

fn run(scenario: &Scenario, dropped: &'static [Rule], steps: Steps) -> Report {
    search(
        scenario,
        Rules { dropped },
        steps,
        &mut Automata::default(),
        MOST_STATES,
    )
}

/// Tries all these scenarios, stops at the first fault, and says how much was tried.
#[expect(clippy::print_stdout, reason = "figures for who runs it")]
fn sweep(what: &str, dropped: &'static [Rule], scenarios: impl Iterator<Item = Scenario>) {
    let mut known: HashMap<&str, Automata> = HashMap::new();
    let (mut count, mut states, mut steps) = (0, 0, 0);
    for scenario in scenarios {
        let automata = known.entry(scenario.name).or_default();
        let report = search(
            &scenario,
            Rules { dropped },
            Steps::Reduced,
            automata,
            MOST_STATES,
        );
        if let Some((fault, path)) = report.fault {
            panic!(
                "{fault:?} without {dropped:?} in {scenario:#?} by\n{}",
                path.join("\n")
            );
        }
        count += 1;
        states += report.states;
        steps += report.steps;
    }
    println!("{what}, without {dropped:?}: {count} scenarios, {states} states, {steps} steps");
}

#[test]
fn each_rule_of_the_lock_order_prevents_a_fault_that_comes_when_it_is_dropped() {
    let scenes = scenes();
    let (mut caught, of) = (0, scenes.len());
    for scene in scenes {
        let kept = run(&scene.scenario, &[], Steps::Reduced);
        let dropped = run(&scene.scenario, scene.dropped, Steps::Reduced);
        let name = scene.scenario.name;
        if let Some((fault, path)) = kept.fault {
            panic!(
                "{fault:?} in {name}, with every rule kept, by\n{}",
                path.join("\n")
            );
        }
        let Some((fault, path)) = dropped.fault else {
            panic!("{name}: nothing went wrong without {:?}", scene.dropped);
        };
        assert!(
            (scene.finds)(&fault),
            "{fault:?} in {name}, by\n{}",
            path.join("\n")
        );
        println!(
            "{:?}: {name}: {} states; dropped: {fault:?} after {}",
            scene.dropped, kept.states, dropped.states
        );
        caught += 1;
    }
    println!("lock order: {caught} of {of} dropped rules caught");
    assert_eq!(caught, of);
}

#[test]
fn every_pair_of_jobs_keeps_the_ledger_right_in_every_order() {
    sweep("pairs", &[], choices(2));
}

#[test]
fn three_jobs_at_once_keep_the_ledger_right_in_every_order() {
    if long() {
        sweep("all triples", &[], choices(3));
        sweep("every 251st of four", &[], choices(4).step_by(251));
    } else {
        sweep("every 29th triple", &[], choices(3).step_by(29));
    }
}

#[test]
fn waiting_in_the_same_transaction_and_beginning_a_whole_batch_again_keep_the_ledger_right_too() {
    for dropped in FREE {
        sweep("pairs", dropped, choices(2));
        if long() {
            sweep("every 13th triple", dropped, choices(3).step_by(13));
        }
    }
}

#[test]
fn rules_that_save_work_or_are_backed_up_by_another_can_be_dropped_alone() {
    for dropped in NOT_ALONE {
        if long() {
            sweep("pairs", dropped, choices(2));
            sweep("every 13th triple", dropped, choices(3).step_by(13));
        } else {
            sweep("every 3rd pair", dropped, choices(2).step_by(3));
        }
    }
}

/// The reduction leaves out steps that nobody else can notice; with all of them the verdicts are the same.
#[test]
fn leaving_out_steps_that_nobody_notices_changes_no_verdict() {
    let verdict = |report: &Report| {
        report
            .fault
            .as_ref()
            .map(|(fault, _)| std::mem::discriminant(fault))
    };
    let (mut all, mut reduced) = (0, 0);
    for scene in scenes() {
        for dropped in [&[][..], scene.dropped] {
            let with = run(&scene.scenario, dropped, Steps::Reduced);
            let without = run(&scene.scenario, dropped, Steps::All);
            assert_eq!(
                verdict(&with),
                verdict(&without),
                "{} without {dropped:?}",
                scene.scenario.name
            );
            all += without.states;
            reduced += with.states;
        }
    }
    println!("{reduced} states instead of {all}");
    assert!(reduced < all);
}
