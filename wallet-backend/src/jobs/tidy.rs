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
/// Steps for one account in one pass: 64 000 pending rows, more than its credits bring in five seconds at full speed.
const STEPS: usize = 64;

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

/// One pass: how many accounts it went through.
///
/// # Errors
/// The first `Unavailable` or `OutcomeUnknown`; a full lane is passed over.
pub async fn once<S: Store>(queue: &Queue<S>) -> Result<usize, LedgerError> {
    let accounts = queue.untidy(ACCOUNTS);
    let count = accounts.len();
    for account in accounts {
        tidy(queue, account).await?;
    }
    Ok(count)
}

async fn tidy<S: Store>(queue: &Queue<S>, account: AccountId) -> Result<(), LedgerError> {
    for _ in 0..STEPS {
        let task = Task::Tidy {
            account: account.clone(),
        };
        match queue.submit(task).await {
            Ok(Answer::Tidied { more: true }) => {}
            // A lane that is full has debits, and those collect for themselves.
            Ok(_) | Err(LedgerError::LaneFull { .. } | LedgerError::StoreFull) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
