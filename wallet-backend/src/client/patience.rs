//! How long a call is tried, and what becomes of it attempt by attempt. Pure: `elapsed` is the time since the call began.
//!
//! One attempt after the other, each under the same request id, with growing, jittered pauses between them and one
//! deadline over all. Whether an attempt may have happened is remembered: what comes after it cannot take that back.

use std::time::Duration;

use super::error::{CallError, Trouble};
use super::verdict::{Attempt, Reply, Verdict};

/// How long a call is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From the call to its end, waits included.
    pub deadline: Duration,
    /// One attempt, from connecting to the last byte of the answer.
    pub attempt: Duration,
    /// The pause after the first attempt, at most; it doubles from attempt to attempt.
    pub first_pause: Duration,
    /// No pause is longer, but for what `Retry-After` asks for.
    pub longest_pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(30),
            attempt: Duration::from_secs(10),
            first_pause: Duration::from_millis(50),
            longest_pause: Duration::from_secs(2),
        }
    }
}

/// No attempt is begun that has less time left than this part of [`Patience::attempt`].
const SHORTEST: u32 = 10;

/// What to do after an attempt.
#[derive(Debug)]
pub(super) enum Step {
    Answered(Reply),
    /// And then the same again.
    Pause(Duration),
    GiveUp(CallError),
}

/// The attempts of one call.
#[derive(Debug)]
pub(super) struct Attempts {
    patience: Patience,
    /// So far.
    count: u32,
    /// Whether one of them may have happened.
    perhaps: bool,
    jitter: Jitter,
}

impl Attempts {
    pub(super) const fn new(patience: Patience, seed: u64) -> Self {
        Self {
            patience,
            count: 0,
            perhaps: false,
            jitter: Jitter(seed),
        }
    }

    /// How long the next attempt may take.
    pub(super) fn timeout(&self, elapsed: Duration) -> Duration {
        let left = self.patience.deadline.saturating_sub(elapsed);
        self.patience.attempt.min(left)
    }

    pub(super) fn after(&mut self, attempt: Attempt, elapsed: Duration) -> Step {
        self.count = self.count.saturating_add(1);
        let (trouble, retry_after) = match Verdict::of(attempt) {
            Verdict::Answered(reply) => return Step::Answered(reply),
            // Who may not ask now may have been allowed to before.
            Verdict::Rejected(problem) if self.perhaps && matches!(problem.status, 401 | 403) => {
                return self.give_up(Trouble::Problem(problem));
            }
            Verdict::Rejected(problem) => return Step::GiveUp(CallError::Rejected(problem)),
            Verdict::Foreign(what) => return Step::GiveUp(CallError::Unreadable { what }),
            Verdict::NotDone(trouble, retry_after) => (trouble, retry_after),
            Verdict::Perhaps(trouble, retry_after) => {
                self.perhaps = true;
                (trouble, retry_after)
            }
        };
        match self.next(retry_after, elapsed) {
            Some(pause) => Step::Pause(pause),
            None => self.give_up(trouble),
        }
    }

    /// The pause before another attempt, if there is time for one.
    pub(super) fn next(&mut self, retry_after: Option<Duration>, elapsed: Duration) -> Option<Duration> {
        let pause = self.pause().saturating_add(retry_after.unwrap_or_default());
        // An attempt that the deadline cuts off would only turn what is known into what is not.
        let least = self.patience.attempt.checked_div(SHORTEST).unwrap_or_default();
        let end = elapsed.saturating_add(pause).saturating_add(least);
        (end < self.patience.deadline).then_some(pause)
    }

    /// Attempts so far.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    fn give_up(&self, last: Trouble) -> Step {
        let attempts = self.count;
        Step::GiveUp(if self.perhaps {
            CallError::Unknown { attempts, last }
        } else {
            CallError::NotDone { attempts, last }
        })
    }

    /// Between half and all of `first_pause`, doubled with each attempt up to `longest_pause`: clients that failed
    /// together do not come back together.
    fn pause(&mut self) -> Duration {
        let doublings = self.count.saturating_sub(1).min(30);
        let grown = self.patience.first_pause.saturating_mul(1 << doublings);
        let most = grown.min(self.patience.longest_pause);
        let half = most.checked_div(2).unwrap_or_default();
        let micros = u64::try_from(half.as_micros()).unwrap_or(u64::MAX);
        half.saturating_add(Duration::from_micros(self.jitter.up_to(micros)))
    }
}

/// Numbers that need only differ from client to client (SplitMix64).
#[derive(Debug)]
struct Jitter(u64);

