//! Admission against the plainest model of its promises: lists of takes, searched in full.

use proptest::prelude::*;

use super::super::fixtures::{Bed, SECOND, call, flow, isolation, one, param_flow, resource};
use super::super::*;
use crate::rules::{FlowRule, ParamFlowRule};

const ACCOUNTS: [&str; 3] = ["alice", "bob", "carol"];
const CURRENCIES: [&str; 2] = ["EUR", "USD"];

/// One thing that happens, after `wait` nanoseconds.
#[derive(Clone, Debug)]
struct Step {
    wait: u64,
    account: usize,
    currency: usize,
    /// How many permits fall first, the oldest first.
    ends: usize,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let wait = prop_oneof![6 => 0..40_000_000_u64, 1 => 0..1_500_000_000_u64];
    let step = (wait, 0..3_usize, 0..2_usize, 0..3_usize).prop_map(|(wait, account, currency, ends)| Step {
        wait,
        account,
        currency,
        ends,
    });
    prop::collection::vec(step, 1..300)
}

struct Model {
    /// (account, currency, time in nanoseconds) of what was admitted.
    takes: Vec<(usize, usize, u64)>,
    in_flight: usize,
}

impl Model {
    fn passes(&self, step: &Step, now: u64) -> bool {
        let within = |length: u64, of: &dyn Fn(&(usize, usize, u64)) -> bool| {
            self.takes
                .iter()
                .filter(|take| take.2 + length > now && of(take))
                .count()
        };
        within(1_000_000_000, &|take| take.0 == step.account) < 7
            && within(3_000_000_000, &|take| take.1 == step.currency) < 18
            && within(500_000_000, &|_| true) < 9
            && self.in_flight < 6
    }
}

/// 7 a second per account, 18 in 3 seconds per currency, 9 in half a second in all, 6 at once.
fn rules() -> ResourceRules {
    let by_currency = ParamFlowRule {
        param: 1,
        window: 3 * SECOND,
        ..param_flow("currency", 18)
    };
    ResourceRules {
        param_flow: vec![param_flow("account", 7), by_currency],
        flow: vec![FlowRule {
            window: SECOND / 2,
            ..flow("all", 9)
        }],
        isolation: vec![isolation("at once", 6)],
        ..resource("r")
    }
}

proptest! {
    #[test]
    fn exactly_what_the_promises_allow_passes_and_refusals_spend_nothing(steps in steps()) {
        let bed = Bed::new(rules());
        let mut model = Model { takes: Vec::new(), in_flight: 0 };
        let (mut permits, mut now) = (std::collections::VecDeque::new(), 0);
        for step in steps {
            // The window of 3 s keeps its times in units of 4 ns.
            now += step.wait / 4 * 4;
            (0..step.ends).for_each(|_| drop(permits.pop_front()));
            model.in_flight = permits.len();
            let mut call = call(&bed.rules, one(ACCOUNTS[step.account]));
            call.values[1] = one(CURRENCIES[step.currency]);
            let decided = bed.admission.admit(&call, Tick::from_nanos(now));
            prop_assert_eq!(decided.is_ok(), model.passes(&step, now));
            if let Ok(permit) = decided {
                permits.push_back(permit);
                model.takes.push((step.account, step.currency, now));
            }
        }
    }

    #[test]
    fn who_waits_as_told_passes_and_not_a_nanosecond_sooner(steps in steps(), count in 1..150_u64) {
        let mut rules = rules();
        rules.isolation.clear();
        rules.param_flow[0].count = count;
        rules.param_flow[1].shaping = crate::rules::Shaping::TokenBucket;
        let bed = Bed::new(rules);
        let mut now = 0;
        for step in steps {
            now += step.wait;
            let mut call = call(&bed.rules, one(ACCOUNTS[step.account]));
            call.values[1] = one(CURRENCIES[step.currency]);
            let Err(blocked) = bed.admission.admit(&call, Tick::from_nanos(now)) else { continue };
            now += crate::clock::nanos(blocked.retry_after.expect("only rates refuse"));
            prop_assert!(bed.admission.admit(&call, Tick::from_nanos(now - 1)).is_err());
            prop_assert!(bed.admission.admit(&call, Tick::from_nanos(now)).is_ok());
        }
    }
}
