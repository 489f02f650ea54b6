//! Reads while two processes write.

use std::cell::Cell;
use std::collections::HashMap;

use wallet_backend::clock::Clock;
use wallet_backend::combiner::{Combiner, Limits, Queue};
use wallet_backend::command::{PastView, Task};
use wallet_backend::jobs::reconcile::{Pass, Reconciler};
use wallet_backend::store::mysql::{Mysql, Options};
use wallet_backend::store::{EventCursor, Moment, Preference};

use super::{Database, database};
use crate::support::{credit, debit, hold, id, journal, slotted, tidy, transfer};

fn open(database: &Database, process: u64) -> Combiner<Mysql> {
    let options = Options {
        preference: Preference::Fixed(process),
        ..Options::at(database.url().parse().unwrap())
    };
    Combiner::start(Mysql::open(options).unwrap(), Limits::default(), async |_| {}).unwrap()
}

/// Everything that moves money, in both accounts.
async fn write(queue: Queue<Mysql>, process: u64) {
    for number in 0..100 {
        let name = |kind: &str| format!("{kind}{process}-{number}");
        let tickets: Vec<_> = [
            credit("s", &name("c"), 10),
            credit("j", &name("p"), 5),
            debit("s", &name("d"), 7),
            hold("s", &name("h"), 1, 1),
            transfer("s", &name("t"), "j", 1),
            tidy("j"),
        ]
        .into_iter()
        .map(|task| queue.enqueue(task).unwrap())
        .collect();
        for ticket in tickets {
            ticket.answer().await.unwrap();
        }
    }
}

/// Reconciles for as long as somebody writes, and says what the past was in between.
async fn read(queue: &Queue<Mysql>, under_way: &Cell<bool>) -> Vec<(Moment, PastView)> {
    let reconciler = Reconciler::new(Clock::default(), 0);
    let mut told = Vec::new();
    while under_way.get() {
        for pass in [Pass::Changed, Pass::Changed, Pass::Changed, Pass::GeneralLedger] {
            let run = reconciler.once(queue, pass).await.unwrap();
            assert_eq!(run.outcome, Ok(0), "{pass:?}: {}", reconciler.report());
        }
        let own = queue.events(EventCursor::default(), Some(&id("s")), 1_000).await;
        if let Some(last) = own.unwrap().events.last() {
            let moment = Moment::Time(last.entry.at);
            told.push((moment.clone(), queue.past(&id("s"), &moment).await.unwrap()));
        }
    }
    assert!(!told.is_empty(), "nothing was read meanwhile");
    told
}

#[tokio::test]
#[ignore = "needs MariaDB: tests/run"]
async fn reconciling_finds_nothing_while_two_processes_write_and_every_entry_is_one_event() {
    let database = database();
    let (one, other) = (open(&database, 1), open(&database, 2));
    let queue = one.queue();
    for account in [slotted("s", 4), journal("j")] {
        queue.submit(Task::Open(account)).await.unwrap();
    }
    let under_way = Cell::new(true);
    let writing = async {
        tokio::join!(write(one.queue(), 1), write(other.queue(), 2));
        under_way.set(false);
    };
    let ((), told) = tokio::join!(writing, read(&queue, &under_way));
    for (moment, past) in &told {
        let again = queue.past(&id("s"), moment).await;
        assert_eq!(again.as_ref(), Ok(past), "told once, told for ever");
    }
    let (mut cursor, mut versions) = (EventCursor::default(), HashMap::new());
    for queue in [one.queue(), other.queue()] {
        let page = queue.events(cursor, None, 100_000).await.unwrap();
        for (number, event) in (cursor.number + 1..).zip(&page.events) {
            assert_eq!(event.number, number);
            let (account, slot) = (event.entry.account.clone(), event.entry.slot);
            let version = versions.entry((account, slot)).or_insert(0);
            *version += 1;
            assert_eq!(event.entry.version, *version);
        }
        cursor = page.next;
    }
    for name in ["s", "j"] {
        for slot in queue.account(&id(name)).await.unwrap().slots {
            let seen = versions.get(&(id(name), slot.index)).copied().unwrap_or(0);
            assert_eq!(seen, slot.version, "{name} {slot:?}");
        }
    }
    one.close().await;
    other.close().await;
}
