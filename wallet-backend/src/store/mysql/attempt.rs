//! Attempts: what an error means, when a transaction is run again, and when a batch falls apart.
//!
//! Every error rolls all of the transaction back. What the server says is its own trouble of the moment is run again
//! whole, under the same ids. A connection that is lost once the COMMIT was sent leaves the outcome unknown: running
//! the same again finds out, for its requests wait for those of the lost transaction, or collide with them.

use std::time::Duration;

use sqlx::mysql::MySqlDatabaseError;
use sqlx::pool::PoolConnection;
use sqlx::{Connection as _, MySql, MySqlPool};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::connect;
use super::transaction::{self, Learnt, Setting, Shapes};
use crate::account::Timestamp;
use crate::command::{Answer, LedgerError, Work};
use crate::store::Job;
use crate::store::new_id;

/// When the last attempt at a job ends. Callers wait a little longer.
const WITHIN: Duration = Duration::from_secs(8);
/// So often a batch fails before it falls apart.
const BATCH_TRIES: usize = 2;
/// So often a lone job fails, other than by a lost connection.
const TRIES: usize = 20;
/// The wait after the first failure; doubled with each, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// A connection that does not roll back so soon is closed.
const ROLL_BACK_WITHIN: Duration = Duration::from_millis(500);

/// Why an attempt has no answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing was committed; the same may succeed at once.
    Again(String),
    /// Nothing was committed, and this connection, or its server, is of no use.
    Lost(String),
    /// The connection was lost while it was being committed.
    Unknown(String),
    /// Nothing was committed, and running it again would change nothing.
    Refused(String),
    /// The rows contradict the rules.
    Broken(String),
}

impl Trouble {
    pub(super) fn again(reason: &str) -> Self {
        Self::Again(reason.to_owned())
    }

    /// Of a connection that does not answer.
    pub(super) fn lost(reason: &str, committing: bool) -> Self {
        let reason = reason.to_owned();
        if committing {
            Self::Unknown(reason)
        } else {
            Self::Lost(reason)
        }
    }

    /// What an error of a text means.
    pub(super) fn of(error: &sqlx::Error, committing: bool) -> Self {
        let reason = error.to_string();
        let Some(database) = error.as_database_error() else {
            // Nothing is known of what such a connection does.
            return Self::lost(&reason, committing);
        };
        let number = database
            .try_downcast_ref::<MySqlDatabaseError>()
            .map_or(0, MySqlDatabaseError::number);
        Self::numbered(number, database.code().as_deref(), reason, committing)
    }

    fn numbered(number: u16, state: Option<&str>, reason: String, committing: bool) -> Self {
        match number {
            // Somebody else's transaction: a duplicate key, a changed row, a deadlock, a wait for too long (also that
            // for a gate with NOWAIT), a certification that failed.
            1020 | 1062 | 1205 | 1213 | 1467 | 3101 | 3572 => Self::Again(reason),
            // A server that goes down, is read-only, has too many connections, or was told to end this one.
            1040 | 1053 | 1152 | 1184 | 1290 | 1792 | 1836 | 1927 | 2006 | 2013 | 4031 => Self::lost(
                &reason,
                committing && !matches!(number, 1040 | 1290 | 1792 | 1836),
            ),
            // Killed, interrupted, or out of time, in the middle of a statement: also of the COMMIT.
            1317 | 1969 | 3024 | 1180 | 1026 | 1105 => Self::lost(&reason, committing),
            _ if state == Some("40001") => Self::Again(reason),
            _ => Self::Refused(reason),
        }
    }

    fn reason(&self) -> &str {
        match self {
            Self::Again(reason)
            | Self::Lost(reason)
            | Self::Unknown(reason)
            | Self::Refused(reason)
            | Self::Broken(reason) => reason,
        }
    }
}

/// What a batch is run with.
#[derive(Debug)]
pub(super) struct Writing<'a> {
    pub(super) pool: &'a MySqlPool,
    pub(super) shapes: &'a Shapes,
    /// A test's time.
    pub(super) now: Option<Timestamp>,
    pub(super) prefer: u64,
}

type Told = Result<Answer, LedgerError>;

