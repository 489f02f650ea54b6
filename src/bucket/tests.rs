use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn ms(millis: u64) -> Tick {
    Tick::from_millis(millis)
}

fn fill(bucket: &mut Bucket, refill: Refill, now: Tick) -> u32 {
    let mut taken = 0;
    while bucket.check(refill, 1, now).is_ok() {
        bucket.take(refill, 1, now);
        taken += 1;
    }
    taken
}

#[test]
fn a_full_bucket_gives_count_and_burst_and_is_refilled_evenly() {
    let (mut bucket, refill) = (Bucket::default(), Refill::new(10, 5, SECOND));
    assert_eq!(fill(&mut bucket, refill, ms(5_000)), 15);
    assert_eq!(fill(&mut bucket, refill, ms(5_099)), 0);
    assert_eq!(fill(&mut bucket, refill, ms(5_100)), 1);
    assert_eq!(fill(&mut bucket, refill, ms(5_450)), 3);
}

#[test]
fn checking_takes_nothing() {
    let (bucket, refill) = (Bucket::default(), Refill::new(1, 0, SECOND));
    for _ in 0..10 {
        assert_eq!(bucket.check(refill, 1, ms(0)), Ok(()));
    }
}

#[test]
fn a_count_of_zero_denies_burst_or_not() {
    assert_eq!(
        Bucket::default().check(Refill::new(0, 9, SECOND), 1, ms(0)),
        Err(Wait::Denied)
    );
}

#[test]
fn what_weighs_more_than_the_bucket_holds_can_never_pass() {
    let refill = Refill::new(3, 2, SECOND);
    assert_eq!(Bucket::default().check(refill, 6, ms(0)), Err(Wait::TooHeavy));
    assert_eq!(Bucket::default().check(refill, 5, ms(0)), Ok(()));
}

#[test]
fn a_raised_count_leaves_the_difference() {
    let (mut bucket, old) = (Bucket::default(), Refill::new(5, 0, SECOND));
    assert_eq!(fill(&mut bucket, old, ms(0)), 5);
    assert_eq!(fill(&mut bucket, Refill::new(8, 0, SECOND), ms(0)), 3);
}

#[test]
fn a_lowered_count_leaves_nothing_at_first() {
    let (mut bucket, old) = (Bucket::default(), Refill::new(5, 0, SECOND));
    assert_eq!(fill(&mut bucket, old, ms(0)), 5);
    let low = Refill::new(2, 0, SECOND);
    assert_eq!(bucket.check(low, 1, ms(0)), Err(Wait::For(SECOND / 2)));
    assert_eq!(fill(&mut bucket, low, ms(1_000)), 2);
}

#[test]
fn the_longest_window_and_the_largest_burst_overflow_nothing() {
    let refill = Refill::new(1, u64::MAX, Duration::MAX);
    let mut bucket = Bucket::default();
    for at in [0, 1, u64::MAX / 8] {
        if bucket.check(refill, 1, Tick::from_nanos(at)).is_ok() {
            bucket.take(refill, 1, Tick::from_nanos(at));
        }
    }
    assert!(refill.limit() >= 1);
}

proptest! {
    #[test]
    fn it_gives_what_the_water_in_a_bucket_would(
        steps in prop::collection::vec((0..300_000_000_u64, 1..5_u32), 1..300),
        count in 1..50_u64,
        burst in 0..10_u64,
    ) {
        let refill = Refill::new(count, burst, SECOND);
        let interval = 1_000_000_000 / count;
        // The reference counts water in nanoseconds of refilling.
        let full = (count + burst) * interval;
        let (mut bucket, mut water, mut now) = (Bucket::default(), full, 0_u64);
        for (step, weight) in steps {
            now += step;
            water = (water + step).min(full);
            let cost = u64::from(weight) * interval;
            match bucket.check(refill, weight, Tick::from_nanos(now)) {
                Ok(()) => {
                    prop_assert!(water >= cost);
                    water -= cost;
                    bucket.take(refill, weight, Tick::from_nanos(now));
                }
                Err(Wait::For(wait)) => prop_assert_eq!(nanos(wait), cost - water),
                Err(wait) => prop_assert_eq!((wait, cost > full), (Wait::TooHeavy, true)),
            }
        }
    }
}
