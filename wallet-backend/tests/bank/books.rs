//! What the bank's clients asked and were told, and what is wrong with it.
//!
//! A request is open, done or refused. One that got no answer is unknown until it is resolved; then it is done or refused
//! like any other. All of it is in memory of this process, which is not killed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use wallet_backend::account::AccountId;
use wallet_backend::client::{AccountState, Done, Outcome};
use wallet_backend::command::{Command, Operation};

use super::figures::{Figures, Findings};
use crate::crash::wire;
use crate::history::{History, Receipt, Refusal, Shortage, Span};
use crate::support::acknowledged;

/// What a request became, as somebody was told.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Posted(Receipt),
    Amended,
    Refused { code: String, detail: String },
}

/// What a request is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Became {
    Open,
    /// With the amount that was moved; 0 where none was.
    Done(i64),
    /// With the `code`.
    Refused(String),
}

#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) command: Command,
    pub(super) became: Became,
    begun: u64,
    /// What tells the bytes of the first raw answer from others.
    bytes: Option<u64>,
    /// No answer came the first time.
    unknown: bool,
}

/// Who has what kind of money trouble.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Terms {
    /// The most that the floor can be.
    pub(super) floor: i64,
    /// Neither pending credits nor holds that expire.
    pub(super) exact: bool,
    /// It has more than all that is ever asked of it.
    pub(super) rich: bool,
    /// Only its own teller moves money on it.
    pub(super) own: bool,
}

#[derive(Debug, Default)]
struct State {
    records: Vec<Record>,
    terms: BTreeMap<String, Terms>,
    /// Requests that placed a hold, and those that a reversal may undo.
    holds: Vec<usize>,
    moves: Vec<usize>,
    history: History,
    figures: Figures,
    findings: Findings,
}

/// Shared by everybody who sends.
#[derive(Debug, Default)]
pub(super) struct Books {
    state: Mutex<State>,
    ticks: AtomicU64,
}

impl Books {
    /// An account is about to be opened.
    pub(super) fn opens(&self, account: &str, terms: Terms) {
        self.lock().terms.insert(account.to_owned(), terms);
    }

    /// Notes down a request before it is sent.
    pub(super) fn ask(&self, command: Command) -> usize {
        let begun = self.tick();
        let mut state = self.lock();
        state.records.push(Record {
            command,
            became: Became::Open,
            begun,
            bytes: None,
            unknown: false,
        });
        state.records.len() - 1
    }

    /// Its answer, or what it was found to be, with what tells the bytes of the answer if there were any.
    pub(super) fn hear(&self, number: usize, answer: Answer, bytes: Option<u64>) -> Became {
        let ended = self.tick();
        let mut state = self.lock();
        state.hear(number, answer, bytes, ended);
        state.records[number].became.clone()
    }

    /// The same of an answer to the published client.
    pub(super) fn told(&self, number: usize, outcome: Outcome<Done>) -> Became {
        let answer = match outcome {
            Outcome::Done {
                told: Done::Receipt(receipt),
                replayed,
            } => Answer::Posted(acknowledged(&receipt, replayed, Span::default())),
            Outcome::Done {
                told: Done::Account(_),
                ..
            } => Answer::Amended,
            Outcome::Refused(problem) => Answer::Refused {
                code: problem.code,
                detail: problem.detail,
            },
        };
        self.hear(number, answer, None)
    }

    /// Nobody was told what became of it.
    pub(super) fn lost(&self, number: usize) {
        self.lock().records[number].unknown = true;
    }

    /// An account as somebody saw it.
    pub(super) fn read(&self, begun: u64, account: &AccountState) {
        let span = Span {
            begun,
            ended: self.tick(),
        };
        self.lock().history.reads.push(wire::read(account, span));
    }

    pub(super) fn record(&self, number: usize) -> Record {
        self.lock().records[number].clone()
    }

    pub(super) fn records(&self) -> Vec<Record> {
        self.lock().records.clone()
    }

