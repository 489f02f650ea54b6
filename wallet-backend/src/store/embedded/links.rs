//! How a slot's entries are found without keeping them: each links back, and the newest is known.
//!
//! An entry of version v holds two positions: that of version v - 1, and that of version `v & (v - 1)` (v without its
//! lowest bit). From the newest entry any older one is reached by taking the long step where it does not overshoot:
//! at most about log2(v)^2 / 2 steps. In memory a slot keeps the positions of the versions on its newest entry's long
//! way down, at most one for each bit of its version.
//!
//! ```text
//! newest 13 = 0b1101: keeps 13, 12, 8        its links: 12 (before), 12 (skip)        14's will be: 13, 12
//! ```

use crate::account::SlotIndex;
use crate::store::codec::wire::CodecError;
use crate::store::embedded::sums::{Past, Trace};

/// Where an entry's predecessors are. 0 = in this same record, or none (before version 1). And what it tells of the
/// account's past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Links {
    /// The record with the entry one version earlier.
    pub(super) before: u64,
    /// The record with version `v & (v - 1)`.
    pub(super) skip: u64,
    pub(super) trace: Trace,
}

/// The version that an entry's [`Links::skip`] leads to; 0 for none.
pub(super) const fn skip_of(version: u64) -> u64 {
    version & version.wrapping_sub(1)
}

/// One slot's way down: (version, position), versions rising, each the [`skip_of`] of the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chain {
    positions: Vec<(u64, u64)>,
}

impl Chain {
    pub(super) fn positions(&self) -> &[(u64, u64)] {
        &self.positions
    }

    /// The newest version and the position of its record.
    pub(super) fn newest(&self) -> Option<(u64, u64)> {
        self.positions.last().copied()
    }

    /// The links of `version`, in a record whose first version of this slot is `first`, the one after the newest.
    pub(super) fn links(&self, version: u64, first: u64, trace: Trace) -> Links {
        let of = |wanted: u64| {
            let found = self.positions.iter().rev().find(|(known, _)| *known == wanted);
            found.filter(|_| wanted < first).map_or(0, |(_, at)| *at)
        };
        Links {
            before: of(version.saturating_sub(1)),
            skip: of(skip_of(version)),
            trace,
        }
    }

    /// Takes in the version after the newest.
    pub(super) fn push(&mut self, version: u64, position: u64) {
        let stays = skip_of(version);
        while self.positions.last().is_some_and(|(known, _)| *known > stays) {
            self.positions.pop();
        }
        self.positions.push((version, position));
    }
}

/// The chains of an account's slots, by index; absent for a slot without entries. And what the account's past is told
/// from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chains {
    slots: Vec<Chain>,
    pub(super) past: Past,
}

impl Chains {
    pub(super) fn of(&self, slot: SlotIndex) -> Option<&Chain> {
        self.slots.get(usize::from(slot.get()))
    }

    pub(super) fn of_mut(&mut self, slot: SlotIndex) -> Option<&mut Chain> {
        let at = usize::from(slot.get());
        if self.slots.len() <= at {
            self.slots.resize_with(at.saturating_add(1), Chain::default);
        }
        self.slots.get_mut(at)
    }

    /// A chain as a checkpoint kept it, which must be the way down from `newest`.
    pub(super) fn restore(
        &mut self,
        slot: SlotIndex,
        newest: u64,
        positions: Vec<(u64, u64)>,
    ) -> Result<(), CodecError> {
        let mut wanted = newest;
        for (version, _) in positions.iter().rev() {
            if *version != wanted {
                return Err(CodecError::Range("a chain"));
            }
            wanted = skip_of(wanted);
        }
        if wanted != 0 {
            return Err(CodecError::Range("a chain"));
        }
        if newest != 0
            && let Some(chain) = self.of_mut(slot)
        {
            chain.positions = positions;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn every_version_is_reached_from_the_newest_in_few_steps() {
        let (mut chain, mut links) = (Chain::default(), HashMap::new());
        for version in 1..=1000 {
            links.insert(version, chain.links(version, version, Trace::default()));
            chain.push(version, version * 10);
            assert!(chain.positions().len() <= 10);
        }
        for wanted in 1..=1000_u64 {
            let (mut at, mut steps) = (1000, 0);
            while at != wanted {
                let (next, position) = if skip_of(at) >= wanted {
                    (skip_of(at), links[&at].skip)
                } else {
                    (at - 1, links[&at].before)
                };
                assert_eq!(position, next * 10);
                (at, steps) = (next, steps + 1);
            }
            assert!(steps <= 60, "{wanted} took {steps} steps");
        }
    }

    #[test]
    fn a_kept_chain_that_is_not_the_way_down_is_refused() {
        let mut chains = Chains::default();
        assert!(
            chains
                .restore(SlotIndex::PRIMARY, 13, vec![(8, 1), (12, 2), (13, 3)])
                .is_ok()
        );
        for wrong in [vec![(13, 3)], vec![(8, 1), (13, 3)], vec![]] {
            assert!(chains.restore(SlotIndex::PRIMARY, 13, wrong).is_err());
        }
    }
}
