use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::clock::Tick;
use crate::window::{Rate, Window};

const SECOND: Duration = Duration::from_secs(1);

fn ms(millis: u64) -> Tick {
    Tick::from_millis(millis)
}

/// Takes 1 of `key`, as param flow does; whether it passed.
fn admit(table: &mut Table<Window>, key: Key, rate: Rate, max_keys: usize, now: Tick) -> bool {
    table.make_room([key].into_iter(), max_keys, |used| used.is_idle(rate, now));
    let used = match table.place(key, Room::Within(max_keys)) {
        Entry::Own(used) => used,
        Entry::Shared(shared) => &mut shared.used,
    };
    let passed = used.check(rate, 1, now).is_ok();
    if passed {
        used.take(rate, 1, now);
    }
    passed
}

#[test]
fn the_same_text_has_the_same_key_in_one_process_and_another_key_in_another() {
    let (one, other) = (KeyHasher::new(), KeyHasher::new());
    assert_eq!(one.key("alice"), one.key("alice"));
    assert_ne!(one.key("alice"), other.key("alice"));
    assert_ne!(one.key("00123"), one.key("123"));
}

#[test]
fn keys_spread_over_the_overflow_windows() {
    let hasher = KeyHasher::new();
    let windows: HashSet<_> = (0..40_960)
        .map(|n| overflow_of(hasher.key(&n.to_string())))
        .collect();
    assert!(windows.len() > 4_000, "{}", windows.len());
}

#[test]
fn a_flood_of_distinct_values_stays_within_the_cap_in_number_and_in_memory() {
    let (hasher, rate, cap) = (KeyHasher::new(), Rate::new(1, 0, 60 * SECOND), 50_000);
    let mut table = Table::new(cap);
    for n in 0..200_000_u64 {
        admit(
            &mut table,
            hasher.key(&n.to_string()),
            rate,
            cap,
            Tick::from_nanos(n),
        );
        assert!(table.len() <= cap);
    }
    assert_eq!(table.len(), cap);
    assert_eq!(table.overflowed(), 150_000);
    // A map of capacity c has c * 8 / 7 places, each of an entry and one byte.
    let places: usize = table.shards.iter().map(|shard| shard.capacity() * 8 / 7).sum();
    let bytes = places * (size_of::<(Key, Window)>() + 1) + table.shards.len() * size_of::<Shard<Window>>();
    assert!(bytes / cap < 110, "{} bytes per value", bytes / cap);
}

#[test]
fn a_table_grows_in_small_steps() {
    let (hasher, rate) = (KeyHasher::new(), Rate::new(1, 0, 60 * SECOND));
    let mut table = Table::new(1_000_000);
    for n in 0..200_000_u64 {
        admit(&mut table, hasher.key(&n.to_string()), rate, 1_000_000, ms(0));
    }
    let largest = table.shards.iter().map(HashMap::len).max();
    assert!(
        largest < Some(100),
        "one insertion moves at most a shard: {largest:?}"
    );
}

#[test]
fn a_raised_cap_keeps_the_steps_small_and_the_use_of_every_value() {
    let (hasher, rate) = (KeyHasher::new(), Rate::new(1, 0, 60 * SECOND));
    let mut table = Table::new(10);
    for n in 0..10_u64 {
        assert!(admit(&mut table, hasher.key(&n.to_string()), rate, 10, ms(0)));
    }
    table.fit(1_000_000);
    let passed = (0..100_000_u64)
        .filter(|n| admit(&mut table, hasher.key(&n.to_string()), rate, 1_000_000, ms(0)))
        .count();
    assert_eq!((passed, table.len()), (100_000 - 10, 100_000));
    let largest = table.shards.iter().map(HashMap::len).max();
    assert!(largest < Some(100), "{largest:?}");
}

#[test]
fn idle_values_make_room_for_new_ones() {
    // A secret of its own: near the cap it is a matter of luck whether the few shards that are searched have an idle one.
    let hasher = KeyHasher { secret: [7; 192] };
    let (rate, cap) = (Rate::new(1, 0, SECOND), 1_000);
    let mut table = Table::new(cap);
    for n in 0..50_000_u64 {
        // 900 of these fall into one window.
        assert!(admit(
            &mut table,
            hasher.key(&n.to_string()),
            rate,
            cap,
            Tick::from_nanos(n * 1_111_111)
        ));
    }
    assert!(table.len() <= cap);
}

#[test]
fn a_value_that_is_in_use_is_never_evicted() {
    let (hasher, rate, cap) = (KeyHasher::new(), Rate::new(3, 0, 60 * SECOND), 100);
    let (mut table, alice) = (Table::new(cap), hasher.key("alice"));
    for _ in 0..3 {
        assert!(admit(&mut table, alice, rate, cap, ms(0)));
    }
    for n in 0..100_000_u64 {
        admit(&mut table, hasher.key(&n.to_string()), rate, cap, ms(n / 10));
    }
    assert!(!admit(&mut table, alice, rate, cap, ms(10_000)));
}

#[test]
fn values_past_the_cap_share_a_window_and_keep_their_use_when_they_leave_it() {
    let (hasher, rate) = (KeyHasher::new(), Rate::new(2, 0, 10 * SECOND));
    let (mut table, alice, bob) = (Table::new(1), hasher.key("alice"), hasher.key("bob"));
    assert!(admit(&mut table, alice, rate, 1, ms(0)));
    assert!(
        admit(&mut table, bob, rate, 1, ms(9_000)),
        "in the overflow window"
    );
    assert_eq!(table.overflowed(), 1);
    // Alice is idle now, bob gets an entry of his own, and the one that he used counts.
    assert!(admit(&mut table, bob, rate, 1, ms(10_000)));
    assert_eq!((table.len(), table.overflowed()), (1, 1));
    assert!(!admit(&mut table, bob, rate, 1, ms(10_001)));
    assert!(admit(&mut table, bob, rate, 1, ms(19_000)));
}

#[test]
fn memory_is_given_back_when_most_values_are_gone() {
    let (hasher, rate, cap) = (KeyHasher::new(), Rate::new(1, 0, SECOND), 64);
    let mut table = Table::new(cap);
    for n in 0..5_000_u64 {
        admit(&mut table, hasher.key(&n.to_string()), rate, 100_000, ms(0));
    }
    for n in 0..10_u64 {
        admit(&mut table, hasher.key(&format!("late {n}")), rate, cap, ms(5_000));
    }
    assert!(table.len() <= 10);
    assert!(table.shards.iter().map(Shard::capacity).sum::<usize>() < 1_000);
}

proptest! {
    #[test]
    fn no_value_ever_gets_more_than_its_count_on_any_way_through_the_table(
        steps in prop::collection::vec((0..200_000_000_u64, 0..12_usize), 1..400),
        cap in 0..6_usize,
    ) {
        let (hasher, rate) = (KeyHasher::new(), Rate::new(3, 0, SECOND));
        let (mut table, mut takes, mut now) = (Table::new(cap), Vec::new(), 1);
        for (step, value) in steps {
            now += step;
            if admit(&mut table, hasher.key(&value.to_string()), rate, cap, Tick::from_nanos(now)) {
                takes.push((value, now));
                let recent = takes.iter().filter(|(whose, at)| *whose == value && at + 1_000_000_000 > now);
                prop_assert!(recent.count() <= 3);
            }
            prop_assert!(table.len() <= cap);
        }
    }
}
