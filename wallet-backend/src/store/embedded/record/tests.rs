//! Records come back as they were, and no bytes whatever make reading one panic.

use super::*;
use crate::account::{Account, CreditMode, Timestamp};
use crate::command::ReceiptKind;
use crate::ledger::slots::SETTLE_ROWS;
use crate::money::{Amount, Currency};
use crate::store::embedded::page::PAYLOAD;

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

/// A record with one of everything, and one with each refusal.
fn samples() -> Vec<Record> {
    let mut samples = vec![one_of_everything()];
    samples.extend(refusals().into_iter().map(refused));
    samples
}

fn one_of_everything() -> Record {
    let entries = vec![
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
    ];
    let strange = Leg {
        version: 12,
        ..Leg::from(&entries[1])
    };
    Record {
        links: (0..4)
            .map(|n| Links {
                before: n << 32,
                skip: n,
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
        },
    }
}

fn refusals() -> [Refusal; 6] {
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
    ]
}

fn refused(refusal: Refusal) -> Record {
    Record {
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
    encode(&record.changes, &record.links, &mut out);
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
        links: vec![Links {
            before: 5 << 32,
            skip: 5 << 32,
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
    let own = request(&longest(0));
    let settle = |n| Entry {
        request: Some(request(&longest(n))),
        link: Some(Link::Transfer(id(&longest(n)))),
        ..largest(EntryKind::Settle)
    };
    let shift = |_| Entry {
        request: Some(own.clone()),
        link: Some(Link::Slot(SlotIndex::PRIMARY)),
        ..largest(EntryKind::Consolidate)
    };
    let legs = [EntryKind::TransferOut, EntryKind::TransferIn].map(|kind| Entry {
        request: Some(own.clone()),
        link: Some(Link::Transfer(id(&longest(1)))),
        ..largest(kind)
    });
    let shifts = 2 * (usize::from(crate::account::MAX_SLOTS) - 1);
    let entries: Vec<Entry> = (1..=SETTLE_ROWS)
        .map(settle)
        .chain((0..shifts).map(shift))
        .chain(legs.clone())
        .collect();
    let amount = Amount::new(crate::money::MAX_AMOUNT).unwrap();
    let account = id(&longest(0));
    let operation = Operation::Transfer {
        to: id(&longest(1)),
        amount,
        memo: Some("m".repeat(crate::command::MAX_MEMO_BYTES).into()),
    };
    let receipt = Receipt {
        account: account.clone(),
        request: own.clone(),
        amount,
        ..receipt(legs.iter().map(Leg::from).collect())
    };
    let links = Links {
        before: u64::MAX >> 8,
        skip: u64::MAX >> 8,
    };
    let links = vec![links; entries.len()];
    let settled = (0..SETTLE_ROWS).map(|_| (account.clone(), u64::MAX >> 8));
    let changes = Changes {
        pending_settled: settled.collect(),
        entries,
        request: Some(RequestRecord {
            account,
            request: own,
            operation: Some(operation),
            outcome: Outcome::Posted(receipt),
        }),
        ..Changes::default()
    };
    let mut out = Writer::default();
    encode(&changes, &links, &mut out);
    let pages = (out.bytes.len() + 4).div_ceil(PAYLOAD);
    // The first of the 16 is the segment's head.
    assert!(pages < 16, "{} bytes, {pages} pages", out.bytes.len());
}

fn largest(kind: EntryKind) -> Entry {
    Entry {
        account: id(&"a".repeat(64)),
        version: u64::MAX >> 8,
        balance_after: i64::MAX,
        at: Timestamp(i64::MAX >> 8),
        ..entry("a", kind, crate::money::MAX_AMOUNT)
    }
}
