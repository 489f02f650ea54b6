use super::*;
use crate::account::{EntryKind, SlotIndex};
use crate::command::{Leg, Operation, Outcome, Posting, Receipt, ReceiptKind, RequestRecord};
use crate::journal::{Digest, Heads};
use crate::money::{Amount, Currency};

fn account(name: &str) -> AccountId {
    AccountId::new(name).unwrap()
}

fn request(name: &str) -> RequestId {
    RequestId::new(name).unwrap()
}

fn opened(name: &str) -> Changes {
    Changes {
        account: Some(Account::new(account(name), Currency::new("EUR").unwrap())),
        ..Changes::default()
    }
}

fn credit(name: &str, version: u64, delta: i64, balance_after: i64) -> Changes {
    let entry = Entry {
        account: account(name),
        slot: SlotIndex::PRIMARY,
        version,
        kind: EntryKind::Credit,
        request: Some(request("pay-1")),
        delta,
        held_delta: 0,
        balance_after,
        at: Timestamp(1_700_000_000_000_001),
        link: None,
    };
    let amount = Amount::new(delta).unwrap();
    let receipt = Receipt {
        account: account(name),
        request: request("pay-1"),
        kind: ReceiptKind::Credit,
        amount,
        currency: Currency::new("EUR").unwrap(),
        posting: Posting::Posted,
        at: entry.at,
        legs: vec![Leg::from(&entry)],
    };
    Changes {
        request: Some(RequestRecord {
            account: account(name),
            request: request("pay-1"),
            operation: Some(Operation::Credit {
                amount,
                memo: Some("tea \"for two\"".into()),
            }),
            outcome: Outcome::Posted(receipt),
        }),
        entries: vec![entry],
        ..Changes::default()
    }
}

fn text(changes: &Changes) -> String {
    String::from_utf8(Lines::default().write(changes).text().to_vec()).unwrap()
}

#[test]
fn an_opened_account_is_its_terms() {
    assert_eq!(
        text(&opened("alice")),
        r#"{"account":{"account_id":"alice","currency":"EUR","status":"active","floor":0,"slots":1,"credit":"slot","debit":"primary"}}"#
    );
}

#[test]
fn a_credit_is_its_request_with_its_receipt_and_its_entry() {
    let changes = credit("alice", 1, 500, 500);
    assert_eq!(
        text(&changes),
        concat!(
            r#"{"request":{"account_id":"alice","request_id":"pay-1","operation":{"type":"credit","amount":500,"memo":"tea \"for two\""},"#,
            r#""receipt":{"request_id":"pay-1","account_id":"alice","type":"credit","amount":500,"currency":"EUR","status":"posted","at":"2023-11-14T22:13:20.000001Z","entries":[{"account_id":"alice","slot":0,"version":1,"delta":500,"balance_after":500}]}},"#,
            r#""entries":[{"account_id":"alice","slot":0,"version":1,"type":"credit","request_id":"pay-1","delta":500,"balance_after":500,"at":"2023-11-14T22:13:20.000001Z"}]}"#
        )
    );
    let mut lines = Lines::default();
    let line = lines.write(&changes);
    let entries: Vec<&[u8]> = line.entries().collect();
    assert_eq!(entries.len(), 1);
    assert!(entries[0].starts_with(br#"{"account_id":"alice","slot":0,"version":1,"type":"credit""#));
    assert!(entries[0].ends_with(br#""at":"2023-11-14T22:13:20.000001Z"}"#));
}

#[test]
fn a_writer_that_was_used_before_writes_the_same_line() {
    let mut lines = Lines::default();
    lines.write(&opened("bob"));
    let again = lines.write(&credit("alice", 1, 500, 500)).text().to_vec();
    assert_eq!(again, text(&credit("alice", 1, 500, 500)).into_bytes());
}

/// The worked example of docs/tamper-evidence.md, whose figures were made by the script that stands there.
#[test]
fn the_chains_and_the_root_are_those_of_the_documented_example() {
    let mut heads = Heads::default();
    heads.extend(&opened("alice"));
    heads.extend(&credit("alice", 1, 500, 500));
    let slot = heads.slot(&account("alice"), SlotIndex::PRIMARY).unwrap();
    assert_eq!(slot.version, 1);
    assert_eq!(
        slot.digest.to_string(),
        "06fffb8cbaf2a1ccaeb8d8be769797da3238c2c854937c6d688a668b96afa92b"
    );
    assert_eq!(
        heads.journal().to_string(),
        "ed7553414c03cd95d0ade345326774c6446d70b4d963dbd34f3e893df9e9077d"
    );
    assert_eq!(
        heads.root().to_string(),
        "2:692a69c5439115e8f59afc6dd932b6663b7969e0197142060072c4e79426b9dc"
    );
}

#[test]
fn every_byte_of_history_and_its_order_are_in_the_root() {
    let root = |history: &[Changes]| {
        let mut heads = Heads::default();
        history.iter().for_each(|changes| heads.extend(changes));
        heads.root()
    };
    let first = [opened("alice"), opened("bob"), credit("alice", 1, 500, 500)];
    let others = [
        [opened("bob"), opened("alice"), credit("alice", 1, 500, 500)],
        [opened("alice"), opened("bob"), credit("alice", 1, 501, 501)],
        [opened("alice"), opened("bob"), credit("bob", 1, 500, 500)],
    ];
    let mut memo = first.clone();
    if let Some(RequestRecord {
        operation: Some(Operation::Credit { memo, .. }),
        ..
    }) = &mut memo[2].request
    {
        *memo = None;
    }
    for other in others.into_iter().chain([memo]) {
        assert_ne!(root(&first), root(&other), "{other:?}");
    }
    assert_eq!(root(&first), root(&first.clone()));
    assert_ne!(root(&first), root(&first[..2]));
}

#[test]
fn a_chain_goes_on_where_it_stood() {
    let history = [
        opened("alice"),
        credit("alice", 1, 500, 500),
        credit("alice", 2, 7, 507),
    ];
    let mut whole = Heads::default();
    let mut early = Heads::default();
    history.iter().for_each(|changes| whole.extend(changes));
    history[..2].iter().for_each(|changes| early.extend(changes));
    let mut late = Heads::after(early.records(), early.journal());
    late.extend_from(&history[2], |account, slot| {
        early.slot(account, slot).ok_or("met before")
    })
    .unwrap();
    assert_eq!(late.root(), whole.root());
    assert_eq!(Digest::ZERO, Heads::default().journal());
}
