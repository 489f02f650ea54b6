use std::time::Duration;

use super::fixtures::{
    Bed, SECOND, call, degrade, flow, head, isolation, many, ms, one, param_flow, resource,
};
use super::*;
use crate::rules::{FlowRule, OnMissingParam, ParamFlowRule, RuleHead, Shaping};

mod model;
mod permits;
mod reload;
mod shadow;

fn refused(result: Result<Permit, Blocked>) -> Blocked {
    match result {
        Err(blocked) => blocked,
        Ok(_) => panic!("it was admitted"),
    }
}

#[test]
fn each_value_has_a_limit_of_its_own() {
    let bed = Bed::new(ResourceRules {
        param_flow: vec![param_flow("a", 5)],
        ..resource("r")
    });
    assert_eq!(bed.passes("alice", 20, ms(0)), 5);
    assert_eq!(bed.passes("bob", 20, ms(0)), 5);
}

#[test]
fn a_refusal_names_the_rule_the_parameter_and_the_exact_wait() {
    let bed = Bed::new(ResourceRules {
        param_flow: vec![param_flow("a", 5)],
        ..resource("r")
    });
    assert_eq!(bed.passes("alice", 5, ms(100)), 5);
    let expected = Blocked {
        kind: BlockKind::ParamFlow,
        rule: Some(RuleId::new("a")),
        retry_after: Some(Duration::from_millis(600)),
        never: false,
        limit: Some(5),
        param: Some(ParamName::new("accountId")),
    };
    assert_eq!(refused(bed.admit("alice", ms(500))), expected);
}

#[test]
fn exception_items_have_their_own_count_by_their_text() {
    let items = [("1001".into(), 50), ("1002".into(), 0), ("00123".into(), 1)].into();
    let rule = ParamFlowRule {
        items,
        ..param_flow("a", 2)
    };
    let bed = Bed::new(ResourceRules {
        param_flow: vec![rule],
        ..resource("r")
    });
    let passes = ["1001", "1002", "00123", "123"].map(|account| bed.passes(account, 60, ms(0)));
    assert_eq!(passes, [50, 0, 1, 2]);
}

#[test]
fn exception_items_keep_their_own_window_in_a_full_table() {
    let rule = ParamFlowRule {
        items: [("vip".into(), 50)].into(),
        max_keys: 1,
        window: 60 * SECOND,
        ..param_flow("a", 1)
    };
    let bed = Bed::new(ResourceRules {
        param_flow: vec![rule],
        ..resource("r")
    });
    for n in 0..10_000 {
        bed.passes(&n.to_string(), 1, ms(0));
    }
    assert_eq!(bed.passes("vip", 60, ms(0)), 50);
}

#[test]
fn a_request_refused_by_one_rule_spends_nothing_of_another() {
    let minute = 60 * SECOND;
    let wide = ParamFlowRule {
        window: minute,
        ..param_flow("wide", 100)
    };
    let narrow = ParamFlowRule {
        window: minute,
        ..param_flow("narrow", 1)
    };
    let mut bed = Bed::new(ResourceRules {
        param_flow: vec![wide.clone(), narrow],
        ..resource("r")
    });
    assert_eq!(bed.passes("alice", 50, ms(0)), 1);
    bed.reload(
        vec![ResourceRules {
            param_flow: vec![wide],
            ..resource("r")
        }],
        ms(1),
    );
    assert_eq!(bed.passes("alice", 200, ms(2)), 99);
}

#[test]
fn a_request_refused_by_the_last_rule_spends_nothing_of_the_first() {
    let bed = Bed::new(ResourceRules {
        param_flow: vec![ParamFlowRule {
            shaping: Shaping::TokenBucket,
            ..param_flow("a", 5)
        }],
        flow: vec![flow("f", 6)],
        isolation: vec![isolation("i", 1)],
        ..resource("r")
    });
    let held = bed.admit("bob", ms(0)).unwrap();
    assert_eq!(bed.passes("alice", 50, ms(0)), 0);
    drop(held);
    assert_eq!(bed.passes("alice", 50, ms(0)), 5);
}

#[test]
fn the_answer_waits_for_the_slowest_rule_that_refuses() {
    let slow = FlowRule {
        window: 60 * SECOND,
        ..flow("f", 1)
    };
    let bed = Bed::new(ResourceRules {
        param_flow: vec![param_flow("a", 1)],
        flow: vec![slow],
        ..resource("r")
    });
    assert_eq!(bed.passes("alice", 1, ms(0)), 1);
    let blocked = refused(bed.admit("alice", ms(0)));
    assert_eq!(
        (blocked.kind, blocked.retry_after),
        (BlockKind::ParamFlow, Some(60 * SECOND))
    );
}