    /// Any request so far.
    pub(super) fn any(&self, choice: u64) -> Option<usize> {
        let count = u64::try_from(self.lock().records.len()).unwrap();
        choice
            .checked_rem(count)
            .map(|index| usize::try_from(index).unwrap())
    }

    /// A hold that was placed.
    pub(super) fn a_hold(&self, choice: u64) -> Option<Command> {
        let state = self.lock();
        pick(&state.holds, choice).map(|number| state.records[number].command.clone())
    }

    /// Something that a reversal may undo.
    pub(super) fn a_move(&self, choice: u64) -> Option<Command> {
        let state = self.lock();
        pick(&state.moves, choice).map(|number| state.records[number].command.clone())
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut Figures)) {
        change(&mut self.lock().figures);
    }

    pub(super) fn find(&self, change: impl FnOnce(&mut Findings)) {
        change(&mut self.lock().findings);
    }

    /// By account: what everybody was told adds up to.
    pub(super) fn balances(&self) -> BTreeMap<String, i64> {
        let state = self.lock();
        let mut balances: BTreeMap<String, i64> = BTreeMap::new();
        for account in state.terms.keys() {
            balances.insert(account.clone(), 0);
        }
        let done = |record: &&Record| matches!(record.became, Became::Done(_));
        let undone: BTreeMap<_, _> = state
            .records
            .iter()
            .map(|record| ((&record.command.account, &record.command.request), record))
            .collect();
        for record in state.records.iter().filter(done) {
            let reversed = record.command.operation.reverses();
            let reversed = reversed.and_then(|request| undone.get(&(&record.command.account, request)));
            let (record, sign) = reversed.map_or((record, 1), |reversed| (*reversed, -1));
            for (account, change) in record.changes() {
                *balances.entry(account.to_string()).or_default() += sign * change;
            }
        }
        balances
    }

    /// The story so far, which begins again.
    pub(super) fn take_history(&self) -> History {
        std::mem::take(&mut self.lock().history)
    }

    pub(super) fn figures(&self) -> Figures {
        let state = self.lock();
        let insufficient = |record: &&Record| record.became == Became::Refused(SHORT.to_owned());
        let unresolved = |record: &&Record| record.became == Became::Open;
        let count = |records: usize| u64::try_from(records).unwrap();
        Figures {
            insufficient: count(state.records.iter().filter(insufficient).count()),
            unresolved: count(state.records.iter().filter(unresolved).count()),
            ..state.figures
        }
    }

    pub(super) fn findings(&self) -> Findings {
        self.lock().findings.clone()
    }

    /// SeqCst: one order of begin and end over all senders.
    pub(super) fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::SeqCst)
    }

    /// A panic of one sender must not hide behind a poisoned lock; the state is only ever added to.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The most that any account but by its first credit is given at once.
const MOST: i64 = 49;

const SHORT: &str = "insufficient_funds";

impl State {
    fn hear(&mut self, number: usize, answer: Answer, bytes: Option<u64>, ended: u64) {
        let record = &mut self.records[number];
        let span = Span {
            begun: record.begun,
            ended,
        };
        let became = match &answer {
            Answer::Posted(receipt) => Became::Done(receipt.amount),
            Answer::Amended => Became::Done(0),
            Answer::Refused { code, .. } => Became::Refused(code.clone()),
        };
        if let (Some(first), Some(second)) = (record.bytes, bytes)
            && first != second
        {
            let what = format!(
                "{:?}: two answers differ, the second is {answer:?}",
                record.command
            );
            self.findings.other.push(what);
        }
        record.bytes = record.bytes.or(bytes);
        let first = record.became == Became::Open;
        if !first {
            self.figures.repeated += 1;
            if record.became != became {
                let what = format!("{:?}: was {:?}, then {answer:?}", record.command, record.became);
                match record.became {
                    Became::Done(_) => self.findings.lost.push(what),
                    Became::Open | Became::Refused(_) => self.findings.other.push(what),
                }
            }
        }
        record.became = became.clone();
        let record = record.clone();
        if first {
            self.first(number, &record);
        }
        match answer {
            Answer::Posted(receipt) => self.history.receipts.push(Receipt { span, ..receipt }),
            Answer::Refused { code, detail } if first => self.refused(&record, &code, &detail, span),
            Answer::Amended | Answer::Refused { .. } => {}
        }
    }

