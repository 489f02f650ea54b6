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

/// How long money may lie about before it is tidied.
pub const EVERY: Duration = Duration::from_secs(5);
/// Accounts looked after in one pass; the store takes turns among more.
const ACCOUNTS: usize = 1_024;
/// Rounds in one pass: 256 000 pending rows of an account, more than its credits bring in at full speed until the next.
const ROUNDS: usize = 1_024;

/// Tidies every [`EVERY`], until dropped.
pub async fn run<S: Store>(queue: Queue<S>) -> Infallible {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is now; there is nothing yet that could not wait for the second.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        if let Err(error) = once(&queue).await {
            tracing::warn!(%error, "tidying broke off, and goes on at its next turn");
        }
    }
}

/// One pass: how many accounts it went through. Those of a round share batches.
///
/// # Errors
/// The first `Unavailable` or `OutcomeUnknown`; a full lane is passed over.
pub async fn once<S: Store>(queue: &Queue<S>) -> Result<usize, LedgerError> {
    let mut untidy = queue.untidy(ACCOUNTS);
    let count = untidy.len();
    for _ in 0..ROUNDS {
        if untidy.is_empty() {
            break;
        }
        untidy = round(queue, untidy).await?;
    }
    Ok(count)
}

/// Gives back the accounts that have more to tidy.
async fn round<S: Store>(queue: &Queue<S>, accounts: Vec<AccountId>) -> Result<Vec<AccountId>, LedgerError> {
    let mut tickets = Vec::with_capacity(accounts.len());
    for account in accounts {
        let task = Task::Tidy {
            account: account.clone(),
        };
        match queue.enqueue(task) {
            Ok(ticket) => tickets.push((account, ticket)),
            // A lane that is full has debits, and those collect for themselves.
            Err(LedgerError::LaneFull { .. } | LedgerError::StoreFull) => {}
            Err(error) => return Err(error),
        }
    }
    let mut left = Vec::new();
    for (account, ticket) in tickets {
        if let Answer::Tidied { more: true } = ticket.answer().await? {
            left.push(account);
        }
    }
    Ok(left)
}
