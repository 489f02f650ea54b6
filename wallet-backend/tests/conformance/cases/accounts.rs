//! Opening, request ids, statements: what does not depend on where the money is.

use wallet_backend::account::{Account, Entry, Status};
use wallet_backend::command::{
    Answer, LedgerError, MAX_MEMO_BYTES, Operation, Outcome, Refusal, RequestView, Task,
};
use wallet_backend::money::{Currency, MAX_AMOUNT};
use wallet_backend::store::{Cursor, Store};

use crate::support::{
    Bench, abandon, amount, credit, debit, hashed, id, journal, ordinary, run, slotted, tidy, transfer,
};

pub(in crate::conformance) fn an_account_opens_once_and_another_of_its_name_is_told_what_differs(
    bench: &Bench<impl Store>,
) {
    bench.open(slotted("a", 4));
    let again = bench.ask(Task::Open(slotted("a", 4)));
    assert!(matches!(again, Ok(Answer::Opened { created: false, account }) if account.slots.len() == 4));
    let others = [
        (slotted("a", 5), "slots"),
        (hashed("a", 4), "debit"),
        (
            Account {
                floor: 1,
                ..slotted("a", 4)
            },
            "floor",
        ),
        (
            Account {
                credit: journal("a").credit,
                ..slotted("a", 4)
            },
            "credit",
        ),
        (
            Account {
                currency: Currency::new("USD").unwrap(),
                ..slotted("a", 9)
            },
            "currency",
        ),
    ];
    for (other, field) in others {
        let account = id("a");
        let answer = bench.ask(Task::Open(other));
        assert_eq!(answer, Err(LedgerError::AccountExists { account, field }));
    }
}

pub(in crate::conformance) fn terms_that_nobody_could_have_are_invalid(bench: &Bench<impl Store>) {
    let bad = [
        (
            Account {
                floor: -1,
                ..ordinary("a")
            },
            "floor",
        ),
        (
            Account {
                floor: MAX_AMOUNT + 1,
                ..ordinary("a")
            },
            "floor",
        ),
        (
            Account {
                floor: 1,
                ..hashed("a", 4)
            },
            "floor",
        ),
        (
            Account {
                status: Status::Closed,
                ..ordinary("a")
            },
            "status",
        ),
    ];
    for (account, field) in bad {
        let answer = bench.ask(Task::Open(account));
        assert!(matches!(answer, Err(LedgerError::Invalid { field: f, .. }) if f == field));
    }
}

pub(in crate::conformance) fn a_replay_is_the_first_outcome_and_changes_nothing(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    let first = bench.post(credit("a", "c", 70));
    bench.post(credit("a", "d", 1));
    let (again, replayed) = bench.decide(credit("a", "c", 70));
    assert!(replayed);
    assert_eq!(again, Outcome::Posted(first));
    assert_eq!(bench.account("a").balance(), 71);
    assert_eq!(bench.entries("a").len(), 2);
}

pub(in crate::conformance) fn a_refusal_sticks_when_the_money_has_come(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    let refusal = bench.refuse(debit("a", "d", 5));
    bench.post(credit("a", "c", 100));
    assert_eq!(
        bench.decide(debit("a", "d", 5)),
        (Outcome::Refused(refusal), true)
    );
    bench.post(debit("a", "e", 5));
    assert_eq!(bench.account("a").balance(), 95);
}

pub(in crate::conformance) fn a_reused_id_names_the_first_field_that_differs(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.open(ordinary("b"));
    bench.open(ordinary("c"));
    bench.post(credit("a", "x", 100));
    bench.post(transfer("a", "t", "b", 10));
    let noted = Operation::Credit {
        amount: amount(100),
        memo: Some("for tea".into()),
    };
    let others = [
        (debit("a", "x", 7), "type"),
        (credit("a", "x", 101), "amount"),
        (run("a", "x", noted), "memo"),
        (transfer("a", "t", "c", 11), "to"),
        (transfer("a", "t", "b", 11), "amount"),
    ];
    for (task, field) in others {
        let name = task.request().unwrap().clone();
        let reused = LedgerError::RequestReused {
            account: id("a"),
            request: name,
            field,
        };
        assert_eq!(bench.ask(task), Err(reused));
    }
    assert_eq!(bench.account("a").balance(), 90);
}

pub(in crate::conformance) fn ids_belong_to_their_account(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    bench.open(ordinary("b"));
    bench.post(credit("a", "x", 1));
    bench.post(credit("b", "x", 2));
    // A transfer's id is the source's, so the target's own is free.
    bench.post(transfer("a", "y", "b", 1));
    bench.post(credit("b", "y", 4));
    assert_eq!(
        (bench.account("a").balance(), bench.account("b").balance()),
        (0, 7)
    );
}

