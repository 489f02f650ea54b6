//! A batch of operations, one or many, as one transaction: rules 1 to 4.

use super::rules::Rule;
use super::scenario::{Accounts, Act, Job, Op, outcome};
use super::session::{Ask, End, Session, Step};
use super::transaction::{Pass, Run, Stage, is_of_one_account, lock_hold};
use super::world::{Mode, Row};

mod collect;

pub(super) struct Batch<'a> {
    accounts: &'a Accounts,
    job: &'a Job,
    run: Run,
    s: Session<'a>,
    /// The account rows.
    terms: [i8; 2],
    /// Whether a gate is held because it was asked for first.
    gates: [bool; 2],
    /// Whether the account is under lock wholly.
    whole: [bool; 2],
    /// The one slot that the whole transaction wants, and may wait for.
    lone: Option<(u8, u8)>,
    /// The slot that hashed debits may touch here.
    hashed: Option<(u8, u8)>,
    /// Ids that were reversed already, or cannot be.
    not_reversible: Vec<u8>,
    /// What was decided, by place.
    outcomes: Vec<(usize, i8)>,
    /// Operations that get a transaction of their own.
    handed: u8,
}

/// What becomes of an operation.
enum Verdict {
    Is(i8),
    /// The money is there, and somebody has it: wait for it.
    Busy,
    /// A hashed debit needs more than its slot.
    Spills,
}

