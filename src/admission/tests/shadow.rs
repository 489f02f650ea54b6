//! A shadow rule blocks nothing, has a state of its own, and takes only what it would itself admit.

use super::super::fixtures::{Bed, degrade, flow, isolation, ms, param_flow, resource, shadow};
use super::super::*;
use crate::rules::{DegradeRule, FlowRule, IsolationRule, OnMissingParam, ParamFlowRule};

fn would_block(bed: &Bed, rule: usize) -> u64 {
    bed.admission.snapshot(ms(0))[0].rules[rule].blocked
}

#[test]
fn a_shadow_limit_counts_what_it_would_have_refused_and_keeps_admitting_its_share() {
    let bed = Bed::new(ResourceRules {
        param_flow: vec![ParamFlowRule {
            head: shadow("s"),
            ..param_flow("s", 5)
        }],
        ..resource("r")
    });
    // Twice the rate, evenly: a shadow that took everything would refuse for ever after.
    for at in 0..40 {
        assert_eq!(bed.passes("alice", 1, ms(100 * at)), 1);
    }
    assert_eq!(would_block(&bed, 0), 20);
}

#[test]
fn a_shadow_rule_is_fed_by_what_the_enforced_rules_admit() {
    let bed = Bed::new(ResourceRules {
        param_flow: vec![
            param_flow("e", 3),
            ParamFlowRule {
                head: shadow("s"),
                ..param_flow("s", 5)
            },
        ],
        ..resource("r")
    });
    assert_eq!(bed.passes("alice", 50, ms(0)), 3);
    assert_eq!((would_block(&bed, 0), would_block(&bed, 1)), (47, 0));
}

#[test]
fn a_shadow_flow_rule_blocks_nothing() {
    let bed = Bed::new(ResourceRules {
        flow: vec![FlowRule {
            head: shadow("s"),
            ..flow("s", 0)
        }],
        ..resource("r")
    });
    assert_eq!(bed.passes("alice", 9, ms(0)), 9);
    assert_eq!(would_block(&bed, 0), 9);
}

#[test]
fn a_shadow_cap_has_places_of_its_own() {
    let bed = Bed::new(ResourceRules {
        isolation: vec![IsolationRule {
            head: shadow("s"),
            ..isolation("s", 2)
        }],
        ..resource("r")
    });
    let held: Vec<_> = (0..5).map(|_| bed.admit("alice", ms(0)).unwrap()).collect();
    assert_eq!(would_block(&bed, 0), 3);
    drop(held);
    assert_eq!(bed.passes("alice", 5, ms(0)), 5);
    assert_eq!(would_block(&bed, 0), 3);
}

#[test]
fn a_shadow_breaker_runs_through_its_states_and_refuses_nothing() {
    let bed = Bed::new(ResourceRules {
        degrade: vec![DegradeRule {
            head: shadow("s"),
            ..degrade("s")
        }],
        ..resource("r")
    });
    let run = |outcome, now| bed.admit("alice", now).unwrap().report(outcome, now);
    let phase = |now| bed.admission.snapshot(now)[0].breakers[0].state;
    (0..4).for_each(|_| run(Outcome::Failure, ms(0)));
    assert_eq!(phase(ms(0)), BreakerPhase::Open);
    run(Outcome::Success, ms(5_000));
    assert_eq!((phase(ms(5_000)), would_block(&bed, 0)), (BreakerPhase::Open, 1));
    run(Outcome::Success, ms(10_000));
    assert_eq!(phase(ms(10_000)), BreakerPhase::Closed);
}

#[test]
fn a_missing_parameter_passes_a_shadow_rule_and_is_counted() {
    let bed = Bed::new(ResourceRules {
        on_missing_param: OnMissingParam::Reject,
        param_flow: vec![ParamFlowRule {
            head: shadow("s"),
            ..param_flow("s", 5)
        }],
        ..resource("r")
    });
    assert!(bed.admit_value(ParamValue::Missing, ms(0)).is_ok());
    assert_eq!(bed.admission.snapshot(ms(0))[0].rules[0].lacking, 1);
    assert_eq!(would_block(&bed, 0), 0);
}
