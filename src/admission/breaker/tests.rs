use std::time::Duration;

use super::*;
use crate::admission::fixtures::{SECOND, degrade, ms};

const TIMEOUT: Duration = Duration::from_secs(2);

/// More than half of at least 4 failing in a second opens it for 10 s.
fn breaker() -> Breaker {
    tuned(&degrade("b"))
}

fn tuned(rule: &DegradeRule) -> Breaker {
    rule.fresh()
}

fn enter(breaker: &mut Breaker, now: Tick) -> Ticket {
    assert_eq!(breaker.check(now), Ok(()));
    breaker.take(now.after(TIMEOUT), now)
}

fn run(breaker: &mut Breaker, failed: bool, now: Tick) {
    let ticket = enter(breaker, now);
    breaker.complete(ticket, failed, now);
}

/// Open since `now`.
fn opened(now: Tick) -> Breaker {
    let mut breaker = breaker();
    (0..4).for_each(|_| run(&mut breaker, true, now));
    assert_eq!(breaker.phase(now), BreakerPhase::Open);
    breaker
}

#[test]
fn it_opens_above_the_ratio_and_not_at_it() {
    let mut breaker = breaker();
    for failed in [true, false, true, false] {
        run(&mut breaker, failed, ms(0));
    }
    assert_eq!(breaker.phase(ms(0)), BreakerPhase::Closed);
    run(&mut breaker, true, ms(0));
    assert_eq!(breaker.phase(ms(0)), BreakerPhase::Open);
}

#[test]
fn a_ratio_of_one_opens_when_all_failed() {
    let rule = DegradeRule {
        trip: Trip::ExceptionRatio(1.0),
        ..degrade("b")
    };
    let (mut all, mut most) = (tuned(&rule), tuned(&rule));
    run(&mut most, false, ms(0));
    for _ in 0..4 {
        run(&mut all, true, ms(0));
        run(&mut most, true, ms(0));
    }
    assert_eq!(
        (all.phase(ms(0)), most.phase(ms(0))),
        (BreakerPhase::Open, BreakerPhase::Closed)
    );
}

#[test]
fn too_few_requests_never_open_it() {
    let mut breaker = breaker();
    (0..3).for_each(|_| run(&mut breaker, true, ms(0)));
    assert_eq!(breaker.phase(ms(0)), BreakerPhase::Closed);
}

#[test]
fn the_window_slides_over_the_second() {
    let mut breaker = breaker();
    run(&mut breaker, true, ms(950));
    run(&mut breaker, true, ms(960));
    run(&mut breaker, true, ms(1_040));
    run(&mut breaker, true, ms(1_050));
    assert_eq!(breaker.phase(ms(1_050)), BreakerPhase::Open);
}

#[test]
fn failures_age_out_of_the_window() {
    let mut breaker = breaker();
    (0..3).for_each(|_| run(&mut breaker, true, ms(0)));
    run(&mut breaker, true, ms(1_000));
    assert_eq!(breaker.phase(ms(1_000)), BreakerPhase::Closed);
}

#[test]
fn it_refuses_with_the_exact_time_to_its_probe() {
    let mut breaker = opened(ms(100));
    assert_eq!(breaker.check(ms(3_100)), Err(Wait::For(7 * SECOND)));
    assert_eq!(breaker.check(ms(10_100)), Ok(()));
}

#[test]
fn one_probe_at_a_time() {
    let mut breaker = opened(ms(0));
    let probe = enter(&mut breaker, ms(10_000));
    assert!(probe.probe);
    assert_eq!(
        breaker.check(ms(10_500)),
        Err(Wait::For(Duration::from_millis(1_500)))
    );
}

#[test]
fn a_probe_that_succeeds_closes_it_and_the_window_is_forgotten() {
    let mut breaker = opened(ms(0));
    run(&mut breaker, false, ms(10_000));
    assert_eq!(breaker.phase(ms(10_000)), BreakerPhase::Closed);
    (0..3).for_each(|_| run(&mut breaker, true, ms(10_000)));
    assert_eq!(breaker.phase(ms(10_000)), BreakerPhase::Closed);
}

