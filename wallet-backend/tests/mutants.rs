//! Does anybody notice? Each mutant of the ledger's own code is planted, and has to be found by the check that is meant
//! to find it; the same check on the sound code finds nothing.
//!
//! Mutants are of `src/mutants.rs`; `docs/fault-tests.md` has the table. Three are shown elsewhere: the rules of the lock
//! order in `protocol`, lost wake-ups and a sync that returns early in `interleavings`, what the history checker takes
//! for impossible in `history_mutants`.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use wallet_backend::command::Answer;
use wallet_backend::money::Amount;
use wallet_backend::mutants::{Mutant, plant};
use wallet_backend::store::Preference;
use wallet_backend::store::memory::Memory;

use crate::conformance::{embedded, memory};
use crate::faults::{answers, batches, crashes, damage, reopening, torn};
use crate::history::{self, History, Span};
use crate::properties::{Step, World, accounts, steps};
use crate::support::{Bench, SECOND, Time, hear};

/// Who is to find a mutant.
#[derive(Clone, Copy, Debug)]
enum Check {
    /// The history checker alone, over what callers were told in random sequences.
    History,
    /// What holds after every step of the same sequences.
    Properties,
    /// One fact of the conformance suite, which has to be seen broken on the memory store and on the embedded one.
    Fact(&'static str),
    /// The same on the memory store alone, which is where the mutant is.
    FactInMemory(&'static str),
    /// A test of the store on a disk that fails, or of something else that is one function.
    Test(&'static str, fn()),
}

impl Check {
    fn name(self) -> &'static str {
        match self {
            Self::History => "history checker",
            Self::Properties => "properties",
            Self::Fact(name) | Self::FactInMemory(name) | Self::Test(name, _) => name,
        }
    }

    /// What it finds first, in words.
    fn finds(self) -> Option<String> {
        match self {
            Self::History => sequences().iter().find_map(|steps| impossible(steps)),
            Self::Properties => sequences()
                .iter()
                .find_map(|steps| broken(|| step_by_step(steps))),
            Self::Fact(name) => {
                let in_memory = broken(fact(memory::FACTS, name));
                let on_disk = broken(fact(embedded::FACTS, name));
                assert_eq!(
                    in_memory.is_some(),
                    on_disk.is_some(),
                    "{name}: on one store alone"
                );
                in_memory
            }
            Self::FactInMemory(name) => broken(fact(memory::FACTS, name)),
            Self::Test(_, test) => broken(test),
        }
    }
}

fn fact(facts: &[(&str, fn())], name: &str) -> fn() {
    let found = facts.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no fact is called {name}")).1
}

macro_rules! test {
    ($module:ident :: $name:ident) => {
        Check::Test(stringify!($name), $module::$name)
    };
}

fn check_for(mutant: Mutant) -> Check {
    use Check::{Fact, FactInMemory, History, Properties};
    match mutant {
        Mutant::RefusesWithoutProof | Mutant::IgnoresTheFloor | Mutant::SetsWhatItRead => Properties,
        Mutant::LeavesPendingOut => Fact("a_journal_credit_is_spendable_before_it_settles"),
        Mutant::LeavesExpiredOut => Fact("an_expired_hold_is_spent_by_a_debit_that_is_short"),
        Mutant::TakesWithoutCollecting => History,
        Mutant::MaxTakesSlotZero => Fact("a_debit_of_all_there_is_collects_from_everywhere"),
        Mutant::CreditsTheGate => Fact("a_credit_over_the_slots_cap_goes_to_slot_0"),
        Mutant::CreditsPastTheCap => Fact("a_credit_over_every_cap_is_refused"),
        Mutant::CapsReturns => Fact("what_is_returned_may_pass_a_cap"),
        Mutant::HoldsPastTheMost => Fact("a_hold_is_refused_past_the_most_that_may_be_held"),
        Mutant::DrainsNothing => Fact("raising_and_lowering_slots_loses_nothing_and_goes_on_counting"),
        Mutant::MovesOutOnly => History,
        Mutant::DropsDrainedSlots => Properties,
        Mutant::SettlesTwice | Mutant::LosesWhatWaits | Mutant::ReadsPastASlot => Properties,
        Mutant::ReadsExpiredAsHeld => Fact("an_expired_hold_is_available_before_any_sweep"),
        Mutant::TakesAnyAmount => Check::Test("no_amount_is_below_one", no_amount_is_below_one),
        Mutant::ForgetsAfterAWhile | Mutant::RunsRepeatsAgain | Mutant::TellsRepeatsAnew => History,
        Mutant::RedecidesRefusals => Fact("a_refusal_sticks_when_the_money_has_come"),
        Mutant::TakesOthersForRepeats => Properties,
        Mutant::KeepsHalfOfARefusal => Fact("a_refused_transfer_moves_nothing_on_either_side"),
        Mutant::KeepsTheFrontOfABatch => Fact("an_atomic_batch_that_is_refused_leaves_no_trace"),
        Mutant::IgnoresStatus => Fact("each_status_refuses_what_it_says"),
        Mutant::IgnoresCurrency => Properties,
        Mutant::ClosesOverMoney => Fact("an_account_closes_only_when_nothing_is_in_it"),
        Mutant::CapturesForFunds | Mutant::KeepsTheRest => Fact("a_final_capture_gives_the_rest_back"),
        Mutant::CapturesPastTheHold => Properties,
        Mutant::CapturesExpired => Fact("at_the_deadline_a_hold_has_one_end"),
        Mutant::ForgetsHowAHoldEnded => Fact("an_ended_hold_answers_how_it_ended"),
        Mutant::ReversesTwice => History,
        Mutant::ReversesReversals => Fact("what_cannot_be_reversed_says_so"),
        Mutant::AsksStatusOfReturns => Fact("a_closed_account_takes_nothing_but_what_returns"),
        Mutant::AnswersBeforeTheSync | Mutant::ReadsBeforeTheSync | Mutant::TellsEventsBeforeTheSync => {
            test!(answers::nothing_is_heard_before_the_sync_that_makes_it_true)
        }
        Mutant::WritesBesideTheSync => test!(answers::a_batch_is_written_after_the_sync_of_the_one_before),
        Mutant::GoesOnAfterAFailedSync => {
            test!(answers::a_failed_sync_says_what_is_true_of_each_job_and_stops_the_store)
        }
        Mutant::SyncsNothing
        | Mutant::PublishesCheckpointsEarly
        | Mutant::ForgetsChangedAccounts
        | Mutant::LeavesNamesUnsynced => Check::Test("crash_after_crash_the_books_go_on", some_crashes),
        Mutant::SplitsAtomicBatches => {
            test!(batches::an_atomic_batch_that_no_segment_holds_is_invalid_and_does_nothing)
        }
        Mutant::ForgetsOldRequests => test!(reopening::requests_are_known_across_restarts_and_checkpoints),
        Mutant::TakesTornForDamage => test!(torn::a_batch_that_lacks_any_of_its_sectors_is_dropped_whole),
        Mutant::TakesDamageForTorn => test!(damage::every_bit_of_a_page_of_the_last_batch_is_guarded),
        Mutant::BelievesThePageCache => {
            test!(crashes::what_was_read_from_the_page_cache_is_on_the_disk_before_it_is_answered)
        }
        Mutant::EventsByWatermark => FactInMemory("events_go_on_from_any_number_in_pages_of_any_size"),
    }
}

fn some_crashes() {
    crashes::crash_again_and_again(4);
}

fn no_amount_is_below_one() {
    for minor in [0, -1, i64::MIN] {
        assert!(Amount::new(minor).is_err(), "{minor} is taken for an amount");
    }
}

/// The same random sequences every time, those of the properties.
fn sequences() -> Vec<Vec<Step>> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut one = || steps().new_tree(&mut runner).unwrap().current();
    (0..40).map(|_| one()).collect()
}

fn step_by_step(steps: &[Step]) {
    let mut world = World::new();
    for step in steps {
        world.step(step);
    }
    drop(world.finish());
}

/// Hands the history checker what callers were told, and the statements; nothing else is looked at.
fn impossible(steps: &[Step]) -> Option<String> {
    let time = Time::default();
    let bench = Bench::at(Memory::new(time.clock(), Preference::default()), time);
    for account in accounts() {
        bench.open(account);
    }
    let (mut told, mut asked) = (History::default(), Vec::new());
    for (step, begun) in steps.iter().zip((0..).step_by(2)) {
        let ended = begun + 1;
        let span = Span { begun, ended };
        if let Step::Wait(halves) = step {
            bench.time.pass(halves * SECOND / 2);
        }
        let Some(task) = step.task(&asked) else {
            continue;
        };
        if let Ok(Answer::Decided { outcome, replayed }) = bench.ask(task.clone()) {
            hear(&mut told, &task, &outcome, replayed, span);
        }
        asked.push(task);
    }
    for account in accounts() {
        let entries = bench.try_entries(account.id.as_str()).ok()?;
        told.entries.extend(entries.iter().map(history::Entry::from));
    }
    told.faults().into_iter().next()
}

/// The message of the check that fails, without a report of it on the way.
fn broken(check: impl FnOnce()) -> Option<String> {
    thread_local! {
        static QUIET: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                report(panic);
            }
        }));
    });
    QUIET.set(true);
    let ended = catch_unwind(AssertUnwindSafe(check));
    QUIET.set(false);
    let panic = ended.err()?;
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    Some(text.unwrap_or("a panic without words").to_owned())
}

