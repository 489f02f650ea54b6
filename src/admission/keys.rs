//! Values by keyed hash, and the bounded table of what each value has used.
//!
//! A value is known by 128 bits of a hash keyed with a secret of the process, so no client can aim at another's
//! entry, and nobody's text is stored. A [`Table`] tracks at most `maxKeys` values one by one; only an entry whose
//! window is empty again is evicted, which loses nothing; past the cap new values share overflow windows, by hash.
//! It is made of many small maps: growing and evicting touch one or two of them per request, never the whole table.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use xxhash_rust::xxh3::xxh3_128_with_secret;

/// Windows that values share once `maxKeys` are tracked.
const OVERFLOW_WINDOWS: u64 = 4096;
/// How many values a shard holds on average when the table is at its cap. A map of std's has room for 56 in 64
/// places; with 44 on average few need the next size, and a value costs about 100 bytes in all.
const SHARD_VALUES: usize = 44;
const MAX_SHARDS: usize = 1 << 18;
/// How many times more shards than there are a new cap must call for before the table is laid out anew.
const LARGER: usize = 4;
/// Shards searched for idle entries by one request that brings new values to a full table.
const SWEEPS: usize = 4;

/// A value's identity in every table of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Selects the shard and the overflow window.
    place: u64,
    /// Hashes within the shard.
    rest: u64,
}

impl Key {
    /// What requests without the parameter share (`onMissingParam: shared`).
    pub(super) const MISSING: Self = Self {
        place: u64::MAX,
        rest: u64::MAX,
    };
}

impl std::hash::Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.rest);
    }
}

/// Makes keys. One per process, with a secret that nobody else knows.
pub(super) struct KeyHasher {
    secret: [u8; 192],
}

impl KeyHasher {
    pub(super) fn new() -> Self {
        let mut secret = [0; 192];
        // SipHash under a key from the operating system: what std itself guards its maps with.
        let random = RandomState::new();
        for (index, bytes) in secret.chunks_exact_mut(8).enumerate() {
            bytes.copy_from_slice(&random.hash_one(index).to_le_bytes());
        }
        Self { secret }
    }

    pub(super) fn key(&self, value: &str) -> Key {
        let [a, b, c, d, e, f, g, h, rest @ ..] =
            xxh3_128_with_secret(value.as_bytes(), &self.secret).to_le_bytes();
        Key {
            place: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            rest: u64::from_le_bytes(rest),
        }
    }
}

impl std::fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyHasher")
    }
}

/// Passes a key's own hash through.
#[derive(Default)]
pub(super) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

type Shard<V> = HashMap<Key, V, BuildHasherDefault<AsIs>>;

/// One overflow window.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared<V> {
    pub(super) used: V,
    /// What earlier values of the request under decision already asked of it. 0 between decisions.
    pub(super) asked: u32,
}

/// Where a value's use is kept.
#[derive(Debug)]
pub(super) enum Entry<'a, V> {
    Own(&'a mut V),
    Shared(&'a mut Shared<V>),
}

/// Who gets an entry of its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum Room {
    /// Anybody, up to this many values in all.
    Within(usize),
    /// A value with a count of its own: always, and whatever others used in an overflow window is none of its concern.
    Reserved,
}

/// The use of every value of one rule.
#[derive(Debug)]
pub(super) struct Table<V> {
    shards: Box<[Shard<V>]>,
    len: usize,
    /// The next shard to search for idle entries.
    hand: usize,
    /// Made when first needed.
    overflow: Box<[Shared<V>]>,
    overflowed: u64,
}

impl<V: Clone + Default> Table<V> {
    /// An empty table, laid out for `max_keys` values; see [`fit`](Self::fit) for another cap.
    pub(super) fn new(max_keys: usize) -> Self {
        Self {
            shards: empty_shards(shards_for(max_keys)),
            len: 0,
            hand: 0,
            overflow: Box::default(),
            overflowed: 0,
        }
    }

    /// Lays the table out anew if its shards would become far too large under this cap. That moves every value, once per
    /// reload that raises the cap to a multiple; else each request would search such shards.
    pub(super) fn fit(&mut self, max_keys: usize) {
        let shards = shards_for(max_keys);
        if shards <= self.shards.len().saturating_mul(LARGER) {
            return;
        }
        let old = std::mem::replace(&mut self.shards, empty_shards(shards));
        self.hand = 0;
        for (key, used) in old.into_iter().flatten() {
            let index = self.shard_of(key);
            if let Some(shard) = self.shards.get_mut(index) {
                shard.insert(key, used);
            }
        }
    }

