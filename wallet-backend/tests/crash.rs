//! kill -9 of the real binary under load, at moments drawn from a seed, on one data directory that lives on.
//!
//! After every restart, before anything new is asked: each operation that had been acknowledged answers the same id
//! byte for byte as before, each whose outcome was unknown is resolved by sending the same id, an atomic batch that was
//! cut off is there whole or not at all, the statements pass the history checker, every balance is the sum of what the
//! clients were told, and `verify` finds nothing: now and then in what a kill left, and in the end. A moment is "after
//! the k-th answer" or a short time after the start: the fault itself, waited for by nobody.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use crate::process::{Served, binary};
use crate::support::Numbers;

mod asked;
mod client;
mod load;
mod told;
pub(crate) mod wire;

use client::Client;
use load::{Load, Moment};
use told::Told;

/// Segments and checkpoints so small that several come and go within a round.
const SMALL: [&str; 4] = ["--segment-bytes", "131072", "--checkpoint-bytes", "65536"];

/// The most answers that a round waits for before it kills.
const MOST_ANSWERS: u64 = 300;

/// The longest from the last of them to the kill, in microseconds.
const MOST_AFTER: u64 = 3_000;

/// The longest that a process on its way up is left alone, in microseconds.
const MOST_START: u64 = 40_000;

/// The same load and the same kind of moments on every machine; a failure names its round.
const SEED: u64 = 20_260_101;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_under_load_it_forgets_nothing_that_it_acknowledged_and_does_nothing_twice() {
    let dir = tempfile::tempdir().unwrap();
    let store = embedded(dir.path());
    let rounds = if long() { 1_000 } else { 30 };
    let mut numbers = Numbers(SEED);
    let told = Arc::new(Told::default());
    let mut served = Served::run(quiet(&store));
    load::prepare(&told, &Client::new(&served)).await;
    for round in 0..rounds {
        let client = Client::new(&served);
        let moment = Moment {
            answers: 1 + numbers.below(MOST_ANSWERS),
            then: Duration::from_micros(numbers.below(MOST_AFTER)),
        };
        load::until_killed(&told, &client, served, moment, &round.to_string(), &mut numbers).await;
        if numbers.below(3) == 0 {
            kill_on_its_way_up(&store, numbers.below(MOST_START));
        }
        // A history takes the longer to judge, and a log to verify, the longer it is.
        let thorough = round < 100 || round % 50 == 0;
        // As it was left: a torn end is no damage.
        if thorough && round % 8 == 0 {
            verify(&store);
        }
        served = Served::run(quiet(&store));
        load::look_back(&told, &Client::new(&served), &mut numbers).await;
        if thorough {
            told.judge(round);
        }
    }
    let client = Client::new(&served);
    load::repeat_everything(&told, &client).await;
    told.read_again(&client).await;
    told.judge(rounds);
    assert_eq!(served.stop(), Some(0));
    verify(&store);
    let kinds = told.kinds();
    for kind in [
        "credit", "debit", "hold", "capture", "release", "transfer", "reversal",
    ] {
        assert!(kinds.contains(kind), "no {kind} in {kinds:?}");
    }
    println!("{rounds} rounds: {}", told.figures());
}

/// A backup is made while everybody sends, an acknowledged request is explained, and the service killed soon after.
/// Restored elsewhere, the backup has every operation that was acknowledged before it began.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_made_under_load_has_all_that_was_acknowledged_before_it_began() {
    let lives = if long() { 12 } else { 1 };
    for life in 0..lives {
        back_up_under_load(SEED + life).await;
    }
}

async fn back_up_under_load(seed: u64) {
    let dir = tempfile::tempdir().unwrap();
    let store = embedded(dir.path());
    let mut numbers = Numbers(seed);
    let told = Arc::new(Told::default());
    let mut served = Served::run(quiet(&store));
    load::prepare(&told, &Client::new(&served)).await;
    let (rounds, mut meanwhile) = (4, 0);
    for round in 0..rounds {
        let client = Client::new(&served);
        let mut load = Load::start(&told, &client, &format!("backup-{round}"), &mut numbers);
        load.answers(1 + numbers.below(MOST_ANSWERS)).await;
        let before = told.answered();
        let answered = load.answered();
        let backup = dir.path().join(format!("backup-{round}"));
        let (from, to) = (store.clone(), backup.display().to_string());
        let made = tokio::task::spawn_blocking(move || ends_well(&["backup", "--store", &from, "--to", &to]));
        let made = made.await.unwrap();
        let acknowledged = told.a_decision(&before);
        let of = ["--request", &acknowledged.request, "--store", &store].map(str::to_owned);
        let account = acknowledged.account;
        let explained = tokio::task::spawn_blocking(move || {
            let [request, id, store, name] = &of;
            ends_well(&["explain", &account, request, id, store, name])
        });
        let explained = explained.await.unwrap();
        assert!(explained.contains("decided in log/"), "{explained}");
        meanwhile += load.answered() - answered;
        load.kill(served).await;

        let restored = format!(
            "embedded:{}",
            dir.path().join(format!("restored-{round}")).display()
        );
        let from = backup.display().to_string();
        let proved = ends_well(&["restore", "--from", &from, "--store", &restored]);
        let root = made.lines().last().unwrap();
        assert!(
            root.starts_with("root ") && proved.contains(root),
            "{made}\n{proved}"
        );
        verify(&restored);
        let copy = Served::run(quiet(&restored));
        load::find_again(&told, &Client::new(&copy), &before).await;
        told.judge_copy(&Client::new(&copy), &before).await;
        assert_eq!(copy.stop(), Some(0));

        served = Served::run(quiet(&store));
        load::look_back(&told, &Client::new(&served), &mut numbers).await;
        told.judge(round);
    }
    assert!(meanwhile > 0, "nobody was answered while a backup was made");
}

#[test]
fn killed_while_it_makes_a_directory_it_opens_it_the_next_time() {
    let mut numbers = Numbers(SEED);
    for _ in 0..if long() { 200 } else { 8 } {
        let dir = tempfile::tempdir().unwrap();
        let store = embedded(dir.path());
        for _ in 0..=numbers.below(2) {
            kill_on_its_way_up(&store, numbers.below(MOST_START));
        }
        let served = Served::run(quiet(&store));
        assert_eq!(served.stop(), Some(0));
        verify(&store);
    }
}

/// The long versions, as `tests/run --long` asks for them.
pub(crate) fn long() -> bool {
    std::env::var_os("SLUICE_LONG").is_some()
}

fn embedded(dir: &Path) -> String {
    format!("embedded:{}", dir.join("data").display())
}

fn serve(store: &str) -> std::process::Command {
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--store", store];
    binary(&[&arguments[..], &SMALL].concat())
}

/// Its log goes where the test's does: a pipe that nobody reads would fill.
fn quiet(store: &str) -> std::process::Command {
    let mut command = serve(store);
    command.stderr(Stdio::inherit()).env("WALLET_LOG", "error");
    command
}

fn kill_on_its_way_up(store: &str, micros: u64) {
    let mut child = quiet(store).spawn().unwrap();
    std::thread::sleep(Duration::from_micros(micros));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// `wallet-backend verify` finds nothing.
fn verify(store: &str) {
    ends_well(&["verify", "--store", store]);
}

/// Runs a command that must exit with 0; what it said.
pub(crate) fn ends_well(arguments: &[&str]) -> String {
    let output = binary(arguments).output().unwrap();
    let said = String::from_utf8([output.stderr, output.stdout].concat()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
    said
}
