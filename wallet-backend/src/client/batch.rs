//! A batch: many commands in one call. What is left open is asked for again, and nothing else.

use super::Client;
use super::error::{CallError, Problem, Trouble};
use super::exchange::Call;
use super::request;
use super::told::{Batched, Outcome};
use super::verdict::Meaning;
use super::wire::{self, BatchReply, BatchResult};
use crate::command::{BatchMode, Command, Receipt};

type Settled = Result<Outcome<Receipt>, CallError>;

/// A command that is not decided yet.
struct Open {
    /// Among the commands.
    place: usize,
    /// Whether an attempt at it may have happened.
    perhaps: bool,
}

impl Client {
    /// Runs up to 8 192 commands in one call, in their order. One of several ends as its own call would have ended; what
    /// is put off is sent again without those that were decided. An atomic batch is done whole, or nothing of it is,
    /// and is always sent again whole.
    ///
    /// # Errors
    /// `Invalid` with a change of an account among them; else as [`Client::run`], of the batch as a whole.
    pub async fn batch(&self, commands: &[Command], mode: BatchMode) -> Result<Batched, CallError> {
        let mut call = self.0.begin();
        let mut results: Vec<Option<Settled>> = commands.iter().map(|_| None).collect();
        let places = 0..commands.len();
        let mut open: Vec<Open> = places
            .map(|place| Open {
                place,
                perhaps: false,
            })
            .collect();
        let mut first = true;
        loop {
            let wanted = open.iter().filter_map(|open| commands.get(open.place));
            let reply = match ask(&mut call, request::batch(wanted, mode)?, open.len()).await {
                Ok(reply) => reply,
                Err(error) if first => return Err(error),
                Err(error) => {
                    for Open { place, perhaps } in open {
                        settle(&mut results, place, Err(unfinished(&error, perhaps)));
                    }
                    return Ok(batched(true, results));
                }
            };
            first = false;
            let mut left = Vec::new();
            let mut troubles = Vec::new();
            for (Open { place, perhaps }, result) in open.into_iter().zip(reply.results) {
                match read(result) {
                    Ok(settled) => settle(&mut results, place, settled),
                    Err((problem, maybe)) => {
                        let perhaps = perhaps || maybe;
                        left.push(Open { place, perhaps });
                        troubles.push(problem);
                    }
                }
            }
            if left.is_empty() {
                return Ok(batched(reply.applied, results));
            }
            if !call.pause().await {
                for (Open { place, perhaps }, problem) in left.iter().zip(troubles) {
                    let (attempts, last) = (call.attempts(), Trouble::Problem(problem));
                    settle(&mut results, *place, Err(given_up(attempts, last, *perhaps)));
                }
                return Ok(batched(reply.applied, results));
            }
            open = match mode {
                BatchMode::Each => left,
                BatchMode::Atomic => whole(commands.len(), &left),
            };
        }
    }
}

/// All of an atomic batch, after an answer that left some of it open.
fn whole(count: usize, left: &[Open]) -> Vec<Open> {
    let places = 0..count;
    let open = places.map(|place| Open {
        place,
        perhaps: left.iter().any(|open| open.place == place && open.perhaps),
    });
    open.collect()
}

async fn ask(call: &mut Call<'_>, asked: request::Asked, count: usize) -> Result<BatchReply, CallError> {
    let reply = call.ask(asked).await?;
    if reply.status >= 300 {
        return Err(CallError::Rejected(Problem::read(reply.status, &reply.body)));
    }
    let reply: BatchReply = wire::read(&reply.body)?;
    if reply.results.len() == count {
        return Ok(reply);
    }
    let what = format!("{count} operations have {} results", reply.results.len());
    Err(CallError::Unreadable { what })
}

/// How a command ended, or why it has not, and whether it may have happened all the same.
fn read(result: BatchResult) -> Result<Settled, (Problem, bool)> {
    let problem = match result {
        BatchResult::Done(outcome) => return Ok(Ok(outcome)),
        BatchResult::Problem(problem) => problem,
    };
    match Meaning::of(problem) {
        Meaning::Kept(problem) => Ok(Ok(Outcome::Refused(problem))),
        Meaning::Rejected(problem) => Ok(Err(CallError::Rejected(problem))),
        Meaning::NotDone(problem) => Err((problem, false)),
        Meaning::Perhaps(problem) => Err((problem, true)),
    }
}

/// How a command ends whose batch could not be sent again.
fn unfinished(error: &CallError, perhaps: bool) -> CallError {
    match error {
        CallError::NotDone { attempts, last } => given_up(*attempts, last.clone(), perhaps),
        CallError::Rejected(problem) if perhaps => given_up(1, Trouble::Problem(problem.clone()), true),
        CallError::Invalid { .. }
        | CallError::Rejected(_)
        | CallError::Unknown { .. }
        | CallError::Unreadable { .. } => error.clone(),
    }
}

fn given_up(attempts: u32, last: Trouble, perhaps: bool) -> CallError {
    if perhaps {
        CallError::Unknown { attempts, last }
    } else {
        CallError::NotDone { attempts, last }
    }
}

fn settle(results: &mut [Option<Settled>], place: usize, settled: Settled) {
    if let Some(result) = results.get_mut(place) {
        *result = Some(settled);
    }
}

fn batched(applied: bool, results: Vec<Option<Settled>>) -> Batched {
    let results = results.into_iter().map(|result| {
        result.unwrap_or_else(|| {
            Err(CallError::Unreadable {
                what: "an operation has no result".to_owned(),
            })
        })
    });
    Batched {
        applied,
        results: results.collect(),
    }
}