    /// Values tracked one by one.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// How often a value was sent to an overflow window.
    pub(super) const fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// Evicts idle entries where the coming [`place`](Self::place) calls for `keys` will need room: in a shard that
    /// would have to grow, and in a few shards if the table is at its cap.
    pub(super) fn make_room(
        &mut self,
        keys: impl ExactSizeIterator<Item = Key> + Clone,
        max_keys: usize,
        is_idle: impl Fn(&V) -> bool,
    ) {
        for key in keys.clone() {
            let index = self.shard_of(key);
            let full = self
                .shards
                .get(index)
                .is_some_and(|s| s.len() == s.capacity() && !s.is_empty());
            if full && !self.tracks(key) {
                self.sweep(index, &is_idle);
            }
        }
        if self.len.saturating_add(keys.len()) <= max_keys {
            return;
        }
        let missing = keys.filter(|key| !self.tracks(*key)).count();
        let mut sweeps = if missing == 0 {
            0
        } else {
            SWEEPS.min(self.shards.len())
        };
        while sweeps > 0 && self.len.saturating_add(missing) > max_keys {
            self.sweep(self.hand, &is_idle);
            self.hand = (self.hand + 1) % self.shards.len();
            sweeps -= 1;
        }
    }

    /// The value's entry, made if there is room, else its overflow window. Evicts nothing.
    ///
    /// A value that leaves an overflow window takes a copy of it along, so that what it used there stays used.
    pub(super) fn place(&mut self, key: Key, room: Room) -> Entry<'_, V> {
        let index = self.shard_of(key);
        if !self.tracks(key) {
            let used = match room {
                Room::Within(max_keys) if self.len >= max_keys => {
                    self.overflowed += 1;
                    return Entry::Shared(self.overflow_window(key));
                }
                Room::Within(_) => self
                    .overflow
                    .get(overflow_of(key))
                    .map(|shared| shared.used.clone()),
                Room::Reserved => None,
            };
            if let Some(shard) = self.shards.get_mut(index) {
                shard.insert(key, used.unwrap_or_default());
                self.len += 1;
            }
        }
        let own = self.shards.get_mut(index).and_then(|shard| shard.get_mut(&key));
        Entry::Own(own.expect("it was tracked or has just been inserted"))
    }

    /// Where [`place`](Self::place) has put the value.
    pub(super) fn placed(&mut self, key: Key) -> Entry<'_, V> {
        if self.tracks(key) {
            let index = self.shard_of(key);
            let own = self.shards.get_mut(index).and_then(|shard| shard.get_mut(&key));
            return Entry::Own(own.expect("it is tracked"));
        }
        Entry::Shared(self.overflow_window(key))
    }

    fn tracks(&self, key: Key) -> bool {
        self.shards
            .get(self.shard_of(key))
            .is_some_and(|shard| shard.contains_key(&key))
    }

    fn overflow_window(&mut self, key: Key) -> &mut Shared<V> {
        if self.overflow.is_empty() {
            self.overflow = (0..OVERFLOW_WINDOWS).map(|_| Shared::default()).collect();
        }
        self.overflow
            .get_mut(overflow_of(key))
            .expect("the index is taken modulo their number")
    }

    /// Evicts the idle entries of one shard, and gives memory back that it has far too much of.
    fn sweep(&mut self, index: usize, is_idle: impl Fn(&V) -> bool) {
        let Some(shard) = self.shards.get_mut(index) else {
            return;
        };
        let before = shard.len();
        shard.retain(|_, value| !is_idle(value));
        self.len -= before - shard.len();
        if shard.capacity() > 64 && shard.len() < shard.capacity() / 8 {
            shard.shrink_to(shard.len() * 2);
        }
    }

    fn shard_of(&self, key: Key) -> usize {
        // The high bits, spread evenly over any number of shards.
        let spread = u128::from(key.place) * self.shards.len() as u128;
        usize::try_from(spread >> 64).unwrap_or(0)
    }
}

fn shards_for(max_keys: usize) -> usize {
    max_keys.div_ceil(SHARD_VALUES).clamp(1, MAX_SHARDS)
}

fn empty_shards<V>(count: usize) -> Box<[Shard<V>]> {
    (0..count).map(|_| Shard::default()).collect()
}

/// By the low bits, so that the values of one shard spread over the overflow windows.
fn overflow_of(key: Key) -> usize {
    usize::try_from(key.place % OVERFLOW_WINDOWS).unwrap_or(0)
}

#[cfg(test)]
mod tests;
