//! A batch of operations, one or many, as one transaction.

use super::rules::Rule;
use super::scenario::{Accounts, Act, Job, Op, outcome, terms};
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
        let looks_up_late = self.s.rules.keep(Rule::LookUpsComeAfterLocks);
        let mut refused = if looks_up_late {
            None
        } else {
            self.look_up(&mut ops)?
        };
        self.read_the_time_early(&ops)?;
        self.lock_accounts_and_gates(&ops)?;
        self.wait_for_slots(&ops)?;
        if looks_up_late {
            refused = self.look_up(&mut ops)?;
        }
        if refused.is_some() && self.job.is_atomic() {
            return Ok(self.s.abort(None));
        }
        for &(place, op) in &ops {
            let verdict = match op.act.source() {
                Some(from) => self.take(op, from)?,
                None => self.credit(op)?,
            };
            let waits_in_place = self.waits_in_place(&ops);
            match verdict {
                Verdict::Is(outcome::REFUSED) if self.job.is_atomic() => {
                    return Ok(self.s.abort(Some(op.key)));
                }
                Verdict::Is(outcome) => self.keep(place, outcome)?,
                Verdict::Busy if waits_in_place => {
                    let from = op.act.source().unwrap_or_default();
                    self.wait_for_all(&[from])?;
                    let Verdict::Is(outcome) = self.take(op, from)? else {
                        return Err(Ask::Wrong("still busy with everything locked".to_owned()));
                    };
                    self.keep(place, outcome)?;
                }
                Verdict::Busy if self.begins_again_whole(&ops) => {
                    return Ok(self.again(Pass::Waiting));
                }
                Verdict::Spills if ops.len() == 1 => return Ok(self.again(Pass::Gated)),
                Verdict::Spills if self.job.is_atomic() => return Ok(self.again(Pass::Waiting)),
                Verdict::Busy | Verdict::Spills => self.handed |= 1 << place,
            }
        }
        self.finish()
    }

    /// Where money that is there is somebody else's just now: whether all operations begin again, and wait for it.
    fn begins_again_whole(&self, ops: &[(usize, Op)]) -> bool {
        let alone = self.s.rules.keep(Rule::ShortOperationGoesAlone);
        self.job.is_atomic() || self.is_of_one_account(ops) || !alone
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

    fn keep(&mut self, place: usize, outcome: i8) -> Step<()> {
        self.outcomes.push((place, outcome));
        if !self.s.rules.keep(Rule::AnswersWaitForTheCommit) {
            self.s.heard.push((self.job.ops()[place].key, outcome));
        }
        if self.s.rules.keep(Rule::ClaimsComeLast) {
            return Ok(());
        }
        self.claim(&[(place, outcome)])
    }

    fn read_the_time_early(&mut self, ops: &[(usize, Op)]) -> Step<()> {
        let mut accounts = ops.iter().flat_map(|(_, op)| op.act.accounts());
        let matters = accounts.any(|account| self.may_expire(account));
        if matters && !self.s.rules.keep(Rule::TimeIsReadUnderTheGate) {
            self.s.now()?;
        }
        Ok(())
    }

    /// Leaves out what is decided already. Gives the id of one that was refused, by which an atomic batch fails.
    fn look_up(&mut self, ops: &mut Vec<(usize, Op)>) -> Step<Option<u8>> {
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
        let mut keys = ops.iter().map(|(_, op)| op.key);
        let refused = keys.find(|key| value(Row::claim(*key)) == outcome::REFUSED);
        ops.retain(|(_, op)| value(Row::claim(op.key)) == 0);
        for (_, op) in ops.iter() {
            if let Act::Reversal { once, original, .. } = op.act
                && (value(Row::once(once)) != 0 || outcome::moved(value(Row::claim(original))).is_none())
            {
                self.not_reversible.push(op.key);
            }
        }
        Ok(refused)
    }

    /// Request claims with their outcomes, then once-only rows.
    fn claim(&mut self, outcomes: &[(usize, i8)]) -> Step<()> {
        let decided = |&(place, outcome): &(usize, i8)| (self.job.ops()[place], outcome);
        let mut claims: Vec<(Op, i8)> = outcomes.iter().map(decided).collect();
        if self.s.rules.keep(Rule::ClaimsAreSorted) {
            claims.sort_unstable_by_key(|(op, _)| op.key);
        }
        let mut onces = Vec::new();
        let mut originals = Vec::new();
        for (op, outcome) in &claims {
            if let Act::Reversal { once, original, .. } = op.act {
                originals.push(original);
                onces.extend(outcome::moved(*outcome).map(|_| once));
            }
        }
        if self.s.rules.keep(Rule::OnceRowsAreSorted) {
            onces.sort_unstable();
        }
        let heeded = self.s.rules.keep(Rule::ClaimsAreTaken);
        for (op, outcome) in claims {
            self.s.claim(Row::claim(op.key), outcome, heeded)?;
        }
        if !self.s.rules.keep(Rule::OriginalsAreNotLocked) {
            for original in originals {
                self.s.lock(Row::claim(original), Mode::Shared)?;
            }
        }
        let heeded = self.s.rules.keep(Rule::OnceRowsAreTaken);
        for once in onces {
            self.s.claim(Row::once(once), 1, heeded)?;
        }
        Ok(())
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
                let credited = op.act.source().is_none().then(|| op.act.target()).flatten();
                let at_the_gate = credited.filter(|to| self.is_credited_at_the_gate(*to));
                op.act.source().into_iter().chain(at_the_gate).collect()
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

    /// Whether the gate is the only slot that the account's credits can go to.
    fn is_credited_at_the_gate(&self, to: u8) -> bool {
        let one_slot = terms::slots(self.terms[usize::from(to)]) == 1;
        one_slot && !self.accounts[usize::from(to)].journal
    }

    /// The last waits and the writes; and what was handed on into transactions of its own.
    fn finish(mut self) -> Step<End> {
        if self.s.rules.keep(Rule::ClaimsComeLast) {
            let outcomes = std::mem::take(&mut self.outcomes);
            self.claim(&outcomes)?;
        }
        self.s.insert_made()?;
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
