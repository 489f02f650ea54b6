//! The sliding window: never more than its limit in ANY window of its length. Pure: `now` is an argument.
//!
//! A [`Window`] keeps when its takes were made, oldest first, and forgets them one window later. Where the limit is
//! at most 64 each take keeps its own time. Above, takes are kept per sub-window of 1/64 of the window and count as
//! made at its end, so that a window never holds more than its limit and a take is forgotten at most 1/64 late.
//! Both kinds are times with a number, hence a reload that changes the limit or the length keeps what was taken.
//!
//! Windows are half-open: what was taken at `t` is free again at `t + length`. Times are stored in 4 bytes, in units
//! of 2^k ns chosen so that a window has fewer than 2^30 of them (1 ns up to 1.07 s), rounded up.

use std::time::Duration;

use smallvec::SmallVec;

use crate::clock::{Tick, nanos};

/// Takes are kept one by one where the limit is at most this.
const EXACT: u32 = 64;
/// Sub-windows per window where it is not.
const SUB_WINDOWS: u64 = 64;
/// A window is shorter than 2^30 units, so that any two live times differ by less than 2^31 and 4 bytes suffice.
const UNIT_BITS: u32 = 30;

/// What a window admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    limit: u32,
    length: u64,
}

/// Why a window or a bucket refuses. Ordered: the greatest of several tells how long to wait for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// After this time, alone, the same request passes.
    For(Duration),
    /// The limit is 0: nothing passes.
    Denied,
    /// The weight is above the limit: only a lighter request passes.
    TooHeavy,
}

/// The takes of one value, or of one resource. Default: none.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// The newest time, in units of 2^`shift` ns.
    newest: u64,
    /// The low 4 bytes of each time, not descending; if `spans`, each followed by how many were taken.
    words: SmallVec<[u32; 5]>,
    /// The sum of what is in `words`.
    used: u32,
    shift: u8,
    spans: bool,
}

impl Rate {
    /// At most `count + burst` per `length`; a count of 0 denies, burst or not. More than 2^32 - 1 count as that many.
    #[must_use]
    pub fn new(count: u64, burst: u64, length: Duration) -> Self {
        let limit = if count == 0 {
            0
        } else {
            count.saturating_add(burst)
        };
        Self {
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            length: nanos(length).max(1),
        }
    }

    /// The most that one window holds.
    #[must_use]
    pub const fn limit(self) -> u32 {
        self.limit
    }

    /// The `k` of the unit in which times are stored.
    fn shift(self) -> u8 {
        let bits = u64::BITS - self.length.leading_zeros();
        u8::try_from(bits.saturating_sub(UNIT_BITS)).unwrap_or(0)
    }

    /// When a take made at `now` counts as made, in nanoseconds.
    fn stamp(self, now: Tick) -> u64 {
        if self.limit <= EXACT {
            return now.as_nanos();
        }
        now.as_nanos().next_multiple_of(self.length.div_ceil(SUB_WINDOWS))
    }
}

impl Window {
    /// Whether `weight` more fit at `now`. Takes nothing.
    ///
    /// # Errors
    /// The exact time to wait, if waiting helps.
    pub fn check(&mut self, rate: Rate, weight: u32, now: Tick) -> Result<(), Wait> {
        if rate.limit == 0 {
            return Err(Wait::Denied);
        }
        if weight > rate.limit {
            return Err(Wait::TooHeavy);
        }
        self.settle(rate, now);
        let free = rate.limit.saturating_sub(self.used);
        if weight <= free {
            return Ok(());
        }
        let mut short = u64::from(weight) + u64::from(self.used) - u64::from(rate.limit);
        for (at, taken) in self.takes() {
            let Some(rest) = short.checked_sub(u64::from(taken)).filter(|rest| *rest > 0) else {
                let free_at = at.saturating_add(rate.length);
                return Err(Wait::For(Duration::from_nanos(
                    free_at.saturating_sub(now.as_nanos()),
                )));
            };
            short = rest;
        }
        Ok(())
    }

