//! `explain`: what a person on call reads about an account and about each kind of request, from the files alone.

use std::fs;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;
use wallet_backend::account::{Account, CreditMode, Status};
use wallet_backend::command::{Amendment, BatchMode, Operation};
use wallet_backend::store::Preference;
use wallet_backend::store::embedded::{Embedded, Options};

use crate::faults::{FaultDisk, small};
use crate::process::{Served, binary};
use crate::support::{
    Bench, SECOND, Time, abandon, amend, amount, capture, capture_part, credit, debit, drain, hold, journal,
    ordinary, release, reslot, reversal, run, slotted, status, tidy, transfer,
};

/// A ledger in a folder, on 2026-07-01 from nine o'clock on.
struct Ledger {
    folder: TempDir,
    bench: Bench<Embedded>,
}

impl Ledger {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let time = Time::starting("2026-07-01T09:00:00Z");
        let options = Options {
            clock: time.clock(),
            preference: Preference::Fixed(1),
            daily_root: None,
            ..Options::at(folder.path().join("data"))
        };
        let bench = Bench::at(Embedded::open(options).unwrap(), time);
        Self { folder, bench }
    }

    fn store(&self) -> String {
        format!("embedded:{}", self.folder.path().join("data").display())
    }

    fn output(&self, arguments: &[&str]) -> Output {
        let store = self.store();
        let all = [&["explain"], arguments, &["--store", &store]].concat();
        binary(&all).output().unwrap()
    }

    fn said(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let said = String::from_utf8([output.stderr, output.stdout].concat()).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        said
    }

    /// The account, without the lines that name a place in the log.
    fn account(&self, account: &str) -> String {
        without_places(&self.said(&[account]))
    }

    /// The request, likewise.
    fn request(&self, account: &str, request: &str) -> String {
        let said = self.said(&[account, "--request", request, "--entries", "0"]);
        let (_, of_request) = said.split_once("\n\n").unwrap();
        without_places(of_request)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.said(&[arguments, &["--json"]].concat())).unwrap()
    }
}

fn without_places(said: &str) -> String {
    let lines = said.lines().filter(|line| !line.contains(", byte "));
    lines.collect::<Vec<_>>().join("\n")
}

fn lines<const N: usize>(lines: [&str; N]) -> String {
    lines.join("\n")
}

#[test]
fn an_account_is_shown_with_how_its_balance_and_what_is_available_are_made_up() {
    let ledger = Ledger::new();
    let bench = &ledger.bench;
    bench.open(Account {
        floor: 10,
        credit: CreditMode::Journal,
        ..slotted("alice", 2)
    });
    bench.post(credit("alice", "pay-1", 100));
    bench.ask(tidy("alice")).unwrap();
    bench.post(hold("alice", "trip-1", 30, 0));
    bench.post(capture_part("alice", "trip-2", "trip-1", 5));
    bench.post(hold("alice", "gone-1", 7, 1));
    bench.time.pass(2 * SECOND);
    bench.post(credit("alice", "pay-2", 20));
    assert_eq!(
        ledger.account("alice"),
        lines([
            "account alice: active, EUR, floor 10, slots 2, credit journal, debit primary",
            "  balance 115 = slots 63 + held 25 + pending 27 (expired holds 7 among it)",
            "  available: balance 115 - held 25 - floor 10 = 80",
            "  slot 0: 63, version 4",
            "  slot 1: 0, version 0",
            "  hold gone-1: expired at 2026-07-01T09:00:01.000000Z, 7 of 7 are available again",
            "  hold trip-1: open, 25 of 30 left, captured 5, released 0, without a deadline",
            "  pending 20 of pay-2 since 2026-07-01T09:00:02.000000Z",
            "last entries",
            "  2026-07-01T09:00:00.000000Z #1 slot 0 v1 settle: 0 + 100 = 100 (the pending credit pay-1), pay-1",
            "  2026-07-01T09:00:00.000000Z #2 slot 0 v2 hold: 100 - 30 = 70, held +30, trip-1",
            "  2026-07-01T09:00:00.000000Z #3 slot 0 v3 capture: 70 + 0 = 70, held -5 (hold trip-1), trip-2",
            "  2026-07-01T09:00:00.000000Z #4 slot 0 v4 hold: 70 - 7 = 63, held +7, gone-1",
        ])
    );
}

