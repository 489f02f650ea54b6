use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn ms(millis: u64) -> Tick {
    Tick::from_millis(millis)
}

/// Takes one by one for as long as the window lets it.
fn fill(window: &mut Window, rate: Rate, now: Tick) -> u32 {
    let mut taken = 0;
    while try_take(window, rate, 1, now) {
        taken += 1;
    }
    taken
}

fn try_take(window: &mut Window, rate: Rate, weight: u32, now: Tick) -> bool {
    let passed = window.check(rate, weight, now).is_ok();
    if passed {
        window.take(rate, weight, now);
    }
    passed
}

fn wait_of(window: &mut Window, rate: Rate, weight: u32, now: Tick) -> Duration {
    match window.check(rate, weight, now) {
        Err(Wait::For(wait)) => wait,
        other => panic!("expected a wait, got {other:?}"),
    }
}

#[test]
fn a_take_is_free_again_exactly_one_window_later() {
    let (mut window, rate) = (Window::default(), Rate::new(5, 0, SECOND));
    assert!(try_take(&mut window, rate, 1, ms(0)));
    assert_eq!(fill(&mut window, rate, ms(950)), 4);
    assert_eq!(wait_of(&mut window, rate, 1, ms(999)), Duration::from_millis(1));
    assert_eq!(fill(&mut window, rate, ms(1050)), 1);
}

#[test]
fn the_burst_is_part_of_the_limit() {
    let (mut window, rate) = (Window::default(), Rate::new(5, 3, SECOND));
    assert_eq!(fill(&mut window, rate, ms(0)), 8);
}

#[test]
fn a_count_of_zero_denies_for_ever_burst_or_not() {
    let mut window = Window::default();
    assert_eq!(window.check(Rate::new(0, 7, SECOND), 1, ms(0)), Err(Wait::Denied));
}

#[test]
fn what_weighs_more_than_the_limit_can_never_pass() {
    let mut window = Window::default();
    assert_eq!(
        window.check(Rate::new(3, 2, SECOND), 6, ms(0)),
        Err(Wait::TooHeavy)
    );
    assert_eq!(window.check(Rate::new(3, 2, SECOND), 5, ms(0)), Ok(()));
}

#[test]
fn a_large_count_admits_exactly_the_count_at_once() {
    let (mut window, rate) = (Window::default(), Rate::new(100, 0, SECOND));
    assert_eq!(fill(&mut window, rate, ms(1234)), 100);
    // Sub-windows of 15.625 ms: the takes count as made at 1 234.375.
    assert_eq!(
        wait_of(&mut window, rate, 1, ms(2234)),
        Duration::from_micros(375)
    );
    assert_eq!(fill(&mut window, rate, ms(2235)), 100);
}

#[test]
fn a_raised_count_leaves_the_difference() {
    let mut window = Window::default();
    assert_eq!(fill(&mut window, Rate::new(5, 0, SECOND), ms(0)), 5);
    assert_eq!(fill(&mut window, Rate::new(8, 0, SECOND), ms(10)), 3);
}

#[test]
fn a_lowered_count_leaves_nothing_until_the_takes_age_out() {
    let (mut window, low) = (Window::default(), Rate::new(2, 0, SECOND));
    for at in 0..5 {
        assert!(try_take(&mut window, Rate::new(5, 0, SECOND), 1, ms(100 * at)));
    }
    assert_eq!(wait_of(&mut window, low, 1, ms(500)), Duration::from_millis(800));
    assert_eq!(fill(&mut window, low, ms(1299)), 0);
    assert_eq!(fill(&mut window, low, ms(1300)), 1);
}

#[test]
fn usage_is_kept_across_the_border_between_exact_and_sub_windows() {
    let (exact, coarse) = (Rate::new(64, 0, SECOND), Rate::new(65, 0, SECOND));
    let mut window = Window::default();
    assert_eq!(fill(&mut window, exact, ms(1)), 64);
    assert_eq!(fill(&mut window, coarse, ms(2)), 1);
    assert_eq!(fill(&mut window, exact, ms(3)), 0);
    assert_eq!(
        wait_of(&mut window, exact, 1, ms(3)),
        Duration::from_millis(998),
        "65 used: 2 must age out, and 64 do"
    );
    assert_eq!(fill(&mut window, exact, ms(1001)), 63);
}

#[test]
fn a_sub_windows_takes_count_as_made_at_its_end_after_a_reload() {
    let mut window = Window::default();
    assert_eq!(fill(&mut window, Rate::new(100, 0, SECOND), ms(1)), 100);
    let exact = Rate::new(10, 0, SECOND);
    assert_eq!(
        wait_of(&mut window, exact, 1, ms(1000)),
        Duration::from_micros(15_625)
    );
}

#[test]
fn usage_is_kept_when_the_window_becomes_longer() {
    let (second, hour) = (Rate::new(5, 0, SECOND), Rate::new(5, 0, 3600 * SECOND));
    let mut window = Window::default();
    assert_eq!(fill(&mut window, second, ms(500)), 5);
    assert_eq!(fill(&mut window, hour, ms(600)), 0);
    assert_eq!(fill(&mut window, hour, ms(3_600_499)), 0);
    assert_eq!(fill(&mut window, hour, ms(3_600_501)), 5);
}

