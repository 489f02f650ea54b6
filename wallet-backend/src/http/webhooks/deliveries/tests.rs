//! Deliveries over a ledger that is a list, on a clock that is a number.
#![expect(clippy::arithmetic_side_effects, reason = "small numbers of a test")]

use super::*;
use crate::account::{Entry, EntryKind};

const SECOND: i64 = 1_000_000;

fn id(name: &str) -> AccountId {
    AccountId::new(name).unwrap()
}

fn event(number: u64, account: &str) -> Event {
    let entry = Entry {
        account: id(account),
        slot: SlotIndex::PRIMARY,
        version: number,
        kind: EntryKind::Credit,
        request: None,
        delta: 1,
        held_delta: 0,
        balance_after: 1,
        at: Timestamp(0),
        link: None,
    };
    Event { number, entry }
}

/// A ledger, what its receiver got, and the time.
struct World {
    ledger: Vec<Event>,
    deliveries: Deliveries,
    got: Vec<Event>,
    now: Timestamp,
}

impl World {
    /// Event number n is of the account that `accounts` names at n - 1.
    fn new(accounts: &[&str]) -> Self {
        Self {
            ledger: (1..)
                .zip(accounts)
                .map(|(number, name)| event(number, name))
                .collect(),
            deliveries: Deliveries::new(Rounds::default(), Standing::default()),
            got: Vec::new(),
            now: Timestamp(0),
        }
    }

    fn take_in(&mut self, page: usize) {
        let begin = usize::try_from(self.deliveries.head()).unwrap();
        let end = self.ledger.len().min(begin + page);
        let events = self.ledger[begin..end].to_vec();
        self.deliveries.take_in(events, u64::try_from(end).unwrap());
    }

    /// Everything that can be done now, where the receiver takes what `takes` says.
    fn work(&mut self, takes: &mut impl FnMut(&Event) -> bool) {
        loop {
            if self.deliveries.has_room() {
                self.take_in(7);
            }
            let Some(step) = self.deliveries.next(self.now) else {
                if self.deliveries.has_room()
                    && self.deliveries.head() < u64::try_from(self.ledger.len()).unwrap()
                {
                    continue;
                }
                return;
            };
            self.perform(step, takes);
        }
    }

    fn perform(&mut self, step: Step, takes: &mut impl FnMut(&Event) -> bool) {
        match step {
            Step::Send(event) => {
                let result = self.send(&event, takes);
                self.deliveries.sent(&event, result, self.now);
            }
            Step::Read { account, after } => {
                let own = |event: &&Event| event.entry.account == account;
                let later = &self.ledger[usize::try_from(after).unwrap()..];
                let page: Vec<Event> = later.iter().filter(own).take(3).cloned().collect();
                let newest = u64::try_from(self.ledger.len()).unwrap();
                let upto = page.get(2).map_or(newest, |last| last.number);
                self.deliveries.read(&account, page, upto);
            }
            Step::Resend { number, .. } => {
                let event = self.ledger[usize::try_from(number - 1).unwrap()].clone();
                let result = self.send(&event, takes);
                self.deliveries.resent(number, result, self.now);
            }
        }
    }

    fn send(&mut self, event: &Event, takes: &mut impl FnMut(&Event) -> bool) -> Result<(), String> {
        if takes(event) {
            self.got.push(event.clone());
            return Ok(());
        }
        Err("answered 500".to_owned())
    }

    fn numbers(&self) -> Vec<u64> {
        self.got.iter().map(|event| event.number).collect()
    }

    /// Lets time go to where somebody wakes. `false` where nobody waits.
    fn sleep(&mut self) -> bool {
        let next = self.deliveries.next_at();
        self.now = next.unwrap_or(self.now);
        next.is_some()
    }
}

#[test]
fn events_of_all_accounts_go_out_and_each_accounts_in_their_order() {
    let mut world = World::new(&["a", "b", "a", "c", "b", "a"]);
    world.work(&mut |_| true);
    for name in ["a", "b", "c"] {
        let of = |event: &&Event| event.entry.account == id(name);
        let (got, sent): (Vec<_>, Vec<_>) = (
            world.got.iter().filter(of).collect(),
            world.ledger.iter().filter(of).collect(),
        );
        assert_eq!(got, sent, "{name}");
    }
    assert_eq!((world.got.len(), world.deliveries.done_to()), (6, 6));
    assert!(world.deliveries.lanes.is_empty());
}

