//! The combiner, over one store and the other, and the group commit of the embedded store, in many interleavings of their
//! threads.
//!
//! This binary (its root is `src/interleavings.rs`) compiles the library's own source once more, with the `sync.rs` beside
//! this file in the place of `src/sync.rs`, and shuttle's map in the place of `DashMap`: what runs here is the code that
//! is shipped, on a scheduler that chooses at every lock, wait and wake-up which thread goes on. Seeds are fixed; `SLUICE_LONG=1` tries a hundred times as many.
//!
//! What must hold: no answer before the sync that makes it true (`checks`), nobody waits for ever (shuttle reports a
//! deadlock, since no timeout comes here), no answer lost at closing or when the disk fails. Then the checks are checked:
//! a sync that returns early has to be noticed, and the loss of each wake-up in the source, line by line.
//!
//! It has no test harness, since the library's unit tests would be in it too and know nothing of shuttle. It takes the
//! harness's arguments: words to choose checks by; options are passed over.

use std::panic::{AssertUnwindSafe, catch_unwind};

mod checks;
mod database;
mod disk;
mod lost;

pub(crate) fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((lost::CHILD, rest)) = arguments
        .split_first()
        .map(|(first, rest)| (first.as_str(), rest))
    {
        return lost::in_child(rest);
    }
    let words = words(&arguments);
    let more = if std::env::var_os("SLUICE_LONG").is_some() {
        100
    } else {
        1
    };
    let sound = checks::SOUND.map(|scenario| {
        let times = more * scenario.times;
        (
            scenario.name,
            Box::new(move || scenario.explore(times)) as Box<dyn Fn()>,
        )
    });
    let faults = lost::ALL.map(|(name, check)| (name, Box::new(check) as Box<dyn Fn()>));
    let (mut passed, mut failed, mut left_out) = (0, 0, 0);
    for (name, check) in sound.into_iter().chain(faults) {
        if !words.is_empty() && !words.iter().any(|word| name.contains(word)) {
            left_out += 1;
            continue;
        }
        let ok = catch_unwind(AssertUnwindSafe(check)).is_ok();
        println!(
            "test interleavings::{name} ... {}",
            if ok { "ok" } else { "FAILED" }
        );
        *(if ok { &mut passed } else { &mut failed }) += 1;
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {passed} passed; {failed} failed; 0 ignored; 0 measured; {left_out} filtered out"
    );
    std::process::exit(i32::from(failed > 0));
}

/// The words among the harness's arguments, without its options and what belongs to them.
fn words(arguments: &[String]) -> Vec<&str> {
    const WITH_VALUE: [&str; 5] = ["--test-threads", "--skip", "--format", "--color", "--logfile"];
    let mut words = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if WITH_VALUE.contains(&argument.as_str()) {
            arguments.next();
        } else if !argument.starts_with('-') {
            words.push(argument.as_str());
        }
    }
    words
}
