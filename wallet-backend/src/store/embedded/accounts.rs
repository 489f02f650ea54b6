//! Every account in memory: found by its id, by its number (the order in which they came), or in the order of the ids.
//!
//! None is ever taken away, and none moves: they are kept in chunks. An idle one takes under 300 bytes, all told, which
//! is why the index has hashes and not ids. The hash is keyed by a secret of this process; what it finds is compared.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher as _, RandomState};
use std::ops::Bound;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::account::AccountId;
use crate::ledger::rows::AccountRows;
use crate::store::embedded::links::Chains;
use crate::store::embedded::requests::AsIs;

/// Accounts that lie together.
const CHUNK: usize = 256;

/// One account in memory.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) rows: AccountRows,
    pub(super) chains: Chains,
    /// The epochs, which end with each checkpoint, in which it last changed and was last captured.
    pub(super) changed: u64,
    pub(super) captured: u64,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Accounts {
    hasher: fn(&[u8], u64) -> u64,
    secret: u64,
    /// All full but the last.
    chunks: Vec<Vec<Held>>,
    /// Numbers by hash.
    numbers: HashMap<u64, usize, BuildHasherDefault<AsIs>>,
    /// Numbers of those whose hash was taken: next to none.
    more: Vec<usize>,
    ids: BTreeSet<AccountId>,
}

impl Held {
    pub(super) const fn new(rows: AccountRows, chains: Chains) -> Self {
        Self {
            rows,
            chains,
            changed: 0,
            captured: 0,
        }
    }

    fn id(&self) -> &AccountId {
        &self.rows.account().id
    }
}

impl Accounts {
    /// None yet, and room for so many.
    pub(super) fn with_capacity(count: usize) -> Self {
        Self {
            hasher: xxh3_64_with_seed,
            // Random, from the same source as the standard library's hash keys.
            secret: RandomState::new().build_hasher().finish(),
            chunks: Vec::new(),
            numbers: HashMap::with_capacity_and_hasher(count, BuildHasherDefault::default()),
            more: Vec::new(),
            ids: BTreeSet::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        let full = self.chunks.len().saturating_sub(1).saturating_mul(CHUNK);
        full.saturating_add(self.chunks.last().map_or(0, Vec::len))
    }

    /// The number of an account.
    pub(super) fn find(&self, id: &AccountId) -> Option<usize> {
        let named = |number: &usize| self.at(*number).is_some_and(|held| held.id() == id);
        let first = self.numbers.get(&self.hash(id))?;
        let found = if named(first) {
            Some(first)
        } else {
            self.more.iter().find(|number| named(number))
        };
        found.copied()
    }

    pub(super) fn get(&self, id: &AccountId) -> Option<&Held> {
        self.at(self.find(id)?)
    }

    /// By number.
    pub(super) fn at(&self, number: usize) -> Option<&Held> {
        self.chunks.get(number / CHUNK)?.get(number % CHUNK)
    }

    /// The same, to change.
    pub(super) fn at_mut(&mut self, number: usize) -> Option<&mut Held> {
        self.chunks.get_mut(number / CHUNK)?.get_mut(number % CHUNK)
    }

    /// Adds one whose id is not there yet, and says its number.
    pub(super) fn add(&mut self, held: Held) -> usize {
        let number = self.len();
        let hash = self.hash(held.id());
        match self.numbers.entry(hash) {
            Entry::Vacant(free) => drop(free.insert(number)),
            Entry::Occupied(_) => self.more.push(number),
        }
        self.ids.insert(held.id().clone());
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(held),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(held);
                self.chunks.push(chunk);
            }
        }
        number
    }

    /// Every one, in the order in which they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Held> {
        self.chunks.iter().flatten()
    }

    /// At most `limit` after `after`, ascending by id.
    pub(super) fn after(&self, after: Option<&AccountId>, limit: usize) -> impl Iterator<Item = &Held> {
        let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
        let ids = self.ids.range::<AccountId, _>((begin, Bound::Unbounded));
        ids.take(limit).filter_map(|id| self.get(id))
    }

    fn hash(&self, id: &AccountId) -> u64 {
        (self.hasher)(id.as_str().as_bytes(), self.secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;
    use crate::money::Currency;

    fn id(number: usize) -> AccountId {
        AccountId::new(&format!("a{number:04}")).unwrap()
    }

    fn held(number: usize) -> Held {
        let account = Account::new(id(number), Currency::new("EUR").unwrap());
        Held::new(AccountRows::open(account), Chains::default())
    }

    #[test]
    fn everyone_is_found_whoever_shares_a_hash() {
        let mut accounts = Accounts {
            hasher: |id, secret| xxh3_64_with_seed(id, secret) % 1_000,
            ..Accounts::with_capacity(0)
        };
        for number in 0..3_000 {
            assert_eq!(accounts.len(), number);
            assert_eq!(accounts.find(&id(number)), None);
            assert_eq!(accounts.add(held(number)), number);
        }
        assert!(accounts.more.len() > 1_000);
        for number in 0..3_000 {
            assert_eq!(accounts.find(&id(number)), Some(number));
            assert_eq!(accounts.get(&id(number)).unwrap().id(), &id(number));
            assert_eq!(accounts.at_mut(number).unwrap().id(), &id(number));
        }
        assert!(accounts.at(3_000).is_none());
        assert_eq!(accounts.iter().count(), 3_000);
    }

    #[test]
    fn a_list_goes_by_id_from_any_id_on() {
        let mut accounts = Accounts::with_capacity(0);
        for number in [7, 3, 9, 1] {
            accounts.add(held(number));
        }
        let list = |after: Option<usize>, limit| -> Vec<AccountId> {
            let after = after.map(id);
            let found = accounts.after(after.as_ref(), limit);
            found.map(|held| held.id().clone()).collect()
        };
        assert_eq!(list(None, 3), [id(1), id(3), id(7)]);
        assert_eq!(list(Some(3), 9), [id(7), id(9)]);
        assert_eq!(list(Some(4), 1), [id(7)]);
    }
}
