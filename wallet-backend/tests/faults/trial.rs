//! A workload whose state after every task is known, and the comparison with what a disk gave back.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use wallet_backend::account::Entry;
use wallet_backend::clock::Clock;
use wallet_backend::command::{AccountView, Answer, HoldView, LedgerError, Task};
use wallet_backend::store::embedded::disk::Disk;
use wallet_backend::store::embedded::{Embedded, Options, verify_on};
use wallet_backend::store::memory::Memory;
use wallet_backend::store::{Cursor, Event, Preference, Store};

use super::disk::FaultDisk;
use crate::history::{self, History, Span};
use crate::support::{
    Bench, Numbers, abandon, capture, credit, debit, hear, hold, journal, ordinary, release, reslot,
    reversal, seen, slotted, tidy, transfer,
};

/// Whether the long versions run.
pub(crate) fn long() -> bool {
    std::env::var_os("SLUICE_LONG").is_some()
}

/// A store with everything small, so that segments end and checkpoints happen all the time. Time stands still, so
/// that replies can be compared to the byte.
pub(crate) fn small(disk: &FaultDisk) -> Options {
    let clock = Clock::Set(Arc::new(AtomicI64::new(1_000_000)));
    Options {
        clock,
        preference: Preference::Fixed(1),
        segment_bytes: 64 << 10,
        fresh_bytes: 16 << 10,
        checkpoint_bytes: 48 << 10,
        retry: Duration::from_millis(1),
        // A root reads and writes at moments of its own.
        daily_root: None,
        ..Options::on(Arc::new(disk.clone()))
    }
}

/// Everything that can be seen of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture(Vec<(AccountView, Vec<Entry>)>, Vec<Event>);

impl Picture {
    /// The events of all accounts.
    pub(crate) const fn events(&self) -> &Vec<Event> {
        &self.1
    }
}

const NAMES: [&str; 3] = ["plain", "slotted", "journal"];

pub(crate) fn picture(bench: &Bench<impl Store>) -> Picture {
    let seen = NAMES.iter().filter_map(|name| {
        let view = bench.view(name)?;
        Some((view, bench.page(name, &Cursor::default(), 100_000).entries))
    });
    Picture(seen.collect(), bench.events(0, None, 1_000))
}

