//! `import`: a new store out of an export, the same in all that can be asked of it; and every way in which an export can
//! be other than it was, refused with its place.

use std::io::Cursor as Bytes;
use std::sync::Arc;

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use wallet_backend::account::{Account, AccountId};
use wallet_backend::command::{BatchMode, Operation, Task};
use wallet_backend::journal::{Heads, Reader, Root};
use wallet_backend::store::embedded::disk::Disk;
use wallet_backend::store::embedded::{ImportError, Imported, Options, export, import, verify_on};
use wallet_backend::store::{Cursor, Moment, Preference};

use crate::faults::{FaultDisk, open, small};
use crate::properties::{accounts, tasks};
use crate::support::{Bench, SECOND, Time, capture, credit, hold, id, reversal};

mod command;
mod tampered;

/// A store on a disk in memory, at a time that a test sets, where credits prefer one slot.
fn options(disk: &FaultDisk, time: &Time) -> Options {
    Options {
        clock: time.clock(),
        preference: Preference::Fixed(1),
        ..small(disk)
    }
}

/// The whole history of a store that is closed.
fn exported(disk: &FaultDisk) -> String {
    let mut out = Vec::new();
    export(&(Arc::new(disk.clone()) as Arc<dyn Disk>), &mut out, |_, _| ()).unwrap();
    String::from_utf8(out).unwrap()
}

fn import_on(disk: &FaultDisk, text: &str, roots: &[Root]) -> Result<Imported, ImportError> {
    import(small(disk), &mut Bytes::new(text.as_bytes()), roots, |_| ())
}

/// Tasks of one generation: its six accounts close in time, and their ids are used up.
const GENERATION: usize = 250;

/// A history: in each generation six accounts of every mode, and seeded tasks of every kind, some as batches, while time
/// passes.
pub(crate) struct Lived {
    pub(crate) disk: FaultDisk,
    pub(crate) time: Time,
    pub(crate) accounts: Vec<Account>,
    asked: Vec<Task>,
}

impl Lived {
    pub(crate) fn new(generations: usize) -> Self {
        let mut lived = Self {
            disk: FaultDisk::default(),
            time: Time::default(),
            accounts: Vec::new(),
            asked: Vec::new(),
        };
        let store = lived.reopened(&lived.disk);
        let (mut runner, any) = (TestRunner::deterministic(), tasks());
        for generation in 0..generations {
            for account in accounts() {
                let account = Account {
                    id: later(&account.id, generation),
                    ..account
                };
                store.open(account.clone());
                lived.accounts.push(account);
            }
            // What chance seldom does.
            let of = later(&id("b"), generation);
            let first = credit(of.as_str(), "first", 7);
            let [once, twice] = ["undo-1", "undo-2"].map(|name| reversal(of.as_str(), name, "first"));
            let held = hold(of.as_str(), "held", 3, 0);
            let taken = capture(of.as_str(), "taken", "held", 0);
            let rare = vec![first, once, twice, credit(of.as_str(), "second", 9), held, taken];
            drop(store.ask_all(rare.clone()));
            lived.asked.extend(rare);
            for number in 0..GENERATION / 5 {
                let mut next = || of_generation(any.new_tree(&mut runner).unwrap().current(), generation);
                let some: Vec<Task> = (0..5).map(|_| next()).collect();
                let commands = some.iter().filter(|task| task.operation().is_some());
                let commands: Vec<Task> = commands.cloned().collect();
                match number % 3 {
                    0 => drop(store.batch(BatchMode::Each, &commands)),
                    1 => drop(store.batch(BatchMode::Atomic, &commands)),
                    _ => drop(store.ask_all(some.clone())),
                }
                lived.asked.extend(some);
                if number % 4 == 0 {
                    lived.time.pass(SECOND);
                }
            }
        }
        store.close();
        drop(store);
        lived
    }

    fn reopened(&self, disk: &FaultDisk) -> Bench<wallet_backend::store::embedded::Embedded> {
        open(options(disk, &self.time))
    }
}

fn later(account: &AccountId, generation: usize) -> AccountId {
    id(&format!("{account}{generation}"))
}

/// The same task with the accounts of another generation.
fn of_generation(task: Task, generation: usize) -> Task {
    match task {
        Task::Run(mut command) => {
            command.account = later(&command.account, generation);
            if let Operation::Transfer { to, .. } = &mut command.operation {
                *to = later(to, generation);
            }
            Task::Run(command)
        }
        Task::Abandon { account, request } => Task::Abandon {
            account: later(&account, generation),
            request,
        },
        Task::Tidy { account } => Task::Tidy {
            account: later(&account, generation),
        },
        opened @ Task::Open(_) => opened,
    }
}

