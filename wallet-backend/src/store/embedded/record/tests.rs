//! Records come back as they were, and no bytes whatever make reading one panic.

use super::*;
use crate::account::{
    Account, CreditMode, DebitMode, Entry, EntryKind, HoldState, HoldTerm, Link, Pending, RequestId, Slot,
    SlotCount, SlotIndex, Status, Timestamp,
};
use crate::command::{
    AccountView, Amendment, DebitAmount, Leg, Operation, Outcome, Posting, Receipt, ReceiptKind, Refusal,
    Remainder,
};
use crate::ledger::slots::STEP_ROWS;
use crate::money::{Amount, Currency};
use crate::store::embedded::page::PAYLOAD;
use crate::store::embedded::sums::{Returned, Sums};

fn id(text: &str) -> AccountId {
    AccountId::new(text).unwrap()
}

fn request(text: &str) -> RequestId {
    RequestId::new(text).unwrap()
}

fn entry(account: &str, kind: EntryKind, delta: i64) -> Entry {
    Entry {
        account: id(account),
        slot: SlotIndex::new(3).unwrap(),
        version: 300,
        kind,
        request: Some(request("r")),
        delta,
        held_delta: 0,
        balance_after: 1 << 50,
        at: Timestamp(1_790_000_000_000_000),
        link: Some(Link::Transfer(id("b"))),
    }
}

fn receipt(legs: Vec<Leg>) -> Receipt {
    Receipt {
        account: id("a"),
        request: request("r"),
        kind: ReceiptKind::Transfer,
        amount: Amount::new(77).unwrap(),
        currency: Currency::new("JPY").unwrap(),
        posting: Posting::Pending,
        at: Timestamp(-5),
        legs,
    }
}

/// A record with one of everything, one with each refusal, and one with each operation.
fn samples() -> Vec<Record> {
    let mut samples = vec![one_of_everything(), amended()];
    samples.extend(refusals().into_iter().map(refused));
    samples.extend(operations().into_iter().map(|operation| {
        let mut record = refused(Refusal::Abandoned);
        if let Some(request) = &mut record.changes.request {
            request.operation = Some(operation);
        }
        record
    }));
    samples
}

fn hold(state: HoldState, expires_at: Option<Timestamp>) -> Hold {
    let whole = Hold::new(request("h"), Amount::new(100).unwrap(), expires_at);
    Hold {
        captured: 30,
        released: if state == HoldState::Open { 0 } else { 70 },
        state,
        ..whole
    }
}

fn operations() -> Vec<Operation> {
    let (five, memo) = (Amount::new(5).unwrap(), Some("tea".into()));
    let amount = five.into();
    let captures = [(None, Remainder::Keep), (Some(five), Remainder::Release)];
    let captures = captures.map(|(amount, remainder)| Operation::Capture {
        hold: request("h"),
        amount,
        remainder,
    });
    let amendments = [
        Amendment::default(),
        Amendment {
            status: Some(Status::DebitFrozen),
            slots: SlotCount::new(9),
            credit: Some(CreditMode::Upsert),
            debit: Some(DebitMode::Hashed),
            floor: Some(0),
        },
    ];
    let mut operations = vec![
        Operation::Debit { amount, memo },
        Operation::Debit {
            amount: DebitAmount::Max,
            memo: None,
        },
        Operation::Hold {
            amount: five,
            expires_in: HoldTerm::new(60),
        },
        Operation::Hold {
            amount: five,
            expires_in: None,
        },
        Operation::Release { hold: request("h") },
        Operation::Reversal {
            reverses: request("o"),
        },
    ];
    operations.extend(captures);
    operations.extend(amendments.map(Operation::Amend));
    operations
}

fn amended() -> Record {
    let slot = Slot {
        balance: 7,
        version: 2,
        ..Slot::empty(SlotIndex::PRIMARY)
    };
    let view = AccountView {
        account: Account::new(id("a"), Currency::new("EUR").unwrap()),
        slots: vec![slot],
        held: 5,
        pending: 1,
    };
    let mut record = refused(Refusal::Abandoned);
    if let Some(request) = &mut record.changes.request {
        request.operation = Some(Operation::Amend(Amendment::default()));
        request.outcome = Outcome::Amended(Box::new(view));
    }
    record
}

fn an_entry_of_each_kind() -> Vec<Entry> {
    vec![
        entry("a", EntryKind::TransferOut, -77),
        entry("b", EntryKind::TransferIn, 77),
        Entry {
            request: None,
            link: Some(Link::Slot(SlotIndex::PRIMARY)),
            ..entry("a", EntryKind::Consolidate, 5)
        },
        Entry {
            request: Some(request("another")),
            link: None,
            ..entry("c", EntryKind::Settle, 5)
        },
        Entry {
            held_delta: -30,
            link: Some(Link::Hold(request("h"))),
            ..entry("a", EntryKind::Capture, 0)
        },
        Entry {
            held_delta: 3,
            ..entry("a", EntryKind::Hold, -3)
        },
        Entry {
            held_delta: -3,
            request: None,
            ..entry("a", EntryKind::Release, 3)
        },
        Entry {
            link: Some(Link::Reversed(request("o"))),
            ..entry("a", EntryKind::Reversal, 3)
        },
    ]
}

