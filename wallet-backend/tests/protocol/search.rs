//! Every interleaving of a scenario's jobs, each state once.
//!
//! A job is an automaton: what it asks next depends on its stage and on the answers it had, and on nothing else, so it
//! is worked out once for each. A state is the rows with their locks and, for each job, where its automaton is.
//!
//! One reduction: where the next thing that some job asks cannot be noticed by any job that has not ended, nor be
//! changed by one, that step is taken and no other. It commutes with all that the others may do.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use xxhash_rust::xxh3::xxh3_128;

use super::properties::{Fault, Ghosts, Properties};
use super::rules::Rules;
use super::scenario::{Job, Scenario, meets};
use super::session::{Ask, End, LOCKED};
use super::transaction::{Stage, next};
use super::world::{Granted, Mode, Row, Tx, World};

/// More transactions in a row than any operation can need.
const MOST_TRIES: u8 = 8;

#[derive(Clone)]
struct State {
    world: World,
    /// Where each job is, by its automaton.
    at: Vec<u32>,
    ghosts: Ghosts,
}

/// Which steps are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Steps {
    All,
    /// As the module says.
    Reduced,
}

#[derive(Debug)]
pub(super) struct Report {
    pub(super) states: usize,
    pub(super) steps: usize,
    /// With the way there.
    pub(super) fault: Option<(Fault, Vec<String>)>,
}

/// One job's part in all states: its stage and the answers since it began, numbered as they were met.
#[derive(Default)]
struct Automaton {
    places: Vec<Place>,
    numbers: HashMap<(Stage, Vec<i8>), u32>,
}

struct Place {
    stage: Stage,
    answers: Vec<i8>,
    ask: Option<Rc<Ask>>,
}

/// The automata of the jobs that were met, under the same rules and with the same accounts.
#[derive(Default)]
pub(super) struct Automata {
    all: Vec<Automaton>,
    jobs: HashMap<Job, usize>,
}

struct Search<'a> {
    scenario: &'a Scenario,
    rules: Rules,
    reduces: Steps,
    automata: &'a mut Vec<Automaton>,
    /// Which of them each job is.
    which: Vec<usize>,
    footprints: Vec<(u64, u64)>,
    properties: Properties<'a>,
    seen: HashSet<u128>,
    /// For hashing.
    bytes: Vec<u8>,
}

/// A state on the way from the start, and which of its steps are still to be taken.
struct Level {
    state: State,
    left: Vec<Tx>,
    step: Step,
}

/// Who did what to get there; nobody, at the start.
type Step = Option<(Tx, Rc<Ask>)>;

/// Tries everything, up to so many states, or up to the first fault.
pub(super) fn search(
    scenario: &Scenario,
    rules: Rules,
    steps: Steps,
    known: &mut Automata,
    most: usize,
) -> Report {
    let Automata { all, jobs } = known;
    let mut number = |job: &Job| {
        *jobs.entry(job.clone()).or_insert_with(|| {
            all.push(Automaton::default());
            all.len() - 1
        })
    };
    let which = scenario.jobs.iter().map(&mut number).collect();
    let mut search = Search {
        scenario,
        rules,
        reduces: steps,
        automata: all,
        which,
        footprints: scenario.jobs.iter().map(|job| job.footprint()).collect(),
        properties: Properties::new(scenario),
        seen: HashSet::new(),
        bytes: Vec::new(),
    };
    search.run(most)
}

