//! The history checker: are these answers possible, given this statement?
//!
//! Sorts each slot's entries by version, replays them, and compares with every acknowledged receipt, refusal and
//! read. The spans of calls make it a cheap check of linearizability: a slot's version is a commit order, so what was
//! acknowledged before a call began must be within what that call saw.
//!
//! Takes plain values and uses nothing of the ledger's code, so that it can judge a store, a wallet or a service on a
//! socket alike. A request whose outcome is unknown is simply not given: its entries may be there or not.

use std::collections::{BTreeMap, HashMap, HashSet};

mod shortages;

pub(crate) use shortages::{Order, Shortage};

/// When a call began and was answered, in ticks of one counter of the caller's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) begun: u64,
    pub(crate) ended: u64,
}

/// One line of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) account: String,
    pub(crate) slot: u8,
    pub(crate) version: u64,
    /// As on the wire: `credit`, `transfer_in`, …
    pub(crate) kind: String,
    pub(crate) request: Option<String>,
    pub(crate) delta: i64,
    pub(crate) held_delta: i64,
    pub(crate) balance_after: i64,
    pub(crate) link: Link,
}

/// What an entry says that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Link {
    /// Nothing that is judged here.
    None,
    /// The other account.
    Account(String),
    Hold(String),
    Reversed(String),
}

/// One leg of a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leg {
    pub(crate) account: String,
    pub(crate) slot: u8,
    pub(crate) version: u64,
    pub(crate) delta: i64,
    pub(crate) held_delta: i64,
    pub(crate) balance_after: i64,
}

/// A success that a caller was told of, for the first time or again.
#[derive(Clone, Debug)]
pub(crate) struct Receipt {
    pub(crate) account: String,
    pub(crate) request: String,
    /// As on the wire: `credit`, `hold`, `transfer`, …
    pub(crate) kind: String,
    pub(crate) amount: i64,
    pub(crate) pending: bool,
    pub(crate) legs: Vec<Leg>,
    pub(crate) replayed: bool,
    pub(crate) span: Span,
}

/// A refusal that a caller was told of.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) account: String,
    pub(crate) request: String,
}

/// An account as a caller saw it.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) account: String,
    pub(crate) balance: i64,
    pub(crate) held: i64,
    pub(crate) pending: i64,
    /// Index, balance, version.
    pub(crate) slots: Vec<(u8, i64, u64)>,
    pub(crate) span: Span,
}

/// Everything that was seen, and the whole statement of every account in it, read at the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) entries: Vec<Entry>,
    pub(crate) order: Order,
    pub(crate) receipts: Vec<Receipt>,
    pub(crate) refusals: Vec<Refusal>,
    pub(crate) shortages: Vec<Shortage>,
    pub(crate) reads: Vec<Read>,
}

type SlotKey<'a> = (&'a str, u8);
type RequestKey<'a> = (&'a str, &'a str);