impl Jitter {
    /// 0 to `most`.
    fn up_to(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        most.checked_add(1)
            .and_then(|bound| mixed.checked_rem(bound))
            .unwrap_or(mixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        deadline: Duration::from_secs(30),
        attempt: Duration::from_secs(10),
        first_pause: Duration::from_millis(50),
        longest_pause: Duration::from_secs(2),
    };

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn answered(status: u16, code: &str, retry_after: Option<u64>) -> Attempt {
        Attempt::Answered(Reply {
            status,
            replayed: false,
            retry_after: retry_after.map(Duration::from_secs),
            body: format!(r#"{{"status":{status},"code":"{code}","detail":"d"}}"#).into(),
        })
    }

    fn broken() -> Attempt {
        Attempt::Broken("reset".to_owned())
    }

    fn unsent() -> Attempt {
        Attempt::NotSent("refused".to_owned())
    }

    fn paused(step: Step) -> Duration {
        let Step::Pause(pause) = step else {
            panic!("{step:?}");
        };
        pause
    }

    fn gave_up(step: Step) -> CallError {
        let Step::GiveUp(error) = step else {
            panic!("{step:?}");
        };
        error
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_lie_between_half_and_all_of_it() {
        for seed in 0..50 {
            let mut attempts = Attempts::new(PATIENCE, seed);
            for most in [50, 100, 200, 400, 800, 1_600, 2_000, 2_000] {
                let pause = paused(attempts.after(broken(), Duration::ZERO));
                assert!(
                    pause >= millis(most / 2) && pause <= millis(most),
                    "{pause:?} of {most}"
                );
            }
        }
    }

    #[test]
    fn clients_that_failed_together_come_back_apart() {
        let first = |seed| paused(Attempts::new(PATIENCE, seed).after(unsent(), Duration::ZERO));
        assert!((0..10).map(first).any(|pause| pause != first(0)));
    }

    #[test]
    fn retry_after_is_waited_for_and_the_pause_comes_on_top() {
        let mut attempts = Attempts::new(PATIENCE, 1);
        let pause = paused(attempts.after(answered(503, "unavailable", Some(3)), Duration::ZERO));
        assert!(pause >= millis(3_025) && pause <= millis(3_050), "{pause:?}");
    }

    #[test]
    fn a_pause_that_would_end_at_the_deadline_is_not_begun() {
        let mut attempts = Attempts::new(PATIENCE, 1);
        let late = attempts.after(answered(429, "overloaded", Some(30)), Duration::ZERO);
        let CallError::NotDone { attempts: 1, last } = gave_up(late) else {
            panic!("nothing happened");
        };
        assert!(last.to_string().contains("overloaded"), "{last}");
    }

    #[test]
    fn an_attempt_that_the_deadline_would_cut_off_is_not_begun() {
        let mut attempts = Attempts::new(PATIENCE, 1);
        paused(attempts.after(unsent(), millis(28_800)));
        gave_up(attempts.after(unsent(), millis(28_975)));
    }

    #[test]
    fn an_attempt_gets_no_longer_than_there_is_left() {
        let attempts = Attempts::new(PATIENCE, 1);
        assert_eq!(attempts.timeout(Duration::ZERO), Duration::from_secs(10));
        assert_eq!(attempts.timeout(Duration::from_secs(28)), Duration::from_secs(2));
        assert_eq!(attempts.timeout(Duration::from_secs(40)), Duration::ZERO);
    }

    #[test]
    fn what_may_have_happened_once_is_never_said_not_to_have_happened() {
        let end = PATIENCE.deadline;
        let mut only_turned_away = Attempts::new(PATIENCE, 1);
        drop(only_turned_away.after(answered(503, "unavailable", None), Duration::ZERO));
        let error = gave_up(only_turned_away.after(unsent(), end));
        assert!(matches!(error, CallError::NotDone { attempts: 2, .. }), "{error}");
        for perhaps in [
            broken(),
            answered(504, "outcome_unknown", None),
            answered(500, "", None),
        ] {
            for last in [
                unsent(),
                answered(503, "unavailable", None),
                answered(401, "unauthorized", None),
            ] {
                let mut attempts = Attempts::new(PATIENCE, 1);
                drop(attempts.after(perhaps.clone(), Duration::ZERO));
                let error = gave_up(attempts.after(last, end));
                assert!(matches!(error, CallError::Unknown { attempts: 2, .. }), "{error}");
            }
        }
    }

    #[test]
    fn an_answer_after_a_lost_one_is_the_answer() {
        let mut attempts = Attempts::new(PATIENCE, 1);
        drop(attempts.after(broken(), Duration::ZERO));
        let step = attempts.after(answered(200, "", None), Duration::ZERO);
        assert!(matches!(step, Step::Answered(Reply { status: 200, .. })));
    }
}
