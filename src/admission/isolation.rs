//! Isolation: the most requests of a resource in flight at once (sentinel-golang `isolation.Rule`), exact.
//!
//! In-flight belongs to the resource, so removing a rule and adding it again doubles nothing. Only a shadow rule
//! counts for itself: those that it would have let in.

use std::time::Duration;

use super::BlockKind;
use super::check::{Check, Facts, Hold, Refusal};
use crate::clock::Tick;
use crate::rules::{IsolationRule, Mode, RuleHead};
use crate::window::Wait;

/// Places taken in a shadow rule.
#[derive(Debug, Default)]
pub(super) struct Places(u32);

impl Places {
    pub(super) fn give_back(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }
}

impl Check for IsolationRule {
    type State = Places;
    const KIND: BlockKind = BlockKind::Isolation;

    fn head(&self) -> &RuleHead {
        &self.head
    }

    fn fresh(&self) -> Places {
        Places::default()
    }

    fn adopt(&self, _: &mut Places) {}

    fn evaluate(&self, places: &mut Places, facts: &Facts<'_>, _: Tick) -> Result<(), Refusal> {
        let taken = match self.head.mode {
            Mode::Enforce => facts.in_flight,
            Mode::Shadow => places.0,
        };
        if taken < self.max_concurrent {
            return Ok(());
        }
        // With all places taken, one falls every rt / places on average.
        let places = u64::from(self.max_concurrent);
        let estimate = facts.rt.unwrap_or(0).checked_div(places);
        let wait = estimate.map_or(Wait::Denied, |estimate| Wait::For(Duration::from_nanos(estimate)));
        Err(Refusal {
            kind: Self::KIND,
            wait,
            limit: Some(places),
        })
    }

    fn take(&self, places: &mut Places, _: &Facts<'_>, _: Tick) -> Option<Hold> {
        match self.head.mode {
            Mode::Enforce => None,
            Mode::Shadow => {
                places.0 = places.0.saturating_add(1);
                Some(Hold::Place)
            }
        }
    }
}