/// Under a usual collation of an SQL server they would be one.
pub(in crate::conformance) fn ids_are_compared_as_bytes(bench: &Bench<impl Store>) {
    for (account, amount) in [("acct", 1), ("Acct", 2)] {
        bench.open(ordinary(account));
        for request in ["req-1", "Req-1", "REQ-1"] {
            bench.post(credit(account, request, amount));
        }
    }
    assert_eq!(
        (bench.account("acct").balance(), bench.account("Acct").balance()),
        (3, 6)
    );
}

pub(in crate::conformance) fn a_missing_account_is_never_remembered(bench: &Bench<impl Store>) {
    let field = "account_id";
    let missing = Err(LedgerError::AccountNotFound {
        account: id("a"),
        field,
    });
    for task in [
        credit("a", "c", 7),
        debit("a", "d", 7),
        abandon("a", "c"),
        tidy("a"),
    ] {
        assert_eq!(bench.ask(task), missing);
    }
    assert_eq!(bench.look_up("a", "c"), None);
    bench.open(ordinary("a"));
    assert_eq!(bench.look_up("a", "c"), Some(RequestView::NotFound));
    bench.post(credit("a", "c", 7));
}

pub(in crate::conformance) fn an_abandoned_id_refuses_whatever_comes(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    let abandoned = Outcome::Refused(Refusal::Abandoned);
    assert_eq!(bench.decide(abandon("a", "x")), (abandoned.clone(), false));
    assert_eq!(bench.decide(abandon("a", "x")), (abandoned.clone(), true));
    assert_eq!(bench.decide(credit("a", "x", 1)), (abandoned.clone(), true));
    assert_eq!(bench.decide(debit("a", "x", 9)), (abandoned.clone(), true));
    assert_eq!(bench.look_up("a", "x"), Some(RequestView::Decided(abandoned)));
    assert_eq!(bench.account("a").balance(), 0);
}

pub(in crate::conformance) fn abandoning_a_decided_id_says_what_it_became(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    let receipt = bench.post(credit("a", "x", 1));
    assert_eq!(bench.decide(abandon("a", "x")), (Outcome::Posted(receipt), true));
    assert_eq!(bench.account("a").balance(), 1);
}

pub(in crate::conformance) fn pages_join_without_repeat_or_gap_while_others_write(bench: &Bench<impl Store>) {
    bench.open(hashed("a", 4));
    bench.post(credit("a", "c", 100_000));
    bench.ask(tidy("a")).unwrap();
    let mut cursor = Cursor::default();
    let mut seen = Vec::new();
    for n in 0..60 {
        bench.post(debit("a", &format!("d{n}"), 1));
        let page = bench.page("a", &cursor, 7);
        assert!(page.entries.len() <= 7);
        seen.extend(page.entries);
        cursor = page.next;
    }
    let key = |entry: &Entry| (entry.slot, entry.version);
    let mut keys: Vec<_> = seen.iter().map(key).collect();
    for slot in bench.account("a").slots {
        let versions: Vec<u64> = keys
            .iter()
            .filter(|(at, _)| *at == slot.index)
            .map(|(_, version)| *version)
            .collect();
        assert_eq!(versions, (1..=slot.version).collect::<Vec<_>>());
    }
    keys.sort_unstable();
    let mut all: Vec<_> = bench.entries("a").iter().map(key).collect();
    all.sort_unstable();
    assert_eq!(keys, all);
    let end = bench.page("a", &cursor, 7);
    assert_eq!((end.entries.len(), end.next), (0, cursor));
}

pub(in crate::conformance) fn a_batch_sees_its_own_effects_in_order(bench: &Bench<impl Store>) {
    let answers = bench.ask_all(vec![
        Task::Open(ordinary("a")),
        debit("a", "early", 10),
        credit("a", "c", 10),
        debit("a", "late", 10),
        credit("a", "c", 10),
        abandon("a", "late"),
    ]);
    let replayed: Vec<_> = answers
        .iter()
        .map(|answer| match answer {
            Ok(Answer::Decided { outcome, replayed }) => {
                Some((matches!(outcome, Outcome::Posted(_)), *replayed))
            }
            _ => None,
        })
        .collect();
    let posted = Some((true, false));
    let repeated = Some((true, true));
    assert_eq!(
        replayed,
        [None, Some((false, false)), posted, posted, repeated, repeated]
    );
    assert_eq!(bench.account("a").balance(), 0);
}

pub(in crate::conformance) fn a_memo_too_long_is_invalid(bench: &Bench<impl Store>) {
    bench.open(ordinary("a"));
    let note = |length| Operation::Credit {
        amount: amount(1),
        memo: Some("x".repeat(length).into()),
    };
    bench.post(run("a", "c", note(MAX_MEMO_BYTES)));
    let answer = bench.ask(run("a", "d", note(MAX_MEMO_BYTES + 1)));
    assert!(matches!(answer, Err(LedgerError::Invalid { field: "memo", .. })));
}
