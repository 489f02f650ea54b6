//! One transaction, seen from inside.
//!
//! A transaction is written as plain code that asks its session for one thing after the other: a lock, a snapshot. The
//! session knows the answers that were given so far; at the first question that has none the code is left with that
//! question as the error. So the code's state is the list of answers, which is small, compares and hashes, and the
//! search can go back to any of them.

use super::rules::{Rule, Rules};
use super::transaction::Stage;
use super::world::{Mode, ROWS, Row};

/// The value of a row that another transaction has locked.
pub(super) const LOCKED: i8 = -1;

/// What a transaction asks of the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ask {
    /// Waits. The answer is the row's value.
    Lock(Row, Mode),
    /// Takes what is free and waits for nothing. A value for each row, or [`LOCKED`].
    TryLock(Vec<Row>),
    /// One snapshot: a value for each row.
    Read(Vec<Row>),
    /// A row of its own, waiting for who makes the same. The answer is its value: 0 where nobody has made it.
    Insert(Row),
    End(End),
    /// It did what no transaction may do, whatever the others do.
    Wrong(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    /// `None`: rolled back.
    pub(super) writes: Option<Vec<(Row, i8)>>,
    pub(super) next: Stage,
    pub(super) proofs: Vec<Proof>,
    /// Answers that its callers have heard by then, by request id, where that is not what the claims say.
    pub(super) heard: Vec<(u8, i8)>,
    /// The operation for which an atomic batch is refused.
    pub(super) culprit: Option<u8>,
}

/// What must have been true of the account's money (slots, pending rows and expired holds, all committed) at some
/// moment since the job began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Proof {
    pub(super) account: u8,
    pub(super) money: Money,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Money {
    Below(i8),
    Exactly(i8),
}

pub(super) type Step<T> = Result<T, Ask>;

pub(super) struct Session<'a> {
    pub(super) rules: Rules,
    /// Where it goes on after it found something taken that it has decided itself.
    again: Stage,
    answers: std::slice::Iter<'a, i8>,
    /// What it holds, with the value when it was locked.
    locked: [Option<(Mode, i8)>; ROWS],
    written: [Option<i8>; ROWS],
    /// Rows of its own that are not inserted before the end.
    made: Vec<Row>,
    late: Option<bool>,
    pub(super) proofs: Vec<Proof>,
    pub(super) heard: Vec<(u8, i8)>,
}

