//! Others who hold what is needed: gates, connections, the attention of a caller; and what fails whenever it is tried.

use tokio::task::spawn_blocking;
use wallet_backend::command::{Answer, LedgerError, Outcome};
use wallet_backend::store::Preference;
use wallet_backend::store::mysql::{Mysql, Options};

use super::load::Load;
use super::{DECIDES, wallet, wallet_with};
use crate::mysql::{Fault, Server, Session, Settings, database};
use crate::support::{Bench, amount, credit, debit, id, ordinary, request};

const GATE: &str =
    "BEGIN; SELECT balance FROM wallet_slot WHERE account_id = 'a' AND slot_index = 0 FOR UPDATE";

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn a_gate_that_others_hold_for_longer_than_a_lock_may_wait_is_waited_for_again() {
    let database = database();
    let (proxy, url) = database.proxy();
    let wallet = wallet(&url).await;
    wallet.open(ordinary("a")).await.unwrap();
    wallet
        .credit(&id("a"), &request("c"), amount(100), None)
        .await
        .unwrap();
    let mut other = database.session();
    other.run(GATE);
    // The second time: the first has run into the server's limit.
    let waits = proxy.arm("wallet_slot", 0, 2, Fault::Nothing);
    let (account, name) = (id("a"), request("d"));
    let debit = wallet.debit(&account, &name, amount(30), None);
    let release = async {
        waits.happened(2).await;
        other.run("COMMIT");
    };
    let (decided, ()) = tokio::join!(debit, release);
    let decided = decided.unwrap();
    assert!(decided.is_success() && !decided.replayed, "{decided:?}");
    assert_eq!(wallet.account(&account).await.unwrap().balance(), 70);
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn a_gate_that_is_never_free_is_told_before_callers_give_up_and_nothing_happened() {
    let database = database();
    let (proxy, url) = database.proxy();
    let wallet = wallet(&url).await;
    wallet.open(ordinary("a")).await.unwrap();
    wallet.open(ordinary("b")).await.unwrap();
    wallet
        .credit(&id("a"), &request("c"), amount(100), None)
        .await
        .unwrap();
    let mut other = database.session();
    other.run(GATE);
    let (account, name) = (id("a"), request("d"));
    let debit = wallet.debit(&account, &name, amount(30), None);
    let waits = proxy.arm("wallet_slot", 0, 1, Fault::Nothing);
    // Others are not held up by it.
    let beside = async {
        waits.happened(1).await;
        wallet.credit(&id("b"), &request("beside"), amount(1), None).await
    };
    let (refused, beside) = tokio::join!(debit, beside);
    assert!(beside.unwrap().is_success());
    assert!(
        matches!(refused, Err(LedgerError::Unavailable { .. })),
        "{refused:?}"
    );
    other.run("COMMIT");
    assert_eq!(wallet.account(&account).await.unwrap().balance(), 100);
    let decided = wallet.debit(&account, &name, amount(30), None).await.unwrap();
    assert!(decided.is_success() && !decided.replayed, "{decided:?}");
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn a_connection_that_the_server_ends_in_the_middle_costs_nothing() {
    let database = database();
    let (proxy, url) = database.proxy();
    let wallet = wallet(&url).await;
    wallet.open(ordinary("a")).await.unwrap();
    let mut other = database.session();
    other.run(GATE);
    let waits = proxy.arm("wallet_slot", 0, 1, Fault::Nothing);
    let again = proxy.arm("wallet_slot", 1, 1, Fault::Nothing);
    let (account, name) = (id("a"), request("c"));
    let credit = wallet.credit(&account, &name, amount(30), None);
    let end = async {
        waits.happened(1).await;
        // Whoever waits for the gate.
        let waiting = "SELECT id FROM information_schema.processlist \
            WHERE db = DATABASE() AND info LIKE '%wallet_slot%' AND id <> CONNECTION_ID()";
        let mut killer = database.session();
        let waiting = killer.numbers(waiting);
        assert_eq!(waiting.len(), 1);
        killer.run(&format!("KILL {}", waiting[0]));
        again.happened(1).await;
        other.run("COMMIT");
    };
    let (decided, ()) = tokio::join!(credit, end);
    assert!(decided.unwrap().is_success());
    assert_eq!(wallet.account(&account).await.unwrap().balance(), 30);
}

#[test]
#[ignore = "needs MariaDB: tests/run"]
fn what_fails_whenever_it_is_tried_fails_alone_in_its_batch() {
    let database = database();
    let options = Options {
        preference: Preference::Fixed(0),
        ..Options::at(database.url().parse().unwrap())
    };
    let bench = Bench::new(Mysql::open(options).unwrap());
    for account in ["a", "b"] {
        bench.open(ordinary(account));
    }
    let poison = "CREATE TRIGGER poison BEFORE INSERT ON request FOR EACH ROW \
        IF NEW.request_id = 'poison' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'poison'; END IF";
    database.session().run(poison);
    let tasks = vec![
        credit("a", "first", 100),
        debit("a", "second", 30),
        credit("a", "poison", 5),
        credit("b", "third", 7),
        debit("a", "fourth", 20),
    ];
    let told = bench.ask_all(tasks.clone());
    for (n, told) in told.iter().enumerate() {
        if n == 2 {
            assert!(matches!(told, Err(LedgerError::Unavailable { .. })), "{told:?}");
        } else {
            let Ok(Answer::Decided { outcome, replayed }) = told else {
                panic!("{n}: {told:?}");
            };
            assert!(
                matches!(outcome, Outcome::Posted(_)) && !replayed,
                "{n}: {outcome:?}"
            );
        }
    }
    assert_eq!((bench.slots("a"), bench.slots("b")), (vec![50], vec![7]));
    database.session().run("DROP TRIGGER poison");
    assert!(!bench.decide(tasks[2].clone()).1, "nothing of it was kept");
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn who_finds_every_connection_taken_waits_for_one() {
    let database = database();
    let (proxy, url) = database.proxy();
    let wallet = wallet_with(&url, |options| Options {
        writers: 1,
        ..options
    })
    .await;
    for account in ["a", "b"] {
        wallet.open(ordinary(account)).await.unwrap();
    }
    let mut other = database.session();
    other.run(GATE);
    let waits = proxy.arm("wallet_slot", 0, 1, Fault::Nothing);
    let (a, b, name) = (id("a"), id("b"), request("c"));
    let first = wallet.credit(&a, &name, amount(1), None);
    let second = async {
        waits.happened(1).await;
        let second = wallet.credit(&b, &name, amount(2), None);
        let release = spawn_blocking(move || other.run("COMMIT"));
        let (second, released) = tokio::join!(second, release);
        released.unwrap();
        second
    };
    let (first, second) = tokio::join!(first, second);
    assert!(first.unwrap().is_success() && second.unwrap().is_success());
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn a_server_without_a_free_connection_is_unavailable_until_it_has_one() {
    let server = Server::start(Settings::default().with("--max-connections=10"));
    server.admin().run("CREATE DATABASE sluice");
    let url = server.url("sluice");
    let wallet = wallet_with(&url, |options| Options {
        writers: 1,
        readers: 1,
        ..options
    })
    .await;
    wallet.open(ordinary("a")).await.unwrap();
    // Its connections are gone, and others have all there are.
    let mut admin = server.admin();
    let mut taken: Vec<Session> = Vec::new();
    for id in admin.numbers("SELECT id FROM information_schema.processlist WHERE user = 'sluice'") {
        admin.run(&format!("KILL {id}"));
        taken.push(server.session("sluice"));
    }
    while let Ok(session) = Session::open(&url) {
        taken.push(session);
    }
    let (account, name) = (id("a"), request("c"));
    let refused = wallet.credit(&account, &name, amount(5), None).await;
    assert!(
        matches!(refused, Err(LedgerError::Unavailable { .. })),
        "{refused:?}"
    );
    drop(taken);
    let decided = wallet.credit(&account, &name, amount(5), None).await.unwrap();
    assert!(decided.is_success() && !decided.replayed, "{decided:?}");
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn what_a_caller_gave_up_waiting_for_is_decided_all_the_same() {
    let database = database();
    let (proxy, url) = database.proxy();
    let wallet = wallet(&url).await;
    wallet.open(ordinary("a")).await.unwrap();
    let held = proxy.arm(DECIDES, 0, 1, Fault::HoldAnswer);
    let (account, name) = (id("a"), request("c"));
    let credit = wallet.credit(&account, &name, amount(100), None);
    tokio::select! {
        biased;
        decided = credit => panic!("{decided:?}"),
        () = held.happened(1) => {}
    }
    held.let_go();
    let told = wallet.credit(&account, &name, amount(100), None).await.unwrap();
    assert!(told.is_success() && told.replayed, "{told:?}");
    assert_eq!(wallet.account(&account).await.unwrap().balance(), 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs MariaDB: tests/run"]
async fn callers_who_give_up_under_load_leave_nothing_half_done() {
    let database = database();
    let load = Load::new(wallet(database.url()).await).await;
    let mut callers = load.start(23, 8, 30);
    load.answered(60).await;
    callers.abort_all();
    while callers.join_next().await.is_some() {}
    load.start(24, 4, 20).join_all().await;
    let given_up = load.resolve().await;
    println!(
        "{given_up} operations given up by their callers: {:?}",
        load.check().await
    );
}
