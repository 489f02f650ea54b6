//! A seeded sequence of tasks on a store and on the model: the same replies and the same reads, one by one. Times are
//! masked: each store has its own clock.

use std::collections::BTreeMap;

use wallet_backend::account::{CreditMode, DebitMode, Entry, Status, Timestamp};
use wallet_backend::command::{
    Amendment, Answer, BatchMode, DebitAmount, LedgerError, Operation, Outcome, Refusal, RequestView, Task,
};
use wallet_backend::store::{Event, Store};

use super::pasts::{Told, at_every_cursor};
use super::{Factory, InMemory};
use crate::support::{
    Bench, Numbers, SECOND, Time, abandon, amend, capture, capture_part, credit, debit, drain, hashed, hold,
    journal, ordinary, release, reslot, reversal, slotted, tidy, transfer,
};

/// Few enough ids and amounts small enough that replays, reuse, refusals and collections all happen.
const STEPS: u64 = 120;
const NAMES: [&str; 5] = ["ordinary", "slotted", "journal", "hashed", "floored"];

/// How often each outcome was met, by name.
pub(crate) type Met = BTreeMap<&'static str, usize>;

/// Everything that the sequences must have met between them.
const EVERYTHING: [&str; 19] = [
    "credit",
    "debit",
    "hold",
    "capture",
    "release",
    "transfer",
    "reversal",
    "amended",
    "replayed",
    "insufficient funds",
    "frozen",
    "hold not open",
    "hold exceeded",
    "already reversed",
    "not reversible",
    "abandoned",
    "error",
    "batch",
    "aborted batch",
];

/// What must have been asked for between them, beside batches.
const COMMANDS: [&str; 14] = [
    "credit",
    "debit",
    "debit of all",
    "transfer",
    "hold",
    "capture",
    "release",
    "reversal",
    "new status",
    "new floor",
    "new number of slots",
    "new mode",
    "abandon",
    "tidy",
];

fn command(task: &Task) -> &'static str {
    match task {
        Task::Abandon { .. } => "abandon",
        Task::Tidy { .. } => "tidy",
        Task::Open(_) => "open",
        Task::Run(command) => match &command.operation {
            Operation::Credit { .. } => "credit",
            Operation::Debit {
                amount: DebitAmount::Max,
                ..
            } => "debit of all",
            Operation::Debit { .. } => "debit",
            Operation::Transfer { .. } => "transfer",
            Operation::Hold { .. } => "hold",
            Operation::Capture { .. } => "capture",
            Operation::Release { .. } => "release",
            Operation::Reversal { .. } => "reversal",
            Operation::Amend(to) if to.status.is_some() => "new status",
            Operation::Amend(to) if to.floor.is_some() => "new floor",
            Operation::Amend(to) if to.slots.is_some() => "new number of slots",
            Operation::Amend(_) => "new mode",
        },
    }
}

/// Runs the sequences of many seeds; says how much that was.
pub(super) fn compare_all(factory: &impl Factory, seeds: u64) -> String {
    let mut met = Met::new();
    let mut asked = Met::new();
    for seed in 0..seeds {
        compare(factory, seed, &mut met, &mut asked);
    }
    for (all, met) in [(&EVERYTHING[..], &met), (&COMMANDS[..], &asked)] {
        let missed: Vec<_> = all.iter().filter(|name| !met.contains_key(*name)).collect();
        assert!(missed.is_empty(), "never met: {missed:?} among {met:?}");
    }
    let replies: usize = met.values().sum();
    format!("{seeds} sequences, {replies} replies the same: {met:?}; asked: {asked:?}")
}