#[test]
fn among_rules_of_a_kind_the_slowest_is_named() {
    let slow = ParamFlowRule {
        window: 60 * SECOND,
        ..param_flow("slow", 1)
    };
    let bed = Bed::new(ResourceRules {
        param_flow: vec![param_flow("fast", 1), slow],
        ..resource("r")
    });
    assert_eq!(bed.passes("alice", 1, ms(0)), 1);
    assert_eq!(refused(bed.admit("alice", ms(0))).rule, Some(RuleId::new("slow")));
}

#[test]
fn an_open_breaker_is_named_before_all_else_and_nothing_is_spent() {
    let bed = Bed::new(ResourceRules {
        param_flow: vec![param_flow("a", 5)],
        isolation: vec![isolation("i", 0)],
        degrade: vec![degrade("b")],
        ..resource("r")
    });
    assert_eq!(refused(bed.admit("alice", ms(0))).kind, BlockKind::Isolation);
    let mut bed = bed;
    bed.reload(
        vec![ResourceRules {
            degrade: vec![degrade("b")],
            ..resource("r")
        }],
        ms(0),
    );
    for _ in 0..4 {
        bed.admit("alice", ms(0)).unwrap().report(Outcome::Failure, ms(0));
    }
    let blocked = refused(bed.admit("alice", ms(1_000)));
    assert_eq!(
        (blocked.kind, blocked.retry_after),
        (BlockKind::Degrade, Some(9 * SECOND))
    );
}

#[test]
fn the_values_of_one_request_weigh_together_all_or_nothing() {
    let bed = Bed::new(ResourceRules {
        param_flow: vec![param_flow("a", 5)],
        ..resource("r")
    });
    assert_eq!(bed.passes("alice", 3, ms(0)), 3);
    assert!(bed.admit_value(many(&[("bob", 5), ("alice", 3)]), ms(0)).is_err());
    assert!(
        bed.admit_value(many(&[("bob", 5), ("alice", 2)]), ms(0)).is_ok(),
        "bob had lost nothing"
    );
    assert_eq!(
        (bed.passes("alice", 5, ms(0)), bed.passes("bob", 5, ms(0))),
        (0, 0)
    );
}

#[test]
fn a_request_that_weighs_more_than_the_limit_is_told_that_it_can_never_pass() {
    let bed = Bed::new(ResourceRules {
        param_flow: vec![param_flow("a", 5)],
        ..resource("r")
    });
    let blocked = refused(bed.admit_value(many(&[("alice", 6)]), ms(0)));
    assert_eq!(
        (blocked.never, blocked.retry_after, blocked.limit),
        (true, None, Some(5))
    );
}

#[test]
fn values_of_one_request_that_meet_in_an_overflow_window_weigh_together_there() {
    let rule = ParamFlowRule {
        max_keys: 0,
        ..param_flow("a", 10_000)
    };
    let bed = Bed::new(ResourceRules {
        param_flow: vec![rule],
        ..resource("r")
    });
    // 9 000 values on 4 096 windows: some window is met by many values, none of which is too much alone.
    let values: Vec<String> = (0..9_000).map(|n| n.to_string()).collect();
    let values: Vec<(&str, u32)> = values.iter().map(|value| (value.as_str(), 3_000)).collect();
    assert!(bed.admit_value(many(&values), ms(0)).is_err());
    assert!(
        bed.admit_value(many(&[("alice", 10_000)]), ms(0)).is_ok(),
        "what was asked is forgotten"
    );
}

#[test]
fn a_count_of_zero_denies_without_a_time_to_wait() {
    let rule = ParamFlowRule {
        burst: 9,
        ..param_flow("a", 0)
    };
    let bed = Bed::new(ResourceRules {
        param_flow: vec![rule],
        ..resource("r")
    });
    let blocked = refused(bed.admit("alice", ms(0)));
    assert_eq!(
        (blocked.retry_after, blocked.never, blocked.limit),
        (None, false, Some(0))
    );
}

#[test]
fn a_missing_parameter_is_refused_where_an_enforced_rule_reads_it() {
    let bed = Bed::new(ResourceRules {
        param_flow: vec![param_flow("a", 5)],
        ..resource("r")
    });
    let blocked = refused(bed.admit_value(ParamValue::Missing, ms(0)));
    assert_eq!(
        (blocked.kind, blocked.param),
        (BlockKind::MissingParam, Some(ParamName::new("accountId")))
    );
    assert!(refused(bed.admit_value(many(&[]), ms(0))).kind == BlockKind::MissingParam);
    let rule = &bed.admission.snapshot(ms(0))[0].rules[0];
    assert_eq!((rule.lacking, rule.blocked), (2, 0));
}

