use super::*;

const CREDIT: &str = concat!(
    r#"{"request":{"account_id":"alice","request_id":"pay-1","operation":{"type":"credit","amount":500,"memo":"tea \"for two\""},"#,
    r#""receipt":{"request_id":"pay-1","account_id":"alice","type":"credit","amount":500,"currency":"EUR","status":"posted","at":"2023-11-14T22:13:20.000001Z","entries":[{"account_id":"alice","slot":0,"version":1,"delta":500,"balance_after":500}]}},"#,
    r#""entries":[{"account_id":"alice","slot":0,"version":1,"type":"credit","request_id":"pay-1","delta":500,"balance_after":500,"at":"2023-11-14T22:13:20.000001Z"}]}"#
);

fn refused(line: &str) -> LineError {
    match Reader::default().read(line.as_bytes()) {
        Err(error) => error,
        Ok(changes) => panic!("{changes:?}"),
    }
}

/// Lines of every kind of operation and refusal, each in its canonical form.
#[test]
fn every_kind_of_line_is_read_and_written_as_it_was() {
    let request = |rest: &str| format!(r#"{{"request":{{"account_id":"a","request_id":"r",{rest}}}}}"#);
    let refused =
        |operation: &str, refusal: &str| request(&format!(r#""operation":{operation},"refusal":{refusal}"#));
    let lines = [
        CREDIT.to_owned(),
        r#"{"account":{"account_id":"a","currency":"EUR","status":"closed","floor":3,"slots":64,"credit":"journal","debit":"primary"}}"#.to_owned(),
        request(r#""refusal":{"code":"abandoned"}"#),
        refused(r#"{"type":"debit","amount":"max"}"#, r#"{"code":"insufficient_funds","account_id":"a","asked":1,"available":0}"#),
        refused(r#"{"type":"hold","amount":5,"expires_in_s":60}"#, r#"{"code":"account_frozen","account_id":"a"}"#),
        refused(r#"{"type":"hold","amount":5}"#, r#"{"code":"account_closed","account_id":"a"}"#),
        refused(r#"{"type":"capture","hold_id":"h","amount":5,"final":false}"#, r#"{"code":"hold_exceeded","hold_id":"h","asked":5,"rest":4}"#),
        refused(r#"{"type":"capture","hold_id":"h","final":true}"#, r#"{"code":"hold_not_open","hold_id":"h","status":"expired"}"#),
        refused(r#"{"type":"release","hold_id":"h"}"#, r#"{"code":"hold_not_open","hold_id":"h","status":"captured"}"#),
        refused(r#"{"type":"transfer","to":"b","amount":5,"memo":"m"}"#, r#"{"code":"currency_mismatch","from":"EUR","to":"USD"}"#),
        refused(r#"{"type":"transfer","to":"b","amount":5}"#, r#"{"code":"balance_limit","account_id":"b","asked":5}"#),
        refused(r#"{"type":"reversal","reverses":"p"}"#, r#"{"code":"already_reversed","reverses":"p","by":"q"}"#),
        refused(r#"{"type":"reversal","reverses":"p"}"#, r#"{"code":"not_reversible","reverses":"p"}"#),
        refused(r#"{"type":"amend","status":"closed","slots":2,"credit":"upsert","debit":"hashed","floor":0}"#, r#"{"code":"account_not_empty","account_id":"a","balance":7}"#),
        request(r#""operation":{"type":"amend"},"account":{"terms":{"account_id":"a","currency":"EUR","status":"active","floor":0,"slots":1,"credit":"slot","debit":"primary"},"held":1,"pending":2,"slots":[{"index":0,"balance":3,"version":4}]}"#),
        concat!(
            r#"{"entries":[{"account_id":"a","slot":1,"version":2,"type":"consolidate","request_id":null,"delta":-5,"balance_after":0,"at":"2023-11-14T22:13:20.000001Z","link":{"kind":"slot","id":"0"}},"#,
            r#"{"account_id":"a","slot":0,"version":2,"type":"settle","request_id":"r","delta":5,"balance_after":9,"at":"2023-11-14T22:13:20.000001Z","link":{"kind":"transfer","id":"b"}},"#,
            r#"{"account_id":"a","slot":0,"version":3,"type":"release","request_id":null,"delta":1,"held_delta":-1,"balance_after":10,"at":"2023-11-14T22:13:20.000001Z","link":{"kind":"hold","id":"h"}},"#,
            r#"{"account_id":"a","slot":0,"version":4,"type":"reversal","request_id":"q","delta":1,"balance_after":11,"at":"999999999999999999","link":{"kind":"reversed","id":"p"}}],"#,
            r#""pending_added":[{"account_id":"a","number":3,"amount":4,"request_id":"r","at":"2023-11-14T22:13:20.000001Z","link":{"kind":"transfer","id":"b"}}],"#,
            r#""pending_settled":[{"account_id":"a","number":2}],"#,
            r#""holds":[{"account_id":"a","hold_id":"h","amount":5,"captured":4,"released":1,"status":"expired","expires_at":"2023-11-14T22:13:20.000001Z"},"#,
            r#"{"account_id":"a","hold_id":"i","amount":5,"captured":0,"released":0,"status":"open","expires_at":null}]}"#,
        )
        .to_owned(),
    ];
    let (mut reader, mut lines_again) = (Reader::default(), Lines::default());
    for line in lines {
        let changes = reader
            .read(line.as_bytes())
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(lines_again.write(&changes).text(), line.as_bytes());
    }
}

#[test]
fn a_value_that_its_type_does_not_take_is_named_by_its_path() {
    let cases = [
        (
            r#""amount":500,"memo""#,
            r#""amount":0,"memo""#,
            "request.operation.amount",
        ),
        (
            r#""amount":500,"memo""#,
            r#""amount":"all","memo""#,
            "request.operation.amount",
        ),
        (
            r#""type":"credit","amount":500,"memo""#,
            r#""type":"gift","amount":500,"memo""#,
            "request.operation.type",
        ),
        (
            r#""amount":500,"currency""#,
            r#""amount":500.0,"currency""#,
            "request.receipt.amount",
        ),
        (
            r#""currency":"EUR""#,
            r#""currency":"EURO""#,
            "request.receipt.currency",
        ),
        (
            r#""status":"posted""#,
            r#""status":"done""#,
            "request.receipt.status",
        ),
        (
            r#"{"account_id":"alice","slot":0,"version":1,"type""#,
            r#"{"account_id":"alice","slot":64,"version":1,"type""#,
            "entries[0].slot",
        ),
        (
            r#""type":"credit","request_id""#,
            r#""type":"kredit","request_id""#,
            "entries[0].type",
        ),
        (r#"Z"}]}"#, r#""}]}"#, "entries[0].at"),
        (
            r#""receipt":{"request_id":"pay-1""#,
            r#""receipt":{"request_id":"pay-2""#,
            "request.receipt.request_id",
        ),
        (
            r#""operation":{"type":"credit","amount":500,"memo":"tea \"for two\""},"#,
            "",
            "request.operation",
        ),
        (r#""receipt":{"#, r#""gift":1,"receipt":{"#, "request.gift"),
    ];
    for (from, to, field) in cases {
        let line = CREDIT.replacen(from, to, 1);
        assert_ne!(line, CREDIT, "{from}");
        assert_eq!(refused(&line).field, field, "{line}");
    }
}

#[test]
fn another_spelling_of_the_same_record_is_refused_where_it_begins() {
    let spaced = CREDIT.replacen(r#""amount":500"#, r#""amount": 500"#, 1);
    let error = refused(&spaced);
    let column = spaced.find(r#" 500"#).unwrap() + 1;
    assert!(
        error.reason.contains(&format!("from byte {column} on \"500,")),
        "{error}"
    );
    let escaped = CREDIT.replacen("pay-1", "\\u0070ay-1", 1);
    let doubled = format!("{CREDIT}{CREDIT}");
    let unused = CREDIT.replacen(r#""memo":"#, r#""hold_id":"h","memo":"#, 1);
    for line in [&escaped, &doubled, &unused, "", "{}x", "[]", &CREDIT[..100]] {
        assert_eq!(
            refused(line).field.split('.').next(),
            Some(if line.len() == 100 { "request" } else { "line" }),
            "{line}"
        );
    }
}
