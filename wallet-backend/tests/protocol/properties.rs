//! What must be true of every state and of every end, and what is remembered for that alone.

use super::scenario::{Act, Job, Op, Scenario, outcome, terms};
use super::session::{Money, Proof};
use super::world::{KEYS, Row, World};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// Somebody has not ended and nobody can go on.
    Deadlock,
    /// `insufficient_funds`, though at no moment since the operation began there was too little.
    FalseRefusal,
    /// An amount that the account never had: of a balance that was read, or of `max`.
    NeverSo,
    /// What the claims say was moved is not what the rows say.
    Money {
        account: u8,
        expected: i8,
        found: i8,
    },
    /// Something was taken that had to stay.
    BelowFloor {
        account: u8,
    },
    ReversedTwice {
        original: u8,
    },
    ClosedWithMoney {
        account: u8,
    },
    /// Part of an atomic batch.
    HalfABatch,
    /// An operation that ended without an outcome.
    Undecided {
        key: u8,
    },
    /// Two answers to one request.
    AnsweredTwice {
        key: u8,
    },
    StartsAgainForEver,
    /// What no transaction may do by itself.
    Wrong(String),
}

/// What each job has seen of the accounts' money since it began: a bit for each sum, slots and pending rows and expired
/// holds. Of a job that only compares with it, the least; of one that has ended, nothing.
#[derive(Clone)]
pub(super) struct Ghosts {
    sums: Vec<[u32; 2]>,
    heard: [i8; KEYS as usize],
    kinds: Vec<Kind>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Least,
    Every,
}

impl Ghosts {
    pub(super) fn new(scenario: &Scenario) -> Ghosts {
        let kind = |job: &Job| match job {
            Job::Read { .. } => Kind::Every,
            job if job.ops().iter().any(|op| matches!(op.act, Act::Max { .. })) => Kind::Every,
            job if job.ops().iter().any(|op| op.act.source().is_some()) => Kind::Least,
            _ => Kind::Nothing,
        };
        Ghosts {
            sums: vec![[0; 2]; scenario.jobs.len()],
            heard: [0; KEYS as usize],
            kinds: scenario.jobs.iter().map(kind).collect(),
        }
    }

    /// The job takes a step: if it is the first, it has begun.
    pub(super) fn begin(&mut self, job: usize, world: &World) {
        if self.begins(job) {
            self.sums[job] = now(world);
        }
    }

    /// Whether a step of the job is also its beginning, which counts.
    pub(super) fn begins(&self, job: usize) -> bool {
        self.kinds[job] != Kind::Nothing && self.sums[job] == [0; 2]
    }

    pub(super) fn finish(&mut self, job: usize) {
        self.sums[job] = [0; 2];
        self.kinds[job] = Kind::Nothing;
    }

    /// Something was committed: who has begun sees the sums that there are.
    pub(super) fn look(&mut self, world: &World) {
        let now = now(world);
        for (sums, kind) in self
            .sums
            .iter_mut()
            .zip(&self.kinds)
            .filter(|(sums, _)| **sums != [0; 2])
        {
            for (sums, now) in sums.iter_mut().zip(now) {
                *sums |= now;
                if *kind == Kind::Least {
                    *sums &= sums.wrapping_neg();
                }
            }
        }
    }

    pub(super) fn prove(&self, job: usize, proofs: &[Proof]) -> Result<(), Fault> {
        for proof in proofs {
            let sums = self.sums[job][usize::from(proof.account)];
            let seen = |sum: i8| sums & (1 << sum) != 0;
            match proof.money {
                Money::Below(bound) if !(0..bound).any(seen) => return Err(Fault::FalseRefusal),
                Money::Exactly(sum) if sum < 0 || !seen(sum) => return Err(Fault::NeverSo),
                Money::Below(_) | Money::Exactly(_) => {}
            }
        }
        Ok(())
    }

    /// An atomic batch is refused for this operation, which nobody may have decided otherwise.
    pub(super) fn refuse(world: &World, culprit: u8) -> Result<(), Fault> {
        match moved(world, culprit) {
            Some(_) => Err(Fault::AnsweredTwice { key: culprit }),
            None => Ok(()),
        }
    }

    pub(super) fn hear(&mut self, key: u8, outcome: i8) -> Result<(), Fault> {
        let heard = &mut self.heard[usize::from(key)];
        if *heard != 0 && *heard != outcome {
            return Err(Fault::AnsweredTwice { key });
        }
        *heard = outcome;
        Ok(())
    }

    pub(super) fn put(&self, bytes: &mut Vec<u8>) {
        for sum in self.sums.as_flattened() {
            bytes.extend(sum.to_le_bytes());
        }
        bytes.extend(self.heard.iter().map(|heard| heard.to_le_bytes()[0]));
    }
}

