//! How one request is brought to its end, whatever becomes of the connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, timeout};
use wallet_backend::account::{Account, RequestId};
use wallet_backend::client::{CallError, Client, Done, Options, Outcome, Patience, RequestState};
use wallet_backend::command::{BatchMode, Command, DebitAmount, Operation, Receipt};
use wallet_backend::money::Amount;

use super::books::{Became, Books};
use super::figures::Figures;
use super::raw::{Raw, Reply};
use crate::support::Numbers;

/// The longest that an outcome stays unknown, restarts included, before that counts as hanging.
const RESOLVED_WITHIN: Duration = Duration::from_secs(120);

/// The ways to the service. Clones share their connections.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    pub(super) raw: Raw,
    /// Gives up before a restart is over.
    hasty: Client,
    /// Waits for longer than a restart takes.
    pub(super) patient: Client,
}

impl Lines {
    pub(super) fn to(socket: &str) -> Self {
        let client = |deadline, attempt| {
            let patience = Patience {
                deadline: Duration::from_millis(deadline),
                attempt: Duration::from_millis(attempt),
                first_pause: Duration::from_millis(5),
                longest_pause: Duration::from_millis(200),
            };
            let options = Options {
                patience,
                ..Options::default()
            };
            Client::new(&format!("unix:{socket}"), options).unwrap()
        };
        Self {
            raw: Raw::at(socket, Duration::from_millis(1_500)),
            hasty: client(900, 400),
            patient: client(60_000, 5_000),
        }
    }
}

/// One who sends, one request after another, until the bank closes.
pub(super) struct Teller {
    pub(super) books: Arc<Books>,
    pub(super) lines: Lines,
    pub(super) numbers: Numbers,
    /// Makes its request ids its own.
    pub(super) name: String,
    pub(super) sent: u64,
    pub(super) closing: Arc<AtomicBool>,
}

impl Teller {
    /// Relaxed: whoever hears of it a request later closes a request later.
    pub(super) fn is_open(&self) -> bool {
        !self.closing.load(Ordering::Relaxed)
    }

    pub(super) fn request(&mut self) -> RequestId {
        self.sent += 1;
        crate::support::request(&format!("{}-{}", self.name, self.sent))
    }

    /// Opens an account, however often it takes.
    pub(super) async fn open(&mut self, account: &Account) {
        let until = Instant::now() + RESOLVED_WITHIN;
        loop {
            match self.lines.patient.open(account).await {
                Ok(_) => return,
                Err(CallError::Unknown { .. } | CallError::NotDone { .. }) if Instant::now() < until => {}
                Err(error) => panic!("{}: {error}", account.id),
            }
        }
    }

    /// Asks, and comes back with what it became.
    pub(super) async fn decide(&mut self, command: Command) -> Became {
        let number = self.books.ask(command);
        self.send(number).await
    }

    /// Sends a request that was noted down, in one of several ways, and resolves it where no answer comes.
    pub(super) async fn send(&mut self, number: usize) -> Became {
        let way = self.numbers.below(4);
        let sent = match way {
            0 => self.send_raw(number, 1).await,
            // As a client does that lost patience.
            1 => self.send_raw(number, 2).await,
            _ => {
                let client = if way == 2 {
                    &self.lines.hasty
                } else {
                    &self.lines.patient
                };
                let client = client.clone();
                self.send_by(&client, number).await
            }
        };
        match sent {
            Some(became) => became,
            None => self.resolve(number).await,
        }
    }

    async fn send_by(&self, client: &Client, number: usize) -> Option<Became> {
        let command = self.books.record(number).command;
        match client.run(&command).await {
            Ok(outcome) => Some(self.books.told(number, outcome)),
            Err(CallError::Unknown { .. } | CallError::NotDone { .. }) => None,
            Err(error) => panic!("{command:?}: {error}"),
        }
    }

    /// So many times at once.
    async fn send_raw(&mut self, number: usize, times: usize) -> Option<Became> {
        let command = self.books.record(number).command;
        let sends = (0..times).map(|_| self.lines.raw.send(&command));
        let mut became = None;
        for reply in join_all(sends).await.into_iter().flatten() {
            match reply {
                Reply::Decided(answer, bytes) => {
                    became = Some(self.books.hear(number, answer, Some(bytes)));
                }
                Reply::PutOff => {}
                Reply::Odd(what) => panic!("{what}"),
                Reply::Reused(field) => panic!("{command:?} is another's: {field:?}"),
            }
        }
        // An id that was given up says so to everybody.
        let given_up = Became::Refused("abandoned".to_owned());
        if became.as_ref().is_some_and(|became| *became != given_up) && self.numbers.below(4) == 0 {
            self.misuse(&command).await;
        }
        became
    }

    /// Another amount under the id of a request that was decided: that is found out, and the field named.
    async fn misuse(&self, command: &Command) {
        let mut command = command.clone();
        let other = |amount: Amount| Amount::new(amount.minor() + 1).unwrap();
        match &mut command.operation {
            Operation::Credit { amount, .. }
            | Operation::Hold { amount, .. }
            | Operation::Transfer { amount, .. } => *amount = other(*amount),
            Operation::Debit { amount, .. } => {
                *amount = match amount {
                    DebitAmount::Exactly(amount) => other(*amount).into(),
                    DebitAmount::Max => return,
                }
            }
            Operation::Capture { .. }
            | Operation::Release { .. }
            | Operation::Reversal { .. }
            | Operation::Amend(_) => return,
        }
        match self.lines.raw.send(&command).await {
            Some(Reply::Reused(Some(field))) if field == "amount" => {
                self.books.count(|figures| figures.reused += 1);
            }
            // Lost, or put off: tried once only.
            None | Some(Reply::PutOff) => {}
            odd => self
                .books
                .find(|findings| findings.other.push(format!("{command:?}: other amount: {odd:?}"))),
        }
    }

