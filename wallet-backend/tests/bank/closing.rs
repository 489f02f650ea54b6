//! The end of a day: what everybody was told, against what the ledger has.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures_util::StreamExt as _;
use futures_util::stream::iter;
use wallet_backend::client::{Client, Outcome};
use wallet_backend::command::{BatchMode, Command, Operation};

use super::books::{Became, Books, Record};
use super::follower::Follower;
use super::teller::Lines;
use crate::history::{Entry, Order};
use crate::support::id;

/// How many are asked again in one call.
const TOGETHER: usize = 400;

/// Nobody sends any more, and the service is up. What is wrong is in the findings afterwards.
pub(super) async fn close(books: &Books, lines: &Lines, follower: &mut Follower, day: &str, order: Order) {
    ask_everything_again(books, lines).await;
    let balances = books.balances();
    let mut statements = Vec::new();
    for (account, expected) in &balances {
        let begun = books.tick();
        let seen = lines.patient.account(&id(account)).await.unwrap();
        books.read(begun, &seen);
        compare(books, account, *expected, seen.balance);
        statements.extend(statement(&lines.patient, account).await);
    }
    let events = follow(books, follower, day, &statements).await;
    let mut history = books.take_history();
    history.entries = events;
    history.order = order;
    for fault in history.faults() {
        books.find(|findings| findings.file(fault));
    }
}

pub(super) fn compare(books: &Books, account: &str, expected: i64, found: i64) {
    if expected != found {
        let what = format!("{account}: its clients were told of {expected}, it has {found}");
        books.find(|findings| {
            findings.drift += expected.abs_diff(found);
            findings.other.push(what);
        });
    }
}

/// Each request that was ever decided is answered as it was, and as a replay.
async fn ask_everything_again(books: &Books, lines: &Lines) {
    let records: Vec<(usize, Record)> = books.records().into_iter().enumerate().collect();
    let (alone, together): (Vec<_>, Vec<_>) = records
        .into_iter()
        .filter(|(_, record)| record.is_decided())
        .partition(|(_, record)| matches!(record.command.operation, Operation::Amend(_)));
    iter(alone)
        .for_each_concurrent(8, async |(number, record)| {
            let outcome = lines.patient.run(&record.command).await.unwrap();
            check_replay(
                books,
                &record,
                matches!(outcome, Outcome::Done { replayed: false, .. }),
            );
            books.told(number, outcome);
        })
        .await;
    for some in together.chunks(TOGETHER) {
        let commands: Vec<Command> = some.iter().map(|(_, record)| record.command.clone()).collect();
        let batched = lines.patient.batch(&commands, BatchMode::Each).await.unwrap();
        for ((number, record), outcome) in some.iter().zip(batched.results) {
            let outcome = outcome.unwrap();
            check_replay(
                books,
                record,
                matches!(outcome, Outcome::Done { replayed: false, .. }),
            );
            books.told(*number, super::teller::receipt(outcome));
        }
    }
}

fn check_replay(books: &Books, record: &Record, anew: bool) {
    if anew && matches!(record.became, Became::Done(_)) {
        let what = format!("{:?} was acknowledged, and was done anew", record.command);
        books.find(|findings| findings.lost.push(what));
    }
}

async fn statement(client: &Client, account: &str) -> Vec<Entry> {
    let (mut entries, mut after) = (Vec::new(), None);
    loop {
        let page = client
            .entries(&id(account), after.as_deref(), 1_000)
            .await
            .unwrap();
        if page.entries.is_empty() {
            return entries;
        }
        entries.extend(page.entries.iter().map(Entry::from));
        after = Some(page.next);
    }
}

/// The events of the day in order: what the statements have, each once. What the ledger did by itself since they were
/// read may follow.
async fn follow(books: &Books, follower: &mut Follower, day: &str, statements: &[Entry]) -> Vec<Entry> {
    let mut heads: HashMap<(String, u8), u64> = HashMap::new();
    for entry in statements {
        let head = heads.entry((entry.account.clone(), entry.slot)).or_default();
        *head = entry.version.max(*head);
    }
    let events = match follower.take(day, &heads).await {
        Ok(events) => events,
        Err(what) => {
            books.find(|findings| findings.lost.push(what));
            Vec::new()
        }
    };
    let (read, later): (Vec<_>, Vec<_>) = events.into_iter().partition(|event| {
        let head = heads.get(&(event.account.clone(), event.slot));
        head.is_some_and(|head| event.version <= *head)
    });
    let kinds: BTreeMap<&str, usize> = later.iter().fold(BTreeMap::new(), |mut kinds, event| {
        *kinds.entry(event.kind.as_str()).or_default() += 1;
        kinds
    });
    let by_itself = ["settle", "consolidate", "release"];
    if kinds.keys().any(|kind| !by_itself.contains(kind)) {
        books.find(|findings| {
            findings
                .other
                .push(format!("events of a day that is over: {later:?}"))
        });
    }
    let in_statements: HashSet<&Entry> = statements.iter().collect();
    let in_events: HashSet<&Entry> = read.iter().collect();
    if read.len() != in_events.len() || in_events != in_statements {
        let what = format!(
            "{} events, {} of them different; {} entries of statements, {} of them different",
            read.len(),
            in_events.len(),
            statements.len(),
            in_statements.len()
        );
        books.find(|findings| findings.other.push(what));
    }
    read
}