fn one_of_everything() -> Record {
    let entries = an_entry_of_each_kind();
    let strange = Leg {
        version: 12,
        ..Leg::from(&entries[1])
    };
    Record {
        number: 1 << 40,
        links: (0..8)
            .map(|n| Links {
                before: n << 32,
                skip: n,
                trace: Trace {
                    late: Some(Timestamp(i64::MAX - 1)),
                    ..Trace::default()
                },
            })
            .collect(),
        changes: Changes {
            request: Some(RequestRecord {
                account: id("a"),
                request: request("r"),
                operation: Some(Operation::Transfer {
                    to: id("b"),
                    amount: Amount::new(77).unwrap(),
                    memo: Some("für dich".into()),
                }),
                outcome: Outcome::Posted(receipt(vec![Leg::from(&entries[0]), strange])),
            }),
            account: Some(Account {
                credit: CreditMode::Journal,
                ..Account::new(id("a"), Currency::new("EUR").unwrap())
            }),
            entries,
            pending_added: vec![(
                id("b"),
                Pending {
                    number: 9,
                    amount: Amount::new(1).unwrap(),
                    request: request("p"),
                    link: None,
                    at: Timestamp(7),
                },
            )],
            pending_settled: vec![(id("c"), 8)],
            holds: vec![
                (id("a"), hold(HoldState::Open, None)),
                (id("d"), hold(HoldState::Expired, Some(Timestamp(9)))),
            ],
        },
    }
}

fn refusals() -> [Refusal; 11] {
    let (from, to) = (Currency::new("EUR").unwrap(), Currency::new("JPY").unwrap());
    [
        Refusal::InsufficientFunds {
            account: id("a"),
            asked: 5,
            available: -1,
        },
        Refusal::AccountFrozen { account: id("b") },
        Refusal::AccountClosed { account: id("a") },
        Refusal::BalanceLimit {
            account: id("b"),
            asked: i64::MAX,
        },
        Refusal::CurrencyMismatch { from, to },
        Refusal::Abandoned,
        Refusal::AccountNotEmpty {
            account: id("a"),
            balance: 4,
        },
        Refusal::HoldNotOpen {
            hold: request("h"),
            state: HoldState::Released,
        },
        Refusal::HoldExceeded {
            hold: request("h"),
            asked: 9,
            rest: 8,
        },
        Refusal::AlreadyReversed {
            reverses: request("o"),
            by: request("q"),
        },
        Refusal::NotReversible {
            reverses: request("o"),
        },
    ]
}

fn refused(refusal: Refusal) -> Record {
    Record {
        number: 0,
        links: Vec::new(),
        changes: Changes {
            request: Some(RequestRecord {
                account: id("a"),
                request: request("r"),
                operation: None,
                outcome: Outcome::Refused(refusal),
            }),
            ..Changes::default()
        },
    }
}

fn encoded(record: &Record) -> Vec<u8> {
    let mut out = Writer::default();
    encode(record.number, &record.changes, &record.links, &mut out);
    out.bytes
}

#[test]
fn every_record_comes_back_as_it_was() {
    for record in samples() {
        assert_eq!(decode(&encoded(&record)), Ok(record));
    }
}

#[test]
fn a_record_cut_short_or_with_something_behind_is_refused() {
    for record in samples() {
        let bytes = encoded(&record);
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "{length} bytes");
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert_eq!(decode(&longer), Err(CodecError::LeftOver(1)));
    }
}

#[test]
fn no_bytes_make_reading_panic_and_what_is_read_is_written_back() {
    for record in samples() {
        let bytes = encoded(&record);
        for at in 0..bytes.len() {
            for value in 0..=u8::MAX {
                let mut changed = bytes.clone();
                changed[at] = value;
                if let Ok(read) = decode(&changed) {
                    assert_eq!(decode(&encoded(&read)), Ok(read));
                }
            }
        }
    }
}

#[test]
fn an_ordinary_credit_takes_under_120_bytes() {
    let name = "0123456789abcdef0123456789abcdef0123";
    let credit = Entry {
        account: id("merchant-1"),
        request: Some(request(name)),
        link: None,
        ..entry("merchant-1", EntryKind::Credit, 1250)
    };
    let record = Record {
        number: 1 << 30,
        links: vec![Links {
            before: 5 << 32,
            skip: 5 << 32,
            ..Links::default()
        }],
        changes: Changes {
            request: Some(RequestRecord {
                account: id("merchant-1"),
                request: request(name),
                operation: Some(Operation::Credit {
                    amount: Amount::new(1250).unwrap(),
                    memo: None,
                }),
                outcome: Outcome::Posted(Receipt {
                    account: id("merchant-1"),
                    request: request(name),
                    kind: ReceiptKind::Credit,
                    ..receipt(vec![Leg::from(&credit)])
                }),
            }),
            entries: vec![credit],
            ..Changes::default()
        },
    };
    let length = encoded(&record).len();
    assert!(length < 120, "{length} bytes");
}

