//! What other tests take for granted of the proxy.

use super::super::{Database, Session, database};
use super::Fault;

const INSERT: &str = "INSERT INTO t (n) VALUES (1)";
const TRANSACTION: &str = "BEGIN; INSERT INTO t (n) VALUES (2); SELECT n, n + 1 FROM t; COMMIT";

/// With an empty table.
fn with_table() -> Database {
    let database = database();
    let mut session = database.session();
    session.run("CREATE TABLE t (id BIGINT PRIMARY KEY AUTO_INCREMENT, n BIGINT)");
    database
}

fn rows(database: &Database) -> i64 {
    database.session().number("SELECT COUNT(*) FROM t")
}

/// What a task of this runtime would do, on a thread that may block.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn what_no_fault_is_for_goes_through_and_is_counted() {
    let database = with_table();
    let (proxy, url) = database.proxy();
    let mut session = Session::new(&url);
    let (before, _) = (proxy.commands(), proxy.take_texts());
    let pending = proxy.arm("COMMIT", 0, 1, Fault::Nothing);
    session.run(INSERT);
    assert_eq!(session.rows(TRANSACTION).unwrap().len(), 2);
    pending.happened(1).await;
    assert_eq!(proxy.take_texts(), [INSERT, TRANSACTION]);
    assert_eq!((proxy.commands() - before, proxy.connections()), (2, 1));
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn a_lost_text_has_not_happened_and_a_lost_answer_has() {
    for (fault, happened) in [(Fault::LoseText, 0), (Fault::LoseAnswer, 1)] {
        let database = with_table();
        let (proxy, url) = database.proxy();
        let pending = proxy.arm("COMMIT", 0, 1, fault);
        let mut session = Session::new(&url);
        assert!(session.try_run(TRANSACTION).is_err(), "{fault:?}");
        pending.happened(1).await;
        assert_eq!(rows(&database), happened, "{fault:?}");
        assert!(session.try_run("SELECT 1").is_err(), "the connection is over");
        Session::new(&url).run(TRANSACTION);
        assert_eq!(rows(&database), happened + 1, "{fault:?}");
    }
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn a_fault_happens_to_the_texts_that_it_was_armed_for() {
    let database = with_table();
    let (proxy, url) = database.proxy();
    let pending = proxy.arm("COMMIT", 1, 2, Fault::LoseText);
    let heard: Vec<bool> = (0..5)
        .map(|_| {
            let mut session = Session::new(&url);
            session.run(INSERT);
            session.try_run(TRANSACTION).is_ok()
        })
        .collect();
    assert_eq!(heard, [true, false, false, true, true]);
    pending.happened(2).await;
    assert_eq!(rows(&database), 5 + 3);
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn a_held_answer_has_happened_and_arrives_when_it_is_let_go() {
    let database = with_table();
    let (proxy, url) = database.proxy();
    let pending = proxy.arm("COMMIT", 0, 1, Fault::HoldAnswer);
    let mut session = Session::new(&url);
    let asking = beside(move || session.rows(TRANSACTION).map(|rows| (rows.len(), session)));
    let asking = async { asking.await.unwrap() };
    let looking = async {
        pending.happened(1).await;
        assert_eq!(rows(&database), 1);
        pending.let_go();
    };
    let ((answered, mut session), ()) = tokio::join!(asking, looking);
    assert_eq!(answered, 1);
    session.run(TRANSACTION);
    assert_eq!(rows(&database), 2);
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn an_error_is_the_end_of_an_answer() {
    let database = with_table();
    let (proxy, url) = database.proxy();
    for text in [
        "BEGIN; SELECT nothing; COMMIT",
        "SELECT 1; INSERT INTO t (id) VALUES (1), (1); COMMIT",
        "SELECT n, (SELECT 1 UNION SELECT 2) FROM (SELECT 1 AS n) AS t; COMMIT",
    ] {
        let pending = proxy.arm("COMMIT", 0, 1, Fault::LoseAnswer);
        assert!(Session::new(&url).try_run(text).is_err());
        pending.happened(1).await;
    }
    assert_eq!(rows(&database), 0);
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn an_answer_is_over_where_its_last_result_is() {
    let database = with_table();
    let (proxy, url) = database.proxy();
    for text in [
        "SELECT 1 WHERE 1 = 0; COMMIT",
        "SELECT NULL, '', REPEAT('x', 300), REPEAT('y', 70000); INSERT INTO t (n) VALUES (7); COMMIT",
        "DO 1; DO 2; COMMIT; SELECT 1",
        "SELECT REPEAT('z', 1000) FROM seq_1_to_2000; COMMIT",
    ] {
        if text.contains("seq_") && !is_mariadb(&database) {
            continue;
        }
        let pending = proxy.arm("COMMIT", 0, 1, Fault::LoseAnswer);
        assert!(Session::new(&url).try_run(text).is_err());
        pending.happened(1).await;
    }
    assert_eq!(rows(&database), 1);
}

/// It has tables of numbers.
fn is_mariadb(database: &Database) -> bool {
    database.session().text("SELECT VERSION()").contains("MariaDB")
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn rows_are_counted_as_found_or_as_changed_as_the_test_likes() {
    let database = with_table();
    database.session().run(INSERT);
    let (proxy, url) = database.proxy();
    for (found, affected) in [(true, 1), (false, 0)] {
        proxy.set_found_rows(found);
        assert_eq!(
            Session::new(&url).affected("UPDATE t SET n = 1 WHERE n = 1"),
            affected
        );
    }
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn a_client_that_gives_up_ends_the_connection_to_the_server() {
    let database = with_table();
    let (proxy, url) = database.proxy();
    let mut session = Session::new(&url);
    let name = session.text("SELECT CONCAT('held-', CONNECTION_ID())");
    assert_eq!(session.number(&format!("SELECT GET_LOCK('{name}', 0)")), 1);
    drop(session);
    // The server gives the lock back once the connection is over.
    let waited = database
        .session()
        .number(&format!("SELECT GET_LOCK('{name}', 60)"));
    assert_eq!(waited, 1);
    assert_eq!(proxy.connections(), 1);
}