impl<'a> Batch<'a> {
    pub(super) fn new(accounts: &'a Accounts, job: &'a Job, run: Run, s: Session<'a>) -> Batch<'a> {
        Batch {
            accounts,
            job,
            run,
            s,
            terms: [0; 2],
            gates: [false; 2],
            whole: [false; 2],
            lone: None,
            hashed: None,
            not_reversible: Vec::new(),
            outcomes: Vec::new(),
            handed: 0,
        }
    }

    pub(super) fn run(mut self) -> Step<End> {
        let all = self.job.ops().iter().copied().enumerate();
        let mut ops: Vec<(usize, Op)> = all.filter(|(place, _)| self.run.ops & 1 << place != 0).collect();
        if self.look_up(&mut ops)? {
            return Ok(self.s.abort());
        }
        if !self.claim(&ops)? {
            return Ok(self.again(self.run.pass));
        }
        self.lock_accounts_and_gates(&ops)?;
        self.wait_for_slots(&ops)?;
        for &(place, op) in &ops {
            let verdict = match op.act.source() {
                Some(from) => self.take(op, from)?,
                None => self.credit(op)?,
            };
            let waits_in_place = self.waits_in_place(&ops);
            match verdict {
                Verdict::Is(outcome::REFUSED) if self.job.is_atomic() => return Ok(self.s.abort()),
                Verdict::Is(outcome) => self.keep(place, outcome),
                Verdict::Busy if waits_in_place => {
                    let from = op.act.source().unwrap_or_default();
                    self.wait_for_all(&[from])?;
                    let Verdict::Is(outcome) = self.take(op, from)? else {
                        return Err(Ask::Wrong("still busy with everything locked".to_owned()));
                    };
                    self.keep(place, outcome);
                }
                Verdict::Busy if self.job.is_atomic() || self.is_of_one_account(&ops) => {
                    return Ok(self.again(Pass::Waiting));
                }
                Verdict::Spills if ops.len() == 1 => return Ok(self.again(Pass::Gated)),
                Verdict::Spills if self.job.is_atomic() => return Ok(self.again(Pass::Waiting)),
                Verdict::Busy | Verdict::Spills => self.handed |= 1 << place,
            }
        }
        self.finish(&ops)
    }

    fn is_of_one_account(&self, ops: &[(usize, Op)]) -> bool {
        let ops: Vec<Op> = ops.iter().map(|(_, op)| *op).collect();
        is_of_one_account(&ops)
    }

    fn again(&mut self, pass: Pass) -> End {
        let tries = self.run.tries + 1;
        self.s.roll_back(Stage::Run(Run {
            pass,
            tries,
            ..self.run
        }))
    }

    fn waits_in_place(&self, ops: &[(usize, Op)]) -> bool {
        let rule = if self.is_of_one_account(ops) {
            Rule::PassBeginsAgain
        } else if self.job.is_atomic() {
            Rule::AtomicBatchStartsAgain
        } else {
            Rule::ShortOperationIsHandedOn
        };
        !self.s.rules.keep(rule)
    }

    fn keep(&mut self, place: usize, outcome: i8) {
        self.outcomes.push((place, outcome));
        if !self.s.rules.keep(Rule::AnswersWaitForTheCommit) {
            self.s.heard.push((self.job.ops()[place].key, outcome));
        }
    }

    /// Leaves out what is decided already. Says whether an atomic batch fails by that.
    fn look_up(&mut self, ops: &mut Vec<(usize, Op)>) -> Step<bool> {
        let claims = ops.iter().map(|(_, op)| Row::claim(op.key));
        let reversed = ops.iter().filter_map(|(_, op)| match op.act {
            Act::Reversal { once, original, .. } => Some([Row::once(once), Row::claim(original)]),
            _ => None,
        });
        let rows: Vec<Row> = claims.chain(reversed.flatten()).collect();
        let values = self.s.read(rows.iter().copied())?;
        let value = |row: Row| {
            rows.iter()
                .zip(&values)
                .find(|(at, _)| **at == row)
                .map_or(0, |(_, value)| *value)
        };
        let refused = ops
            .iter()
            .any(|(_, op)| value(Row::claim(op.key)) == outcome::REFUSED);
        ops.retain(|(_, op)| value(Row::claim(op.key)) == 0);
        for (_, op) in ops.iter() {
            if let Act::Reversal { once, original, .. } = op.act
                && (value(Row::once(once)) != 0 || outcome::moved(value(Row::claim(original))).is_none())
            {
                self.not_reversible.push(op.key);
            }
        }
        Ok(refused && self.job.is_atomic())
    }

    /// Request claims, then once-only rows. False where somebody has decided one meanwhile.
    fn claim(&mut self, ops: &[(usize, Op)]) -> Step<bool> {
        let mut keys: Vec<u8> = ops.iter().map(|(_, op)| op.key).collect();
        if self.s.rules.keep(Rule::ClaimsAreSorted) {
            keys.sort_unstable();
        }
        let mut onces = Vec::new();
        let mut originals = Vec::new();
        for (_, op) in ops {
            if let Act::Reversal { once, original, .. } = op.act {
                onces.push(once);
                originals.push(original);
            }
        }
        if self.s.rules.keep(Rule::OnceRowsAreSorted) {
            onces.sort_unstable();
        }
        let mut rows: Vec<Row> = Vec::new();
        if self.s.rules.keep(Rule::ClaimsAreTaken) {
            rows.extend(keys.into_iter().map(Row::claim));
        }
        if self.s.rules.keep(Rule::OnceRowsAreTaken) {
            rows.extend(onces.into_iter().map(Row::once));
        }
        for row in rows {
            let reversed = self.not_reversible.iter().any(|key| self.is_once_of(*key, row));
            if self.s.lock(row, Mode::Exclusive)? != 0 && !reversed {
                return Ok(false);
            }
        }
        if !self.s.rules.keep(Rule::OriginalsAreNotLocked) {
            for original in originals {
                self.s.lock(Row::claim(original), Mode::Shared)?;
            }
        }
        Ok(true)
    }

    fn is_once_of(&self, key: u8, row: Row) -> bool {
        let mut ops = self.job.ops().iter();
        ops.any(|op| op.key == key && matches!(op.act, Act::Reversal { once, .. } if Row::once(once) == row))
    }

    fn lock_accounts_and_gates(&mut self, ops: &[(usize, Op)]) -> Step<()> {
        let accounts_first = self.s.rules.keep(Rule::AccountRowsComeBeforeGates);
        if accounts_first {
            self.lock_accounts(ops)?;
        }
        if !self.s.rules.keep(Rule::HoldRowsComeAfterTheGate) {
            for (_, op) in ops {
                if let Act::Capture { from } = op.act {
                    lock_hold(from, &mut self.s)?;
                }
            }
        }
        if !self.s.rules.keep(Rule::CreditLegComesLast) {
            for (_, op) in ops.iter().filter(|(_, op)| op.act.source().is_some()) {
                if let Some(to) = op.act.target() {
                    self.slot_for(*op, to)?;
                }
            }
        }
        self.lock_gates(ops)?;
        if !accounts_first {
            self.lock_accounts(ops)?;
        }
        Ok(())
    }

    fn lock_accounts(&mut self, ops: &[(usize, Op)]) -> Step<()> {
        let mut accounts: Vec<u8> = ops.iter().flat_map(|(_, op)| op.act.accounts()).collect();
        if self.s.rules.keep(Rule::AccountRowsAreSorted) {
            accounts.sort_unstable();
        }
        for account in accounts {
            let row = Row::account(account);
            self.terms[usize::from(account)] = if self.s.rules.keep(Rule::AccountRowsAreShared) {
                self.s.lock(row, Mode::Shared)?
            } else {
                self.s.read(std::iter::once(row))?[0]
            };
        }
        Ok(())
    }

    fn lock_gates(&mut self, ops: &[(usize, Op)]) -> Step<()> {
        let waiting = self.run.pass == Pass::Waiting;
        if !waiting && !self.s.rules.keep(Rule::GateComesBeforeSlots) {
            return Ok(());
        }
        let wants = |op: &Op| -> Vec<u8> {
            if waiting && self.job.is_atomic() {
                op.act.accounts().collect()
            } else if self.run.pass == Pass::First && self.is_hashed(*op) {
                Vec::new()
            } else {
                op.act.source().into_iter().collect()
            }
        };
        let mut accounts: Vec<u8> = ops.iter().flat_map(|(_, op)| wants(op)).collect();
        if self.s.rules.keep(Rule::GatesAreSorted) {
            accounts.sort_unstable();
        }
        for account in accounts {
            self.s.lock(Row::gate(account), Mode::Exclusive)?;
            self.gates[usize::from(account)] = true;
        }
        Ok(())
    }

    /// Outcomes into the claims, and what was handed on into transactions of its own.
    fn finish(mut self, ops: &[(usize, Op)]) -> Step<End> {
        for (place, outcome) in std::mem::take(&mut self.outcomes) {
            let op = self.job.ops()[place];
            if let Act::Reversal { once, .. } = op.act
                && outcome::moved(outcome).is_some()
            {
                self.s.lock(Row::once(once), Mode::Exclusive)?;
                self.s.write(Row::once(once), 1)?;
            }
            self.s.lock(Row::claim(op.key), Mode::Exclusive)?;
            self.s.write(Row::claim(op.key), outcome)?;
        }
        if !self.s.rules.keep(Rule::ClaimGoesWithItsOperation) {
            for (_, op) in ops.iter().filter(|(place, _)| self.handed & 1 << place != 0) {
                self.s.write(Row::claim(op.key), outcome::CLAIMED)?;
            }
        }
        let left = self.run.alone | self.handed;
        let Some((place, op)) = self
            .job
            .ops()
            .iter()
            .enumerate()
            .find(|(place, _)| left & 1 << place != 0)
        else {
            return Ok(self.s.commit(Stage::Done));
        };
        let pass = match op.act {
            Act::Max { .. } if self.s.rules.keep(Rule::MaxTakesThePassAtOnce) => Pass::Waiting,
            _ if self.is_hashed(*op) => Pass::Gated,
            _ => Pass::First,
        };
        let own = 1 << place;
        Ok(self.s.commit(Stage::Run(Run {
            pass,
            ops: own,
            alone: left & !own,
            tries: 0,
        })))
    }
}