#[test]
fn a_debit_that_had_to_collect_says_out_of_which_slots_and_why() {
    let ledger = Ledger::new();
    let bench = &ledger.bench;
    bench.open(slotted("alice", 3));
    bench.post(credit("alice", "pay-1", 100));
    bench.post(debit("alice", "buy-1", 60));
    bench.open(journal("bob"));
    bench.post(hold("alice", "gone-1", 10, 1));
    bench.time.pass(2 * SECOND);
    bench.post(credit("alice", "pay-2", 50));
    let memo = Some("tea".into());
    let amount = amount(90);
    bench.post(run(
        "alice",
        "buy-2",
        Operation::Debit {
            amount: amount.into(),
            memo,
        },
    ));
    let said = ledger.request("alice", "buy-2");
    assert_eq!(
        said,
        lines([
            "request buy-2: debit of 90, memo \"tea\"",
            "  posted: debit of 90 EUR at 2026-07-01T09:00:02.000000Z",
            "  slot 0 had 30 and 90 were needed: first came what had expired, then what was pending, then other slots, \
             until it was enough",
            "  #7 slot 0 v4 release: 30 + 10 = 40, held -10 (hold gone-1 has expired)",
            "  #8 slot 2 v4 consolidate: 50 - 50 = 0 (into slot 0)",
            "  #9 slot 0 v5 consolidate: 40 + 50 = 90 (out of slot 2)",
            "  #10 slot 0 v6 debit: 90 - 90 = 0",
        ])
    );
    let page = include_str!("../../docs/explain.md");
    assert!(page.contains(&said), "the example of docs/explain.md");
}

#[test]
fn a_refusal_comes_with_the_numbers_that_prove_it() {
    let ledger = Ledger::new();
    let bench = &ledger.bench;
    bench.open(slotted("alice", 2));
    bench.post(credit("alice", "pay-1", 100));
    bench.post(hold("alice", "trip-1", 30, 0));
    bench.post(hold("alice", "gone-1", 20, 1));
    bench.time.pass(2 * SECOND);
    bench.refuse(debit("alice", "buy-1", 71));
    bench.post(credit("alice", "pay-2", 500));
    assert_eq!(
        ledger.request("alice", "buy-1"),
        lines([
            "request buy-1: debit of 71",
            "  refused, insufficient_funds: alice has 70 available, 71 was asked for",
            "  alice was active, floor 0, and had slot 0 50 (v3), slot 1 0 (v2), pending 0, in holds 50",
            "  slots 50 + pending 0 + expired holds 20 - floor 0 = 70; 71 asked for",
            "  the same id answers this for ever",
        ])
    );
    bench.refuse(amend(
        "alice",
        "floor-1",
        Amendment {
            floor: Some(1_000),
            ..Amendment::default()
        },
    ));
    let said = ledger.request("alice", "floor-1");
    assert!(
        said.contains("expired holds 20 - floor 0 = 570; 1000 asked for"),
        "{said}"
    );
    bench.amend(status("alice", "freeze-1", Status::Frozen));
    bench.refuse(credit("alice", "pay-3", 1));
    bench.amend(status("alice", "thaw-1", Status::Active));
    let said = ledger.request("alice", "pay-3");
    assert!(
        said.contains("refused, account_frozen") && said.contains("alice was frozen"),
        "{said}"
    );
}

#[test]
fn a_refusal_for_want_of_everything_says_so() {
    let ledger = Ledger::new();
    let bench = &ledger.bench;
    bench.open(Account {
        floor: 40,
        ..ordinary("alice")
    });
    bench.post(credit("alice", "pay-1", 30));
    bench.refuse(drain("alice", "all-1"));
    let said = ledger.request("alice", "all-1");
    assert!(
        said.contains("slots 30 + pending 0 - floor 40 = -10, so 0; 1 asked for"),
        "{said}"
    );
    let said = ledger.account("alice");
    assert!(
        said.contains("available: balance 30 - held 0 - floor 40 = -10, so 0"),
        "{said}"
    );
}

#[test]
fn a_transfer_names_the_other_account_and_what_became_of_its_pending_leg() {
    let ledger = Ledger::new();
    let bench = &ledger.bench;
    bench.open(ordinary("alice"));
    bench.open(journal("bob"));
    bench.post(credit("alice", "pay-1", 100));
    bench.post(transfer("alice", "send-1", "bob", 40));
    let pending = ledger.request("alice", "send-1");
    bench.time.pass(SECOND);
    bench.ask(tidy("bob")).unwrap();
    assert_eq!(
        ledger.request("alice", "send-1"),
        format!("{pending}\n  since: its credit reached slot 0 of bob as v1 at 2026-07-01T09:00:01.000000Z")
    );
    assert_eq!(
        pending,
        lines([
            "request send-1: transfer of 40 to bob",
            "  posted, its credit pending: transfer of 40 EUR at 2026-07-01T09:00:00.000000Z",
            "  #2 slot 0 v2 transfer_out: 100 - 40 = 60 (to bob)",
        ])
    );
    let said = ledger.account("bob");
    assert!(
        said.contains("(the pending transfer send-1 from alice)"),
        "{said}"
    );
}

