//! What is said of a server before a ledger is opened there.

use std::net::TcpListener;

use super::{Server, Settings, database};
use crate::process::binary;

/// The exit code of `migrate`, and what it said of the server.
fn migrate(url: &str) -> (Option<i32>, String) {
    let output = binary(&["migrate", "--store", url]).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
#[ignore = "needs MariaDB: tests/run"]
fn a_servers_settings_are_shown() {
    let database = database();
    let (code, said) = migrate(database.url());
    assert_eq!(code, Some(0), "{said}");
    for setting in [
        "sql_mode=STRICT_ALL_TABLES",
        "isolation=READ-COMMITTED",
        "time_zone=+00:00",
    ] {
        assert!(said.contains(setting), "{said}");
    }
    assert!(!said.contains("REFUSED"), "{said}");
}

#[test]
#[ignore = "needs MariaDB: tests/run"]
fn a_server_that_loses_what_it_acknowledged_is_warned_of_and_one_that_takes_no_batch_is_refused() {
    let settings = Settings::default()
        .with("--innodb-flush-log-at-trx-commit=2")
        .with("--max-allowed-packet=16M");
    let server = Server::start(settings);
    server.admin().run("CREATE DATABASE sluice_probe");
    let url = server.url("sluice_probe");
    let (code, said) = migrate(&url);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("\nwarning: innodb_flush_log_at_trx_commit is 2"),
        "{said}"
    );

    server.admin().run("SET GLOBAL max_allowed_packet = 1048576");
    let (code, said) = migrate(&url);
    assert_eq!(code, Some(1), "{said}");
    let refused = "max_allowed_packet is 1048576 bytes: a batch may be larger; SET GLOBAL max_allowed_packet";
    assert!(said.contains(refused), "{said}");
}

#[test]
#[ignore = "needs MariaDB: tests/run"]
fn a_server_that_takes_no_writes_is_refused_by_name() {
    let server = Server::start(Settings::default());
    server.admin().run("CREATE DATABASE sluice_replica");
    server.admin().run("SET GLOBAL read_only = ON");
    let (code, said) = migrate(&server.url("sluice_replica"));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("read_only is on"), "{said}");
    let tables = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'sluice_replica'";
    assert_eq!(server.session("sluice_replica").number(tables), 0);
}

#[test]
fn a_connection_that_nobody_takes_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (code, said) = migrate(&format!("mysql://root@{address}/wallet"));
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains(&format!("cannot connect to mysql://{address}/wallet")),
        "{said}"
    );
    assert!(said.contains("Connection refused"), "{said}");
}