#[test]
fn a_probe_that_fails_opens_it_for_another_period() {
    let mut breaker = opened(ms(0));
    run(&mut breaker, true, ms(10_000));
    assert_eq!(breaker.check(ms(10_000)), Err(Wait::For(10 * SECOND)));
    assert_eq!(breaker.trips(), 2);
}

#[test]
fn a_probe_that_was_given_back_makes_room_for_the_next_at_once() {
    let mut breaker = opened(ms(0));
    let probe = enter(&mut breaker, ms(10_000));
    breaker.give_back(probe, ms(10_100));
    assert_eq!(breaker.phase(ms(10_100)), BreakerPhase::HalfOpen);
    assert!(enter(&mut breaker, ms(10_100)).probe);
}

#[test]
fn a_probe_that_hangs_has_failed_at_its_deadline() {
    let mut breaker = opened(ms(0));
    let hung = enter(&mut breaker, ms(10_000));
    assert_eq!(breaker.check(ms(12_000)), Err(Wait::For(10 * SECOND)));
    breaker.complete(hung, false, ms(13_000));
    assert_eq!(breaker.phase(ms(13_000)), BreakerPhase::Open);
    assert!(enter(&mut breaker, ms(22_000)).probe);
}

#[test]
fn what_was_admitted_before_it_opened_decides_nothing() {
    let mut breaker = breaker();
    let old = enter(&mut breaker, ms(0));
    (0..4).for_each(|_| run(&mut breaker, true, ms(100)));
    let probe = enter(&mut breaker, ms(10_100));
    breaker.complete(old, false, ms(10_200));
    assert_eq!(breaker.phase(ms(10_200)), BreakerPhase::HalfOpen);
    breaker.complete(probe, true, ms(10_300));
    assert_eq!(breaker.phase(ms(10_300)), BreakerPhase::Open);
}

#[test]
fn what_was_admitted_before_it_opened_counts_for_nothing_after_it_closed() {
    let mut breaker = breaker();
    let old: Vec<_> = (0..8).map(|_| enter(&mut breaker, ms(0))).collect();
    (0..4).for_each(|_| run(&mut breaker, true, ms(100)));
    run(&mut breaker, false, ms(10_100));
    old.into_iter()
        .for_each(|ticket| breaker.complete(ticket, true, ms(10_200)));
    assert_eq!(breaker.phase(ms(10_200)), BreakerPhase::Closed);
}

#[test]
fn a_probe_given_back_after_it_was_decided_changes_nothing() {
    let mut breaker = opened(ms(0));
    let probe = enter(&mut breaker, ms(10_000));
    breaker.complete(probe, false, ms(10_100));
    breaker.give_back(probe, ms(10_200));
    assert_eq!(breaker.phase(ms(10_200)), BreakerPhase::Closed);
}

#[test]
fn a_shorter_open_time_takes_effect_while_it_is_open() {
    let mut breaker = opened(ms(0));
    DegradeRule {
        open_for: SECOND,
        ..degrade("b")
    }
    .adopt(&mut breaker);
    assert_eq!(breaker.check(ms(999)), Err(Wait::For(Duration::from_millis(1))));
    assert_eq!(breaker.check(ms(1_000)), Ok(()));
}

#[test]
fn a_changed_window_keeps_what_was_counted() {
    let mut breaker = breaker();
    (0..3).for_each(|_| run(&mut breaker, true, ms(900)));
    DegradeRule {
        window: 60 * SECOND,
        ..degrade("b")
    }
    .adopt(&mut breaker);
    run(&mut breaker, true, ms(30_000));
    assert_eq!(breaker.phase(ms(30_000)), BreakerPhase::Open);
}