#[test]
fn a_missing_parameter_that_no_rule_reads_passes() {
    let other = ParamFlowRule {
        param: 1,
        ..param_flow("c", 5)
    };
    let bed = Bed::new(ResourceRules {
        param_flow: vec![other],
        ..resource("r")
    });
    assert!(bed.admit_value(ParamValue::Missing, ms(0)).is_ok());
}

#[test]
fn requests_without_the_parameter_may_share_one_window() {
    let rules = ResourceRules {
        on_missing_param: OnMissingParam::Shared,
        ..resource("r")
    };
    let bed = Bed::new(ResourceRules {
        param_flow: vec![param_flow("a", 5)],
        ..rules
    });
    let passed = (0..20)
        .filter(|_| bed.admit_value(ParamValue::Missing, ms(0)).is_ok())
        .count();
    assert_eq!(passed, 5);
    assert_eq!(
        bed.passes("", 20, ms(0)),
        5,
        "an empty value is not a missing one"
    );
}

#[test]
fn requests_without_the_parameter_may_pass_and_are_counted() {
    let rules = ResourceRules {
        on_missing_param: OnMissingParam::Pass,
        ..resource("r")
    };
    let bed = Bed::new(ResourceRules {
        param_flow: vec![param_flow("a", 5)],
        ..rules
    });
    assert!((0..20).all(|_| bed.admit_value(ParamValue::Missing, ms(0)).is_ok()));
    assert_eq!(bed.admission.snapshot(ms(0))[0].rules[0].missing, 20);
}

#[test]
fn percent_selects_a_fixed_share_of_the_values() {
    let rule = ParamFlowRule {
        head: RuleHead {
            percent: 30,
            ..head("a")
        },
        max_keys: 100_000,
        ..param_flow("a", 0)
    };
    let bed = Bed::new(ResourceRules {
        param_flow: vec![rule],
        ..resource("r")
    });
    let blocked = |n: &u32| bed.admit(&n.to_string(), ms(0)).is_err();
    let first: Vec<u32> = (0..10_000).filter(blocked).collect();
    assert!((2_700..3_300).contains(&first.len()), "{}", first.len());
    assert_eq!((0..10_000).filter(blocked).collect::<Vec<_>>(), first);
}

#[test]
fn percent_selects_requests_where_the_rule_has_no_value() {
    let rule = FlowRule {
        head: RuleHead {
            percent: 30,
            ..head("f")
        },
        ..flow("f", 0)
    };
    let bed = Bed::new(ResourceRules {
        flow: vec![rule],
        ..resource("r")
    });
    let blocked = |request_hash: &u64| {
        let call = Call {
            request_hash: *request_hash,
            ..call(&bed.rules, one("alice"))
        };
        bed.admission.admit(&call, ms(0)).is_err()
    };
    let share = (0..10_000).filter(blocked).count();
    assert!((2_700..3_300).contains(&share), "{share}");
}

#[test]
fn a_snapshot_says_what_passed_and_what_each_rule_refused() {
    let rule = ParamFlowRule {
        max_keys: 2,
        ..param_flow("a", 5)
    };
    let bed = Bed::new(ResourceRules {
        param_flow: vec![rule],
        flow: vec![flow("f", 8)],
        ..resource("r")
    });
    let mut permit = bed.admit("alice", ms(0)).unwrap();
    permit.report(Outcome::Failure, ms(40));
    permit.finish(ms(40));
    assert_eq!(
        (bed.passes("alice", 6, ms(0)), bed.passes("bob", 6, ms(0))),
        (4, 3)
    );
    assert_eq!(bed.passes("carol", 1, ms(0)), 0);
    let shown = &bed.admission.snapshot(ms(50))[0];
    assert_eq!((shown.pass, shown.exceptions, shown.in_flight), (8, 1, 0));
    assert_eq!(shown.rt, Some(Duration::from_millis(40)));
    assert_eq!(
        shown.block[2..4],
        [(BlockKind::ParamFlow, 2), (BlockKind::Flow, 4)]
    );
    assert_eq!(
        (
            shown.rules[0].blocked,
            shown.rules[0].keys,
            shown.rules[0].overflow
        ),
        (2, 2, 1)
    );
    assert_eq!(
        (shown.rules[1].kind, shown.rules[1].blocked),
        (BlockKind::Flow, 4)
    );
}

#[test]
fn an_older_time_than_one_already_seen_counts_as_that_one() {
    let bed = Bed::new(ResourceRules {
        param_flow: vec![param_flow("a", 5)],
        ..resource("r")
    });
    assert_eq!(bed.passes("alice", 5, ms(1_000)), 5);
    assert_eq!(bed.passes("alice", 5, ms(400)), 0);
    assert_eq!(bed.passes("alice", 5, ms(2_000)), 5);
}
