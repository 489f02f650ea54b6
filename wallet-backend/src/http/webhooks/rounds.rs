//! When an undelivered event is tried again. Pure.
//!
//! A round is a few tries within seconds, for what passes by itself. The next round comes after five minutes, then
//! after twice as long each time up to an hour: ten rounds take some six hours. Every wait is shortened or lengthened
//! by up to a fifth, so that what failed together does not come back together.

use std::time::Duration;

/// The waits between tries. [`Rounds::default`] is what is documented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Between the tries of a round: one fewer than it has tries.
    pub within: Vec<Duration>,
    /// From the first round to the second.
    pub first: Duration,
    /// No wait is longer, but for its fifth.
    pub longest: Duration,
    /// Rounds until an event is a dead letter; at least 1.
    pub count: u32,
}

impl Default for Rounds {
    fn default() -> Self {
        Self {
            within: vec![Duration::from_secs(1), Duration::from_secs(4)],
            first: Duration::from_secs(5 * 60),
            longest: Duration::from_secs(60 * 60),
            count: 10,
        }
    }
}

/// What follows a failed try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    After(Duration),
    Dead,
}

impl Rounds {
    /// What follows the failed try number `tries`, counted from 1. `spread` may be any number.
    pub(super) fn after(&self, tries: u32, spread: u64) -> Next {
        let (round, place) = self.place_of(tries);
        if let Some(wait) = self.within.get(place) {
            return Next::After(jittered(*wait, spread));
        }
        if round.saturating_add(1) >= self.count {
            return Next::Dead;
        }
        let factor = 2_u32.saturating_pow(round);
        let wait = self.first.checked_mul(factor).unwrap_or(self.longest);
        Next::After(jittered(wait.min(self.longest), spread))
    }

    /// Of a try, its round and its place in it, from 0.
    fn place_of(&self, tries: u32) -> (u32, usize) {
        let before = usize::try_from(tries.saturating_sub(1)).unwrap_or(usize::MAX);
        let tries_a_round = self.within.len().saturating_add(1);
        let round = before.checked_div(tries_a_round).unwrap_or(0);
        let place = before.checked_rem(tries_a_round).unwrap_or(0);
        (u32::try_from(round).unwrap_or(u32::MAX), place)
    }
}

/// Four to six fifths of a wait.
fn jittered(wait: Duration, spread: u64) -> Duration {
    let thousandths = u32::try_from(spread % 401).unwrap_or(0).saturating_add(800);
    let lengthened = wait.checked_mul(thousandths).unwrap_or(wait);
    lengthened.checked_div(1_000).unwrap_or(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The middle of every wait.
    const MIDDLE: u64 = 200;

    #[test]
    fn an_event_is_tried_in_ten_rounds_that_are_ever_further_apart_and_then_dead() {
        let rounds = Rounds::default();
        let (mut waits, mut tries) = (Vec::new(), 0);
        loop {
            tries += 1;
            match rounds.after(tries, MIDDLE) {
                Next::After(wait) => waits.push(wait.as_secs()),
                Next::Dead => break,
            }
        }
        assert_eq!(tries, 30);
        let between: Vec<u64> = waits.iter().skip(2).step_by(3).copied().collect();
        let minutes: Vec<u64> = between.iter().map(|wait| wait / 60).collect();
        assert_eq!(minutes, [5, 10, 20, 40, 60, 60, 60, 60, 60]);
        let within: Vec<u64> = waits
            .iter()
            .enumerate()
            .filter(|(at, _)| at % 3 != 2)
            .map(|(_, wait)| *wait)
            .collect();
        assert_eq!(within, [1, 4].repeat(10));
    }

    #[test]
    fn a_wait_is_spread_by_a_fifth_to_either_side() {
        let rounds = Rounds::default();
        let waits: Vec<Duration> = (0..10_000)
            .filter_map(|spread| match rounds.after(3, spread) {
                Next::After(wait) => Some(wait),
                Next::Dead => None,
            })
            .collect();
        assert_eq!(waits.iter().min(), Some(&Duration::from_secs(240)));
        assert_eq!(waits.iter().max(), Some(&Duration::from_secs(360)));
    }
}
