//! A bank over HTTP: the real binary, killed every few seconds while tellers move money through it in every way there is.
//!
//! Tellers speak to one Unix socket, on which one process after another serves the same directory. They use the published
//! client and bare requests by turns: patient ones that wait for the next process, hasty ones that give up, the same id
//! twice at once, an id for something else. What nobody was told is looked up and given up, or asked again under its id,
//! until it is decided. A process is killed while it works, while it stands still, and while it opens; some only stand
//! still for longer than anybody waits, and do then what their callers gave up on.
//!
//! A day ends with its books: everything is asked again and answered as it was, every balance is what its clients were told,
//! every statement passes the history checker, the stream of events that somebody followed all along has each entry once,
//! and no refusal for lack of money is false: by the states in the order of their commit, on accounts that always have
//! enough, and on accounts of which one teller knows what they have.
//!
//! A minute; an hour with `SLUICE_LONG`; so many seconds as `SLUICE_BANK_SECONDS` says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use wallet_backend::command::Operation;

use crate::crash::long;
use crate::support::{Numbers, amount};

mod books;
mod closing;
mod database;
mod directory;
mod figures;
mod follower;
mod house;
mod raw;
mod teller;
mod tide;
mod wishes;

use books::{Became, Books};
use database::Database;
use directory::Directory;
use figures::{Figures, Findings};
use follower::Follower;
use house::House;
use teller::{Lines, Teller};

const SEED: u64 = 20_260_303;

/// Who wants all kinds of things at once.
const TELLERS: u64 = 16;

/// Who has an account of their own.
const TIDES: u64 = 4;

/// The longest day, in seconds: the books of one are in memory until it ends.
const DAY: u64 = 30;

/// The longest that tellers take to end what they have begun.
const HOME: Duration = Duration::from_secs(300);