fn now(world: &World) -> [u32; 2] {
    [0, 1].map(|account| 1 << spendable(world, account))
}

/// Slots, pending rows, and the hold that can expire, if it has.
fn spendable(world: &World, account: u8) -> i8 {
    let late = world.committed(Row::CLOCK) != 0;
    let hold = if late {
        world.committed(Row::hold(account, 0))
    } else {
        0
    };
    let loose = Row::slots(account).chain(Row::all_pending(account));
    hold + loose.map(|row| world.committed(row)).sum::<i8>()
}

/// What there is to check of a scenario.
pub(super) struct Properties<'a> {
    scenario: &'a Scenario,
    ops: Vec<Op>,
    /// Of each atomic batch, the ids that no other job decides.
    atomic: Vec<Vec<u8>>,
}

impl<'a> Properties<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Properties<'a> {
        let own = |(number, job): (usize, &Job)| {
            let others = scenario
                .jobs
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != number);
            let others: Vec<u8> = others.flat_map(|(_, job)| job.keys()).collect();
            job.keys().filter(|key| !others.contains(key)).collect()
        };
        let atomic = scenario
            .jobs
            .iter()
            .enumerate()
            .filter(|(_, job)| job.is_atomic());
        Properties {
            scenario,
            ops: scenario.ops().collect(),
            atomic: atomic.map(own).collect(),
        }
    }

    /// After every commit.
    pub(super) fn check(&self, world: &World, ghosts: &Ghosts) -> Result<(), Fault> {
        for (account, start) in (0..).zip(&self.scenario.accounts) {
            let mut expected: i8 = start.money.iter().sum::<i8>() + start.pending + start.hold;
            for op in &self.ops {
                if let Some(moved) = moved(world, op.key) {
                    expected += effect(op.act, account) * moved;
                }
            }
            let rows = Row::slots(account)
                .chain(Row::all_pending(account))
                .chain(Row::holds(account));
            let found = rows.map(|row| world.committed(row)).sum();
            if found != expected {
                return Err(Fault::Money {
                    account,
                    expected,
                    found,
                });
            }
            if spendable(world, account) < start.floor {
                return Err(Fault::BelowFloor { account });
            }
            if terms::is_closed(world.committed(Row::account(account))) && found != 0 {
                return Err(Fault::ClosedWithMoney { account });
            }
        }
        self.check_reversals(world)?;
        for keys in &self.atomic {
            let posted = keys.iter().filter(|key| moved(world, **key).is_some()).count();
            if posted != 0 && posted != keys.len() {
                return Err(Fault::HalfABatch);
            }
        }
        let twice = (0..KEYS).zip(ghosts.heard).find(|(key, heard)| {
            let decided = world.committed(Row::claim(*key));
            *heard != 0 && decided != 0 && *heard != decided
        });
        twice.map_or(Ok(()), |(key, _)| Err(Fault::AnsweredTwice { key }))
    }

    fn check_reversals(&self, world: &World) -> Result<(), Fault> {
        let mut reversed = Vec::new();
        for op in &self.ops {
            if let Act::Reversal { original, .. } = op.act
                && moved(world, op.key).is_some()
            {
                if reversed.contains(&original) {
                    return Err(Fault::ReversedTwice { original });
                }
                reversed.push(original);
            }
        }
        Ok(())
    }

    /// Once every job has ended; `aborted` says which of them stored nothing.
    pub(super) fn check_end(&self, world: &World, aborted: impl Fn(usize) -> bool) -> Result<(), Fault> {
        let jobs = self
            .scenario
            .jobs
            .iter()
            .enumerate()
            .filter(|(job, _)| !aborted(*job));
        let mut keys = jobs.flat_map(|(_, job)| job.keys());
        let undecided = keys.find(|key| world.committed(Row::claim(*key)) == 0);
        undecided.map_or(Ok(()), |key| Err(Fault::Undecided { key }))
    }
}

/// What the request moved, if it was decided and not refused.
fn moved(world: &World, key: u8) -> Option<i8> {
    outcome::moved(world.committed(Row::claim(key)))
}

/// What an operation that moves 1 does to the account's money, held money included.
fn effect(act: Act, account: u8) -> i8 {
    let taken = match act {
        Act::Hold { .. } | Act::Credit { .. } => None,
        Act::Debit { .. }
        | Act::Max { .. }
        | Act::Capture { .. }
        | Act::Transfer { .. }
        | Act::Reversal { .. } => act.source(),
    };
    i8::from(act.target() == Some(account)) - i8::from(taken == Some(account))
}