/// A sequence of batches, and what the model makes of it.
pub(crate) struct Workload {
    pub(crate) batches: Vec<Vec<Task>>,
    /// What the model answered, task by task.
    answers: Vec<Result<Answer, LedgerError>>,
    /// The state after n tasks.
    pictures: Vec<Picture>,
    /// Every hold that was asked for, as it is in the end.
    holds: Vec<(&'static str, String, Option<HoldView>)>,
}

/// What the tasks so far have asked for, by account and id.
#[derive(Default)]
struct Before {
    holds: Vec<(&'static str, String)>,
    /// What may be reversed.
    moves: Vec<(&'static str, String)>,
}

impl Workload {
    pub(crate) fn new(seed: u64, batches: usize) -> Self {
        let mut numbers = Numbers(seed);
        let opens = vec![
            Task::Open(ordinary("plain")),
            Task::Open(slotted("slotted", 3)),
            Task::Open(journal("journal")),
        ];
        let mut all = vec![opens];
        let mut before = Before::default();
        for batch in 0..batches {
            let size = 1 + numbers.below(6);
            all.push(
                (0..size)
                    .map(|n| task(&mut numbers, &mut before, batch, n))
                    .collect(),
            );
        }
        let clock = Clock::Set(Arc::new(AtomicI64::new(1_000_000)));
        let model = Bench::new(Memory::new(clock, Preference::Fixed(1)));
        let mut pictures = vec![picture(&model)];
        let mut answers = Vec::new();
        for task in all.iter().flatten() {
            answers.push(model.ask(task.clone()));
            pictures.push(picture(&model));
        }
        let holds = before.holds.into_iter();
        let holds = holds.map(|(account, name)| {
            let found = model.look_up_hold(account, &name);
            (account, name, found)
        });
        Self {
            batches: all,
            answers,
            pictures,
            holds: holds.collect(),
        }
    }

    /// Runs batches from `from` until one is not answered in full; says how many tasks were acknowledged, having
    /// compared each reply with the model's.
    pub(crate) fn run(&self, store: &Bench<Embedded>, from: usize) -> Ran {
        let mut ran = Ran {
            acknowledged: self.batches.iter().take(from).map(Vec::len).sum(),
            stopped: false,
        };
        for batch in self.batches.iter().skip(from) {
            for answer in store.ask_all(batch.clone()) {
                if failed(&answer) {
                    ran.stopped = true;
                } else if ran.stopped {
                    // Without room nothing is decided that is written; what is never written is still refused.
                    assert!(
                        answer.is_err(),
                        "an answer after the store had stopped: {answer:?}"
                    );
                } else {
                    assert_eq!(answer, self.answers[ran.acknowledged]);
                    ran.acknowledged += 1;
                }
            }
            if ran.stopped {
                break;
            }
        }
        ran
    }

    pub(crate) fn tasks(&self) -> usize {
        self.answers.len()
    }

    /// How many tasks what came back has seen, which must be at least `acknowledged`; all their requests are answered
    /// again byte for byte, and the rest goes on as in the model.
    pub(crate) fn check(&self, store: &Bench<Embedded>, acknowledged: usize) -> usize {
        let found = picture(store);
        let same = (acknowledged..self.pictures.len()).find(|n| self.pictures[*n] == found);
        let seen = same.unwrap_or_else(|| {
            let lost = self.pictures.iter().position(|picture| *picture == found);
            panic!("{acknowledged} acknowledged, came back as after {lost:?}: {found:#?}")
        });
        judge(found.0.iter(), self.told(acknowledged));
        self.check_replays(store, seen);
        seen
    }

    /// What callers were told of the first `acknowledged` tasks.
    fn told(&self, acknowledged: usize) -> History {
        let mut told = History::default();
        let tasks = self.batches.iter().flatten().zip(&self.answers);
        for ((task, answer), begun) in tasks.take(acknowledged).zip((0..).step_by(2)) {
            if let Ok(Answer::Decided { outcome, replayed }) = answer {
                let ended = begun + 1;
                hear(&mut told, task, outcome, *replayed, Span { begun, ended });
            }
        }
        told
    }

    /// Every decided request of the first `seen` tasks is a replay, with the first outcome.
    pub(crate) fn check_replays(&self, store: &Bench<Embedded>, seen: usize) {
        let tasks = self.batches.iter().flatten().cloned();
        let repeatable = |task: &Task| matches!(task, Task::Run(_));
        for (task, answer) in tasks.zip(&self.answers).take(seen) {
            if let Ok(Answer::Decided { outcome, .. }) = answer
                && repeatable(&task)
            {
                let replay = store.ask(task.clone());
                let expected = Ok(Answer::Decided {
                    outcome: outcome.clone(),
                    replayed: true,
                });
                assert_eq!(replay, expected, "{task:?}");
            }
        }
    }

    /// Sends what is left after the first `seen` tasks, one by one, and compares with the model. Whether a refusal was
    /// recorded before cannot be seen in a picture, so a repetition of it is as good.
    pub(crate) fn go_on(&self, store: &Bench<Embedded>, seen: usize) {
        let tasks = self.batches.iter().flatten().cloned();
        for (task, expected) in tasks.zip(&self.answers).skip(seen) {
            let mut answer = store.ask(task.clone());
            if let Ok(Answer::Decided { replayed, .. }) = &mut answer {
                *replayed = false;
            }
            assert_eq!(answer, *expected, "{task:?}");
        }
        assert_eq!(picture(store), *self.picture(self.tasks()));
        for (account, name, hold) in &self.holds {
            assert_eq!(store.look_up_hold(account, name), *hold, "{account} {name}");
        }
    }

    /// The same until a task is not answered; says how many are acknowledged then.
    pub(crate) fn go_on_until_stopped(&self, store: &Bench<Embedded>, seen: usize) -> usize {
        let tasks = self.batches.iter().flatten().skip(seen).cloned();
        let answered = tasks.take_while(|task| !failed(&store.ask(task.clone())));
        seen + answered.count()
    }

    /// One account's statement after `n` tasks.
    pub(crate) fn statement(&self, n: usize, name: &str) -> &Vec<Entry> {
        let Picture(accounts, _) = &self.pictures[n];
        let found = accounts.iter().find(|(view, _)| view.account.id.as_str() == name);
        &found.unwrap().1
    }

    /// The state after `n` tasks.
    pub(crate) fn picture(&self, n: usize) -> &Picture {
        &self.pictures[n]
    }
}

/// How far a workload came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran {
    pub(crate) acknowledged: usize,
    pub(crate) stopped: bool,
}

fn failed(answer: &Result<Answer, LedgerError>) -> bool {
    matches!(
        answer,
        Err(LedgerError::Unavailable { .. } | LedgerError::OutcomeUnknown { .. })
    )
}

/// Ids are new in each batch, so that a task changes something or is refused: every n has a state of its own, or the
/// same as its neighbour's.
fn task(numbers: &mut Numbers, before: &mut Before, batch: usize, n: u64) -> Task {
    let pick = |numbers: &mut Numbers| NAMES[usize::try_from(numbers.below(3)).unwrap()];
    let (account, name) = (pick(numbers), format!("b{batch}.{n}-of-the-workload"));
    let minor = i64::try_from(1 + numbers.below(50)).unwrap();
    let mut moves = |task| {
        before.moves.push((account, name.clone()));
        task
    };
    match numbers.below(25) {
        0..8 => moves(credit(account, &name, minor)),
        8..11 => moves(debit(account, &name, minor)),
        11..15 => {
            let to = NAMES.iter().find(|other| **other != account).unwrap();
            moves(transfer(account, &name, to, minor))
        }
        15..18 => {
            before.holds.push((account, name.clone()));
            hold(account, &name, minor, u32::from(n == 0))
        }
        18..20 => match any(numbers, &before.holds) {
            Some((account, of)) => capture(account, &name, &of, minor / 2),
            None => tidy(account),
        },
        20 => match any(numbers, &before.holds) {
            Some((account, of)) => release(account, &name, &of),
            None => tidy(account),
        },
        21 => match any(numbers, &before.moves) {
            Some((account, of)) => reversal(account, &name, &of),
            None => tidy(account),
        },
        22 => reslot(account, &name, u8::try_from(1 + numbers.below(4)).unwrap()),
        23 => abandon(account, &name),
        _ => tidy(account),
    }
}

fn any(numbers: &mut Numbers, of: &[(&'static str, String)]) -> Option<(&'static str, String)> {
    let at = numbers.below(u64::try_from(of.len()).ok()?.max(1));
    of.get(usize::try_from(at).ok()?).cloned()
}

/// Opens a store that must open.
pub(crate) fn open(options: Options) -> Bench<Embedded> {
    Bench::new(Embedded::open(options).unwrap())
}

/// The history checker on accounts and their statements, and on what callers were told of them before.
fn judge<'a>(accounts: impl Iterator<Item = &'a (AccountView, Vec<Entry>)>, mut told: History) {
    let span = Span {
        begun: u64::MAX - 1,
        ended: u64::MAX,
    };
    for (view, entries) in accounts {
        told.entries.extend(entries.iter().map(history::Entry::from));
        told.reads.push(seen(view, span));
    }
    assert_eq!(told.faults(), Vec::<String>::new());
}

/// Has the history checker look at every statement of a store, closes it, and proves what it leaves on the disk.
pub(crate) fn close_and_verify(store: Bench<Embedded>, disk: &FaultDisk) {
    let views = store.block_on(store.store.accounts(None, 1_000)).unwrap();
    let statement = |view: AccountView| {
        let entries = store.entries(view.account.id.as_str());
        (view, entries)
    };
    let accounts: Vec<_> = views.into_iter().map(statement).collect();
    judge(accounts.iter(), History::default());
    store.close();
    drop(store);
    let report = verify_on(&(Arc::new(disk.clone()) as Arc<dyn Disk>), |_, _| ()).unwrap();
    assert!(report.is_clean(), "{report}");
}