/// A record that fits no segment can never be written: what it is about would stay undone for ever.
#[test]
fn the_largest_record_that_is_ever_decided_fits_the_smallest_segment() {
    let longest = |n: usize| format!("{n:x>64}");
    let settle = |n| Entry {
        request: Some(request(&longest(n))),
        link: Some(Link::Transfer(id(&longest(n)))),
        ..largest(EntryKind::Settle)
    };
    let sweep = |n| Entry {
        request: None,
        held_delta: -crate::money::MAX_AMOUNT,
        link: Some(Link::Hold(request(&longest(n)))),
        ..largest(EntryKind::Release)
    };
    let account = id(&longest(0));
    let swept = |n| {
        let amount = Amount::new(crate::money::MAX_AMOUNT).unwrap();
        let hold = Hold::new(request(&longest(n)), amount, Some(Timestamp(i64::MAX >> 8)));
        let taken = Hold {
            captured: amount.minor() / 2,
            ..hold
        };
        (account.clone(), taken.ended(HoldState::Expired))
    };
    let settling = Changes {
        entries: (1..=STEP_ROWS).map(settle).collect(),
        pending_settled: (0..STEP_ROWS).map(|_| (account.clone(), u64::MAX >> 8)).collect(),
        ..Changes::default()
    };
    let sweeping = Changes {
        entries: (1..=STEP_ROWS / 2).map(sweep).collect(),
        holds: (1..=STEP_ROWS / 2).map(swept).collect(),
        ..Changes::default()
    };
    for step in [settling, sweeping] {
        let changes = and_a_long_transfer(step, &account);
        let links = largest_links(&changes.entries);
        let mut out = Writer::default();
        encode(u64::MAX >> 8, &changes, &links, &mut out);
        let pages = (out.bytes.len() + 4).div_ceil(PAYLOAD);
        // The first of the 16 is the segment's head.
        assert!(pages < 16, "{} bytes, {pages} pages", out.bytes.len());
    }
}

/// The same record, if all slots had to be emptied as well, for a transfer with the longest ids and memo.
fn and_a_long_transfer(mut changes: Changes, account: &AccountId) -> Changes {
    let (own, other) = (request(&"r".repeat(64)), id(&"b".repeat(64)));
    let shift = |_| Entry {
        request: Some(own.clone()),
        link: Some(Link::Slot(SlotIndex::PRIMARY)),
        ..largest(EntryKind::Consolidate)
    };
    let legs = [EntryKind::TransferOut, EntryKind::TransferIn].map(|kind| Entry {
        request: Some(own.clone()),
        link: Some(Link::Transfer(other.clone())),
        ..largest(kind)
    });
    let shifts = usize::from(crate::account::MAX_SLOTS).saturating_mul(2);
    changes.entries.extend((0..shifts).map(shift).chain(legs.clone()));
    let amount = Amount::new(crate::money::MAX_AMOUNT).unwrap();
    changes.request = Some(RequestRecord {
        account: account.clone(),
        request: own.clone(),
        operation: Some(Operation::Transfer {
            to: other.clone(),
            amount,
            memo: Some("m".repeat(crate::command::MAX_MEMO_BYTES).into()),
        }),
        outcome: Outcome::Posted(Receipt {
            account: account.clone(),
            request: own.clone(),
            amount,
            ..receipt(legs.iter().map(Leg::from).collect())
        }),
    });
    changes
}

/// Links as long as they can be, over sums as large as nobody will have, of money that was due a year apart.
fn largest_links(entries: &[Entry]) -> Vec<Links> {
    let most = Returned {
        sum: u128::MAX >> 8,
        due: Timestamp(1 << 50),
    };
    let mut sums = Sums {
        held: i64::MAX >> 1,
        settled: most,
        swept: most,
    };
    let links = entries.iter().map(|entry| {
        sums = sums.after(entry);
        for (returned, kind) in [
            (&mut sums.settled, EntryKind::Settle),
            (&mut sums.swept, EntryKind::Release),
        ] {
            let apart = if entry.kind == kind { 1 << 45 } else { 0 };
            returned.due = Timestamp(returned.due.0.saturating_add(apart));
        }
        Links {
            before: u64::MAX >> 8,
            skip: u64::MAX >> 8,
            trace: Trace {
                late: Some(Timestamp(i64::MAX)),
                sums,
            },
        }
    });
    links.collect()
}

fn largest(kind: EntryKind) -> Entry {
    Entry {
        account: id(&"a".repeat(64)),
        slot: SlotIndex::PRIMARY,
        version: u64::MAX >> 8,
        balance_after: i64::MAX,
        at: Timestamp(i64::MAX >> 8),
        ..entry("a", kind, crate::money::MAX_AMOUNT)
    }
}
