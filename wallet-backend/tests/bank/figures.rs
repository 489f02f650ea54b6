//! What is counted, and what is wrong.

use std::fmt;
use std::ops::AddAssign;

/// Counts for the report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
    pub(super) landed: u64,
    pub(super) not_landed: u64,
    pub(super) unresolved: u64,
    pub(super) insufficient: u64,
    pub(super) repeated: u64,
    pub(super) reused: u64,
    pub(super) applied: u64,
    pub(super) aborted: u64,
}

/// What is wrong, by kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    pub(super) lost: Vec<String>,
    pub(super) doubled: Vec<String>,
    pub(super) false_refusals: Vec<String>,
    pub(super) other: Vec<String>,
    /// Minor units that are there and should not be, or the other way round.
    pub(super) drift: u64,
}

impl AddAssign for Figures {
    fn add_assign(&mut self, other: Self) {
        let Self {
            acknowledged,
            refused,
            landed,
            not_landed,
            unresolved,
            insufficient,
            repeated,
            reused,
            applied,
            aborted,
        } = other;
        self.acknowledged += acknowledged;
        self.refused += refused;
        self.landed += landed;
        self.not_landed += not_landed;
        self.unresolved += unresolved;
        self.insufficient += insufficient;
        self.repeated += repeated;
        self.reused += reused;
        self.applied += applied;
        self.aborted += aborted;
    }
}

impl Findings {
    pub(super) fn add(&mut self, other: Self) {
        let Self {
            lost,
            doubled,
            false_refusals,
            other,
            drift,
        } = other;
        self.lost.extend(lost);
        self.doubled.extend(doubled);
        self.false_refusals.extend(false_refusals);
        self.other.extend(other);
        self.drift += drift;
    }

    /// Files what the history checker says under what it means.
    pub(super) fn file(&mut self, fault: String) {
        let says = |words: &str| fault.contains(words);
        let kind = if says("was acknowledged, the statement has") {
            &mut self.lost
        } else if says("had this effect before") || says("was reversed twice") {
            &mut self.doubled
        } else if says("for lack of money") {
            &mut self.false_refusals
        } else {
            &mut self.other
        };
        kind.push(fault);
    }

    pub(super) fn is_empty(&self) -> bool {
        let Self {
            lost,
            doubled,
            false_refusals,
            other,
            drift,
        } = self;
        let all = [lost, doubled, false_refusals, other];
        *drift == 0 && all.iter().all(|kind| kind.is_empty())
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            acknowledged,
            refused,
            landed,
            not_landed,
            unresolved,
            insufficient,
            repeated,
            reused,
            applied,
            aborted,
        } = self;
        let unknown = landed + not_landed + unresolved;
        write!(
            f,
            "{acknowledged} acknowledged, {refused} refused, {unknown} unknown ({landed} had been decided, \
             {not_landed} never will be, {unresolved} unresolved), {repeated} asked again and answered the same, \
             {reused} ids used for something else and found out, {applied} atomic batches applied and {aborted} given up, \
             insufficient {insufficient}"
        )
    }
}
