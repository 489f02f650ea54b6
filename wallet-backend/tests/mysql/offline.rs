//! Proving a ledger in a database, by the commands.

use wallet_backend::store::mysql::{Mysql, Options};

use super::{Database, database};
use crate::process::binary;
use crate::support::{Bench, Time, credit, debit, journal, slotted};

/// The exit code of a command, and all that it said.
fn run(command: &str, database: &Database) -> (Option<i32>, String) {
    let output = binary(&[command, "--store", database.url()]).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

/// A ledger with entries in several slots, and a credit that waits.
fn with_history() -> Database {
    let database = database();
    let store = Mysql::open(Options::at(database.url().parse().unwrap())).unwrap();
    let bench = Bench::at(store, Time::default());
    bench.open(slotted("s", 3));
    bench.open(journal("j"));
    for number in 0..5 {
        bench.post(credit("s", &format!("c{number}"), 10));
    }
    bench.post(debit("s", "d", 23));
    bench.post(credit("j", "p", 4));
    bench.close();
    database
}

#[test]
#[ignore = "needs MariaDB: tests/run"]
fn a_ledger_whose_entries_add_up_is_clean() {
    let database = with_history();
    let (code, said) = run("verify", &database);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run("reconcile", &database);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
#[ignore = "needs MariaDB: tests/run"]
fn a_cent_too_much_is_found_by_account_and_slot() {
    let database = with_history();
    let mut session = database.session();
    session.run("UPDATE wallet_slot SET balance = balance + 1 WHERE account_id = 's' AND slot_index = 2");
    for command in ["verify", "reconcile"] {
        let (code, said) = run(command, &database);
        assert_eq!(code, Some(1), "{command}: {said}");
        assert!(said.contains("account s slot 2"), "{command}: {said}");
    }
}

#[test]
#[ignore = "needs MariaDB: tests/run"]
fn money_that_nobody_paid_in_is_found_in_the_books() {
    let database = with_history();
    let mut session = database.session();
    session.run("DELETE FROM pending_credit");
    session.run(
        "INSERT INTO pending_credit (account_id, source_id, request_id, amount, at_us) VALUES ('j', 's', 'x', 4, 0)",
    );
    let (code, said) = run("reconcile", &database);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("EUR"), "{said}");
}

#[test]
#[ignore = "needs MariaDB: tests/run"]
fn a_database_without_a_ledger_is_left_without_one() {
    let database = database();
    let (code, said) = run("verify", &database);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("the database has no ledger"), "{said}");
    let tables = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()";
    assert_eq!(database.session().number(tables), 0);
}
