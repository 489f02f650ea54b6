//! What other tests take for granted of a server of their own.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::super::database;
use super::{Server, Settings};

#[test]
#[ignore = "needs MariaDB: tests/run"]
fn a_database_is_there_until_its_test_is_over() {
    let (mut first, second) = (database(), database());
    first.session().run("CREATE TABLE t (n BIGINT)");
    assert!(second.session().try_run("SELECT n FROM t").is_err());
    let url = first.url().to_owned();
    drop(first);
    assert!(super::Session::open(&url).is_err());
    first = second;
    first.session().run("CREATE TABLE t (n BIGINT)");
}

#[test]
#[ignore = "needs MariaDB: tests/run"]
fn what_was_committed_is_there_after_a_kill_and_the_port_is_the_same() {
    let mut server = Server::start(Settings::default());
    let address = server.address();
    server.admin().run("CREATE DATABASE sluice");
    let mut session = server.session("sluice");
    session.run("CREATE TABLE t (n BIGINT); INSERT INTO t VALUES (1); BEGIN; INSERT INTO t VALUES (2)");
    server.kill();
    assert!(session.try_run("COMMIT").is_err());
    assert!(TcpStream::connect(address).is_err());
    server.restart();
    assert_eq!(server.address(), address);
    assert_eq!(server.session("sluice").number("SELECT SUM(n) FROM t"), 1);
}

#[test]
#[ignore = "needs MariaDB: tests/run"]
fn a_server_has_the_settings_that_it_was_given() {
    let settings = Settings {
        binlog: true,
        ..Settings::default()
    };
    let server = Server::start(settings.with("--innodb-lock-wait-timeout=1"));
    let mut admin = server.admin();
    assert_eq!(
        admin.text(
            "SELECT CONCAT_WS(' ', @@sync_binlog, @@binlog_format, @@innodb_lock_wait_timeout, \
             @@innodb_flush_log_at_trx_commit)"
        ),
        "1 ROW 1 1"
    );
}

#[test]
#[ignore = "needs MariaDB: tests/run"]
fn a_read_only_server_refuses_the_user_of_the_tests() {
    let server = Server::start(Settings::default());
    let mut admin = server.admin();
    admin.run("CREATE DATABASE sluice; CREATE TABLE sluice.t (n BIGINT); SET GLOBAL read_only = 1");
    let mut session = server.session("sluice");
    let refused = session.try_run("INSERT INTO t VALUES (1)").unwrap_err();
    assert!(refused.to_string().contains("read-only"), "{refused}");
    admin.run("SET GLOBAL read_only = 0");
    session.run("INSERT INTO t VALUES (1)");
}

/// The other process of the test below: starts a server, says where it is and waits to be killed.
#[test]
#[ignore = "needs MariaDB: tests/run"]
fn a_process_with_a_server() {
    if std::env::var_os("SLUICE_TEST_OWNS_A_SERVER").is_some() {
        let server = Server::start(Settings::default());
        println!(
            "server at {} in {}",
            server.address(),
            server.folder.path().display()
        );
        std::thread::park();
    }
}

#[test]
#[ignore = "needs MariaDB: tests/run"]
fn a_server_is_gone_when_the_process_that_started_it_is_killed() {
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "mysql::server::facts::a_process_with_a_server"])
        .args(["--include-ignored", "--nocapture"])
        .env("SLUICE_TEST_OWNS_A_SERVER", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let (address, folder) = lines
        .find_map(|line| {
            let line = line.unwrap();
            let (_, place) = line.split_once("server at ")?;
            let (address, folder) = place.split_once(" in ")?;
            Some((address.to_owned(), PathBuf::from(folder)))
        })
        .unwrap();
    owner.kill().unwrap();
    owner.wait().unwrap();
    // What it printed ends when the last process that could print is gone.
    assert_eq!(lines.count(), 0);
    assert!(TcpStream::connect(address).is_err());
    assert!(!folder.exists());
}
