//! Permits under threads, on every way out, and as probes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use super::super::fixtures::{Bed, SECOND, degrade, isolation, ms, param_flow, resource};
use super::super::*;
use super::refused;
use crate::rules::DegradeRule;

/// Opens the breakers of a bed at 0.
fn trip(bed: &Bed) {
    for _ in 0..4 {
        bed.admit("x", ms(0)).unwrap().report(Outcome::Failure, ms(0));
    }
}

fn phase(bed: &Bed, breaker: usize, now: Tick) -> BreakerPhase {
    bed.admission.snapshot(now)[0].breakers[breaker].state
}

#[test]
fn ten_means_ten_however_many_threads_ask() {
    for threads in [2, 4, 8] {
        let bed = Bed::new(ResourceRules {
            param_flow: vec![param_flow("a", 10)],
            ..resource("r")
        });
        let (barrier, passed) = (Barrier::new(threads), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    barrier.wait();
                    passed.fetch_add(bed.passes("alice", 100, ms(0)), Ordering::Relaxed);
                });
            }
        });
        assert_eq!(passed.load(Ordering::Relaxed), 10);
    }
}

#[test]
fn a_cap_is_reached_and_never_passed_by_threads_that_come_and_go() {
    let bed = Bed::new(ResourceRules {
        isolation: vec![isolation("i", 10)],
        degrade: vec![degrade("b")],
        ..resource("r")
    });
    let (now, most) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let held: Vec<_> = (0..3).filter_map(|_| bed.admit("alice", ms(0)).ok()).collect();
                    let taken = u32::try_from(held.len()).unwrap();
                    most.fetch_max(now.fetch_add(taken, Ordering::SeqCst) + taken, Ordering::SeqCst);
                    now.fetch_sub(taken, Ordering::SeqCst);
                    drop(held);
                }
            });
        }
    });
    assert!(most.load(Ordering::SeqCst) <= 10);
    assert_eq!(bed.in_flight(), 0);
    let held: Vec<_> = (0..20).filter_map(|_| bed.admit("alice", ms(0)).ok()).collect();
    assert_eq!(held.len(), 10);
}

#[test]
fn a_permit_falls_on_every_way_out() {
    let bed = Bed::new(ResourceRules {
        isolation: vec![isolation("i", 1)],
        ..resource("r")
    });
    let admit = || bed.admit("alice", ms(0)).expect("the permit before has fallen");
    drop(admit());
    admit().finish(ms(1));
    let mut reported = admit();
    reported.report(Outcome::Failure, ms(1));
    reported.report(Outcome::Success, ms(1));
    drop(reported);
    let permit = admit();
    thread::scope(|scope| {
        scope.spawn(move || drop(permit));
    });
    let permit = admit();
    let unwound = catch_unwind(AssertUnwindSafe(move || {
        let _held = permit;
        panic!("in the middle of a request");
    }));
    assert!(unwound.is_err());
    assert_eq!(bed.in_flight(), 0);
    assert_eq!(
        bed.admission.snapshot(ms(1))[0].exceptions,
        1,
        "only the first report counts"
    );
}

#[test]
fn what_never_had_an_outcome_counts_for_nothing() {
    let bed = Bed::new(ResourceRules {
        degrade: vec![degrade("b")],
        ..resource("r")
    });
    for _ in 0..100 {
        drop(bed.admit("alice", ms(0)).unwrap());
        bed.admit("alice", ms(0)).unwrap().report(Outcome::Gone, ms(0));
    }
    assert_eq!(phase(&bed, 0, ms(0)), BreakerPhase::Closed);
    (0..3).for_each(|_| bed.admit("alice", ms(0)).unwrap().report(Outcome::Failure, ms(0)));
    assert_eq!(phase(&bed, 0, ms(0)), BreakerPhase::Closed, "3 of 3 are too few");
}