impl Search<'_> {
    fn run(&mut self, most: usize) -> Report {
        let first = State {
            world: self.scenario.world(),
            at: (0..self.which.len())
                .map(|job| {
                    self.number(
                        job,
                        Stage::first(self.rules, &self.scenario.jobs[job]),
                        Vec::new(),
                    )
                })
                .collect(),
            ghosts: Ghosts::new(self.scenario),
        };
        let mut steps = 0;
        let mut path = Vec::new();
        let mut fault = self.enter(first, None, &mut path).err();
        while fault.is_none() {
            let Some(level) = path.last_mut() else { break };
            let Some(tx) = level.left.pop() else {
                path.pop();
                continue;
            };
            let mut state = level.state.clone();
            let ask = self.ask(&state, tx);
            steps += 1;
            let stepped = self.step(&mut state, tx, &ask);
            let step = Some((tx, ask));
            fault = match stepped {
                Ok(()) => self.enter(state, step, &mut path).err(),
                Err(fault) => {
                    let left = Vec::new();
                    path.push(Level { state, left, step });
                    Some(fault)
                }
            };
            assert!(
                self.seen.len() < most,
                "{}: more than {most} states",
                self.scenario.name
            );
        }
        Report {
            states: self.seen.len(),
            steps,
            fault: fault.map(|fault| (fault, told(&path))),
        }
    }

    /// Goes to a state, unless it is known.
    fn enter(&mut self, state: State, step: Step, path: &mut Vec<Level>) -> Result<(), Fault> {
        let hash = self.hash(&state);
        if !self.seen.insert(hash) {
            return Ok(());
        }
        let left = self.enabled(&state);
        let ended = (0..self.which.len()).all(|job| self.has_ended(&state, job));
        let stuck = left.is_empty() && !ended;
        path.push(Level { state, left, step });
        let state = &path.last().expect("it was pushed").state;
        if stuck {
            return Err(Fault::Deadlock);
        }
        if ended {
            let aborted = |job| self.stage(state, job) == Stage::Aborted;
            self.properties.check_end(&state.world, aborted)?;
        }
        Ok(())
    }

    fn hash(&mut self, state: &State) -> u128 {
        self.bytes.clear();
        state.world.put(&mut self.bytes);
        for at in &state.at {
            self.bytes.extend(at.to_le_bytes());
        }
        state.ghosts.put(&mut self.bytes);
        xxh3_128(&self.bytes)
    }

    fn number(&mut self, job: usize, stage: Stage, answers: Vec<i8>) -> u32 {
        let automaton = &mut self.automata[self.which[job]];
        let places = &mut automaton.places;
        *automaton
            .numbers
            .entry((stage, answers))
            .or_insert_with_key(|(stage, answers)| {
                let (stage, answers) = (*stage, answers.clone());
                places.push(Place {
                    stage,
                    answers,
                    ask: None,
                });
                u32::try_from(places.len() - 1).unwrap()
            })
    }

    fn place(&self, state: &State, job: usize) -> &Place {
        &self.automata[self.which[job]].places[state.at[job] as usize]
    }

    fn stage(&self, state: &State, job: usize) -> Stage {
        self.place(state, job).stage
    }

    fn has_ended(&self, state: &State, job: usize) -> bool {
        matches!(self.stage(state, job), Stage::Done | Stage::Aborted)
    }

    fn ask(&mut self, state: &State, tx: Tx) -> Rc<Ask> {
        let job = usize::from(tx);
        let place = &mut self.automata[self.which[job]].places[state.at[job] as usize];
        let (scenario, rules) = (self.scenario, self.rules);
        let work_out = || {
            Rc::new(next(
                &scenario.accounts,
                rules,
                &scenario.jobs[job],
                place.stage,
                &place.answers,
            ))
        };
        Rc::clone(place.ask.get_or_insert_with(work_out))
    }

    /// The jobs that can go on; only one, where what it does concerns no other.
    fn enabled(&mut self, state: &State) -> Vec<Tx> {
        let jobs = 0..u8::try_from(self.which.len()).unwrap();
        let enabled: Vec<Tx> = jobs
            .filter(|tx| !self.has_ended(state, usize::from(*tx)) && !state.world.waits(*tx))
            .collect();
        if self.reduces == Steps::All {
            return enabled;
        }
        let alone = enabled.iter().copied().find(|tx| {
            let ask = self.ask(state, *tx);
            !state.ghosts.begins(usize::from(*tx)) && self.concerns_nobody(state, *tx, &ask)
        });
        alone.map_or(enabled, |tx| vec![tx])
    }

    fn concerns_nobody(&self, state: &State, tx: Tx, ask: &Ask) -> bool {
        let mut others = (0..self.which.len())
            .filter(|job| *job != usize::from(tx) && !self.has_ended(state, *job))
            .map(|job| self.footprints[job]);
        match ask {
            Ask::Lock(row, mode) => !others.any(|footprint| meets(*mode, *row, footprint)),
            Ask::TryLock(rows) => {
                let meets = |row: &Row, footprint| meets(mode_of_try(*row), *row, footprint);
                !others.any(|footprint| rows.iter().any(|row| meets(row, footprint)))
            }
            Ask::Read(rows) => {
                !others.any(|footprint| rows.iter().any(|row| meets(Mode::Shared, *row, footprint)))
            }
            Ask::Insert(row) => !others.any(|footprint| meets(Mode::Exclusive, *row, footprint)),
            Ask::End(_) | Ask::Wrong(_) => false,
        }
    }

    fn step(&mut self, state: &mut State, tx: Tx, ask: &Ask) -> Result<(), Fault> {
        state.ghosts.begin(usize::from(tx), &state.world);
        match ask {
            Ask::Lock(row, mode) => match state.world.lock(tx, *row, *mode) {
                Granted::Now => self.answer(state, tx, &[state.world.committed(*row)]),
                Granted::Absent => self.answer(state, tx, &[0]),
                Granted::Waits => {}
            },
            Ask::TryLock(rows) => {
                let values: Vec<i8> = rows
                    .iter()
                    .map(|row| try_lock(&mut state.world, tx, *row))
                    .collect();
                self.answer(state, tx, &values);
            }
            Ask::Read(rows) => {
                let values: Vec<i8> = rows.iter().map(|row| state.world.committed(*row)).collect();
                self.answer(state, tx, &values);
            }
            Ask::Insert(row) => match state.world.insert(tx, *row) {
                Granted::Waits => {}
                Granted::Now | Granted::Absent => self.answer(state, tx, &[state.world.committed(*row)]),
            },
            Ask::End(end) => self.end(state, tx, end)?,
            Ask::Wrong(why) => return Err(Fault::Wrong(why.clone())),
        }
        Ok(())
    }

    fn answer(&mut self, state: &mut State, tx: Tx, values: &[i8]) {
        let job = usize::from(tx);
        let place = self.place(state, job);
        let answers = [&place.answers[..], values].concat();
        state.at[job] = self.number(job, place.stage, answers);
    }

    fn end(&mut self, state: &mut State, tx: Tx, end: &End) -> Result<(), Fault> {
        let job = usize::from(tx);
        state.ghosts.prove(job, &end.proofs)?;
        if let Some(culprit) = end.culprit {
            Ghosts::refuse(&state.world, culprit)?;
        }
        for (key, outcome) in &end.heard {
            state.ghosts.hear(*key, *outcome)?;
        }
        let granted = state.world.end(tx, end.writes.as_deref().unwrap_or_default());
        for (waiter, row) in granted {
            self.answer(state, waiter, &[state.world.committed(row)]);
        }
        state.at[job] = self.number(job, end.next, Vec::new());
        match end.next {
            Stage::Run(run) if run.tries > MOST_TRIES => return Err(Fault::StartsAgainForEver),
            Stage::Run(_) => {}
            Stage::Done | Stage::Aborted => state.ghosts.finish(job),
        }
        state.ghosts.look(&state.world);
        self.properties.check(&state.world, &state.ghosts)
    }
}

/// The way to the last state, for people.
fn told(path: &[Level]) -> Vec<String> {
    let steps = path.iter().filter_map(|level| level.step.as_ref());
    steps.map(|(tx, ask)| format!("job {tx}: {ask:?}")).collect()
}

/// The clock is only read.
fn mode_of_try(row: Row) -> Mode {
    if row == Row::CLOCK {
        Mode::Shared
    } else {
        Mode::Exclusive
    }
}

fn try_lock(world: &mut World, tx: Tx, row: Row) -> i8 {
    if world.try_lock(tx, row) {
        world.committed(row)
    } else if row.may_be_absent() && world.committed(row) == 0 {
        0
    } else {
        LOCKED
    }
}
