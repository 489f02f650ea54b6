//! `export --format sqlite`: a database that says of every account what the ledger says, and whose documented queries
//! hold.

use std::fs;
use std::path::Path;
use std::process::Output;

use rusqlite::Connection;
use tempfile::TempDir;
use wallet_backend::account::HoldState;
use wallet_backend::command::{HoldView, Outcome, RequestView};
use wallet_backend::store::Preference;
use wallet_backend::store::embedded::{Embedded, Options, verify};

use crate::faults::open;
use crate::import::Lived;
use crate::process::binary;
use crate::support::Bench;

/// A long history of every kind, in files: the folder, and what lived.
fn kept() -> (TempDir, Lived) {
    let folder = tempfile::tempdir().unwrap();
    let lived = Lived::new(6);
    for name in lived.disk.files() {
        let file = folder.path().join("data").join(&name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, lived.disk.content(&name)).unwrap();
    }
    (folder, lived)
}

/// The store again, at the time at which it was closed.
fn reopened(folder: &Path, lived: &Lived) -> Bench<Embedded> {
    open(Options {
        clock: lived.time.clock(),
        preference: Preference::Fixed(1),
        daily_root: None,
        ..Options::at(folder.join("data"))
    })
}

fn export(folder: &Path, more: &[&str]) -> Output {
    let store = format!("embedded:{}", folder.join("data").display());
    binary(&[&["export", "--store", &store, "--format", "sqlite"], more].concat())
        .output()
        .unwrap()
}

fn database(folder: &Path) -> Connection {
    let file = folder.join("ledger.db");
    let output = export(folder, &["--out", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let left: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
    Connection::open(file).unwrap()
}

/// The queries of the documentation, in their order.
fn documented() -> Vec<&'static str> {
    let page = include_str!("../../docs/export-import.md");
    let queries = page.split("```sql\n").skip(1);
    queries.map(|rest| rest.split("```").next().unwrap()).collect()
}

fn count(database: &Connection, of: &str) -> u64 {
    let sql = format!("SELECT count(*) FROM {of}");
    let count: i64 = database.query_row(&sql, [], |row| row.get(0)).unwrap();
    u64::try_from(count).unwrap()
}

#[test]
fn the_documented_query_gives_every_balance_and_no_slot_is_other_than_its_entries() {
    let (folder, lived) = kept();
    let database = database(folder.path());
    let store = reopened(folder.path(), &lived);
    let queries = documented();
    let mut balances = database.prepare(queries[0]).unwrap();
    let balances = balances.query_map([], |row| {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, i64>(2)?,
        ))
    });
    let balances: Vec<_> = balances.unwrap().map(Result::unwrap).collect();
    let mut expected: Vec<_> = lived.accounts.iter().collect();
    expected.sort_by(|a, b| a.id.cmp(&b.id));
    let expected: Vec<_> = expected
        .into_iter()
        .map(|account| {
            let view = store.account(account.id.as_str());
            (
                account.id.to_string(),
                account.currency.as_str().to_owned(),
                view.balance(),
            )
        })
        .collect();
    assert_eq!(balances, expected);
    assert!(balances.iter().any(|(.., balance)| *balance > 0));
    let wrong = |database: &Connection| {
        database
            .prepare(queries[1])
            .unwrap()
            .query([])
            .unwrap()
            .next()
            .unwrap()
            .is_some()
    };
    assert!(!wrong(&database));
    database
        .execute("UPDATE slot SET balance = balance + 1 WHERE version > 0", [])
        .unwrap();
    assert!(wrong(&database), "the query finds a wrong cent");
    database.prepare(queries[2]).unwrap();
    assert_eq!(queries.len(), 3);
}

#[test]
fn every_row_of_the_ledger_is_in_the_database() {
    let (folder, lived) = kept();
    let report = verify(folder.path().join("data")).unwrap();
    let database = database(folder.path());
    let rows = ["account", "entry", "request"].map(|table| count(&database, table));
    assert_eq!(rows, [report.accounts, report.entries, report.requests]);
    let root: String = database
        .query_row("SELECT root FROM export", [], |row| row.get(0))
        .unwrap();
    assert_eq!(root, report.root.unwrap().to_string());
    let store = reopened(folder.path(), &lived);
    let (mut slots, mut held, mut pending) = (0, 0, 0);
    for account in &lived.accounts {
        let view = store.account(account.id.as_str());
        slots += u64::try_from(view.slots.len()).unwrap();
        held += view.held;
        pending += view.pending;
    }
    assert_eq!(count(&database, "slot"), slots);
    // An expired hold that no sweep has met is open in its row, and pending for a reader.
    let sum = |sql: &str| -> i64 { database.query_row(sql, [], |row| row.get(0)).unwrap() };
    let open = sum("SELECT coalesce(sum(amount - captured - released), 0) FROM hold WHERE status = 'open'");
    let waiting = sum("SELECT coalesce(sum(amount), 0) FROM pending_credit");
    assert_eq!(open + waiting, held + pending);
    // Each request and hold as a look-up tells it.
    let mut requests = database
        .prepare("SELECT account_id, request_id, result, code, amount FROM request")
        .unwrap();
    let mut rows = requests.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let [account, request, result]: [String; 3] = [0, 1, 2].map(|at| row.get(at).unwrap());
        let Some(RequestView::Decided(outcome)) = store.look_up(&account, &request) else {
            panic!("{account} {request}");
        };
        let (code, amount): (Option<String>, Option<i64>) = (row.get(3).unwrap(), row.get(4).unwrap());
        match outcome {
            Outcome::Posted(receipt) => {
                assert!(result == "posted" || result == "pending");
                assert_eq!(amount, Some(receipt.amount.minor()));
            }
            Outcome::Amended(_) => assert_eq!(result, "amended"),
            Outcome::Refused(refusal) => {
                assert_eq!(
                    (result.as_str(), code.as_deref()),
                    ("refused", Some(refusal.code()))
                );
            }
        }
    }
    let mut holds = database
        .prepare("SELECT account_id, hold_id, status, captured FROM hold")
        .unwrap();
    let mut rows = holds.query([]).unwrap();
    let mut seen = 0;
    while let Some(row) = rows.next().unwrap() {
        let [account, id, status]: [String; 3] = [0, 1, 2].map(|at| row.get(at).unwrap());
        let Some(HoldView::Found(hold)) = store.look_up_hold(&account, &id) else {
            panic!("{account} {id}");
        };
        assert_eq!(row.get::<_, i64>(3).unwrap(), hold.captured);
        let unswept = status == "open" && hold.state == HoldState::Expired;
        assert!(
            unswept || status == hold.state.as_str(),
            "{account} {id} {status}"
        );
        seen += 1;
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn a_database_is_a_file_that_is_not_there_yet() {
    let (folder, _) = kept();
    let output = export(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let file = folder.path().join("ledger.db");
    fs::write(&file, "mine").unwrap();
    let output = export(folder.path(), &["--out", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}