fn seconds() -> Duration {
    Duration::from_secs(match std::env::var("SLUICE_BANK_SECONDS") {
        Ok(seconds) => seconds.parse().unwrap(),
        Err(_) if long() => 3_600,
        Err(_) => 60,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bank_that_is_killed_every_few_seconds_loses_nothing_doubles_nothing_and_refuses_nobody_falsely() {
    let dir = tempfile::tempdir().unwrap();
    let bank = Bank::open(Directory::open(dir.path()));
    println!("{}", bank.run(Instant::now() + seconds()).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs MariaDB: tests/run"]
async fn a_bank_of_three_processes_on_one_database_that_are_all_killed_keeps_its_books_too() {
    let dir = tempfile::tempdir().unwrap();
    let bank = Bank::open(Database::open(dir.path()).await);
    println!("{}", bank.run(Instant::now() + seconds()).await);
}

struct Bank<H> {
    house: H,
    lines: Lines,
    follower: Follower,
    numbers: Numbers,
    figures: Figures,
    findings: Findings,
    /// What every account of the days that are over must have.
    balances: BTreeMap<String, i64>,
}

impl<H: House> Bank<H> {
    fn open(house: H) -> Self {
        let lines = Lines::to(house.socket());
        Self {
            follower: Follower::of(&lines.patient),
            house,
            lines,
            numbers: Numbers(SEED),
            figures: Figures::default(),
            findings: Findings::default(),
            balances: BTreeMap::new(),
        }
    }

    /// Day after day until the time is over, and what is said of them.
    async fn run(mut self, end: Instant) -> String {
        let begun = Instant::now();
        let mut days = 0;
        while days == 0 || Instant::now() < end {
            self.day(days, end).await;
            days += 1;
        }
        let figures = self.close().await;
        format!("{} s, {days} days, {figures}", begun.elapsed().as_secs())
    }

    /// New accounts, business under kills until the day or the time is over, and the books.
    async fn day(&mut self, number: u64, end: Instant) {
        let day = format!("day{number}-");
        let books = Arc::<Books>::default();
        let closing = Arc::<AtomicBool>::default();
        let mut tellers = self.begin(&day, &books, &closing).await;
        let end = end.min(Instant::now() + Duration::from_secs(DAY));
        loop {
            self.house.trouble(&mut self.numbers);
            if let Some(ended) = tellers.try_join_next() {
                ended.unwrap();
            }
            if Instant::now() >= end {
                break;
            }
        }
        closing.store(true, Ordering::Relaxed);
        let home = async { while tellers.join_next().await.transpose().unwrap().is_some() {} };
        assert!(
            timeout(HOME, home).await.is_ok(),
            "tellers did not come to an end"
        );
        closing::close(&books, &self.lines, &mut self.follower, &day, H::ORDER).await;
        self.balances.extend(books.balances());
        self.figures += books.figures();
        self.findings.add(books.findings());
        self.report();
    }

    /// Opens the accounts of a day; then everybody begins.
    async fn begin(&mut self, day: &str, books: &Arc<Books>, closing: &Arc<AtomicBool>) -> JoinSet<()> {
        let mut manager = self.teller(&format!("{day}m"), books, closing);
        for kind in wishes::KINDS {
            let (account, first, terms) = wishes::account(day, kind);
            books.opens(account.id.as_str(), terms);
            manager.open(&account).await;
            let credit = Operation::Credit {
                amount: amount(first),
                memo: None,
            };
            manager.until_done(&account.id, credit).await;
        }
        let mut tellers = JoinSet::new();
        for number in 0..TIDES {
            let (account, terms) = tide::account(day, number);
            books.opens(account.id.as_str(), terms);
            manager.open(&account).await;
            let teller = self.teller(&format!("{day}t{number}"), books, closing);
            tellers.spawn(teller.ebb_and_flow(account.id));
        }
        for number in 0..TELLERS {
            let teller = self.teller(&format!("{day}{number}"), books, closing);
            tellers.spawn(teller.want(day.to_owned()));
        }
        tellers
    }

    fn teller(&mut self, name: &str, books: &Arc<Books>, closing: &Arc<AtomicBool>) -> Teller {
        Teller {
            books: Arc::clone(books),
            lines: self.lines.clone(),
            numbers: Numbers(self.numbers.below(u64::MAX)),
            name: name.to_owned(),
            sent: 0,
            closing: Arc::clone(closing),
        }
    }

    /// All accounts of all days once more, the end of the service, and what `verify` finds: nothing.
    async fn close(mut self) -> String {
        let mut found = BTreeMap::new();
        let mut after = None;
        loop {
            let page = self
                .lines
                .patient
                .accounts(after.as_deref(), 1_000)
                .await
                .unwrap();
            if page.accounts.is_empty() {
                break;
            }
            let balances = page.accounts.iter();
            found.extend(balances.map(|account| (account.id.to_string(), account.balance)));
            after = Some(page.next);
        }
        if found != self.balances {
            let drift = |(account, balance): (&String, &i64)| {
                self.balances.get(account).unwrap_or(&0).abs_diff(*balance)
            };
            self.findings.drift += found.iter().map(drift).sum::<u64>();
            self.findings
                .other
                .push("accounts changed after their day".to_owned());
        }
        self.house.close();
        self.findings.other.extend(self.follower.faults());
        self.report();
        let faults = self.house.faults();
        let events = self.follower.count();
        let Findings {
            lost,
            doubled,
            false_refusals,
            drift,
            ..
        } = &self.findings;
        format!(
            "{faults}: {}, false {}, \
             lost {}, doubled {}, drift {drift}, {events} events each once",
            self.figures,
            false_refusals.len(),
            lost.len(),
            doubled.len(),
        )
    }

    /// Stops at the first day on which something is wrong, and says what.
    fn report(&self) {
        let (faults, figures, findings) = (self.house.faults(), self.figures, &self.findings);
        assert!(
            findings.is_empty() && figures.unresolved == 0,
            "{findings:#?}\n{figures}\n{faults}"
        );
    }
}

impl Teller {
    /// Asks under one id after another until it is done.
    async fn until_done(&mut self, account: &wallet_backend::account::AccountId, operation: Operation) {
        loop {
            let command = wallet_backend::command::Command {
                account: account.clone(),
                request: self.request(),
                operation: operation.clone(),
            };
            if let Became::Done(_) = self.decide(command).await {
                return;
            }
        }
    }
}