    /// Counts what a request became.
    fn first(&mut self, number: usize, record: &Record) {
        match (&record.became, record.unknown) {
            (Became::Done(amount), _) => {
                self.figures.acknowledged += 1;
                self.figures.landed += u64::from(record.unknown);
                let terms = self.terms.get(record.command.account.as_str());
                match record.command.operation {
                    _ if terms.is_some_and(|terms| terms.own) => {}
                    // What an account begins with stays.
                    Operation::Credit { .. } if *amount > MOST => {}
                    Operation::Hold { .. } => self.holds.push(number),
                    Operation::Credit { .. }
                    | Operation::Debit { .. }
                    | Operation::Transfer { .. }
                    | Operation::Capture { .. } => self.moves.push(number),
                    Operation::Release { .. } | Operation::Reversal { .. } | Operation::Amend(_) => {}
                }
            }
            (Became::Refused(code), true) if code == "abandoned" => self.figures.not_landed += 1,
            // Given up with its atomic batch.
            (Became::Refused(code), false) if code == "abandoned" => {}
            (_, unknown) => {
                self.figures.refused += 1;
                self.figures.landed += u64::from(unknown);
            }
        }
    }

    fn refused(&mut self, record: &Record, code: &str, detail: &str, span: Span) {
        let request = record.command.request.to_string();
        self.history.refusals.push(Refusal {
            account: record.command.account.to_string(),
            request: request.clone(),
        });
        if code != SHORT {
            return;
        }
        let Some((account, available, asked)) = shortage(detail) else {
            self.findings
                .other
                .push(format!("{request}: no figures in {detail:?}"));
            return;
        };
        let terms = self.terms.get(account).copied().unwrap_or_default();
        if terms.rich {
            self.findings
                .false_refusals
                .push(format!("{account} always has enough: {detail}"));
        }
        let raises_floor = matches!(record.command.operation, Operation::Amend(_));
        self.history.shortages.push(Shortage {
            account: account.to_owned(),
            request,
            asked,
            available,
            floor: if raises_floor { 0 } else { terms.floor },
            exact: terms.exact && !raises_floor,
            span,
        });
    }
}

impl Record {
    /// Whether there was an answer, or what it was found to be.
    pub(super) fn is_decided(&self) -> bool {
        self.became != Became::Open
    }

    /// What it adds to balances.
    fn changes(&self) -> Vec<(&AccountId, i64)> {
        let Became::Done(amount) = self.became else {
            return Vec::new();
        };
        let own = &self.command.account;
        match &self.command.operation {
            Operation::Credit { .. } => vec![(own, amount)],
            Operation::Debit { .. } | Operation::Capture { .. } => vec![(own, -amount)],
            Operation::Transfer { to, .. } => vec![(own, -amount), (to, amount)],
            Operation::Hold { .. }
            | Operation::Release { .. }
            | Operation::Reversal { .. }
            | Operation::Amend(_) => Vec::new(),
        }
    }
}

/// The account, what it had and what was asked for, in `A has 1 available, 2 was asked for`.
fn shortage(detail: &str) -> Option<(&str, i64, i64)> {
    let (account, rest) = detail.split_once(" has ")?;
    let (available, rest) = rest.split_once(" available, ")?;
    let asked = rest.strip_suffix(" was asked for")?;
    Some((account, available.parse().ok()?, asked.parse().ok()?))
}

fn pick(from: &[usize], choice: u64) -> Option<usize> {
    let count = u64::try_from(from.len()).unwrap();
    let index = choice.checked_rem(count)?;
    Some(from[usize::try_from(index).unwrap()])
}