#[test]
fn an_account_that_fails_waits_and_holds_up_nobody_else() {
    let mut world = World::new(&["a", "b", "a", "b", "a"]);
    world.work(&mut |event| event.entry.account != id("a"));
    assert_eq!(world.numbers(), [2, 4]);
    assert_eq!(world.deliveries.waiting(), 1);
    // Not before its time.
    world.now = Timestamp(SECOND / 2);
    world.work(&mut |_| true);
    assert_eq!(world.numbers(), [2, 4]);
    assert!(world.sleep());
    world.work(&mut |_| true);
    assert_eq!(world.numbers(), [2, 4, 1, 3, 5]);
    assert_eq!((world.deliveries.waiting(), world.deliveries.lanes.len()), (0, 0));
}

#[test]
fn what_comes_for_an_account_while_it_waits_comes_after_what_it_waits_for() {
    let mut world = World::new(&["a"]);
    world.work(&mut |_| false);
    for number in 2..10 {
        world.ledger.push(event(number, "a"));
        world.work(&mut |_| true);
    }
    assert!(world.got.is_empty());
    world.sleep();
    world.work(&mut |_| true);
    assert_eq!(world.numbers(), (1..10).collect::<Vec<_>>());
}

#[test]
fn after_ten_rounds_an_event_is_a_dead_letter_and_its_account_goes_on() {
    let mut world = World::new(&["a", "a"]);
    let mut tries = 0;
    while world.deliveries.dead() == 0 {
        world.work(&mut |event| {
            tries += u32::from(event.number == 1);
            event.number != 1
        });
        world.sleep();
    }
    assert_eq!(tries, 30);
    let hours = world.now.0 / SECOND / 3_600;
    assert!((5..8).contains(&hours), "{hours} hours");
    assert_eq!(world.numbers(), [2]);
    let letters = world.deliveries.dead_after(0, 10);
    assert_eq!(letters.len(), 1);
    let (number, letter) = &letters[0];
    assert_eq!((*number, &letter.account, letter.version), (1, &id("a"), 1));
    assert_eq!(
        (letter.reason.as_str(), letter.again),
        ("answered 500", Again::No)
    );
    assert_eq!(world.deliveries.dead_after(1, 10), []);
}

/// Some dead letters, of an account that goes on.
fn with_dead_letters() -> World {
    let mut world = World::new(&["a", "a", "a"]);
    loop {
        world.work(&mut |event| event.number == 3);
        if !world.sleep() {
            break;
        }
    }
    assert_eq!((world.numbers(), world.deliveries.dead()), (vec![3], 2));
    world
}

#[test]
fn a_dead_letter_is_sent_once_more_when_it_is_asked_for_and_stays_if_it_fails() {
    let mut world = with_dead_letters();
    world.work(&mut |_| true);
    assert_eq!(world.numbers(), [3], "nobody has asked");
    assert_eq!(world.deliveries.ask_again(Some(&[2])), Ok(1));
    world.work(&mut |_| false);
    let letters = world.deliveries.dead_after(0, 10);
    assert_eq!(
        (letters.len(), letters[1].1.at, letters[1].1.again),
        (2, world.now, Again::No)
    );
    assert_eq!(world.deliveries.ask_again(Some(&[2])), Ok(1));
    world.work(&mut |_| true);
    assert_eq!((world.numbers(), world.deliveries.dead()), (vec![3, 2], 1));
    assert_eq!(world.deliveries.ask_again(Some(&[1, 2])), Err(2));
    assert_eq!(world.deliveries.ask_again(None), Ok(1));
    world.work(&mut |_| true);
    assert_eq!((world.numbers(), world.deliveries.dead()), (vec![3, 2, 1], 0));
}

#[test]
fn with_as_many_dead_letters_as_are_kept_an_event_is_tried_on() {
    let letter = DeadLetter::new(&event(1, "z"), String::new(), Timestamp(0));
    let dead = (1_000_000..)
        .take(MAX_DEAD)
        .map(|number| (number, letter.clone()));
    let standing = Standing {
        dead: dead.collect(),
        ..Standing::default()
    };
    let mut world = World::new(&["a"]);
    world.deliveries = Deliveries::new(Rounds::default(), standing);
    for _ in 0..40 {
        world.work(&mut |_| false);
        assert!(world.sleep());
    }
    assert_eq!(world.deliveries.dead(), MAX_DEAD);
    world.work(&mut |_| true);
    assert_eq!(world.numbers(), [1]);
}