/// What was met in an answer: of a batch each result too.
pub(crate) fn names(answer: &Result<Answer, LedgerError>) -> Vec<&'static str> {
    match answer {
        Err(_) => vec!["error"],
        Ok(Answer::Opened { .. }) => vec!["opened"],
        Ok(Answer::Tidied { .. }) => vec!["tidied"],
        Ok(Answer::Decided { outcome, replayed }) => vec![name(outcome, *replayed)],
        Ok(Answer::Batched(batched)) => {
            let whole = if batched.applied { "batch" } else { "aborted batch" };
            let each = batched.results.iter().map(|result| match result {
                Ok(decided) => name(&decided.outcome, decided.replayed),
                Err(LedgerError::BatchAborted { .. }) => "aborted",
                Err(_) => "error",
            });
            [whole].into_iter().chain(each).collect()
        }
    }
}

fn name(outcome: &Outcome, replayed: bool) -> &'static str {
    match outcome {
        _ if replayed => "replayed",
        Outcome::Posted(receipt) => receipt.kind.as_str(),
        Outcome::Amended(_) => "amended",
        Outcome::Refused(refusal) => match refusal {
            Refusal::InsufficientFunds { .. } => "insufficient funds",
            Refusal::AccountFrozen { .. } => "frozen",
            Refusal::AccountClosed { .. } => "closed",
            Refusal::BalanceLimit { .. } => "limit",
            Refusal::CurrencyMismatch { .. } => "currency",
            Refusal::AccountNotEmpty { .. } => "not empty",
            Refusal::HoldNotOpen { .. } => "hold not open",
            Refusal::HoldExceeded { .. } => "hold exceeded",
            Refusal::AlreadyReversed { .. } => "already reversed",
            Refusal::NotReversible { .. } => "not reversible",
            Refusal::Abandoned => "abandoned",
        },
    }
}

/// Runs the sequence of one seed on a new store and on a new model.
fn compare(factory: &impl Factory, seed: u64, met: &mut Met, asked: &mut Met) {
    let time = Time::default();
    let store = Bench::at(factory.make(seed, &time), time.clone());
    let model = Bench::at(InMemory.make(seed, &time), time.clone());
    for bench in [&store as &dyn Opens, &model] {
        bench.open_all();
    }
    let (mut numbers, mut told) = (Numbers(seed), Told::default());
    for step in 0..STEPS {
        let tasks: Vec<Task> = (0..=numbers.below(4)).map(|_| task(&mut numbers)).collect();
        count(asked, tasks.iter().map(command));
        let (mut got, mut expected) = match numbers.below(8) {
            0 => (
                sent(&store, BatchMode::Each, &tasks),
                sent(&model, BatchMode::Each, &tasks),
            ),
            1 => (
                sent(&store, BatchMode::Atomic, &tasks),
                sent(&model, BatchMode::Atomic, &tasks),
            ),
            _ => (store.ask_all(tasks.clone()), model.ask_all(tasks.clone())),
        };
        count(met, got.iter().flat_map(names));
        for answer in got.iter_mut().chain(&mut expected).flatten() {
            mask_answer(answer);
        }
        assert_eq!(got, expected, "seed {seed}, step {step}: {tasks:?}");
        assert_eq!(store.pending(), model.pending(), "seed {seed}, step {step}");
        let (mut untidy, mut expected) = (store.untidy(), model.untidy());
        untidy.sort_unstable();
        expected.sort_unstable();
        assert_eq!(untidy, expected, "seed {seed}, step {step}");
        told.read(&store, &NAMES);
        time.pass(i64::try_from(numbers.below(3)).unwrap() * SECOND / 2);
    }
    told.check(&store);
    told.check(&model);
    assert_eq!(
        events(&store, None),
        events(&model, None),
        "seed {seed}: events of all"
    );
    for name in NAMES {
        let pasts = [at_every_cursor(&store, name, 3), at_every_cursor(&model, name, 3)];
        assert_eq!(pasts[0], pasts[1], "seed {seed}: {name}");
        assert_eq!(
            events(&store, Some(name)),
            events(&model, Some(name)),
            "seed {seed}: events of {name}"
        );
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
            let holds = (store.look_up_hold(name, &id), model.look_up_hold(name, &id));
            assert_eq!(holds.0, holds.1, "seed {seed}: {name} {id}");
        }
    }
}

