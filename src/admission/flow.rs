//! Flow: a sliding window over all requests of a resource (Sentinel `FlowRule`, grade QPS, `reject`).

use super::BlockKind;
use super::check::{Check, Facts, Hold, Refusal};
use crate::clock::Tick;
use crate::rules::{FlowRule, RuleHead};
use crate::window::{Rate, Window};

impl Check for FlowRule {
    type State = Window;
    const KIND: BlockKind = BlockKind::Flow;

    fn head(&self) -> &RuleHead {
        &self.head
    }

    fn fresh(&self) -> Window {
        Window::default()
    }

    fn adopt(&self, _: &mut Window) {}

    fn evaluate(&self, window: &mut Window, _: &Facts<'_>, now: Tick) -> Result<(), Refusal> {
        let rate = rate(self);
        let refusal = |wait| Refusal {
            kind: Self::KIND,
            wait,
            limit: Some(rate.limit().into()),
        };
        window.check(rate, 1, now).map_err(refusal)
    }

    fn take(&self, window: &mut Window, _: &Facts<'_>, now: Tick) -> Option<Hold> {
        window.take(rate(self), 1, now);
        None
    }
}

fn rate(rule: &FlowRule) -> Rate {
    Rate::new(rule.count, 0, rule.window)
}
