//! Exports that are not what was written, each found where it differs: by somebody who changed a line, and by somebody
//! who made the root right again.

use super::*;
use crate::support::{credit, debit, hold, journal, ordinary, reversal, transfer};

/// The lines of a small history, without its root: account a is opened in line 1.
fn lines() -> Vec<String> {
    let disk = FaultDisk::default();
    let store = open(small(&disk));
    store.open(ordinary("a"));
    store.open(ordinary("b"));
    store.open(journal("j"));
    for task in [
        credit("a", "in-1", 500),
        credit("b", "in-2", 70),
        credit("j", "in-3", 9),
        transfer("a", "move-1", "b", 40),
        debit("a", "out-1", 60),
        hold("a", "hold-1", 100, 0),
        reversal("a", "back-1", "out-1"),
        debit("b", "out-2", 5),
    ] {
        store.post(task);
    }
    store.close();
    exported(&disk).lines().map(str::to_owned).take(11).collect()
}

const OPEN_A: usize = 0;
const IN_1: usize = 3;
const IN_2: usize = 4;
const IN_3: usize = 5;
const MOVE_1: usize = 6;
const OUT_1: usize = 7;
const HOLD_1: usize = 8;
const BACK_1: usize = 9;

/// The export of these lines by somebody who knows how roots are made.
fn sealed(lines: &[String]) -> String {
    ended(lines, &root_of(lines).to_string())
}

fn ended(lines: &[String], root: &str) -> String {
    format!("{}\n{{\"root\":\"{root}\"}}\n", lines.join("\n"))
}

#[track_caller]
fn refused_at(text: &str, roots: &[Root], line: usize, says: &str) {
    let disk = FaultDisk::default();
    match import_on(&disk, text, roots) {
        Err(ImportError::Refused { line: found, fault }) => {
            let fault = fault.to_string();
            assert_eq!(found, u64::try_from(line).unwrap(), "{fault}");
            assert!(fault.contains(says), "{fault}");
        }
        other => panic!("{other:?}"),
    }
}

/// Its own root, which somebody who edits a file does not change.
#[track_caller]
fn edited(edit: impl FnOnce(&mut Vec<String>), line: usize, says: &str) {
    let mut lines = lines();
    let root = root_of(&lines).to_string();
    edit(&mut lines);
    refused_at(&ended(&lines, &root), &[], line, says);
}

fn replaced(line: &mut String, from: &str, to: &str) {
    let changed = line.replace(from, to);
    assert_ne!(changed, *line, "{from}");
    *line = changed;
}

#[test]
fn the_lines_as_they_were_written_are_taken_in() {
    let lines = lines();
    assert_eq!(lines.len(), 11);
    let imported = import_on(&FaultDisk::default(), &sealed(&lines), &[]).unwrap();
    assert_eq!(imported.root, root_of(&lines));
}

