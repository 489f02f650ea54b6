//! Whether the checks would notice: each fault that they are for is put in, and has to be found.
//!
//! A fault is tried in a process of its own: where it is found, threads are left waiting.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::checks::{EARLY_SYNC, SOUND, Scenario};
use crate::sync::lose;

pub(crate) const ALL: [(&str, fn()); 2] = [
    (
        "a_sync_that_returns_before_it_is_done_is_noticed",
        an_early_sync_is_noticed,
    ),
    ("the_loss_of_any_wake_up_is_noticed", each_lost_wake_up_is_noticed),
];

/// The first argument of a child.
pub(crate) const CHILD: &str = "--child";

/// What wakes somebody.
const WAKES: [&str; 4] = [
    ".notify_one()",
    ".notify_all()",
    ".send_replace(",
    ".send_modify(",
];

/// Where threads meet.
const SOURCES: [&str; 5] = [
    "src/combiner.rs",
    "src/combiner/lanes.rs",
    "src/store/embedded.rs",
    "src/store/embedded/shared.rs",
    "src/store/embedded/threads.rs",
];

/// A wake-up that nobody misses.
struct Spare {
    file: &'static str,
    line: &'static str,
    /// The line before it.
    after: &'static str,
    because: &'static str,
}

const SPARE: [Spare; 6] = [
    Spare {
        file: "src/combiner.rs",
        line: "finished.send_replace(true);",
        after: "drop(shared);",
        because: "the channel closes with its thread, which says the same",
    },
    Spare {
        file: "src/store/embedded/shared.rs",
        line: "self.work.notify_all();",
        after: "self.give(answers);",
        because: "who closes a stopped store wakes the writer too",
    },
    Spare {
        file: "src/store/embedded/shared.rs",
        line: "self.space.notify_all();",
        after: "self.work.notify_all();",
        because: "the writer ends with the store, and its end wakes the preparer too",
    },
    Spare {
        file: "src/store/embedded/shared.rs",
        line: "self.save.notify_all();",
        after: "self.space.notify_all();",
        because: "the writer ends with the store, and its end wakes the checkpointer too",
    },
    Spare {
        file: "src/store/embedded/threads.rs",
        line: "shared.save.notify_all();",
        after: "state.begin_cut();",
        because: "it lets the checkpointer begin earlier; the batch's commit wakes it too",
    },
    Spare {
        file: "src/store/embedded/threads.rs",
        line: "shared.saved.notify_all();",
        after: "drop(state);",
        because: "the publisher of roots looks again by itself before long",
    },
];

#[derive(Clone, Debug)]
struct WakeUp {
    file: &'static str,
    number: u32,
    line: String,
    /// The line before it.
    after: String,
}

fn wake_ups() -> Vec<WakeUp> {
    let mut found = Vec::new();
    for file in SOURCES {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (number, pair) in (2..).zip(lines.windows(2)) {
            if WAKES.iter().any(|wake| pair[1].contains(wake)) {
                let [after, line] = [pair[0], pair[1]].map(str::to_owned);
                found.push(WakeUp {
                    file,
                    number,
                    line,
                    after,
                });
            }
        }
    }
    found
}

/// What a child is asked to do: a scenario so many times, without the wake-ups of a line.
pub(crate) fn in_child(arguments: &[String]) {
    let [scenario, times, lost @ ..] = arguments else {
        panic!("a child wants a scenario and a number, not {arguments:?}")
    };
    if let [file, line] = lost {
        let file = SOURCES.into_iter().find(|source| source == file).unwrap();
        lose(Some((file, line.parse().unwrap())));
    }
    let all = SOUND.into_iter().chain([EARLY_SYNC]);
    let scenario = all.into_iter().find(|known| known.name == scenario).unwrap();
    scenario.explore(times.parse().unwrap());
}

/// Whether the scenario fails, in a process of its own.
fn is_noticed(scenario: Scenario, times: usize, lost: Option<&WakeUp>) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([CHILD, scenario.name, &times.to_string()]);
    if let Some(WakeUp { file, number, .. }) = lost {
        child.arg(file).arg(number.to_string());
    }
    let status = child.stdout(Stdio::null()).stderr(Stdio::null()).status();
    !status.unwrap().success()
}

fn an_early_sync_is_noticed() {
    assert!(is_noticed(EARLY_SYNC, EARLY_SYNC.times, None));
}

fn each_lost_wake_up_is_noticed() {
    for scenario in SOUND {
        assert!(
            !is_noticed(scenario, 10, None),
            "{} fails without a fault",
            scenario.name
        );
    }
    let (mut noticed, mut spare) = (0, 0);
    for wake_up in wake_ups() {
        let WakeUp {
            file,
            number,
            line,
            after,
        } = &wake_up;
        let found = SPARE
            .iter()
            .find(|spare| (spare.file, spare.line, spare.after) == (*file, line, after));
        if let Some(Spare { because, .. }) = found {
            println!("{file}:{number}: {line} is spare: {because}");
            spare += 1;
            continue;
        }
        // Most are noticed at once.
        let few = SOUND.into_iter().map(|scenario| (scenario, 10));
        let mut trials = few.chain(SOUND.into_iter().map(|scenario| (scenario, scenario.times)));
        let by = trials.find(|(scenario, times)| is_noticed(*scenario, *times, Some(&wake_up)));
        let (by, _) = by.unwrap_or_else(|| panic!("nobody misses {file}:{number}: {line}"));
        println!("{file}:{number}: {line} is missed by {}", by.name);
        noticed += 1;
    }
    println!("wake-ups: {noticed} of {noticed} lost ones noticed, {spare} spare");
    assert_eq!(
        spare,
        SPARE.len(),
        "a spare wake-up is not in the source any more"
    );
    assert!(noticed > 0);
}
