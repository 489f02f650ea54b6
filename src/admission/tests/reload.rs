//! State belongs to the rule's id, and there is no instant without rules.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::super::fixtures::{Bed, SECOND, degrade, isolation, ms, param_flow, resource, set};
use super::super::*;
use crate::rules::{ParamFlowRule, Shaping};

fn with_count(count: u64) -> ResourceRules {
    ResourceRules {
        param_flow: vec![param_flow("a", count)],
        ..resource("r")
    }
}

#[test]
fn a_rule_that_did_not_change_keeps_its_usage() {
    let mut bed = Bed::new(with_count(10));
    assert_eq!(bed.passes("alice", 20, ms(0)), 10);
    for _ in 0..5 {
        bed.reload(vec![with_count(10)], ms(1));
        assert_eq!(bed.passes("alice", 20, ms(1)), 0);
    }
}

#[test]
fn a_raised_count_admits_the_difference_and_a_lowered_one_nothing() {
    let mut bed = Bed::new(with_count(5));
    assert_eq!(bed.passes("alice", 5, ms(0)), 5);
    bed.reload(vec![with_count(8)], ms(1));
    assert_eq!(bed.passes("alice", 20, ms(1)), 3);
    assert_eq!(bed.passes("new", 20, ms(1)), 8);
    bed.reload(vec![with_count(2)], ms(2));
    assert_eq!(bed.passes("alice", 20, ms(2)), 0);
}

#[test]
fn a_token_bucket_keeps_its_usage_too() {
    let bucket = |count| ResourceRules {
        param_flow: vec![ParamFlowRule {
            shaping: Shaping::TokenBucket,
            ..param_flow("a", count)
        }],
        ..resource("r")
    };
    let mut bed = Bed::new(bucket(5));
    assert_eq!(bed.passes("alice", 5, ms(0)), 5);
    bed.reload(vec![bucket(8)], ms(0));
    assert_eq!(bed.passes("alice", 20, ms(0)), 3);
}

#[test]
fn a_rule_changed_before_its_first_request_is_enforced() {
    let mut bed = Bed::new(with_count(5));
    bed.reload(vec![with_count(2)], ms(0));
    assert_eq!(bed.passes("alice", 20, ms(0)), 2);
}

#[test]
fn a_removed_rule_keeps_its_usage_for_a_minute() {
    let hour = |id| ParamFlowRule {
        window: 3_600 * SECOND,
        ..param_flow(id, 5)
    };
    let with = |rules| ResourceRules {
        param_flow: rules,
        ..resource("r")
    };
    let mut bed = Bed::new(with(vec![hour("a")]));
    assert_eq!(bed.passes("alice", 5, ms(0)), 5);
    bed.reload(vec![with(vec![])], ms(1_000));
    assert_eq!(bed.passes("alice", 5, ms(1_000)), 5);
    bed.reload(vec![with(vec![hour("a")])], ms(60_999));
    assert_eq!(bed.passes("alice", 5, ms(60_999)), 0);
    bed.reload(vec![with(vec![])], ms(70_000));
    bed.reload(vec![with(vec![hour("a")])], ms(130_000));
    assert_eq!(bed.passes("alice", 5, ms(130_000)), 5);
}

#[test]
fn a_removed_resource_keeps_its_usage_for_a_minute() {
    let hour = || ResourceRules {
        param_flow: vec![ParamFlowRule {
            window: 3_600 * SECOND,
            ..param_flow("a", 5)
        }],
        ..resource("r")
    };
    let mut bed = Bed::new(hour());
    assert_eq!(bed.passes("alice", 5, ms(0)), 5);
    bed.reload(vec![resource("other")], ms(0));
    bed.reload(vec![hour()], ms(59_000));
    assert_eq!(bed.passes("alice", 5, ms(59_000)), 0);
    bed.reload(vec![resource("other")], ms(60_000));
    bed.reload(vec![resource("other")], ms(120_000));
    bed.reload(vec![hour()], ms(120_000));
    assert_eq!(bed.passes("alice", 5, ms(120_000)), 5);
}

#[test]
fn in_flight_survives_the_removal_of_its_rule_and_resource() {
    let capped = || ResourceRules {
        isolation: vec![isolation("i", 2)],
        ..resource("r")
    };
    let mut bed = Bed::new(capped());
    let held = [
        bed.admit("alice", ms(0)).unwrap(),
        bed.admit("alice", ms(0)).unwrap(),
    ];
    bed.reload(vec![resource("r")], ms(0));
    bed.reload(vec![capped()], ms(0));
    assert_eq!(bed.passes("alice", 5, ms(0)), 0);
    bed.reload(vec![resource("other")], ms(0));
    bed.reload(vec![resource("other")], ms(500_000));
    bed.reload(vec![capped()], ms(500_000));
    assert_eq!(bed.passes("alice", 5, ms(500_000)), 0);
    drop(held);
    assert_eq!(bed.passes("alice", 5, ms(500_000)), 5);
}

#[test]
fn an_open_breaker_stays_open_through_a_reload() {
    let guarded = || ResourceRules {
        degrade: vec![degrade("b")],
        ..resource("r")
    };
    let mut bed = Bed::new(guarded());
    for _ in 0..4 {
        bed.admit("alice", ms(0)).unwrap().report(Outcome::Failure, ms(0));
    }
    let mut changed = guarded();
    changed.degrade[0].min_requests = 9;
    bed.reload(vec![changed], ms(1));
    assert_eq!(bed.passes("alice", 1, ms(1)), 0);
    let mut shorter = guarded();
    shorter.degrade[0].open_for = SECOND;
    bed.reload(vec![shorter], ms(2));
    assert_eq!(
        (bed.passes("alice", 1, ms(999)), bed.passes("alice", 1, ms(1_000))),
        (0, 1)
    );
}

#[test]
fn a_call_with_the_older_set_meets_the_same_state() {
    let mut bed = Bed::new(with_count(5));
    let older = Arc::clone(&bed.rules);
    assert_eq!(bed.passes("alice", 3, ms(0)), 3);
    bed.reload(vec![with_count(5)], ms(0));
    bed.rules = older;
    assert_eq!(bed.passes("alice", 9, ms(0)), 2);
}

#[test]
fn a_call_whose_set_was_never_installed_is_limited_all_the_same() {
    let mut bed = Bed::new(resource("other"));
    bed.rules = set(vec![with_count(5)]);
    assert_eq!(bed.passes("alice", 9, ms(0)), 5);
}

#[test]
fn a_thousand_reloads_under_load_let_nothing_slip_through() {
    let mut bed = Bed::new(with_count(10));
    let (admission, done) = (Arc::clone(&bed.admission), AtomicBool::new(false));
    let first = Arc::clone(&bed.rules);
    let passed: u32 = thread::scope(|scope| {
        let hammer = || {
            let mut passed = 0;
            while !done.load(Ordering::Relaxed) {
                // Some calls carry the first set all along.
                let call = super::call(&first, super::one("alice"));
                passed += u32::from(admission.admit(&call, ms(0)).is_ok());
            }
            passed
        };
        let others = [scope.spawn(hammer), scope.spawn(hammer)];
        let mut passed = 0;
        for _ in 0..1_000 {
            bed.reload(vec![with_count(10)], ms(0));
            passed += bed.passes("alice", 2, ms(0));
        }
        done.store(true, Ordering::Relaxed);
        passed + others.map(|other| other.join().unwrap()).iter().sum::<u32>()
    });
    assert_eq!(passed, 10);
}