/// The beginning of what was found, in one line.
fn short(found: &str) -> String {
    let line: Vec<&str> = found.split_whitespace().collect();
    line.join(" ").chars().take(100).collect()
}

#[test]
fn every_mutant_is_caught_by_the_check_that_is_meant_to_catch_it() {
    let (mut lines, mut missed) = (Vec::new(), Vec::new());
    for mutant in Mutant::ALL {
        let check = check_for(*mutant);
        let planted = plant(*mutant);
        let found = check.finds();
        drop(planted);
        match found {
            Some(found) => lines.push(format!("{mutant:?} <- {}: {}", check.name(), short(&found))),
            None => missed.push(format!("{mutant:?}, which {} is meant to catch", check.name())),
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:#?}\ncaught: {lines:#?}");
    println!("mutants: {} of {} caught", lines.len(), Mutant::ALL.len());
    println!("{}", lines.join("\n"));
}

#[test]
fn the_same_checks_find_nothing_where_no_mutant_is_planted() {
    let mut checks: Vec<Check> = Mutant::ALL.iter().map(|mutant| check_for(*mutant)).collect();
    checks.sort_by_key(|check| check.name());
    checks.dedup_by_key(|check| check.name());
    for check in &checks {
        assert_eq!(check.finds(), None, "{}", check.name());
    }
    println!("{} checks, 0 false alarms without a mutant", checks.len());
}

/// The page that says who catches what.
#[test]
fn the_table_of_fault_tests_names_every_mutant_with_its_check() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/fault-tests.md");
    let page = std::fs::read_to_string(page).unwrap();
    for mutant in Mutant::ALL {
        let rows = page
            .lines()
            .filter(|line| line.starts_with(&format!("| `{mutant:?}` |")));
        let rows: Vec<&str> = rows.collect();
        let name = check_for(*mutant).name();
        assert!(
            rows.len() == 1 && rows[0].ends_with(&format!("| {name} |")),
            "{mutant:?} is to be caught by {name}, the page says {rows:?}"
        );
    }
    let rows = page.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, Mutant::ALL.len(), "the page has a mutant that there is not");
}