    /// Takes what [`check`](Self::check) has just allowed.
    pub fn take(&mut self, rate: Rate, weight: u32, now: Tick) {
        self.settle(rate, now);
        if self.words.is_empty() {
            self.spans = rate.limit > EXACT;
        } else if !self.spans && rate.limit > EXACT {
            self.become_spans();
        }
        self.shift = rate.shift();
        self.insert(to_units(rate.stamp(now), self.shift), weight);
        self.used = self.used.saturating_add(weight);
    }

    /// Whether nothing is in the window at `now`, so that forgetting it loses nothing.
    #[must_use]
    pub fn is_idle(&self, rate: Rate, now: Tick) -> bool {
        self.words.is_empty() || self.is_over(self.newest, rate, now)
    }

    /// Forgets what was taken a window or more ago, and brings the times into the rate's unit.
    fn settle(&mut self, rate: Rate, now: Tick) {
        if self.is_idle(rate, now) {
            self.words.clear();
            self.used = 0;
            return;
        }
        let (mut over, mut freed) = (0, 0_u32);
        for (at, taken) in self.takes() {
            if at.saturating_add(rate.length) > now.as_nanos() {
                break;
            }
            over += self.stride();
            freed = freed.saturating_add(taken);
        }
        if over > 0 {
            self.words.drain(..over);
            self.used = self.used.saturating_sub(freed);
        }
        if self.shift != rate.shift() {
            self.rescale(rate.shift(), now);
        }
    }

    /// Whether a take at `units` is free again at `now`.
    fn is_over(&self, units: u64, rate: Rate, now: Tick) -> bool {
        (units << self.shift).saturating_add(rate.length) <= now.as_nanos()
    }

    /// Every take, oldest first: its time in nanoseconds and its number.
    fn takes(&self) -> impl Iterator<Item = (u64, u32)> {
        self.words.chunks_exact(self.stride()).map(|words| match *words {
            [at, taken] => (self.units_of(at) << self.shift, taken),
            [at, ..] => (self.units_of(at) << self.shift, 1),
            [] => (0, 0),
        })
    }

    const fn stride(&self) -> usize {
        if self.spans { 2 } else { 1 }
    }

    /// The whole time of a stored word: it is at most 2^32 units before the newest.
    fn units_of(&self, word: u32) -> u64 {
        self.newest
            .saturating_sub(u64::from(low(self.newest).wrapping_sub(word)))
    }

    /// Puts a take where its time belongs. Nearly always at the end; earlier only in the first window after a reload.
    fn insert(&mut self, units: u64, taken: u32) {
        if self.words.is_empty() || units > self.newest {
            self.newest = units;
        }
        let stride = self.stride();
        let mut place = self.words.len();
        while let Some(&word) = place
            .checked_sub(stride)
            .and_then(|before| self.words.get(before))
        {
            if self.units_of(word) <= units {
                break;
            }
            place -= stride;
        }
        if !self.spans {
            for _ in 0..taken {
                self.words.insert(place, low(units));
            }
            return;
        }
        match place
            .checked_sub(stride)
            .and_then(|before| self.words.get_mut(before..place))
        {
            Some([word, sum]) if *word == low(units) => *sum = sum.saturating_add(taken),
            _ => self.words.insert_many(place, [low(units), taken]),
        }
    }

    /// Turns single times into times with a number, when the limit has grown past [`EXACT`].
    fn become_spans(&mut self) {
        let takes: SmallVec<[(u64, u32); 64]> = self.takes().collect();
        self.words.clear();
        self.spans = true;
        for (at, taken) in takes {
            self.insert(to_units(at, self.shift), taken);
        }
    }

    /// Changes the unit, when the length has changed. No take was made after `now`, so none counts as later.
    fn rescale(&mut self, shift: u8, now: Tick) {
        let takes: SmallVec<[(u64, u32); 65]> = self.takes().collect();
        self.words.clear();
        self.shift = shift;
        for (at, taken) in takes {
            self.insert(to_units(at.min(now.as_nanos()), shift), taken);
        }
    }
}

/// Nanoseconds in units of 2^`shift`, rounded up.
fn to_units(at: u64, shift: u8) -> u64 {
    at.div_ceil(1 << shift)
}

fn low(units: u64) -> u32 {
    u32::try_from(units & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