impl<'a> Session<'a> {
    pub(super) fn new(rules: Rules, again: Stage, answers: &'a [i8]) -> Session<'a> {
        Session {
            rules,
            again,
            answers: answers.iter(),
            locked: [None; ROWS],
            written: [None; ROWS],
            made: Vec::new(),
            late: None,
            proofs: Vec::new(),
            heard: Vec::new(),
        }
    }

    /// Locks a row, waiting for it, and reads it.
    pub(super) fn lock(&mut self, row: Row, mode: Mode) -> Step<i8> {
        match self.locked[row.at()] {
            Some((held, value)) if held == mode || held == Mode::Exclusive => return Ok(self.own(row, value)),
            _ => {}
        }
        let value = *self.answers.next().ok_or(Ask::Lock(row, mode))?;
        if value != 0 || !row.may_be_absent() {
            self.locked[row.at()] = Some((mode, value));
        }
        Ok(value)
    }

    /// Locks what is free of the rows, in one statement. The clock among them is read.
    pub(super) fn try_lock(&mut self, rows: impl Iterator<Item = Row>) -> Step<()> {
        let rows: Vec<Row> = rows.filter(|row| !self.holds(*row)).collect();
        if rows.is_empty() {
            return Ok(());
        }
        for row in &rows {
            let value = *self.answers.next().ok_or_else(|| Ask::TryLock(rows.clone()))?;
            if *row == Row::CLOCK {
                self.set_now(value);
            } else if value != LOCKED && (value != 0 || !row.may_be_absent()) {
                self.locked[row.at()] = Some((Mode::Exclusive, value));
            }
        }
        Ok(())
    }

    /// Locks the row if it is free, and says whether it has it.
    pub(super) fn probe(&mut self, row: Row) -> Step<bool> {
        self.try_lock(std::iter::once(row))?;
        Ok(self.holds(row))
    }

    /// Reads rows without locking them, in one snapshot, its own changes included.
    pub(super) fn read(&mut self, rows: impl Iterator<Item = Row> + Clone) -> Step<Vec<i8>> {
        let ask = || Ask::Read(rows.clone().collect());
        let read = |row: Row| Ok(self.written[row.at()].unwrap_or(*self.answers.next().ok_or_else(ask)?));
        rows.clone().map(read).collect()
    }

    /// Reads the clock, once: whether the holds' deadline has passed.
    pub(super) fn now(&mut self) -> Step<bool> {
        if self.late.is_none() {
            let clock = self.read(std::iter::once(Row::CLOCK))?[0];
            self.set_now(clock);
        }
        Ok(self.is_late())
    }

    /// What a snapshot said of the time is the transaction's time from here on.
    pub(super) fn set_now(&mut self, clock: i8) {
        self.late = Some(clock == 1);
    }

    /// What [`Session::now`] said; before it was asked, false.
    pub(super) fn is_late(&self) -> bool {
        self.late == Some(true)
    }

    /// Makes a row for an operation: here it is there from now on, for others when everything is written.
    pub(super) fn insert(&mut self, row: Row, value: i8) -> Step<()> {
        if self.rules.keep(Rule::PendingRowComesLast) {
            self.made.push(row);
        } else {
            self.ask_to_insert(row)?;
        }
        self.locked[row.at()] = Some((Mode::Exclusive, 0));
        self.write(row, value)
    }

    /// Inserts the rows that it made.
    pub(super) fn insert_made(&mut self) -> Step<()> {
        let made = std::mem::take(&mut self.made);
        made.into_iter().try_for_each(|row| self.ask_to_insert(row))
    }

    fn ask_to_insert(&mut self, row: Row) -> Step<()> {
        match *self.answers.next().ok_or(Ask::Insert(row))? {
            0 => Ok(()),
            _ => Err(Ask::End(self.roll_back(self.again))),
        }
    }

    /// Inserts the row that says that something was decided. Where it is there, somebody else has decided it
    /// meanwhile, and all of this runs again; `heeded` says whether that is looked at.
    pub(super) fn claim(&mut self, row: Row, becomes: i8, heeded: bool) -> Step<()> {
        if self.lock(row, Mode::Exclusive)? != 0 && heeded {
            return Err(Ask::End(self.roll_back(self.again)));
        }
        self.write(row, becomes)
    }

    pub(super) fn write(&mut self, row: Row, value: i8) -> Step<()> {
        if !self.holds(row) {
            return Err(Ask::Wrong(format!("{row:?} is written and was not locked")));
        }
        self.written[row.at()] = Some(value);
        Ok(())
    }

    /// Whether it has the row exclusively.
    pub(super) fn holds(&self, row: Row) -> bool {
        matches!(self.locked[row.at()], Some((Mode::Exclusive, _)))
    }

    /// The row as this transaction has it, where it has it exclusively.
    pub(super) fn held(&self, row: Row) -> Option<i8> {
        match self.locked[row.at()] {
            Some((Mode::Exclusive, value)) => Some(self.own(row, value)),
            _ => None,
        }
    }

    /// What the row's own change comes to.
    pub(super) fn change(&self, row: Row) -> i8 {
        match (self.locked[row.at()], self.written[row.at()]) {
            (Some((_, before)), Some(after)) => after - before,
            _ => 0,
        }
    }

    /// The changes of a row come from the value that was read without its lock.
    pub(super) fn pretend(&mut self, row: Row, value: i8) {
        if let Some((_, held)) = &mut self.locked[row.at()] {
            *held = value;
        }
    }

    fn own(&self, row: Row, value: i8) -> i8 {
        self.written[row.at()].unwrap_or(value)
    }

    pub(super) fn commit(&mut self, next: Stage) -> End {
        let rows = Row::all().filter_map(|row| Some((row, self.written[row.at()]?)));
        self.end(Some(rows.collect()), next)
    }

    /// Begins again: what was refused here was not.
    pub(super) fn roll_back(&mut self, next: Stage) -> End {
        self.proofs.clear();
        self.end(None, next)
    }

    /// Gives up: the refusal stands.
    pub(super) fn abort(&mut self, culprit: Option<u8>) -> End {
        End {
            culprit,
            ..self.end(None, Stage::Aborted)
        }
    }

    fn end(&mut self, writes: Option<Vec<(Row, i8)>>, next: Stage) -> End {
        End {
            writes,
            next,
            proofs: std::mem::take(&mut self.proofs),
            heard: std::mem::take(&mut self.heard),
            culprit: None,
        }
    }
}
