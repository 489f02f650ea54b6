//! Settles pending credits and brings slots together, for accounts that no debit does it for.
//!
//! Each step is a task in the account's own lane, so it is decided like any other and never races a debit.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::account::AccountId;
use crate::combiner::Queue;
use crate::command::{Answer, LedgerError, Task};
use crate::store::Store;
use crate::store::duty::Duty;

/// How long money may lie about before it is tidied.
pub const EVERY: Duration = Duration::from_secs(5);
/// Accounts looked after in one pass; the store takes turns among more.
const ACCOUNTS: usize = 1_024;
/// Tasks at once for an account that has more: 8 000 rows in a batch, which is more than a lane's credits add to it.
const STEPS: usize = 32;
/// Tasks at once for all of them: a sixteenth of the places that a store has by default.
const TASKS: usize = 4_096;
/// Rounds in one pass, so that the accounts beyond [`ACCOUNTS`] get their turn.
const ROUNDS: usize = 32;

/// Tidies every [`EVERY`], and again at once where a pass leaves something, until dropped. Of several processes on one
/// ledger one does it, and another once that is gone.
pub async fn run<S: Store>(queue: Queue<S>) -> Infallible {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is now; there is nothing yet that could not wait for the second.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let mut more = true;
        while more {
            more = match in_turn(&queue).await {
                Ok(passed) => passed.is_some_and(|(_, more)| more),
                Err(error) => {
                    tracing::warn!(%error, "tidying broke off, and goes on at its next turn");
                    false
                }
            };
        }
    }
}

/// One pass, where it is this process' turn: the accounts it went through, and whether one of them has more to tidy.
///
/// # Errors
/// As [`once`].
pub async fn in_turn<S: Store>(queue: &Queue<S>) -> Result<Option<(usize, bool)>, LedgerError> {
    match queue.claim(Duty::Tidy).await? {
        Some(_) => pass(queue).await.map(Some),
        None => Ok(None),
    }
}

/// One pass: how many accounts it went through. Those of a round share batches.
///
/// # Errors
/// The first `Unavailable` or `OutcomeUnknown`; a full store is left alone.
pub async fn once<S: Store>(queue: &Queue<S>) -> Result<usize, LedgerError> {
    let (accounts, _) = pass(queue).await?;
    Ok(accounts)
}

/// The accounts it went through, and whether one of them has more to tidy.
async fn pass<S: Store>(queue: &Queue<S>) -> Result<(usize, bool), LedgerError> {
    let mut untidy = queue.untidy(ACCOUNTS).await?;
    let count = untidy.len();
    let mut steps = 1;
    for _ in 0..ROUNDS {
        if untidy.is_empty() {
            break;
        }
        untidy = round(queue, untidy, steps).await?;
        steps = TASKS.checked_div(untidy.len()).unwrap_or(1).clamp(1, STEPS);
    }
    Ok((count, !untidy.is_empty()))
}

/// Gives back the accounts that have more to tidy.
async fn round<S: Store>(
    queue: &Queue<S>,
    accounts: Vec<AccountId>,
    steps: usize,
) -> Result<Vec<AccountId>, LedgerError> {
    let mut tickets = Vec::with_capacity(accounts.len().saturating_mul(steps));
    for account in accounts {
        for step in (0..steps).rev() {
            let task = Task::Tidy {
                account: account.clone(),
            };
            match queue.enqueue(task) {
                Ok(ticket) => tickets.push((account.clone(), step, ticket)),
                // The next turn comes.
                Err(LedgerError::StoreFull) => {}
                Err(error) => return Err(error),
            }
        }
    }
    let mut left = Vec::new();
    for (account, after, ticket) in tickets {
        // Only the account's last task of this round knows.
        let answer = ticket.answer().await?;
        if after == 0 && answer == (Answer::Tidied { more: true }) {
            left.push(account);
        }
    }
    Ok(left)
}