    /// Finds out what became of a request without an answer: by its id again, or by looking it up and giving it up.
    pub(super) async fn resolve(&mut self, number: usize) -> Became {
        self.books.lost(number);
        let resolved = timeout(RESOLVED_WITHIN, async {
            if self.numbers.below(3) == 0 {
                self.again(number).await
            } else {
                self.give_up(number).await
            }
        });
        match resolved.await {
            Ok(became) => became,
            Err(_) => panic!("{:?} was not resolved in time", self.books.record(number)),
        }
    }

    async fn again(&mut self, number: usize) -> Became {
        loop {
            if let Some(became) = self.send_raw(number, 2).await {
                return became;
            }
        }
    }

    /// Looks a request up; abandons it where it is not decided.
    pub(super) async fn give_up(&mut self, number: usize) -> Became {
        let Command { account, request, .. } = self.books.record(number).command;
        let patient = self.lines.patient.clone();
        loop {
            let known = match patient.request(&account, &request).await {
                Ok(RequestState::Decided(outcome)) => Ok(outcome),
                Ok(RequestState::NotFound) => patient.abandon(&account, &request).await,
                Ok(RequestState::InProgress) => continue,
                Err(error) => Err(error),
            };
            match known {
                Ok(outcome) => return self.confirm(&patient, number, &outcome).await,
                Err(CallError::Unknown { .. } | CallError::NotDone { .. }) => {}
                Err(error) => panic!("{account} {request}: {error}"),
            }
        }
    }

    /// What a look-up says is what the id itself is answered with. (A look-up shows what a pending receipt has become, so
    /// it is the answer that is kept.)
    async fn confirm(&self, patient: &Client, number: usize, outcome: &Outcome<Done>) -> Became {
        loop {
            let Some(became) = self.send_by(patient, number).await else {
                continue;
            };
            let agree = match (outcome, &became) {
                (Outcome::Done { .. }, Became::Done(_)) => true,
                (Outcome::Refused(problem), Became::Refused(code)) => problem.code == *code,
                _ => false,
            };
            if !agree {
                let what = format!("looked up as {outcome:?}, answered as {became:?}");
                self.books.find(|findings| findings.other.push(what));
            }
            return became;
        }
    }

    /// Sends several as one call, each of which ends by itself.
    pub(super) async fn batch(&mut self, commands: Vec<Command>) {
        let numbers: Vec<_> = commands.iter().map(|one| self.books.ask(one.clone())).collect();
        let results = match self.client().batch(&commands, BatchMode::Each).await {
            Ok(batched) => batched.results,
            Err(error @ (CallError::Unknown { .. } | CallError::NotDone { .. })) => {
                vec![Err(error); numbers.len()]
            }
            Err(error) => panic!("{error}"),
        };
        for (number, result) in numbers.into_iter().zip(results) {
            match result {
                Ok(outcome) => drop(self.books.told(number, receipt(outcome))),
                Err(CallError::Unknown { .. } | CallError::NotDone { .. }) => {
                    self.resolve(number).await;
                }
                Err(error) => panic!("{:?}: {error}", self.books.record(number)),
            }
        }
    }

    /// Sends several as one: all of them, or none. Where they were not done, or nobody knows, each id is given up, so that
    /// none of them comes late.
    pub(super) async fn atomic(&mut self, commands: Vec<Command>) {
        let numbers: Vec<_> = commands.iter().map(|one| self.books.ask(one.clone())).collect();
        let answer = self.client().batch(&commands, BatchMode::Atomic).await;
        let unknown = match answer {
            Ok(batched) if batched.applied && batched.results.iter().all(Result::is_ok) => {
                self.books.count(|figures| figures.applied += 1);
                for (number, outcome) in numbers.iter().zip(batched.results.into_iter().flatten()) {
                    self.books.told(*number, receipt(outcome));
                }
                return;
            }
            Ok(batched) => batched.applied,
            Err(CallError::Unknown { .. } | CallError::NotDone { .. }) => true,
            Err(error) => panic!("{error}"),
        };
        let mut done = 0;
        for number in &numbers {
            if unknown {
                self.books.lost(*number);
            }
            let given_up = timeout(RESOLVED_WITHIN, self.give_up(*number)).await;
            let became = given_up.unwrap_or_else(|_| panic!("{:?}", self.books.record(*number)));
            done += usize::from(matches!(became, Became::Done(_)));
        }
        let how = |figures: &mut Figures| match done {
            0 => figures.aborted += 1,
            _ => figures.applied += 1,
        };
        self.books.count(how);
        if done != 0 && done != numbers.len() {
            let what = format!("{done} of the {} of an atomic batch: {commands:?}", numbers.len());
            self.books.find(|findings| findings.other.push(what));
        }
    }

    fn client(&mut self) -> Client {
        match self.numbers.below(2) {
            0 => self.lines.hasty.clone(),
            _ => self.lines.patient.clone(),
        }
    }
}

pub(super) fn receipt(outcome: Outcome<Receipt>) -> Outcome<Done> {
    match outcome {
        Outcome::Done { told, replayed } => Outcome::Done {
            told: Done::Receipt(told),
            replayed,
        },
        Outcome::Refused(problem) => Outcome::Refused(problem),
    }
}