#[test]
fn usage_is_kept_when_the_window_becomes_shorter() {
    let (hour, second) = (Rate::new(100, 0, 3600 * SECOND), Rate::new(100, 0, SECOND));
    let mut window = Window::default();
    assert_eq!(fill(&mut window, hour, ms(500)), 100);
    assert_eq!(fill(&mut window, second, ms(600)), 0);
    assert_eq!(
        fill(&mut window, second, ms(1600)),
        100,
        "no take was made later than it was seen"
    );
}

#[test]
fn thirty_idle_days_with_a_huge_count_overflow_nothing() {
    let (mut window, rate) = (Window::default(), Rate::new(1_000_000_000, u64::MAX, SECOND));
    assert!(try_take(&mut window, rate, 1_000_000_000, ms(1)));
    let later = ms(30 * 24 * 3_600_000);
    assert!(try_take(&mut window, rate, 1_000_000_000, later));
    assert_eq!(window.used, 1_000_000_000);
}

#[test]
fn a_value_is_small_when_idle_and_bounded_when_busy() {
    assert!(size_of::<Window>() <= 56);
    let mut window = Window::default();
    let rate = Rate::new(64, 0, SECOND);
    for at in 0..1_000 {
        try_take(&mut window, rate, 1, ms(7 * at));
    }
    assert!(
        size_of::<Window>() + 4 * window.words.capacity() < 400,
        "{}",
        window.words.capacity()
    );
    let rate = Rate::new(1_000_000, 0, SECOND);
    for at in 0..10_000 {
        try_take(
            &mut window,
            rate,
            1,
            Tick::from_nanos(7_000_000_000 + 777_777 * at),
        );
    }
    assert!(window.words.len() <= 2 * 65, "{}", window.words.len());
}

/// What every window of `length` has taken, by the plainest count.
fn in_window(takes: &[(u64, u32)], now: u64, length: u64) -> u64 {
    takes
        .iter()
        .filter(|(at, _)| at + length > now)
        .map(|(_, weight)| u64::from(*weight))
        .sum()
}

/// Steps of up to two windows, most much shorter; and a weight.
fn steps() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let step = prop_oneof![
        4 => 0..2_000_000_u64,
        4 => 0..60_000_000_u64,
        1 => 0..2_000_000_000_u64,
    ];
    prop::collection::vec((step, 1..6_u32), 1..400)
}

/// From a millisecond to a day, in nanoseconds.
const LENGTHS: [u64; 5] = [
    1_000_000,
    500_000_000,
    1_000_000_000,
    7_000_000_000,
    86_400_000_000_000,
];

proptest! {
    #[test]
    fn no_window_ever_holds_more_than_its_limit_and_none_is_late(
        steps in steps(),
        count in 1..200_u64,
        burst in 0..20_u64,
        length in prop_oneof![Just(1_000_000_u64), Just(999_999_937), Just(1_000_000_000), Just(7_000_000_000)],
    ) {
        let rate = Rate::new(count, burst, Duration::from_nanos(length));
        let limit = u64::from(rate.limit());
        // Exact times are rounded up to units of 2^k ns; sub-windows to their end.
        let late = if limit <= 64 { (1 << rate.shift()) - 1 } else { length.div_ceil(64) };
        let (mut window, mut takes, mut now) = (Window::default(), Vec::new(), 1_u64);
        for (step, weight) in steps {
            now += step;
            match window.check(rate, weight, Tick::from_nanos(now)) {
                Ok(()) => {
                    window.take(rate, weight, Tick::from_nanos(now));
                    takes.push((now, weight));
                    prop_assert!(in_window(&takes, now, length) <= limit);
                }
                Err(Wait::For(wait)) => {
                    prop_assert!(in_window(&takes, now, length + late) + u64::from(weight) > limit);
                    let then = now + nanos(wait);
                    prop_assert!(window.clone().check(rate, weight, Tick::from_nanos(then)).is_ok());
                    prop_assert!(window.clone().check(rate, weight, Tick::from_nanos(then - 1)).is_err());
                }
                Err(Wait::TooHeavy) => prop_assert!(u64::from(weight) > limit),
                Err(Wait::Denied) => prop_assert!(false, "the count is not 0"),
            }
        }
    }

    #[test]
    fn no_reload_lets_a_window_hold_more_than_the_limit_of_the_day(
        steps in steps(),
        rates in prop::collection::vec((1..130_u64, prop::sample::select(&LENGTHS)), 1..20),
    ) {
        let (mut window, mut takes, mut now) = (Window::default(), Vec::new(), 1_u64);
        for (index, (step, weight)) in steps.into_iter().enumerate() {
            now += step;
            let (count, length) = rates[index / 20 % rates.len()];
            // What a shorter window has forgotten stays forgotten.
            takes.retain(|(at, _)| at + length > now);
            let rate = Rate::new(count, 0, Duration::from_nanos(length));
            if try_take(&mut window, rate, weight, Tick::from_nanos(now)) {
                takes.push((now, weight));
                prop_assert!(in_window(&takes, now, length) <= count);
            }
        }
    }

    #[test]
    fn an_idle_window_is_worth_as_much_as_a_new_one(steps in steps(), count in 1..130_u64) {
        let rate = Rate::new(count, 0, SECOND);
        let (mut window, mut now) = (Window::default(), 1_u64);
        for (step, weight) in steps {
            now += step;
            if window.is_idle(rate, Tick::from_nanos(now)) {
                let (mut old, mut new) = (window.clone(), Window::default());
                let at = Tick::from_nanos(now);
                prop_assert_eq!(fill(&mut old, rate, at), fill(&mut new, rate, at));
            }
            try_take(&mut window, rate, weight, Tick::from_nanos(now));
        }
    }
}
