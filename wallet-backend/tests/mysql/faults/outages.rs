//! A server that is killed, that may not be written to, or that is set up in another way.

use wallet_backend::command::LedgerError;

use super::load::Load;
use super::wallet;
use crate::mysql::{Fault, Proxy, Server, Settings, database};
use crate::support::{amount, id, ordinary, request};

fn private(settings: Settings) -> Server {
    let server = Server::start(settings);
    server.admin().run("CREATE DATABASE sluice");
    server
}

/// Kills the server again and again while callers go on asking.
async fn killed_under_load(settings: Settings, rounds: u64) -> String {
    let mut server = private(settings);
    let load = Load::new(wallet(&server.url("sluice")).await).await;
    let mut callers = load.start(5, 8, 20 * rounds);
    for round in 1..=rounds {
        load.answered(40 * round).await;
        load.set_up(false);
        server.kill();
        server.restart();
        load.set_up(true);
    }
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
    format!(
        "{rounds} kills of the server under load: {:?}",
        load.check().await
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs MariaDB: tests/run"]
async fn a_server_that_is_killed_under_load_has_all_that_was_acknowledged_once() {
    println!("{}", killed_under_load(Settings::default(), 4).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs MariaDB: tests/run"]
async fn with_a_binary_log_too_a_killed_server_has_all_that_was_acknowledged_once() {
    let binlog = true;
    let settings = Settings {
        binlog,
        ..Settings::default()
    };
    println!("{}", killed_under_load(settings, 2).await);
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn a_server_that_is_gone_is_unavailable_until_it_is_back() {
    let mut server = private(Settings::default());
    let wallet = wallet(&server.url("sluice")).await;
    wallet.open(ordinary("a")).await.unwrap();
    server.kill();
    let (account, name) = (id("a"), request("c"));
    let refused = wallet.credit(&account, &name, amount(5), None).await;
    assert!(
        matches!(refused, Err(LedgerError::Unavailable { .. })),
        "{refused:?}"
    );
    let refused = wallet.account(&account).await;
    assert!(
        matches!(refused, Err(LedgerError::Unavailable { .. })),
        "{refused:?}"
    );
    server.restart();
    let decided = wallet.credit(&account, &name, amount(5), None).await.unwrap();
    assert!(decided.is_success() && !decided.replayed, "{decided:?}");
    assert_eq!(wallet.account(&account).await.unwrap().balance(), 5);
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn a_server_that_turns_read_only_is_tried_again_until_it_takes_the_write() {
    let server = private(Settings::default());
    let proxy = Proxy::start(server.address());
    let wallet = wallet(&server.url_by(proxy.address(), "sluice")).await;
    wallet.open(ordinary("a")).await.unwrap();
    let mut admin = server.admin();
    admin.run("SET GLOBAL read_only = 1");
    let tries = proxy.arm("wallet_slot", 0, 3, Fault::Nothing);
    let (account, name) = (id("a"), request("c"));
    let credit = wallet.credit(&account, &name, amount(5), None);
    let turn = async {
        tries.happened(3).await;
        admin.run("SET GLOBAL read_only = 0");
    };
    let (decided, ()) = tokio::join!(credit, turn);
    let decided = decided.unwrap();
    assert!(decided.is_success() && !decided.replayed, "{decided:?}");
    assert_eq!(wallet.account(&account).await.unwrap().balance(), 5);
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn a_server_that_stays_read_only_is_unavailable_and_can_be_read() {
    let server = private(Settings::default());
    let wallet = wallet(&server.url("sluice")).await;
    wallet.open(ordinary("a")).await.unwrap();
    let mut admin = server.admin();
    admin.run("SET GLOBAL read_only = 1");
    let (account, name) = (id("a"), request("c"));
    let refused = wallet.credit(&account, &name, amount(5), None).await;
    assert!(
        matches!(refused, Err(LedgerError::Unavailable { .. })),
        "{refused:?}"
    );
    assert_eq!(wallet.account(&account).await.unwrap().balance(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs MariaDB: tests/run"]
async fn snapshot_isolation_changes_nothing_that_anybody_is_told() {
    let server = private(Settings::default().with("--innodb-snapshot-isolation=ON"));
    assert_eq!(server.admin().number("SELECT @@innodb_snapshot_isolation = 1"), 1);
    let url = server.url("sluice");
    let load = Load::new(wallet(&url).await).await;
    load.start(7, 8, 40).join_all().await;
    println!("snapshot isolation on: {:?}", load.check().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs MariaDB: tests/run"]
async fn rows_may_be_counted_as_found_or_as_changed() {
    for found in [true, false] {
        let database = database();
        let (proxy, url) = database.proxy();
        proxy.set_found_rows(found);
        let load = Load::new(wallet(&url).await).await;
        load.start(9, 8, 30).join_all().await;
        let counts = load.check().await;
        assert!(!counts.contains_key("unavailable"), "found {found}: {counts:?}");
        println!(
            "rows counted as {}: {counts:?}",
            if found { "found" } else { "changed" }
        );
    }
}