impl Writing<'_> {
    /// Decides jobs in their order and answers each: all of them in one transaction, or, where that fails twice, each
    /// in one of its own.
    pub(super) async fn settle(&self, jobs: Vec<Job>) {
        let until = far_enough();
        let works: Vec<&Work> = jobs.iter().map(|job| &job.work).collect();
        let tries = if works.len() == 1 { TRIES } else { BATCH_TRIES };
        let mut learnt = Learnt::default();
        match self.attempts(&works, tries, until, &mut learnt).await {
            Ok(told) => {
                for (job, told) in jobs.into_iter().zip(told) {
                    job.answer(told);
                }
            }
            Err(trouble) if jobs.len() == 1 => {
                let told = failed(&trouble, learnt.unknown);
                jobs.into_iter().for_each(|job| job.answer(told.clone()));
            }
            Err(_) => self.settle_each(jobs, until, learnt).await,
        }
    }

    async fn settle_each(&self, jobs: Vec<Job>, until: Instant, mut learnt: Learnt) {
        for job in jobs {
            let attempts = self.attempts(&[&job.work], TRIES, until, &mut learnt).await;
            let told = match attempts {
                Ok(told) => told.into_iter().next().unwrap_or_else(unanswered),
                Err(trouble) => failed(&trouble, learnt.unknown),
            };
            job.answer(told);
        }
    }

    async fn attempts(
        &self,
        works: &[&Work],
        tries: usize,
        until: Instant,
        learnt: &mut Learnt,
    ) -> Result<Vec<Told>, Trouble> {
        let (mut failures, mut pause) = (0_usize, FIRST_PAUSE);
        loop {
            let trouble = match self.attempt(works, until, learnt).await {
                Ok(told) => return Ok(told),
                Err(trouble) => trouble,
            };
            match &trouble {
                Trouble::Again(_) => failures = failures.saturating_add(1),
                Trouble::Lost(_) | Trouble::Unknown(_) => {}
                Trouble::Refused(_) => return Err(trouble),
                Trouble::Broken(reason) => {
                    tracing::error!(reason, "the ledger's rows are broken");
                    return Err(trouble);
                }
            }
            if failures >= tries || until.saturating_duration_since(Instant::now()) <= pause {
                return Err(trouble);
            }
            tracing::debug!(reason = trouble.reason(), "a transaction is run again");
            sleep(jittered(pause)).await;
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }

    async fn attempt(
        &self,
        works: &[&Work],
        until: Instant,
        learnt: &mut Learnt,
    ) -> Result<Vec<Told>, Trouble> {
        let mut connection = match timeout_at(until, connect::acquire(self.pool)).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(Trouble::of(&error, false)),
            Err(_) => return Err(Trouble::lost("no connection in time", false)),
        };
        let setting = Setting {
            shapes: self.shapes,
            now: self.now,
            prefer: self.prefer,
            until,
        };
        let ended = transaction::run(&mut connection, works, setting, learnt).await;
        if let Err(trouble) = &ended {
            give_back(connection, trouble).await;
        }
        ended
    }
}

/// A connection goes back to the pool only once it is known to be in no transaction.
async fn give_back(mut connection: PoolConnection<MySql>, trouble: &Trouble) {
    let clean = match trouble {
        Trouble::Again(_) | Trouble::Refused(_) | Trouble::Broken(_) => {
            let rolled_back = sqlx::query("ROLLBACK")
                .persistent(false)
                .execute(&mut *connection);
            matches!(timeout(ROLL_BACK_WITHIN, rolled_back).await, Ok(Ok(_)))
        }
        Trouble::Lost(_) | Trouble::Unknown(_) => false,
    };
    if !clean {
        let connection = connection.detach();
        // It is closed, whatever the server says to that.
        drop(timeout(ROLL_BACK_WITHIN, connection.close_hard()).await);
    }
}

fn failed(trouble: &Trouble, unknown: bool) -> Told {
    let reason = trouble.reason().to_owned();
    match trouble {
        Trouble::Unknown(_) => Err(LedgerError::OutcomeUnknown { reason }),
        Trouble::Again(_) | Trouble::Lost(_) | Trouble::Refused(_) | Trouble::Broken(_) if unknown => {
            Err(LedgerError::OutcomeUnknown { reason })
        }
        Trouble::Again(_) | Trouble::Lost(_) | Trouble::Refused(_) | Trouble::Broken(_) => {
            Err(LedgerError::Unavailable { reason })
        }
    }
}

fn unanswered() -> Told {
    let reason = "the transaction gave no answer".to_owned();
    Err(LedgerError::OutcomeUnknown { reason })
}

fn far_enough() -> Instant {
    let now = Instant::now();
    now.checked_add(WITHIN).unwrap_or(now)
}

/// Between half of it and all of it, so that two that met do not meet again.
fn jittered(pause: Duration) -> Duration {
    let micros = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
    let half = micros.div_euclid(2);
    let spread = new_id().checked_rem(half.saturating_add(1)).unwrap_or(0);
    Duration::from_micros(half.saturating_add(spread))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(number: u16, committing: bool) -> Trouble {
        Trouble::numbered(number, Some("HY000"), String::new(), committing)
    }

    #[test]
    fn what_others_are_to_blame_for_is_run_again() {
        for number in [1020, 1062, 1205, 1213, 1467, 3572] {
            assert_eq!(numbered(number, true), Trouble::Again(String::new()), "{number}");
        }
        let serialization = Trouble::numbered(1, Some("40001"), String::new(), false);
        assert_eq!(serialization, Trouble::Again(String::new()));
    }

    #[test]
    fn an_end_in_the_middle_of_a_commit_is_unknown() {
        for number in [1053, 1317, 1927] {
            assert_eq!(
                numbered(number, true),
                Trouble::Unknown(String::new()),
                "{number}"
            );
            assert_eq!(numbered(number, false), Trouble::Lost(String::new()), "{number}");
        }
        let io = sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        assert!(matches!(Trouble::of(&io, true), Trouble::Unknown(_)));
        assert!(matches!(Trouble::of(&io, false), Trouble::Lost(_)));
    }

    #[test]
    fn a_read_only_server_has_committed_nothing() {
        assert_eq!(numbered(1290, true), Trouble::Lost(String::new()));
    }

    #[test]
    fn what_the_server_can_never_take_is_not_run_again() {
        assert_eq!(numbered(1064, false), Trouble::Refused(String::new()));
    }

    #[test]
    fn a_pause_is_between_half_of_it_and_all_of_it() {
        let pause = Duration::from_millis(10);
        for _ in 0..100 {
            assert!((pause / 2..=pause).contains(&jittered(pause)));
        }
    }
}
