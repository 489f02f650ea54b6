//! Duties that several processes on one ledger share: one of them does each.

use std::time::Duration;

use wallet_backend::clock::Clock;
use wallet_backend::combiner::{Combiner, Limits};
use wallet_backend::jobs::tidy;
use wallet_backend::store::Store as _;
use wallet_backend::store::duty::{Duty, Turn};
use wallet_backend::store::mysql::{Mysql, Options};

use super::{Database, database};
use crate::support::{Time, credit, id, journal};

fn open(database: &Database, clock: Clock) -> Mysql {
    let options = Options {
        clock,
        ..Options::at(database.url().parse().unwrap())
    };
    Mysql::open(options).unwrap()
}

fn after(time: &Time, lease: Duration) {
    time.pass(i64::try_from(lease.as_micros()).unwrap());
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn a_duty_is_one_processes_until_its_lease_has_run_out() {
    let (database, time) = (database(), Time::default());
    let (one, other) = (open(&database, time.clock()), open(&database, time.clock()));
    let duty = Duty::Tidy;
    let turn = |fence| Some(Turn { duty, fence });
    assert_eq!(one.claim(duty).await, Ok(turn(1)));
    assert_eq!(other.claim(duty).await, Ok(None));
    // Taken again in time it goes on, and is still the same turn.
    time.pass(1);
    assert_eq!(one.claim(duty).await, Ok(turn(1)));
    after(&time, duty.lease() - Duration::from_micros(1));
    assert_eq!(other.claim(duty).await, Ok(None));
    time.pass(1);
    assert_eq!(other.claim(duty).await, Ok(turn(2)));
    assert_eq!(one.claim(duty).await, Ok(None));
    // Each duty by itself.
    assert_eq!(one.claim(Duty::Reconcile).await.unwrap().unwrap().fence, 1);
    other.close().await;
    assert_eq!(
        one.claim(duty).await,
        Ok(turn(3)),
        "what was given back is free at once"
    );
    one.close().await;
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn what_a_killed_process_left_is_tidied_by_another() {
    let (database, time) = (database(), Time::default());
    let one = open(&database, time.clock());
    assert!(one.claim(Duty::Tidy).await.unwrap().is_some());
    // It is gone without a word.
    drop(one);
    let combiner = Combiner::start(open(&database, time.clock()), Limits::default(), async |_| {}).unwrap();
    let queue = combiner.queue();
    queue
        .submit(wallet_backend::command::Task::Open(journal("j")))
        .await
        .unwrap();
    queue.submit(credit("j", "c", 5)).await.unwrap();
    assert_eq!(tidy::in_turn(&queue).await, Ok(None));
    assert_eq!(queue.pending().await, Ok(1));
    after(&time, Duty::Tidy.lease());
    assert_eq!(tidy::in_turn(&queue).await, Ok(Some((1, false))));
    assert_eq!(queue.pending().await, Ok(0));
    assert_eq!(queue.account(&id("j")).await.unwrap().pending, 0);
    combiner.close().await;
}