#[test]
fn a_probe_dropped_without_an_outcome_is_given_back() {
    let bed = Bed::new(ResourceRules {
        degrade: vec![degrade("b")],
        ..resource("r")
    });
    trip(&bed);
    let probe = bed.admit("x", ms(10_000)).unwrap();
    assert_eq!(refused(bed.admit("x", ms(10_000))).kind, BlockKind::Degrade);
    drop(probe);
    assert_eq!(phase(&bed, 0, ms(10_000)), BreakerPhase::HalfOpen);
    bed.admit("x", ms(10_000))
        .unwrap()
        .report(Outcome::Success, ms(10_001));
    assert_eq!(phase(&bed, 0, ms(10_001)), BreakerPhase::Closed);
}

#[test]
fn a_probe_is_decided_by_its_report_and_not_by_the_end_of_its_body() {
    let bed = Bed::new(ResourceRules {
        degrade: vec![degrade("b")],
        ..resource("r")
    });
    trip(&bed);
    let mut probe = bed.admit("x", ms(10_000)).unwrap();
    probe.report(Outcome::Success, ms(10_001));
    assert_eq!(phase(&bed, 0, ms(10_001)), BreakerPhase::Closed);
    assert_eq!(bed.in_flight(), 1);
    probe.finish(ms(10_050));
    assert_eq!(bed.in_flight(), 0);
}

#[test]
fn a_probe_refused_by_another_rule_leaves_the_breaker_ready_for_the_next() {
    let bed = Bed::new(ResourceRules {
        degrade: vec![degrade("b")],
        param_flow: vec![param_flow("a", 4)],
        ..resource("r")
    });
    trip(&bed);
    (0..4).for_each(|_| {
        drop(
            bed.admit("alice", ms(10_000))
                .map(|mut probe| probe.report(Outcome::Gone, ms(10_000))),
        )
    });
    assert_eq!(refused(bed.admit("alice", ms(10_000))).kind, BlockKind::ParamFlow);
    let mut probe = bed.admit("bob", ms(10_000)).unwrap();
    probe.report(Outcome::Success, ms(10_000));
    assert_eq!(phase(&bed, 0, ms(10_000)), BreakerPhase::Closed);
}

#[test]
fn two_breakers_must_both_permit_and_recover_after_the_longer_wait_and_one_request() {
    let of = |id, seconds| DegradeRule {
        open_for: seconds * SECOND,
        ..degrade(id)
    };
    let bed = Bed::new(ResourceRules {
        degrade: vec![of("one", 1), of("three", 3)],
        ..resource("r")
    });
    trip(&bed);
    let blocked = refused(bed.admit("x", ms(1_000)));
    assert_eq!(
        (blocked.rule, blocked.retry_after),
        (Some(RuleId::new("three")), Some(2 * SECOND))
    );
    assert_eq!(
        phase(&bed, 0, ms(1_000)),
        BreakerPhase::Open,
        "no probe was spent"
    );
    bed.admit("x", ms(3_000))
        .unwrap()
        .report(Outcome::Success, ms(3_001));
    assert_eq!(
        [0, 1].map(|breaker| phase(&bed, breaker, ms(3_001))),
        [BreakerPhase::Closed; 2]
    );
}

#[test]
fn threads_that_race_for_the_probe_get_one() {
    let bed = Bed::new(ResourceRules {
        degrade: vec![degrade("b")],
        ..resource("r")
    });
    trip(&bed);
    let probes: Vec<Permit> = thread::scope(|scope| {
        let ask = || bed.admit("x", ms(10_000)).ok();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(probes.len(), 1);
}

#[test]
fn isolation_estimates_the_wait_from_the_response_time() {
    let bed = Bed::new(ResourceRules {
        isolation: vec![isolation("i", 2)],
        ..resource("r")
    });
    bed.admit("x", ms(0)).unwrap().finish(ms(100));
    let _held = [bed.admit("x", ms(100)).unwrap(), bed.admit("x", ms(100)).unwrap()];
    let blocked = refused(bed.admit("x", ms(100)));
    assert_eq!((blocked.kind, blocked.limit), (BlockKind::Isolation, Some(2)));
    assert_eq!(blocked.retry_after, Some(SECOND / 20));
}

#[test]
fn a_cap_of_zero_denies_without_a_time_to_wait() {
    let bed = Bed::new(ResourceRules {
        isolation: vec![isolation("i", 0)],
        ..resource("r")
    });
    assert_eq!(refused(bed.admit("x", ms(0))).retry_after, None);
}