impl History {
    /// What cannot be so, in words; empty where the history is possible.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let chains = self.chains(&mut faults);
        self.check_moves(&mut faults);
        self.check_single_effects(&mut faults);
        self.check_holds(&chains, &mut faults);
        self.check_reversals(&mut faults);
        self.check_receipts(&chains, &mut faults);
        self.check_refusals(&mut faults);
        self.check_shortages(&mut faults);
        self.check_reads(&chains, &mut faults);
        self.check_order(&mut faults);
        faults
    }

    /// Replays every slot: versions from 1 without a gap, each balance the last one's plus the delta, never negative.
    fn chains(&self, faults: &mut Vec<String>) -> HashMap<SlotKey<'_>, Vec<&Entry>> {
        let mut chains: HashMap<SlotKey<'_>, Vec<&Entry>> = HashMap::new();
        for entry in &self.entries {
            chains
                .entry((&entry.account, entry.slot))
                .or_default()
                .push(entry);
        }
        for ((account, slot), entries) in &mut chains {
            entries.sort_by_key(|entry| entry.version);
            let mut balance = 0;
            for (version, entry) in (1..).zip(entries.iter()) {
                if entry.version != version {
                    let found = entry.version;
                    faults.push(format!(
                        "{account}/{slot}: version {found} where {version} comes next"
                    ));
                    break;
                }
                balance += entry.delta;
                if entry.balance_after != balance || balance < 0 {
                    let says = entry.balance_after;
                    faults.push(format!(
                        "{account}/{slot}@{version}: {says} after, replay says {balance}"
                    ));
                    break;
                }
            }
        }
        chains
    }

    /// What is moved between the slots of an account adds up to nothing.
    fn check_moves(&self, faults: &mut Vec<String>) {
        let mut moved: BTreeMap<&str, i64> = BTreeMap::new();
        for entry in self.entries.iter().filter(|entry| entry.kind == "consolidate") {
            *moved.entry(&entry.account).or_default() += entry.delta;
        }
        for (account, sum) in moved.into_iter().filter(|(_, sum)| *sum != 0) {
            faults.push(format!("{account}: moves between slots made {sum}"));
        }
    }

    /// No request has the same effect twice.
    fn check_single_effects(&self, faults: &mut Vec<String>) {
        let mut seen = HashSet::new();
        for entry in self.effects() {
            let effect = match entry.kind.as_str() {
                "credit" | "transfer_in" | "settle" => "came in",
                other => other,
            };
            if !seen.insert((owner(entry), &entry.account, effect)) {
                let (account, version) = (&entry.account, entry.version);
                faults.push(format!(
                    "{account}/{}@{version}: its request had this effect before",
                    entry.slot
                ));
            }
        }
    }

    /// What is captured and given back of a hold is never more than it was, and comes after it was placed.
    fn check_holds(&self, chains: &HashMap<SlotKey<'_>, Vec<&Entry>>, faults: &mut Vec<String>) {
        for ((account, slot), entries) in chains {
            let mut rest: HashMap<&str, i64> = HashMap::new();
            for entry in entries.iter().filter(|entry| entry.held_delta != 0) {
                let hold = match (&entry.link, &entry.request) {
                    (Link::Hold(hold), _) => hold,
                    (_, Some(request)) if entry.kind == "hold" => request,
                    _ => "",
                };
                let left = rest.entry(hold).or_default();
                *left += entry.held_delta;
                let opposite = entry.kind == "capture" || entry.delta == -entry.held_delta;
                if *left < 0 || !opposite || (entry.kind == "hold") != (entry.held_delta > 0) {
                    let version = entry.version;
                    faults.push(format!(
                        "{account}/{slot}@{version}: {left} left of hold {hold:?}"
                    ));
                }
            }
        }
    }

    /// Nothing is reversed twice.
    fn check_reversals(&self, faults: &mut Vec<String>) {
        let mut seen = HashSet::new();
        for entry in &self.entries {
            if let Link::Reversed(request) = &entry.link
                && !seen.insert((&entry.account, request))
            {
                let account = &entry.account;
                faults.push(format!("{account} {request}: was reversed twice"));
            }
        }
    }

    /// Every leg that was acknowledged is in the statement, every receipt says what was asked, and repeats agree.
    fn check_receipts(&self, chains: &HashMap<SlotKey<'_>, Vec<&Entry>>, faults: &mut Vec<String>) {
        let mut first: HashMap<RequestKey<'_>, &Receipt> = HashMap::new();
        for receipt in &self.receipts {
            let name = format!("{} {}", receipt.account, receipt.request);
            let known = *first
                .entry((&receipt.account, &receipt.request))
                .or_insert(receipt);
            if known.legs != receipt.legs
                || known.amount != receipt.amount
                || known.pending != receipt.pending
            {
                faults.push(format!("{name}: two answers differ"));
            }
            if !receipt.moves_its_amount() {
                let deltas = receipt.deltas();
                faults.push(format!(
                    "{name}: legs {deltas:?} for {} of {}",
                    receipt.kind, receipt.amount
                ));
            }
            for leg in &receipt.legs {
                let entry = at(chains, &leg.account, leg.slot, leg.version);
                let same = entry.is_some_and(|entry| {
                    (entry.delta, entry.held_delta, entry.balance_after)
                        == (leg.delta, leg.held_delta, leg.balance_after)
                        && entry.request.as_ref() == Some(&receipt.request)
                });
                if !same {
                    faults.push(format!(
                        "{name}: {leg:?} was acknowledged, the statement has {entry:?}"
                    ));
                }
            }
        }
    }

    /// A refused request has no effect.
    fn check_refusals(&self, faults: &mut Vec<String>) {
        let effective: HashSet<RequestKey<'_>> = self.effects().filter_map(owner).collect();
        for Refusal { account, request } in &self.refusals {
            if effective.contains(&(account.as_str(), request.as_str())) {
                faults.push(format!("{account} {request}: was refused, and has an effect"));
            }
        }
    }

    /// Every slot that was read is a state of its chain, and the sums agree.
    fn check_reads(&self, chains: &HashMap<SlotKey<'_>, Vec<&Entry>>, faults: &mut Vec<String>) {
        for read in &self.reads {
            let account = &read.account;
            let sum = read.slots.iter().map(|(_, balance, _)| balance).sum::<i64>();
            if sum + read.held + read.pending != read.balance {
                faults.push(format!(
                    "{account}: read {} that its parts do not add up to",
                    read.balance
                ));
            }
            for (slot, balance, version) in &read.slots {
                let state = match version {
                    0 => Some(0),
                    _ => at(chains, account, *slot, *version).map(|entry| entry.balance_after),
                };
                if state != Some(*balance) {
                    faults.push(format!(
                        "{account}/{slot}@{version}: read {balance}, replay says {state:?}"
                    ));
                }
            }
        }
    }

    /// What a call saw is no older than what was acknowledged before it began.
    fn check_order(&self, faults: &mut Vec<String>) {
        let mut acknowledged: HashMap<SlotKey<'_>, Vec<(u64, u64)>> = HashMap::new();
        for receipt in &self.receipts {
            for leg in &receipt.legs {
                let slot = acknowledged.entry((&leg.account, leg.slot)).or_default();
                slot.push((receipt.span.ended, leg.version));
            }
        }
        for read in &self.reads {
            for (slot, _, version) in &read.slots {
                let slot = acknowledged.entry((&read.account, *slot)).or_default();
                slot.push((read.span.ended, *version));
            }
        }
        for known in acknowledged.values_mut() {
            known.sort_unstable();
            let mut newest = 0;
            for (_, version) in known.iter_mut() {
                newest = newest.max(*version);
                *version = newest;
            }
        }
        // The newest version of a slot that was acknowledged before a tick.
        let known_at = |account: &str, slot: u8, begun: u64| {
            let known = acknowledged.get(&(account, slot)).map_or(&[][..], Vec::as_slice);
            let before = known.partition_point(|(ended, _)| *ended < begun);
            known[..before].last().map_or(0, |(_, version)| *version)
        };
        for read in &self.reads {
            for (slot, _, version) in &read.slots {
                let known = known_at(&read.account, *slot, read.span.begun);
                if *version < known {
                    faults.push(format!(
                        "{}/{slot}: read version {version} after {known} was seen",
                        read.account
                    ));
                }
            }
        }
        for receipt in self.receipts.iter().filter(|receipt| !receipt.replayed) {
            for leg in &receipt.legs {
                let known = known_at(&leg.account, leg.slot, receipt.span.begun);
                if leg.version <= known {
                    let (request, version) = (&receipt.request, leg.version);
                    faults.push(format!(
                        "{} {request}: got version {version} after {known} was seen",
                        leg.account
                    ));
                }
            }
        }
    }

    fn effects(&self) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .filter(|entry| entry.kind != "consolidate" && entry.request.is_some())
    }
}