#[test]
fn a_changed_amount_is_found_in_its_line() {
    let change = |lines: &mut Vec<String>| replaced(&mut lines[OUT_1], r#""delta":-60"#, r#""delta":-61"#);
    edited(
        change,
        OUT_1 + 1,
        "request.receipt: the receipt of out-1 of a does not move its amount",
    );
    let entry = |lines: &mut Vec<String>| {
        let (front, entries) = lines[OUT_1]
            .split_once(r#""entries":[{"account_id":"a","slot":0,"version":3,"type""#)
            .unwrap();
        let entries = entries.replace("-60", "-61");
        lines[OUT_1] =
            format!(r#"{front}"entries":[{{"account_id":"a","slot":0,"version":3,"type"{entries}"#);
    };
    edited(
        entry,
        OUT_1 + 1,
        "request.receipt.entries[0]: is none of the entries",
    );
    let all = |lines: &mut Vec<String>| {
        replaced(&mut lines[OUT_1], "-60", "-61");
        replaced(&mut lines[OUT_1], r#""amount":60"#, r#""amount":61"#);
    };
    edited(
        all,
        OUT_1 + 1,
        "account a slot 0 version 3: not so that balance_after is the balance before plus delta: expected 399, found 400",
    );
}

#[test]
fn a_line_that_is_gone_is_missed_by_the_next_one_of_its_slot() {
    edited(
        |lines| drop(lines.remove(IN_1)),
        MOVE_1,
        "account a slot 0 version 2: not so that versions rise by one: expected 1, found 2",
    );
}

#[test]
fn a_last_line_that_is_gone_is_missed_by_the_root() {
    edited(
        |lines| drop(lines.pop()),
        11,
        "root: it is about 11 lines, and 10 stand before it",
    );
}

#[test]
fn lines_that_changed_places_are_found_by_their_versions_or_by_the_root() {
    edited(
        |lines| lines.swap(OUT_1, HOLD_1),
        OUT_1 + 1,
        "versions rise by one: expected 3, found 4",
    );
    // These know nothing of each other.
    edited(
        |lines| lines.swap(IN_1, IN_2),
        12,
        "root: lines 1 to 11 are not what they were: their root is ",
    );
}

#[test]
fn a_root_that_was_kept_narrows_down_where_a_line_is_other_than_it_was() {
    let mut lines = lines();
    let kept: Vec<Root> = [4, 7, 10].map(|count| root_of(&lines[..count])).into();
    let root = root_of(&lines).to_string();
    import_on(&FaultDisk::default(), &ended(&lines, &root), &kept).unwrap();
    lines.swap(IN_2, IN_3);
    // Also for somebody who makes the last root right again.
    for text in [ended(&lines, &root), sealed(&lines)] {
        refused_at(&text, &kept, 8, "root: lines 5 to 7 are not what they were");
    }
    import_on(&FaultDisk::default(), &sealed(&lines), &[]).unwrap();
}

#[test]
fn a_line_that_stands_twice_is_decided_twice() {
    edited(
        |lines| lines.insert(OUT_1, lines[OUT_1].clone()),
        OUT_1 + 2,
        "request.request_id: out-1 of a was decided before",
    );
    edited(
        |lines| lines.insert(OPEN_A, lines[OPEN_A].clone()),
        OPEN_A + 2,
        "account.account_id: a was opened before",
    );
}

#[test]
fn a_file_that_is_cut_off_is_refused_wherever_that_is() {
    let whole = sealed(&lines());
    let ends: Vec<usize> = whole.match_indices('\n').map(|(at, _)| at).collect();
    for at in (0..whole.len()).step_by(37).chain(ends.iter().map(|end| end + 1)) {
        let before = ends.iter().filter(|end| **end < at).count();
        match whole.get(..at).unwrap() {
            text if text.len() == whole.len() => {}
            text if text.is_empty() || text.ends_with('\n') => {
                refused_at(text, &[], before, "root: is missing: the export is cut off");
            }
            text => refused_at(
                text,
                &[],
                before + 1,
                "line: has no end: the export is cut off here",
            ),
        }
    }
}

#[test]
fn lines_without_their_root_need_one_of_all_of_them() {
    let lines = lines();
    let bare = format!("{}\n", lines.join("\n"));
    refused_at(&bare, &[], 11, "root: is missing");
    refused_at(&bare, &[root_of(&lines[..10])], 11, "root: is missing");
    import_on(&FaultDisk::default(), &bare, &[root_of(&lines)]).unwrap();
    let longer = Root {
        records: 12,
        ..root_of(&lines)
    };
    refused_at(
        &sealed(&lines),
        &[longer],
        12,
        "is about 12 lines, and there are 11",
    );
}

#[test]
fn a_changed_root_is_refused() {
    let lines = lines();
    let root = root_of(&lines).to_string();
    let other = match root.split_at(root.len() - 1) {
        (front, "0") => format!("{front}1"),
        (front, _) => format!("{front}0"),
    };
    refused_at(
        &ended(&lines, &other),
        &[],
        12,
        "root: lines 1 to 11 are not what they were",
    );
    refused_at(&ended(&lines, &root[1..]), &[], 12, "root: it is about 1 lines");
    refused_at(&ended(&lines, "mine"), &[], 12, "root: must be a root such as");
    let more = format!("{}{}\n", sealed(&lines), lines[0]);
    refused_at(&more, &[], 13, "line: nothing may follow the export's root");
}

#[test]
fn a_changed_time_is_found_by_the_root() {
    edited(
        |lines| replaced(&mut lines[IN_1], "1970-", "1971-"),
        12,
        "root: lines 1 to 11 are not what they were",
    );
}

#[test]
fn what_is_no_line_is_named_by_its_field() {
    edited(
        |lines| replaced(&mut lines[OUT_1], r#""version":3"#, r#""version":-3"#),
        OUT_1 + 1,
        "request.receipt.entries[0].version: invalid value",
    );
    edited(
        |lines| replaced(&mut lines[OUT_1], r#""currency":"EUR""#, r#""currency":"XXQ""#),
        OUT_1 + 1,
        "request.receipt.currency: must be an ISO 4217 code",
    );
    edited(
        |lines| lines[IN_2].push(' '),
        IN_2 + 1,
        "line: not in its canonical form: from byte",
    );
    edited(|lines| lines.insert(2, String::new()), 3, "line: EOF");
}

/// Lines that fit each other and have the right root, and that no ledger decides.
#[track_caller]
fn forged(forge: impl FnOnce(&mut Vec<String>), line: usize, says: &str) {
    let mut lines = lines();
    forge(&mut lines);
    refused_at(&sealed(&lines), &[], line, says);
}

#[test]
fn money_that_nobody_brought_is_refused() {
    let gift = r#"{"entries":[{"account_id":"a","slot":0,"version":6,"type":"credit","request_id":null,"delta":5,"balance_after":365,"at":"2023-11-14T22:13:20.000001Z"}]}"#;
    forged(
        |lines| lines.push(gift.to_owned()),
        12,
        "entries: the accounts gain 5, and 0 came in from outside",
    );
    let moved = gift
        .replace("credit", "consolidate")
        .replace(r#"001Z"}]"#, r#"001Z","link":{"kind":"slot","id":"1"}}]"#);
    forged(
        |lines| lines.push(moved),
        12,
        "entries: moves between the slots of a do not cancel out, 5 is left",
    );
    let pending = r#"{"pending_added":[{"account_id":"j","number":2,"amount":5,"request_id":"x","at":"2023-11-14T22:13:20.000001Z"}]}"#;
    forged(
        |lines| lines.push(pending.to_owned()),
        12,
        "entries: the accounts gain 5, and 0 came in from outside",
    );
}

#[test]
fn what_was_reversed_is_not_reversed_again() {
    forged(
        |lines| {
            let mut again = lines[BACK_1]
                .replace("back-1", "back-2")
                .replace(r#""version":5"#, r#""version":6"#);
            let after = |line: &str| {
                line.split_once(r#""balance_after":"#)
                    .unwrap()
                    .1
                    .split_once('}')
                    .unwrap()
                    .0
                    .to_owned()
            };
            let before: i64 = after(&again).parse().unwrap();
            again = again.replace(
                &format!(r#""balance_after":{before}"#),
                &format!(r#""balance_after":{}"#, before + 60),
            );
            lines.push(again);
        },
        12,
        "request.operation.reverses: out-1 of a was reversed before, by back-1",
    );
}

#[test]
fn a_reversal_of_something_else_than_it_undoes_is_refused() {
    forged(
        |lines| {
            replaced(
                &mut lines[BACK_1],
                r#""reverses":"out-1""#,
                r#""reverses":"in-1""#,
            )
        },
        BACK_1 + 1,
        "request.receipt: the receipt of back-1 of a does not move its amount",
    );
}

#[test]
fn a_receipt_in_another_currency_than_the_account_is_refused() {
    forged(
        |lines| replaced(&mut lines[IN_1], r#""currency":"EUR""#, r#""currency":"USD""#),
        IN_1 + 1,
        "entries[0].account_id: a is kept in EUR, and the receipt is in USD",
    );
}

#[test]
fn a_request_of_an_account_that_is_not_there_is_refused() {
    let nobody = r#"{"request":{"account_id":"nobody","request_id":"r","refusal":{"code":"abandoned"}}}"#;
    forged(
        |lines| lines.push(nobody.to_owned()),
        12,
        "request.account_id: nobody was not opened before",
    );
}

#[test]
fn an_account_changes_by_a_request_that_asks_for_it_only() {
    let terms = r#"{"account_id":"a","currency":"EUR","status":"active","floor":7,"slots":1,"credit":"slot","debit":"primary"}"#;
    let amended = |floor: i64| {
        format!(
            r#"{{"account":{terms},"request":{{"account_id":"a","request_id":"amend-1","operation":{{"type":"amend","floor":{floor}}},"account":{{"terms":{terms},"held":100,"pending":0,"slots":[{{"index":0,"balance":360,"version":5}}]}}}}}}"#
        )
    };
    let mut as_asked = lines();
    as_asked.push(amended(7));
    import_on(&FaultDisk::default(), &sealed(&as_asked), &[]).unwrap();
    let says = "account: is not what the request makes of it";
    forged(|lines| lines.push(amended(8)), 12, says);
    let (account, request) = (format!(r#"{{"account":{terms},"#), amended(7));
    let unchanged = request.replace(&account, "{");
    forged(
        |lines| lines.push(unchanged),
        12,
        "account: is missing, and the request changes it",
    );
}
