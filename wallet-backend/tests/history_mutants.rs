//! A mutant per rule of the history checker: each fault a ledger could have is found, and a clean history has none.

use crate::history::{Entry, History, Leg, Link, Order, Read, Receipt, Refusal, Shortage, Span};

fn entry(account: &str, slot: u8, version: u64, kind: &str, delta: i64, after: i64) -> Entry {
    Entry {
        account: account.to_owned(),
        slot,
        version,
        kind: kind.to_owned(),
        request: None,
        delta,
        held_delta: 0,
        balance_after: after,
        link: Link::None,
    }
}

fn of(request: &str, entry: Entry) -> Entry {
    Entry {
        request: Some(request.to_owned()),
        ..entry
    }
}

fn receipt(request: &str, kind: &str, amount: i64, entries: &[&Entry], begun: u64) -> Receipt {
    let leg = |entry: &&Entry| Leg {
        account: entry.account.clone(),
        slot: entry.slot,
        version: entry.version,
        delta: entry.delta,
        held_delta: entry.held_delta,
        balance_after: entry.balance_after,
    };
    Receipt {
        account: entries[0].account.clone(),
        request: request.to_owned(),
        kind: kind.to_owned(),
        amount,
        pending: false,
        legs: entries.iter().map(leg).collect(),
        replayed: false,
        span: Span {
            begun,
            ended: begun + 1,
        },
    }
}

/// Bob sets 1 aside and has it captured; Alice takes back what she paid.
fn held_and_reversed() -> History {
    let held = |held_delta, entry| Entry { held_delta, ..entry };
    let got = of("c", entry("bob", 0, 1, "credit", 3, 3));
    let placed = held(2, of("h", entry("bob", 0, 2, "hold", -2, 1)));
    let link = Link::Hold("h".to_owned());
    let taken = Entry {
        link: link.clone(),
        ..held(-1, of("k", entry("bob", 0, 3, "capture", 0, 1)))
    };
    let back = Entry {
        link,
        ..held(-1, of("k", entry("bob", 0, 4, "release", 1, 2)))
    };
    let undone = Entry {
        link: Link::Reversed("c".to_owned()),
        ..of("u", entry("bob", 0, 5, "reversal", -2, 0))
    };
    History {
        receipts: vec![
            receipt("h", "hold", 2, &[&placed], 0),
            receipt("k", "capture", 1, &[&taken, &back], 2),
            receipt("u", "reversal", 2, &[&undone], 4),
        ],
        entries: vec![got, placed, taken, back, undone],
        ..History::default()
    }
}

/// Alice gets 10 in slot 1, it is brought to slot 0, she pays 4 and sends 1 to Bob; then both are read.
fn clean() -> History {
    let credit = of("c", entry("alice", 1, 1, "credit", 10, 10));
    let out = entry("alice", 1, 2, "consolidate", -10, 0);
    let within = entry("alice", 0, 1, "consolidate", 10, 10);
    let debit = of("d", entry("alice", 0, 2, "debit", -4, 6));
    let sent = Entry {
        link: Link::Account("bob".to_owned()),
        ..of("t", entry("alice", 0, 3, "transfer_out", -1, 5))
    };
    let got = Entry {
        link: Link::Account("alice".to_owned()),
        ..of("t", entry("bob", 0, 1, "transfer_in", 1, 1))
    };
    History {
        receipts: vec![
            receipt("c", "credit", 10, &[&credit], 0),
            receipt("d", "debit", 4, &[&debit], 2),
            receipt("t", "transfer", 1, &[&sent, &got], 4),
        ],
        order: Order::OfCommit,
        refusals: vec![Refusal {
            account: "alice".to_owned(),
            request: "r".to_owned(),
        }],
        // While she pays: of the 10, or of what is left.
        shortages: vec![Shortage {
            account: "alice".to_owned(),
            request: "s".to_owned(),
            asked: 7,
            available: 6,
            floor: 0,
            exact: true,
            span: Span { begun: 2, ended: 3 },
        }],
        reads: vec![Read {
            account: "alice".to_owned(),
            balance: 5,
            held: 0,
            pending: 0,
            slots: vec![(0, 5, 3), (1, 0, 2)],
            span: Span { begun: 6, ended: 7 },
        }],
        entries: vec![credit, out, within, debit, sent, got],
    }
}

fn finds(fault: &str, mutate: impl FnOnce(&mut History)) {
    finds_in(clean(), fault, mutate);
}

fn finds_in(mut history: History, fault: &str, mutate: impl FnOnce(&mut History)) {
    mutate(&mut history);
    let faults = history.faults();
    assert!(faults.iter().any(|found| found.contains(fault)), "{faults:?}");
}

#[test]
fn a_clean_history_has_no_fault() {
    assert_eq!(clean().faults(), Vec::<String>::new());
    assert_eq!(held_and_reversed().faults(), Vec::<String>::new());
}

#[test]
fn a_hold_captured_past_its_amount_is_found() {
    finds_in(held_and_reversed(), "-1 left of hold \"h\"", |history| {
        history.entries[2].held_delta = -2;
    });
}

#[test]
fn a_hold_that_makes_money_is_found() {
    finds_in(held_and_reversed(), "left of hold \"h\"", |history| {
        history.entries[1].held_delta = 3;
    });
}

