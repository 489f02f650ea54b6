//! A seeded sequence of tasks on a store and on the model: the same replies and the same reads, one by one. Times are
//! masked: each store has its own clock.

use wallet_backend::account::{Entry, Timestamp};
use wallet_backend::command::{Answer, Outcome, RequestView, Task};
use wallet_backend::store::Store;

use super::{Factory, InMemory};
use crate::support::{
    Bench, Numbers, abandon, credit, debit, hashed, journal, ordinary, slotted, tidy, transfer,
};

/// Few enough ids and amounts small enough that replays, reuse, refusals and collections all happen.
const STEPS: u64 = 120;
const NAMES: [&str; 5] = ["ordinary", "slotted", "journal", "hashed", "floored"];

/// Runs the sequence of one seed on a new store and on a new model.
pub(super) fn compare(factory: &impl Factory, seed: u64) {
    let (store, model) = (Bench::new(factory.make(seed)), Bench::new(InMemory.make(seed)));
    for bench in [&store as &dyn Opens, &model] {
        bench.open_all();
    }
    let mut numbers = Numbers(seed);
    for step in 0..STEPS {
        let batch: Vec<Task> = (0..=numbers.below(4)).map(|_| task(&mut numbers)).collect();
        let mut got = store.ask_all(batch.clone());
        let mut expected = model.ask_all(batch.clone());
        for answer in got.iter_mut().chain(&mut expected).flatten() {
            mask_answer(answer);
        }
        assert_eq!(got, expected, "seed {seed}, step {step}: {batch:?}");
        assert_eq!(
            store.store.pending(),
            model.store.pending(),
            "seed {seed}, step {step}"
        );
    }
    for name in NAMES {
        assert_eq!(store.account(name), model.account(name), "seed {seed}: {name}");
        assert_eq!(
            statement(&store, name),
            statement(&model, name),
            "seed {seed}: {name}"
        );
        for number in 0..IDS {
            let id = format!("r{number}");
            let (got, expected) = (look_up(&store, name, &id), look_up(&model, name, &id));
            assert_eq!(got, expected, "seed {seed}: {name} {id}");
        }
    }
}

const IDS: u64 = 90;

fn task(numbers: &mut Numbers) -> Task {
    let pick = |numbers: &mut Numbers| NAMES[usize::try_from(numbers.below(5)).unwrap()];
    let account = pick(numbers);
    let id = format!("r{}", numbers.below(IDS));
    let minor = i64::try_from(1 + numbers.below(40)).unwrap();
    match numbers.below(20) {
        0..7 => credit(account, &id, minor),
        7..13 => debit(account, &id, minor),
        13..17 => transfer(account, &id, pick(numbers), minor),
        17 => abandon(account, &id),
        18 => transfer(account, &id, "nobody", minor),
        _ => tidy(account),
    }
}

/// Opening without naming the store's type.
trait Opens {
    fn open_all(&self);
}

impl<S: Store> Opens for Bench<S> {
    fn open_all(&self) {
        let mut floored = slotted("floored", 3);
        floored.floor = 15;
        for account in [
            ordinary("ordinary"),
            slotted("slotted", 4),
            journal("journal"),
            hashed("hashed", 3),
            floored,
        ] {
            self.open(account);
        }
    }
}

fn mask_answer(answer: &mut Answer) {
    if let Answer::Decided { outcome, .. } = answer {
        mask(outcome);
    }
}

fn mask(outcome: &mut Outcome) {
    if let Outcome::Posted(receipt) = outcome {
        receipt.at = Timestamp::default();
    }
}

/// Slot by slot, since the order between slots goes by time.
fn statement(bench: &Bench<impl Store>, name: &str) -> Vec<Entry> {
    let mut entries = bench.entries(name);
    entries.sort_by_key(|entry| (entry.slot, entry.version));
    for entry in &mut entries {
        entry.at = Timestamp::default();
    }
    entries
}

fn look_up(bench: &Bench<impl Store>, account: &str, id: &str) -> Option<RequestView> {
    let mut view = bench.look_up(account, id);
    if let Some(RequestView::Decided(outcome)) = &mut view {
        mask(outcome);
    }
    view
}