fn count(met: &mut Met, names: impl Iterator<Item = &'static str>) {
    for name in names {
        *met.entry(name).or_default() += 1;
    }
}

/// The commands among the tasks, as one batch.
fn sent(bench: &Bench<impl Store>, mode: BatchMode, tasks: &[Task]) -> Vec<Result<Answer, LedgerError>> {
    let commands = tasks.iter().filter(|task| task.operation().is_some());
    let batched = bench.batch(mode, &commands.cloned().collect::<Vec<_>>());
    vec![batched.map(Answer::Batched)]
}

const IDS: u64 = 160;

fn task(numbers: &mut Numbers) -> Task {
    let pick = |numbers: &mut Numbers| NAMES[usize::try_from(numbers.below(5)).unwrap()];
    let account = pick(numbers);
    let id = match numbers.below(5) {
        0 => format!("r{}", 8 + numbers.below(20)),
        _ => format!("r{}", 8 + numbers.below(IDS - 8)),
    };
    let minor = i64::try_from(1 + numbers.below(40)).unwrap();
    // Holds have few names, so that most of them are met again.
    let held = format!("r{}", numbers.below(8));
    // What is reversed has too.
    let of = format!("r{}", 8 + numbers.below(20));
    match numbers.below(40) {
        0..9 => credit(account, &id, minor),
        9..14 => debit(account, &id, minor),
        14..18 => transfer(account, &id, pick(numbers), minor),
        18..23 => hold(account, &held, minor, u32::try_from(numbers.below(30)).unwrap()),
        23..25 => capture(account, &id, &held, minor / 2),
        25..27 => capture_part(account, &id, &held, minor / 2),
        27 => release(account, &id, &held),
        28..32 => reversal(account, &id, &of),
        32 => drain(account, &id),
        33 => reslot(account, &id, u8::try_from(1 + numbers.below(6)).unwrap()),
        34 => amend(account, &id, amendment(numbers, minor)),
        35 => abandon(account, &id),
        36 => transfer(account, &id, "nobody", minor),
        _ => tidy(account),
    }
}

fn amendment(numbers: &mut Numbers, minor: i64) -> Amendment {
    let mut amendment = Amendment::default();
    let choose = usize::try_from(numbers.below(3)).unwrap();
    match numbers.below(6) {
        // Mostly active, so that something happens.
        0 => amendment.status = Some([Status::Closed, Status::DebitFrozen, Status::Frozen][choose]),
        1 | 2 => amendment.status = Some(Status::Active),
        3 => amendment.floor = Some(minor % 7),
        4 => amendment.debit = Some([DebitMode::Primary, DebitMode::Hashed][choose % 2]),
        _ => {
            let modes = [CreditMode::Slot, CreditMode::Upsert, CreditMode::Journal];
            amendment.credit = Some(modes[choose]);
        }
    }
    amendment
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
    match answer {
        Answer::Decided { outcome, .. } => mask(outcome),
        Answer::Batched(batched) => {
            for decided in batched.results.iter_mut().flatten() {
                mask(&mut decided.outcome);
            }
        }
        Answer::Opened { .. } | Answer::Tidied { .. } => {}
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

fn events(bench: &Bench<impl Store>, account: Option<&str>) -> Vec<Event> {
    let mut events = bench.events(0, account, 17);
    assert!(account.is_some() || !events.is_empty());
    for event in &mut events {
        event.entry.at = Timestamp::default();
    }
    events
}

fn look_up(bench: &Bench<impl Store>, account: &str, id: &str) -> Option<RequestView> {
    let mut view = bench.look_up(account, id);
    if let Some(RequestView::Decided(outcome)) = &mut view {
        mask(outcome);
    }
    view
}