#[test]
fn a_hold_says_what_became_of_it_and_a_reversed_request_by_what() {
    let ledger = Ledger::new();
    let bench = &ledger.bench;
    bench.open(ordinary("alice"));
    bench.post(credit("alice", "pay-1", 100));
    bench.post(hold("alice", "trip-1", 60, 3600));
    bench.post(capture("alice", "ride-1", "trip-1", 45));
    bench.post(reversal("alice", "undo-1", "ride-1"));
    bench.post(hold("alice", "trip-2", 5, 0));
    bench.post(release("alice", "back-2", "trip-2"));
    assert_eq!(
        ledger.request("alice", "trip-1"),
        lines([
            "request trip-1: hold of 60 for 3600 s",
            "  posted: hold of 60 EUR at 2026-07-01T09:00:00.000000Z",
            "  #2 slot 0 v2 hold: 100 - 60 = 40, held +60",
            "  since: hold trip-1: captured, 0 of 60 left, captured 45, released 15",
        ])
    );
    assert_eq!(
        ledger.request("alice", "ride-1"),
        lines([
            "request ride-1: capture of 45 of hold trip-1, the rest goes back",
            "  posted: capture of 45 EUR at 2026-07-01T09:00:00.000000Z",
            "  #3 slot 0 v3 capture: 40 + 0 = 40, held -45 (hold trip-1)",
            "  #4 slot 0 v4 release: 40 + 15 = 55, held -15 (hold trip-1)",
            "  since: reversed by undo-1",
        ])
    );
    assert_eq!(
        ledger.request("alice", "undo-1"),
        lines([
            "request undo-1: reversal of ride-1",
            "  posted: reversal of 45 EUR at 2026-07-01T09:00:00.000000Z",
            "  #5 slot 0 v5 reversal: 55 + 45 = 100 (undoes ride-1)",
        ])
    );
    let said = ledger.request("alice", "back-2");
    assert!(said.contains("request back-2: release of hold trip-2"), "{said}");
    let said = ledger.request("alice", "trip-2");
    assert!(
        said.contains("since: hold trip-2: released, 0 of 5 left"),
        "{said}"
    );
}

#[test]
fn a_change_of_the_account_says_which_and_what_it_moved() {
    let ledger = Ledger::new();
    let bench = &ledger.bench;
    bench.open(slotted("alice", 2));
    bench.post(credit("alice", "pay-1", 100));
    bench.amend(reslot("alice", "one-1", 1));
    assert_eq!(
        ledger.request("alice", "one-1"),
        lines([
            "request one-1: change of the account: slots 1",
            "  done: active, floor 0, slots 1, credit slot, debit primary from then on",
            "  the slots beyond those in use were emptied into slot 0",
            "  #2 slot 1 v2 consolidate: 100 - 100 = 0 (into slot 0)",
            "  #3 slot 0 v1 consolidate: 0 + 100 = 100 (out of slot 1)",
        ])
    );
    let said = ledger.account("alice");
    assert!(said.contains("slot 1: 0, version 2, out of use"), "{said}");
}

#[test]
fn an_id_that_is_not_decided_says_what_that_means_and_an_abandoned_one_that_it_is() {
    let ledger = Ledger::new();
    let bench = &ledger.bench;
    bench.open(ordinary("alice"));
    bench.decide(abandon("alice", "given-up"));
    let said = ledger.request("alice", "never-1");
    assert!(
        said.contains("not decided in this log") && said.contains("send the SAME id again"),
        "{said}"
    );
    assert!(said.contains("POST /v1/requests/alice/never-1/abandon"), "{said}");
    assert_eq!(
        ledger.json(&["alice", "--request", "never-1"])["request"]["status"],
        "not_found"
    );
    let said = ledger.request("alice", "given-up");
    assert!(said.contains("abandoned before its command was seen"), "{said}");
    assert!(said.contains("refused, abandoned"), "{said}");
}