#[test]
fn a_request_reversed_by_two_ids_is_found() {
    finds_in(held_and_reversed(), "c: was reversed twice", |history| {
        let again = Entry {
            link: Link::Reversed("c".to_owned()),
            ..of("v", entry("bob", 0, 6, "reversal", 0, 0))
        };
        history.entries.push(again);
    });
}

#[test]
fn a_capture_whose_legs_are_not_its_amount_is_found() {
    finds_in(held_and_reversed(), "for capture of 2", |history| {
        history.receipts[1].amount = 2;
    });
}

#[test]
fn a_version_that_is_missing_is_found() {
    finds("version 3 where 2 comes next", |history| {
        drop(history.entries.remove(3))
    });
}

#[test]
fn a_balance_that_does_not_follow_is_found() {
    finds("replay says 6", |history| history.entries[3].balance_after = 7);
}

#[test]
fn money_made_by_moving_it_is_found() {
    finds("moves between slots made 10", |history| {
        drop(history.entries.remove(1))
    });
}

#[test]
fn an_effect_that_happens_twice_is_found() {
    finds("had this effect before", |history| {
        history
            .entries
            .push(of("d", entry("alice", 0, 4, "debit", -4, 1)));
    });
}

#[test]
fn an_acknowledged_leg_that_is_gone_is_found() {
    finds("was acknowledged", |history| drop(history.entries.pop()));
}

#[test]
fn a_receipt_over_another_amount_is_found() {
    finds("for debit of 5", |history| history.receipts[1].amount = 5);
}

#[test]
fn a_replay_that_differs_is_found() {
    finds("two answers differ", |history| {
        let mut again = history.receipts[0].clone();
        again.pending = true;
        again.replayed = true;
        history.receipts.push(again);
    });
}

#[test]
fn a_refusal_with_an_effect_is_found() {
    finds("was refused, and has an effect", |history| {
        history.refusals[0].request = "t".to_owned();
    });
}

#[test]
fn a_read_that_no_state_explains_is_found() {
    finds("read 4, replay says Some(5)", |history| {
        history.reads[0].slots[0].1 = 4;
        history.reads[0].balance = 4;
    });
    finds("do not add up", |history| history.reads[0].balance = 6);
}

#[test]
fn a_read_older_than_what_was_acknowledged_is_found() {
    finds("read version 2 after 3 was seen", |history| {
        history.reads[0].slots[0] = (0, 6, 2);
        history.reads[0].balance = 6;
    });
}

#[test]
fn a_write_ordered_before_what_was_acknowledged_is_found() {
    finds("got version 2 after 3 was seen", |history| {
        history.receipts[1].span = Span { begun: 8, ended: 9 };
    });
}

#[test]
fn a_refusal_with_enough_money_at_every_moment_is_found() {
    finds("never had less than Some(6)", |history| {
        history.shortages[0].asked = 6;
        history.shortages[0].available = 5;
    });
    finds("with 7, never", |history| history.shortages[0].available = 7);
    // Over before she paid, so that it cannot have seen it.
    finds("never had less than Some(10)", |history| {
        history.receipts[1].span = Span { begun: 4, ended: 5 };
    });
    // Begun after she had got money again.
    finds("never had less than Some(11)", |history| {
        let entry = of("e", entry("alice", 1, 3, "credit", 6, 6));
        history.receipts.push(receipt("e", "credit", 6, &[&entry], 8));
        history.entries.push(entry);
        history.shortages[0].span = Span { begun: 10, ended: 11 };
    });
}

#[test]
fn a_refusal_over_an_amount_that_was_never_there_is_found() {
    finds("refused with 3, which it never had", |history| {
        history.shortages[0].available = 3;
    });
}

/// Alice pays 4 out of slot 0 and is credited 6 in slot 1, in one order or the other; then 9 is refused.
fn paid_and_credited() -> History {
    let first = of("c", entry("alice", 0, 1, "credit", 10, 10));
    let debit = of("d", entry("alice", 0, 2, "debit", -4, 6));
    let credit = of("e", entry("alice", 1, 1, "credit", 6, 6));
    History {
        receipts: vec![
            receipt("c", "credit", 10, &[&first], 0),
            receipt("d", "debit", 4, &[&debit], 2),
            receipt("e", "credit", 6, &[&credit], 3),
        ],
        // As if the credit had been there when she paid.
        entries: vec![first, credit, debit],
        shortages: vec![Shortage {
            account: "alice".to_owned(),
            request: "r".to_owned(),
            asked: 9,
            available: 6,
            floor: 0,
            exact: true,
            span: Span { begun: 2, ended: 5 },
        }],
        ..History::default()
    }
}

#[test]
fn where_only_the_order_of_each_slot_is_known_a_refusal_may_be_between_any_two_entries() {
    let history = paid_and_credited();
    assert!(!history.faults().is_empty(), "by the order of commit it is false");
    let history = History {
        order: Order::OfEachSlot,
        ..history
    };
    assert_eq!(history.faults(), Vec::<String>::new());
}

#[test]
fn a_refusal_is_false_where_the_slots_together_never_had_too_little() {
    let mut history = History {
        order: Order::OfEachSlot,
        ..paid_and_credited()
    };
    // Begun when both had been answered.
    history.shortages[0].span = Span { begun: 6, ended: 7 };
    let faults = history.faults();
    assert!(
        faults
            .iter()
            .any(|fault| fault.contains("never had less than Some(12)")),
        "{faults:?}"
    );
}