#[test]
fn an_export_of_what_was_imported_is_the_export_that_was_read() {
    let lived = Lived::new(10);
    let text = exported(&lived.disk);
    let disk = FaultDisk::default();
    let imported = import_on(&disk, &text, &[]).unwrap();
    assert_eq!(exported(&disk), text);
    let report = verify_on(&(Arc::new(disk.clone()) as Arc<dyn Disk>), |_, _| ()).unwrap();
    assert!(report.is_clean(), "{report}");
    assert!(report.checkpoint.is_some() && report.segments > 1, "{report}");
    let Imported {
        records,
        entries,
        requests,
        accounts,
        totals,
        root,
    } = imported;
    assert_eq!(Some(root), report.root);
    assert_eq!(
        (records, entries, requests, accounts),
        (report.records, report.entries, report.requests, report.accounts)
    );
    let store = lived.reopened(&disk);
    for (currency, minor) in totals {
        let same = lived
            .accounts
            .iter()
            .filter(|account| account.currency == currency);
        let balances = same.map(|account| i128::from(store.account(account.id.as_str()).balance()));
        assert_eq!(balances.sum::<i128>(), minor, "{currency:?}");
    }
    // Every kind of line was there.
    let kinds = [
        "\"type\":\"reversal\",\"request_id\"",
        "\"type\":\"settle\"",
        "\"type\":\"consolidate\"",
        "\"status\":\"expired\"",
        "\"status\":\"captured\"",
        "\"type\":\"amend\"",
        "\"status\":\"closed\"",
        "\"code\":\"abandoned\"",
        "\"code\":\"insufficient_funds\"",
        "\"code\":\"already_reversed\"",
        "\"debit\":\"hashed\"",
        "\"pending_settled\"",
        "\"type\":\"transfer_in\"",
    ];
    for kind in kinds {
        assert!(text.contains(kind), "{kind}");
    }
}

#[test]
fn whatever_is_asked_of_an_imported_store_is_answered_as_by_the_first_one() {
    let lived = Lived::new(6);
    let text = exported(&lived.disk);
    let disk = FaultDisk::default();
    import_on(&disk, &text, &[]).unwrap();
    let (first, second) = (lived.reopened(&lived.disk), lived.reopened(&disk));
    for account in &lived.accounts {
        let name = account.id.as_str();
        assert_eq!(first.view(name), second.view(name));
        let (page, other) = (
            first.page(name, &Cursor::default(), 40),
            second.page(name, &Cursor::default(), 40),
        );
        assert_eq!(page, other);
        // A cursor of the one goes on in the other.
        assert_eq!(
            first.page(name, &page.next, 10_000),
            second.page(name, &page.next, 10_000)
        );
        let moment = Moment::Cursor(page.next);
        assert_eq!(first.past(name, &moment), second.past(name, &moment));
        for number in 0..40 {
            let request = format!("r{number}");
            assert_eq!(
                first.look_up(name, &request),
                second.look_up(name, &request),
                "{request}"
            );
            assert_eq!(
                first.look_up_hold(name, &request),
                second.look_up_hold(name, &request),
                "{request}"
            );
        }
    }
    assert_eq!(first.events(0, None, 1_000), second.events(0, None, 1_000));
    // All again: replays byte for byte, and the few that were never decided as the first store decides them.
    for task in &lived.asked {
        assert_eq!(first.ask(task.clone()), second.ask(task.clone()), "{task:?}");
    }
    first.close();
    second.close();
    assert_eq!(exported(&lived.disk), exported(&disk));
}

#[test]
fn a_store_without_history_is_exported_and_imported_like_any_other() {
    let (first, second) = (FaultDisk::default(), FaultDisk::default());
    open(small(&first)).close();
    let text = exported(&first);
    assert_eq!(text.lines().count(), 1);
    assert_eq!(import_on(&second, &text, &[]).unwrap().records, 0);
    assert_eq!(exported(&second), text);
}

#[test]
fn an_import_goes_into_no_store_that_is_there() {
    let lived = Lived::new(1);
    let text = exported(&lived.disk);
    let refused = import_on(&lived.disk, &text, &[]).unwrap_err();
    assert!(matches!(refused, ImportError::NotEmpty), "{refused}");
    assert_eq!(exported(&lived.disk), text);
}

#[test]
fn an_import_whose_disk_fails_says_so_or_has_everything() {
    let text = exported(&Lived::new(1).disk);
    for at in 0.. {
        let disk = FaultDisk::default();
        disk.cut_power_at(at);
        match import_on(&disk, &text, &[]) {
            Err(ImportError::Store(_) | ImportError::Open(_) | ImportError::ReadBack(_)) => {}
            Ok(_) => {
                // What fails after the last sync of the log is derived from it.
                assert!(at >= 5, "{at}");
                assert_eq!(exported(&disk), text);
                return;
            }
            Err(other) => panic!("{at}: {other:?}"),
        }
    }
}

/// The root that these lines have.
fn root_of(lines: &[String]) -> Root {
    let (mut reader, mut heads) = (Reader::default(), Heads::default());
    for line in lines {
        heads.extend(&reader.read(line.as_bytes()).unwrap());
    }
    heads.root()
}