#[test]
fn as_json_it_has_the_record_as_the_tamper_evidence_has_it_and_the_same_facts() {
    let ledger = Ledger::new();
    let bench = &ledger.bench;
    bench.open(slotted("alice", 2));
    bench.post(credit("alice", "pay-1", 100));
    bench.post(debit("alice", "buy-1", 60));
    bench.refuse(debit("alice", "buy-2", 60));
    let said = ledger.json(&["alice", "--request", "buy-1", "--entries", "2"]);
    assert_eq!(said["account"]["balance"], 40);
    assert_eq!(said["account"]["slots"][0]["version"], 2);
    assert_eq!(said["last_entries"].as_array().unwrap().len(), 2);
    assert_eq!(said["last_entries"][1]["balance_before"], 100);
    assert_eq!(said["request"]["status"], "done");
    assert_eq!(said["request"]["entries"][2]["number"], 4);
    assert!(
        said["request"]["collected"]
            .as_str()
            .unwrap()
            .contains("slot 0 had 0"),
        "{said}"
    );
    let store = ledger.store();
    bench.close();
    let exported = binary(&["export", "--store", &store]).output().unwrap();
    let exported = String::from_utf8(exported.stdout).unwrap();
    let mut records = exported
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let record = records.find(|line| line["request"]["request_id"] == "buy-1");
    assert_eq!(said["request"]["record"], record.unwrap());
    let refused = ledger.json(&["alice", "--request", "buy-2"]);
    assert_eq!(refused["request"]["then"]["slots"][0]["balance"], 40);
    assert_eq!(refused["request"]["status"], "refused");
}

/// Requests in runs and in memory, checkpoints, rewritten tails: what is found is what was decided.
#[test]
fn every_request_of_a_ledger_with_checkpoints_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let options = || Options {
        disk: Options::at(folder.path().join("data")).disk,
        ..small(&FaultDisk::default())
    };
    for life in 0..3 {
        let bench = Bench::new(Embedded::open(options()).unwrap());
        if life == 0 {
            bench.open(ordinary("alice"));
        }
        for number in 0..40 {
            bench.post(credit("alice", &format!("pay-{life}-{number}"), 1));
        }
        bench.close();
    }
    let store = format!("embedded:{}", folder.path().join("data").display());
    for (life, number) in [(0, 0), (0, 39), (1, 17), (2, 0), (2, 39)] {
        let request = format!("pay-{life}-{number}");
        let output = binary(&["explain", "alice", "--request", &request, "--store", &store]).output();
        let said = String::from_utf8(output.unwrap().stdout).unwrap();
        let wanted = format!("#{} slot 0", life * 40 + number + 1);
        assert!(
            said.contains(&format!("request {request}: credit of 1")),
            "{said}"
        );
        assert!(said.contains(&wanted), "{wanted}: {said}");
        assert!(said.contains("balance 120 ="), "{said}");
    }
}

#[test]
fn a_batch_is_explained_operation_by_operation_while_the_ledger_is_in_use() {
    let ledger = Ledger::new();
    let bench = &ledger.bench;
    bench.open(ordinary("alice"));
    let batched = bench.batch(
        BatchMode::Atomic,
        &[credit("alice", "pay-1", 10), debit("alice", "buy-1", 4)],
    );
    batched.unwrap();
    let said = ledger.request("alice", "buy-1");
    assert!(said.contains("debit: 10 - 4 = 6"), "{said}");
    bench.close();
    let _served = Served::start("127.0.0.1:0", &ledger.store(), &[]);
    assert_eq!(ledger.request("alice", "buy-1"), said);
}

#[test]
fn an_unknown_account_damage_and_a_missing_store_end_with_their_codes() {
    let ledger = Ledger::new();
    ledger.bench.open(ordinary("alice"));
    ledger.bench.close();
    let ended = |arguments: &[&str], code: i32, told: &str| {
        let output = ledger.output(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(told), "{said}");
    };
    ended(&["bob"], 1, "there is no account bob");
    ended(&["a/b"], 2, "must be made of");
    let log = ledger.folder.path().join("data/log/0000000001.seg");
    let mut bytes = fs::read(&log).unwrap();
    bytes[2 * 4096 + 50] ^= 1;
    fs::write(&log, bytes).unwrap();
    ended(&["alice"], 1, "byte 8192");
    fs::remove_dir_all(ledger.folder.path().join("data")).unwrap();
    ended(&["alice"], 2, "there is no directory");
}
