//! Every way to ask wrongly, a line each, with the field that the answer names.

pub(super) const OPEN: &str = "/v1/accounts";
const CREDIT: &str = "/v1/accounts/alice/credits";
pub(super) const DEBIT: &str = "/v1/accounts/alice/debits";
const TRANSFER: &str = "/v1/transfers";
const HOLD: &str = "/v1/accounts/alice/holds";
const CAPTURE: &str = "/v1/accounts/alice/holds/h/capture";
const RELEASE: &str = "/v1/accounts/alice/holds/h/release";
const REVERSAL: &str = "/v1/reversals";
const AMEND: &str = "/v1/accounts/alice";

/// A request that is refused with 400 `invalid_request`.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) path: &'static str,
    pub(super) body: &'static str,
    pub(super) field: Option<&'static str>,
}

const fn row(name: &'static str, path: &'static str, body: &'static str, field: Option<&'static str>) -> Row {
    Row {
        name,
        path,
        body,
        field,
    }
}

const AMOUNT: Option<&str> = Some("amount");
const REQUEST: Option<&str> = Some("request_id");

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // The body as a whole.
    row("empty", DEBIT, "", None),
    row("blank", DEBIT, " \n", None),
    row("an array", DEBIT, r#"["r",5]"#, None),
    row("a string", DEBIT, r#""r""#, None),
    row("null", DEBIT, "null", None),
    row("cut off", DEBIT, r#"{"request_id":"r""#, None),
    row("trailing data", DEBIT, r#"{"request_id":"r","amount":5} {}"#, None),
    row("trailing comma", DEBIT, r#"{"request_id":"r","amount":5,}"#, None),
    row("single quotes", DEBIT, "{'request_id':'r'}", None),
    row("a comment", DEBIT, r#"{"request_id":"r",/**/"amount":5}"#, None),
    row("a byte order mark", DEBIT, "\u{feff}{}", None),
    // Fields that do not belong, or are there twice.
    row("unknown field", DEBIT, r#"{"request_id":"r","amount":5,"ammount":6}"#, Some("ammount")),
    row("the path's id in the body", DEBIT, r#"{"account_id":"alice","request_id":"r","amount":5}"#, Some("account_id")),
    row("another case", DEBIT, r#"{"request_id":"r","Amount":5}"#, Some("Amount")),
    row("another route's field", CREDIT, r#"{"request_id":"r","amount":5,"expires_in_s":5}"#, Some("expires_in_s")),
    row("amount twice", DEBIT, r#"{"request_id":"r","amount":5,"amount":5}"#, AMOUNT),
    row("null, then amount", DEBIT, r#"{"request_id":"r","amount":null,"amount":5}"#, AMOUNT),
    row("amount twice, once escaped", DEBIT, r#"{"request_id":"r","amount":5,"\u0061mount":6}"#, AMOUNT),
    row("request_id twice", DEBIT, r#"{"request_id":"r","request_id":"s","amount":5}"#, REQUEST),
    // Amounts.
    row("no amount", DEBIT, r#"{"request_id":"r"}"#, AMOUNT),
    row("null amount", DEBIT, r#"{"request_id":"r","amount":null}"#, AMOUNT),
    row("zero", DEBIT, r#"{"request_id":"r","amount":0}"#, AMOUNT),
    row("minus zero", DEBIT, r#"{"request_id":"r","amount":-0}"#, AMOUNT),
    row("negative", CREDIT, r#"{"request_id":"r","amount":-5}"#, AMOUNT),
    row("whole with a fraction", DEBIT, r#"{"request_id":"r","amount":1.0}"#, AMOUNT),
    row("fraction", DEBIT, r#"{"request_id":"r","amount":0.5}"#, AMOUNT),
    row("exponent", DEBIT, r#"{"request_id":"r","amount":1e3}"#, AMOUNT),
    row("2^53", CREDIT, r#"{"request_id":"r","amount":9007199254740992}"#, AMOUNT),
    row("2^63", CREDIT, r#"{"request_id":"r","amount":9223372036854775808}"#, AMOUNT),
    row("2^64", CREDIT, r#"{"request_id":"r","amount":18446744073709551616}"#, AMOUNT),
    row("forty digits", CREDIT, r#"{"request_id":"r","amount":1000000000000000000000000000000000000000}"#, AMOUNT),
    row("1e999", CREDIT, r#"{"request_id":"r","amount":1e999}"#, AMOUNT),
    row("digits in a string", DEBIT, r#"{"request_id":"r","amount":"5"}"#, AMOUNT),
    row("max for a credit", CREDIT, r#"{"request_id":"r","amount":"max"}"#, AMOUNT),
    row("max for a transfer", TRANSFER, r#"{"request_id":"r","from":"alice","to":"bob","amount":"max"}"#, AMOUNT),
    row("max in capitals", DEBIT, r#"{"request_id":"r","amount":"MAX"}"#, AMOUNT),
    row("a boolean", DEBIT, r#"{"request_id":"r","amount":true}"#, AMOUNT),
    row("an object", DEBIT, r#"{"request_id":"r","amount":{"value":5}}"#, AMOUNT),
    row("an array of one", DEBIT, r#"{"request_id":"r","amount":[5]}"#, AMOUNT),
    row("a leading zero", DEBIT, r#"{"request_id":"r","amount":05}"#, AMOUNT),
    row("a plus sign", DEBIT, r#"{"request_id":"r","amount":+5}"#, AMOUNT),
    row("hexadecimal", DEBIT, r#"{"request_id":"r","amount":0x5}"#, AMOUNT),
    row("NaN", DEBIT, r#"{"request_id":"r","amount":NaN}"#, AMOUNT),
    // Request ids.
    row("no request_id", DEBIT, r#"{"amount":5}"#, REQUEST),
    row("null request_id", DEBIT, r#"{"request_id":null,"amount":5}"#, REQUEST),
    row("empty request_id", DEBIT, r#"{"request_id":"","amount":5}"#, REQUEST),
    row("a space in it", DEBIT, r#"{"request_id":"a b","amount":5}"#, REQUEST),
    row("a control character in it", DEBIT, r#"{"request_id":"a\u0000","amount":5}"#, REQUEST),
    row("beyond ASCII", DEBIT, r#"{"request_id":"ä","amount":5}"#, REQUEST),
    row("a lone surrogate", DEBIT, r#"{"request_id":"\ud800","amount":5}"#, REQUEST),
    row("65 characters", DEBIT, r#"{"request_id":"0123456789012345678901234567890123456789012345678901234567890123x","amount":5}"#, REQUEST),
    row("a number", DEBIT, r#"{"request_id":7,"amount":5}"#, REQUEST),
    // Memos.
    row("memo as a number", DEBIT, r#"{"request_id":"r","amount":5,"memo":7}"#, Some("memo")),
    // Transfers.
    row("to oneself", TRANSFER, r#"{"request_id":"r","from":"alice","to":"alice","amount":5}"#, Some("to")),
    row("no source", TRANSFER, r#"{"request_id":"r","to":"bob","amount":5}"#, Some("from")),
    row("no target", TRANSFER, r#"{"request_id":"r","from":"alice","amount":5}"#, Some("to")),
    row("a bad target", TRANSFER, r#"{"request_id":"r","from":"alice","to":"bo b","amount":5}"#, Some("to")),
    row("an empty source", TRANSFER, r#"{"request_id":"r","from":"","to":"bob","amount":5}"#, Some("from")),
    // Holds.
    row("a hold of nothing", HOLD, r#"{"request_id":"r"}"#, AMOUNT),
    row("a hold of all", HOLD, r#"{"request_id":"r","amount":"max"}"#, AMOUNT),
    row("a hold without an id", HOLD, r#"{"amount":5}"#, REQUEST),
    row("a hold with a memo", HOLD, r#"{"request_id":"r","amount":5,"memo":"x"}"#, Some("memo")),
    row("a term of 0", HOLD, r#"{"request_id":"r","amount":5,"expires_in_s":0}"#, Some("expires_in_s")),
    row("a term of a year and a second", HOLD, r#"{"request_id":"r","amount":5,"expires_in_s":31536001}"#, Some("expires_in_s")),
    row("a term of 2^32 + 1", HOLD, r#"{"request_id":"r","amount":5,"expires_in_s":4294967297}"#, Some("expires_in_s")),
    row("a term with a fraction", HOLD, r#"{"request_id":"r","amount":5,"expires_in_s":1.5}"#, Some("expires_in_s")),
    row("a term in words", HOLD, r#"{"request_id":"r","amount":5,"expires_in_s":"5"}"#, Some("expires_in_s")),
    row("a capture of 0", CAPTURE, r#"{"request_id":"r","amount":0}"#, AMOUNT),
    row("a capture of max", CAPTURE, r#"{"request_id":"r","amount":"max"}"#, AMOUNT),
    row("final in words", CAPTURE, r#"{"request_id":"r","final":"true"}"#, Some("final")),
    row("final as a number", CAPTURE, r#"{"request_id":"r","final":1}"#, Some("final")),
    row("the path's hold in the body", CAPTURE, r#"{"request_id":"r","hold_id":"h"}"#, Some("hold_id")),
    row("a capture without an id", CAPTURE, "{}", REQUEST),
    row("a release of a part", RELEASE, r#"{"request_id":"r","amount":5}"#, AMOUNT),
    row("a release without an id", RELEASE, "{}", REQUEST),
    row("a space in a hold's path", "/v1/accounts/alice/holds/a%20b/capture", r#"{"request_id":"r"}"#, Some("hold_id")),
    row("a long hold id", "/v1/accounts/alice/holds/0123456789012345678901234567890123456789012345678901234567890123x/release", r#"{"request_id":"r"}"#, Some("hold_id")),
    // Reversals.
    row("a reversal of nothing", REVERSAL, r#"{"request_id":"r","account_id":"alice"}"#, Some("reverses")),
    row("a reversal of nobody's", REVERSAL, r#"{"request_id":"r","reverses":"opening"}"#, Some("account_id")),
    row("a reversal of a part", REVERSAL, r#"{"request_id":"r","account_id":"alice","reverses":"opening","amount":5}"#, AMOUNT),
    row("a reversal without an id", REVERSAL, r#"{"account_id":"alice","reverses":"opening"}"#, REQUEST),
    row("a reversal of a bad id", REVERSAL, r#"{"request_id":"r","account_id":"alice","reverses":"a b"}"#, Some("reverses")),
    // Opening.
    row("no id", OPEN, r#"{"currency":"EUR"}"#, Some("account_id")),
    row("a slash in the id", OPEN, r#"{"account_id":"a/b","currency":"EUR"}"#, Some("account_id")),
    row("no currency", OPEN, r#"{"account_id":"x"}"#, Some("currency")),
    row("an unknown currency", OPEN, r#"{"account_id":"x","currency":"ZZZ"}"#, Some("currency")),
    row("a currency in lower case", OPEN, r#"{"account_id":"x","currency":"eur"}"#, Some("currency")),
    row("no slots", OPEN, r#"{"account_id":"x","currency":"EUR","slots":0}"#, Some("slots")),
    row("65 slots", OPEN, r#"{"account_id":"x","currency":"EUR","slots":65}"#, Some("slots")),
    row("257 slots", OPEN, r#"{"account_id":"x","currency":"EUR","slots":257}"#, Some("slots")),
    row("-1 slots", OPEN, r#"{"account_id":"x","currency":"EUR","slots":-1}"#, Some("slots")),
    row("slots as a fraction", OPEN, r#"{"account_id":"x","currency":"EUR","slots":2.0}"#, Some("slots")),
    row("a negative floor", OPEN, r#"{"account_id":"x","currency":"EUR","floor":-1}"#, Some("floor")),
    row("a floor of 2^53", OPEN, r#"{"account_id":"x","currency":"EUR","floor":9007199254740992}"#, Some("floor")),
    row("hashed over a floor", OPEN, r#"{"account_id":"x","currency":"EUR","debit":"hashed","floor":1}"#, Some("floor")),
    row("an unknown credit mode", OPEN, r#"{"account_id":"x","currency":"EUR","credit":"Slot"}"#, Some("credit")),
    row("an unknown debit mode", OPEN, r#"{"account_id":"x","currency":"EUR","debit":"max"}"#, Some("debit")),
    row("a request id", OPEN, r#"{"account_id":"x","currency":"EUR","request_id":"r"}"#, REQUEST),
    row("a status", OPEN, r#"{"account_id":"x","currency":"EUR","status":"active"}"#, Some("status")),
    // Paths, after decoding.
    row("no id in the path", "/v1/accounts//debits", r#"{"request_id":"r","amount":5}"#, Some("account_id")),
    row("a space in the path", "/v1/accounts/al%20ice/debits", r#"{"request_id":"r","amount":5}"#, Some("account_id")),
    row("a slash in the path", "/v1/accounts/a%2Fb/debits", r#"{"request_id":"r","amount":5}"#, Some("account_id")),
    row("no UTF-8 in the path", "/v1/accounts/%ff/debits", r#"{"request_id":"r","amount":5}"#, Some("account_id")),
    row("a long path", "/v1/accounts/0123456789012345678901234567890123456789012345678901234567890123x/debits", r#"{"request_id":"r","amount":5}"#, Some("account_id")),
    row("a body for abandon", "/v1/requests/alice/r/abandon", r#"{"reason":"x"}"#, Some("reason")),
    row("a space in a request path", "/v1/requests/alice/a%20b/abandon", "", REQUEST),
    // Queries.
    row("a parameter", "/v1/accounts/alice/debits?dry_run=1", r#"{"request_id":"r","amount":5}"#, Some("dry_run")),
];

/// The same by PATCH.
#[rustfmt::skip]
pub(super) const PATCHES: &[Row] = &[
    row("empty", AMEND, "", None),
    row("no id", AMEND, r#"{"floor":5}"#, REQUEST),
    row("another currency", AMEND, r#"{"request_id":"r","currency":"USD"}"#, Some("currency")),
    row("the path's id in the body", AMEND, r#"{"request_id":"r","account_id":"alice"}"#, Some("account_id")),
    row("an unknown status", AMEND, r#"{"request_id":"r","status":"open"}"#, Some("status")),
    row("a status in capitals", AMEND, r#"{"request_id":"r","status":"Frozen"}"#, Some("status")),
    row("a status as a number", AMEND, r#"{"request_id":"r","status":1}"#, Some("status")),
    row("no slots", AMEND, r#"{"request_id":"r","slots":0}"#, Some("slots")),
    row("65 slots", AMEND, r#"{"request_id":"r","slots":65}"#, Some("slots")),
    row("an unknown credit mode", AMEND, r#"{"request_id":"r","credit":"primary"}"#, Some("credit")),
    row("an unknown debit mode", AMEND, r#"{"request_id":"r","debit":"slot"}"#, Some("debit")),
    row("a negative floor", AMEND, r#"{"request_id":"r","floor":-1}"#, Some("floor")),
    row("a floor of 2^53", AMEND, r#"{"request_id":"r","floor":9007199254740992}"#, Some("floor")),
    row("hashed over a floor", AMEND, r#"{"request_id":"r","debit":"hashed","floor":1}"#, Some("floor")),
    row("slots twice", AMEND, r#"{"request_id":"r","slots":2,"slots":2}"#, Some("slots")),
    row("a parameter", "/v1/accounts/alice?force=1", r#"{"request_id":"r","floor":1}"#, Some("force")),
];
