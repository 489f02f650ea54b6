//! Setting a ledger's tables up, by the command.

use super::{Database, database};
use crate::process::binary;

/// The exit code of `migrate`, what it printed, and what it complained of.
fn migrate(database: &Database) -> (Option<i32>, String, String) {
    let output = binary(&["migrate", "--store", database.url()]).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
#[ignore = "needs MariaDB: tests/run"]
fn migrating_sets_an_empty_database_up_once() {
    let database = database();
    let (code, said, wrong) = migrate(&database);
    assert_eq!((code, &*said), (Some(0), "schema 1: set up\n"), "{wrong}");
    let mut session = database.session();
    let ledger = session.text("SELECT ledger_id FROM ledger");
    let (code, said, wrong) = migrate(&database);
    assert_eq!((code, &*said), (Some(0), "schema 1: up to date\n"), "{wrong}");
    assert_eq!(session.text("SELECT ledger_id FROM ledger"), ledger);
}

#[test]
#[ignore = "needs MariaDB: tests/run"]
fn a_schema_that_is_newer_is_refused_and_left_alone() {
    let database = database();
    migrate(&database);
    let mut session = database.session();
    session.run("UPDATE _sqlx_migrations SET version = 1000");
    let (code, said, wrong) = migrate(&database);
    assert_eq!((code, &*said), (Some(1), ""));
    assert!(wrong.contains("the database has schema 1000"), "{wrong}");
    assert_eq!(session.number("SELECT version FROM _sqlx_migrations"), 1000);
}

#[test]
#[ignore = "needs MariaDB: tests/run"]
fn every_table_compares_ids_as_bytes_and_is_transactional() {
    let database = database();
    migrate(&database);
    let mut session = database.session();
    let others = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() \
        AND table_name <> '_sqlx_migrations' AND engine <> 'InnoDB'";
    assert_eq!(session.number(others), 0);
    let ids = "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() \
        AND (column_name LIKE '%\\_id' OR column_name = 'reverses') AND data_type <> 'varbinary' \
        AND column_name NOT IN ('ledger_id', 'task_id')";
    assert_eq!(session.number(ids), 0);
}