impl Receipt {
    fn deltas(&self) -> Vec<(i64, i64)> {
        let legs = self.legs.iter();
        legs.map(|leg| (leg.delta, leg.held_delta)).collect()
    }

    /// What each kind may do to slots and to what is held.
    fn moves_its_amount(&self) -> bool {
        let (plus, minus) = (self.amount, -self.amount);
        let legs = self.deltas();
        match (self.kind.as_str(), self.pending, legs.as_slice()) {
            ("credit", true, legs) => legs.is_empty(),
            ("credit", false, legs) => legs == [(plus, 0)],
            ("debit", false, legs) | ("transfer", true, legs) => legs == [(minus, 0)],
            ("transfer", false, legs) => legs == [(minus, 0), (plus, 0)],
            ("hold", false, legs) => legs == [(minus, plus)],
            ("capture", false, [first, rest @ ..]) => {
                let back = rest.iter().all(|(delta, held)| *delta > 0 && *held == -delta);
                *first == (0, minus) && rest.len() < 2 && back
            }
            ("release", false, legs) => legs == [(plus, minus)],
            ("reversal", false, legs) => {
                legs == [(minus, 0)] || legs == [(plus, 0)] || legs == [(minus, 0), (plus, 0)]
            }
            _ => false,
        }
    }
}

/// The request that an entry belongs to, by its key: of what moves between two accounts, that of the one who asked.
fn owner(entry: &Entry) -> Option<RequestKey<'_>> {
    let request = entry.request.as_deref()?;
    let account = match (entry.kind.as_str(), &entry.link) {
        ("transfer_in" | "settle" | "reversal", Link::Account(source)) => source,
        _ => &entry.account,
    };
    Some((account, request))
}

fn at<'a>(
    chains: &HashMap<SlotKey<'_>, Vec<&'a Entry>>,
    account: &str,
    slot: u8,
    version: u64,
) -> Option<&'a Entry> {
    let entries = chains.get(&(account, slot))?;
    let index = entries
        .binary_search_by_key(&version, |entry| entry.version)
        .ok()?;
    entries.get(index).copied()
}
