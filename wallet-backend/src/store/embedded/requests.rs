//! Where each request is in the log, for ever: a table of the recent ones in memory, runs on disk of the older.
//!
//! Filed by a 64-bit fingerprint of (account, request id), so a hit is only a candidate: the record is read and
//! compared in full. What became of a request later is filed too, under fingerprints of its own: that its pending
//! credit has settled, that it was reversed, that the hold it placed has ended.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::account::{AccountId, MAX_ID_BYTES, RequestId};
use crate::mutants::{Mutant, is_on};
use crate::store::embedded::blocks::BlockError;
use crate::store::embedded::disk::Disk;
use crate::store::embedded::run::Run;

/// What is filed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filed {
    /// The record that decided the request.
    Decision,
    /// The record with the entry that settled it.
    Settlement,
    /// The record that reversed it.
    Reversal,
    /// The record in which the hold that it placed ended.
    HoldEnd,
}

/// The fingerprint of a request, in one store.
pub(super) fn fingerprint(store: u64, account: &AccountId, request: &RequestId, filed: Filed) -> u64 {
    let kind = match filed {
        Filed::Decision => 0,
        Filed::Settlement => 1,
        Filed::Reversal => 2,
        Filed::HoldEnd => 3,
    };
    // A kind, and each id behind its length, which takes a byte.
    let mut key = [0; 1 + 2 * (1 + MAX_ID_BYTES)];
    let mut end = 0_usize;
    let mut append = |bytes: &[u8]| {
        let begin = end;
        end = end.saturating_add(bytes.len());
        if let Some(to) = key.get_mut(begin..end) {
            to.copy_from_slice(bytes);
        }
    };
    append(&[kind]);
    for id in [account.as_str(), request.as_str()] {
        append(&[u8::try_from(id.len()).unwrap_or(u8::MAX)]);
        append(id.as_bytes());
    }
    xxh3_64_with_seed(key.get(..end).unwrap_or(&key), store)
}

/// Positions by fingerprint, in memory.
#[derive(Debug, Default)]
pub(super) struct Table {
    first: HashMap<u64, u64, BuildHasherDefault<AsIs>>,
    /// Further positions of a fingerprint that is taken: next to none.
    more: Vec<(u64, u64)>,
}

impl Table {
    pub(super) fn insert(&mut self, fingerprint: u64, position: u64) {
        if let Some(taken) = self.first.insert(fingerprint, position) {
            self.more.push((fingerprint, taken));
        }
    }

    pub(super) fn find(&self, fingerprint: u64, out: &mut Vec<u64>) {
        if let Some(position) = self.first.get(&fingerprint) {
            out.push(*position);
            let more = self.more.iter().filter(|(known, _)| *known == fingerprint);
            out.extend(more.map(|(_, position)| *position));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.first.len().saturating_add(self.more.len())
    }

    pub(super) fn items(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let first = self.first.iter().map(|(key, at)| (*key, *at));
        first.chain(self.more.iter().copied())
    }
}

/// Fingerprints are hashes already.
#[derive(Debug, Default)]
pub(super) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// All requests of a store.
#[derive(Clone, Debug, Default)]
pub(super) struct Older {
    /// Tables that a checkpoint is writing, or failed to write.
    pub(super) frozen: Vec<Arc<Table>>,
    pub(super) runs: Vec<Arc<Run>>,
}

impl Older {
    /// Appends the positions filed under a fingerprint.
    pub(super) fn find(
        &self,
        disk: &dyn Disk,
        fingerprint: u64,
        out: &mut Vec<u64>,
    ) -> Result<(), BlockError> {
        for table in &self.frozen {
            table.find(fingerprint, out);
        }
        for run in self.runs.iter().filter(|_| !is_on(Mutant::ForgetsOldRequests)) {
            run.find(disk, fingerprint, out)?;
        }
        Ok(())
    }

    /// Everything in the frozen tables, as a run keeps it.
    pub(super) fn frozen_items(&self) -> Vec<(u64, u64)> {
        let mut items: Vec<(u64, u64)> = self.frozen.iter().flat_map(|table| table.items()).collect();
        items.sort_unstable();
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_whose_fingerprints_collide_are_all_candidates() {
        let mut table = Table::default();
        for position in [10, 20, 30] {
            table.insert(7, position);
        }
        table.insert(8, 40);
        let mut found = Vec::new();
        table.find(7, &mut found);
        found.sort_unstable();
        assert_eq!(found, [10, 20, 30]);
        assert_eq!(table.len(), 4);
    }

    #[test]
    fn a_fingerprint_is_that_of_the_kind_and_the_two_ids_behind_their_lengths() {
        let longest = "r".repeat(MAX_ID_BYTES);
        let (account, request) = (AccountId::new("acc").unwrap(), RequestId::new(&longest).unwrap());
        let bytes = [b"\x03\x03acc\x40", longest.as_bytes()].concat();
        assert_eq!(
            fingerprint(7, &account, &request, Filed::HoldEnd),
            xxh3_64_with_seed(&bytes, 7)
        );
    }

    #[test]
    fn ids_that_join_to_the_same_text_have_other_fingerprints() {
        let of = |account: &str, request: &str| {
            let (account, request) = (AccountId::new(account).unwrap(), RequestId::new(request).unwrap());
            fingerprint(1, &account, &request, Filed::Decision)
        };
        assert_ne!(of("ab", "c"), of("a", "bc"));
    }
}
