//! Is a refusal for lack of money right? Each must have seen a moment at which there was too little.
//!
//! The entries of an account in the order of their commit are the states that it was in. What was acknowledged before the
//! call began was seen by it, and what was begun after its answer was not: of the states between these two, one must
//! have had less than was asked for. What is pending counts as nothing here, nor does a hold that has expired and was not
//! swept, so that a state never seems richer than it was: a finding is always a false refusal, and on an account without
//! either every false refusal that the order of calls can show is a finding.
//!
//! A ledger may know the order of commit of each slot only ([`Order::OfEachSlot`]). Then what the account had is at least
//! what each slot had at least, which is less than it ever had where money moved between slots: a finding is a false
//! refusal still. Nor is `available` compared there: such a ledger lets a credit that finds its slot busy wait, on any
//! account.

use std::collections::HashMap;

use super::{Entry, History, RequestKey, Span, owner};

/// How the entries of a history are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// As they were committed.
    #[default]
    OfCommit,
    /// Those of one slot as they were committed; others anyhow.
    OfEachSlot,
}

/// A refusal for lack of money.
#[derive(Clone, Debug)]
pub(crate) struct Shortage {
    /// Whose money was not enough: of a reversal it may be another's than whoever asked.
    pub(crate) account: String,
    pub(crate) request: String,
    pub(crate) asked: i64,
    /// What the answer says there was.
    pub(crate) available: i64,
    /// The most that the floor can have been.
    pub(crate) floor: i64,
    /// Whether the account never has pending credits nor holds that expire: then `available` is exactly a state.
    pub(crate) exact: bool,
    pub(crate) span: Span,
}

/// An account, or one slot of it.
type Place<'a> = (&'a str, Option<u8>);

/// The states of a place, and what is known of when each was reached.
#[derive(Debug, Default)]
struct States {
    /// What was in slots after so many entries.
    totals: Vec<i64>,
    /// When somebody knew of it, and at least so many entries: ascending in both.
    known: Vec<(u64, usize)>,
    /// When the request of an entry was begun, and the number of entries before it: ascending in both.
    begun: Vec<(u64, usize)>,
}

impl States {
    /// Those which a call may have seen.
    fn within(&self, span: Span) -> &[i64] {
        let before = self.known.partition_point(|(ended, _)| *ended < span.begun);
        let first = self.known[..before].last().map_or(0, |(_, count)| *count);
        let after = self.begun.partition_point(|(begun, _)| *begun <= span.ended);
        let last = self.begun.get(after).map(|(_, count)| *count);
        let last = last.unwrap_or(self.totals.len() - 1);
        self.totals.get(first..=last).unwrap_or_default()
    }

    fn sort(&mut self) {
        self.known.sort_unstable();
        let mut most = 0;
        for (_, count) in &mut self.known {
            most = most.max(*count);
            *count = most;
        }
        self.begun.sort_unstable();
        let mut least = usize::MAX;
        for (_, count) in self.begun.iter_mut().rev() {
            least = least.min(*count);
            *count = least;
        }
    }
}

impl History {
    /// Every refusal for lack of money saw too little of it.
    pub(super) fn check_shortages(&self, faults: &mut Vec<String>) {
        let states = self.states();
        let mut places: HashMap<&str, Vec<&States>> = HashMap::new();
        for ((account, _), states) in &states {
            places.entry(account).or_default().push(states);
        }
        for shortage in &self.shortages {
            let Shortage {
                account,
                request,
                asked,
                available,
                floor,
                exact,
                span,
            } = shortage;
            let places = places.get(account.as_str()).map_or(&[][..], Vec::as_slice);
            let least: Option<i64> = places
                .iter()
                .map(|states| states.within(*span).iter().min())
                .sum();
            let mut seen = places.iter().flat_map(|states| states.within(*span));
            if available >= asked || least.is_none_or(|least| least - floor >= *asked) {
                faults.push(format!(
                    "{account} {request}: refused {asked} for lack of money with {available}, never had less than {least:?}"
                ));
            } else if *exact
                && self.order == Order::OfCommit
                && !seen.any(|total| (total - floor).max(0) == *available)
            {
                faults.push(format!(
                    "{account} {request}: refused with {available}, which it never had"
                ));
            }
        }
    }

    fn states(&self) -> HashMap<Place<'_>, States> {
        let mut begun: HashMap<RequestKey<'_>, u64> = HashMap::new();
        for receipt in &self.receipts {
            let first = begun
                .entry((&receipt.account, &receipt.request))
                .or_insert(u64::MAX);
            *first = receipt.span.begun.min(*first);
        }
        let place = |account, slot| (account, Some(slot).filter(|_| self.order == Order::OfEachSlot));
        let mut states: HashMap<Place<'_>, States> = HashMap::new();
        let mut places = HashMap::new();
        for entry in &self.entries {
            let account = states
                .entry(place(entry.account.as_str(), entry.slot))
                .or_insert_with(|| States {
                    totals: vec![0],
                    ..States::default()
                });
            let before = account.totals.len() - 1;
            places.insert((entry.account.as_str(), entry.slot, entry.version), before + 1);
            if let Some(begun) = owner(entry).and_then(|request| begun.get(&request)) {
                account.begun.push((*begun, before));
            }
            account.totals.push(account.totals[before] + self.change(entry));
        }
        let legs = self.receipts.iter().flat_map(|receipt| {
            let legs = receipt.legs.iter();
            legs.map(|leg| (receipt.span.ended, leg.account.as_str(), leg.slot, leg.version))
        });
        let reads = self.reads.iter().flat_map(|read| {
            let slots = read.slots.iter();
            slots.map(|(slot, _, version)| (read.span.ended, read.account.as_str(), *slot, *version))
        });
        for (ended, account, slot, version) in legs.chain(reads) {
            if let Some(count) = places.get(&(account, slot, version))
                && let Some(states) = states.get_mut(&place(account, slot))
            {
                states.known.push((ended, *count));
            }
        }
        states.values_mut().for_each(States::sort);
        states
    }

    /// What an entry does to its place. What moves between slots stays in the account: between the two halves of a move
    /// nobody can look.
    fn change(&self, entry: &Entry) -> i64 {
        match self.order {
            Order::OfCommit if entry.kind == "consolidate" => 0,
            Order::OfCommit | Order::OfEachSlot => entry.delta,
        }
    }
}