#[test]
fn an_account_with_very_many_events_leaves_room_for_the_others() {
    let mut accounts = vec!["hot"; 20_000];
    accounts.push("cold");
    let mut world = World::new(&accounts);
    // The receiver is slow: everything is taken in before the first answer.
    while world.deliveries.has_room() && world.deliveries.head() < 20_001 {
        world.take_in(256);
        assert!(world.deliveries.queued <= MAX_QUEUED);
    }
    assert_eq!(world.deliveries.head(), 20_001);
    assert_eq!(world.deliveries.queued, MAX_LANE + 1);
    world.work(&mut |_| true);
    let cold = world
        .numbers()
        .iter()
        .position(|number| *number == 20_001)
        .unwrap();
    assert!(cold < 3, "{cold}");
    let hot: Vec<u64> = world
        .numbers()
        .into_iter()
        .filter(|number| *number <= 20_000)
        .collect();
    assert_eq!(hot, (1..=20_000).collect::<Vec<_>>());
}

#[test]
fn with_as_many_accounts_as_are_looked_after_no_more_come_in_until_one_has_arrived() {
    let names: Vec<String> = (0..MAX_LANES + 500).map(|number| format!("a{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::new(&names);
    world.work(&mut |_| false);
    assert!((MAX_LANES..MAX_LANES + 7).contains(&world.deliveries.lanes.len()));
    let head = world.deliveries.head();
    assert!(!world.deliveries.has_room() && head < 5_000, "{head}");
    while world.sleep() {
        world.work(&mut |_| true);
    }
    let mut got = world.numbers();
    got.sort_unstable();
    assert!(got.into_iter().eq(1..=u64::try_from(names.len()).unwrap()));
}

/// Seeded numbers (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// What each account got first of every event: all of them, in their order, but for those that died on the way.
fn all_arrived_in_order(world: &World, names: &[&str], seed: u64) {
    for name in names {
        let of = |event: &&Event| event.entry.account == id(name);
        let mut firsts: Vec<u64> = Vec::new();
        for event in world.got.iter().filter(of) {
            if !firsts.contains(&event.number) {
                firsts.push(event.number);
            }
        }
        // Delivered, and killed before that was kept, it may have died at its second life.
        let dead = |number: &u64| world.deliveries.dead.contains_key(number);
        firsts.retain(|number| !dead(number));
        let sent = world.ledger.iter().filter(of).map(|event| event.number);
        let sent: Vec<u64> = sent.filter(|number| !dead(number)).collect();
        assert_eq!(firsts, sent, "seed {seed}: {name}");
    }
}

#[test]
fn whatever_fails_and_whenever_it_is_killed_everything_arrives_in_order_or_is_a_dead_letter() {
    let names = ["a", "b", "c", "d"];
    let (mut kills, mut deaths) = (0, 0);
    for seed in 0..300 {
        let mut numbers = Numbers(seed);
        let mut world = World::new(&[]);
        let bad = numbers.below(100);
        for _ in 0..60 {
            for _ in 0..numbers.below(20) {
                let number = u64::try_from(world.ledger.len()).unwrap() + 1;
                let name = names[usize::try_from(numbers.below(4)).unwrap()];
                world.ledger.push(event(number, name));
            }
            for _ in 0..numbers.below(60) {
                if world.deliveries.has_room() && numbers.below(3) == 0 {
                    world.take_in(5);
                }
                let Some(step) = world.deliveries.next(world.now) else {
                    break;
                };
                let takes = numbers.below(100) >= bad;
                world.perform(step, &mut |_| takes);
            }
            world.now.0 += i64::try_from(numbers.below(4_000)).unwrap() * SECOND;
            if numbers.below(5) == 0 {
                // What was done after it was last kept is done again.
                world.deliveries.not_kept();
                let standing = world.deliveries.standing().unwrap();
                for _ in 0..numbers.below(5) {
                    if let Some(step) = world.deliveries.next(world.now) {
                        world.perform(step, &mut |_| true);
                    }
                }
                world.deliveries = Deliveries::new(Rounds::default(), standing);
                kills += 1;
            }
        }
        loop {
            world.work(&mut |_| true);
            if !world.sleep() {
                break;
            }
        }
        deaths += world.deliveries.dead();
        all_arrived_in_order(&world, &names, seed);
        assert_eq!(
            world.deliveries.done_to(),
            u64::try_from(world.ledger.len()).unwrap()
        );
        assert_eq!((world.deliveries.queued, world.deliveries.lanes.len()), (0, 0));
    }
    assert!(
        kills > 1_000 && deaths > 10,
        "{kills} kills, {deaths} dead letters"
    );
}
