use std::time::Duration;

use super::super::report::Report;
use super::*;

fn source(text: &str) -> Source {
    Source {
        path: "rules/a.yaml".into(),
        bytes: text.as_bytes().to_vec(),
    }
}

fn scalar(yaml: &str) -> Node {
    let Value::Map(entries) = parse(&source(&format!("v: {yaml}\n"))).unwrap().value else {
        panic!("a map")
    };
    entries.into_iter().next().unwrap().1
}

fn read<T>(yaml: &str, read: impl FnOnce(&Node, &mut Report) -> Option<T>) -> Result<T, String> {
    let mut report = Report::default();
    let value = read(&scalar(yaml), &mut report);
    value.ok_or_else(|| report.into_errors().remove(0).message)
}

#[test]
fn a_number_keeps_its_text() {
    for yaml in [
        "00123",
        "1e3",
        "1_000",
        "0x1F",
        "1e400",
        ".inf",
        "123456789012345678901234567890",
        "-0",
        "yes",
        "true",
    ] {
        let node = scalar(yaml);
        assert_eq!(node.text(&mut Report::default()), Some(yaml));
    }
    assert_eq!(scalar("\"1001\"").text(&mut Report::default()), Some("1001"));
    assert_eq!(scalar("'a''b'").text(&mut Report::default()), Some("a'b"));
}

#[test]
fn an_alias_keeps_the_text_and_is_placed_where_it_is_used() {
    let Value::Map(entries) = parse(&source("a: &x 0070\nb: *x\n")).unwrap().value else {
        panic!("a map")
    };
    let (_, alias) = &entries[1];
    assert_eq!(alias.text(&mut Report::default()), Some("0070"));
    assert_eq!(alias.place.to_string(), "rules/a.yaml:2:4");
}

#[test]
fn whole_numbers_are_read_in_the_spellings_that_dashboards_export() {
    let integer = |yaml| read(yaml, |node, report| node.integer(0, 1_000, "; hint", report));
    assert_eq!(integer("100"), Ok(100));
    assert_eq!(integer("100.0"), Ok(100));
    assert_eq!(integer("1e2"), Ok(100));
    assert_eq!(integer("-1"), Err("`-1` is negative".into()));
    assert_eq!(
        integer("0.5"),
        Err("a whole number is due, not `0.5`; hint".into())
    );
    assert_eq!(integer("1001"), Err("`1001` is not between 0 and 1000".into()));
    assert_eq!(
        integer("'5'"),
        Err("a number is due, not the text `5`: write it without quotes".into())
    );
    assert_eq!(integer("[5]"), Err("a number is due, not a list".into()));
    assert_eq!(integer(".inf"), Err("a number is due, not `.inf`".into()));
}

#[test]
fn a_percentage_where_a_ratio_is_due_is_told_so() {
    let ratio = |yaml| read(yaml, Node::ratio);
    assert_eq!(ratio("0.3"), Ok(0.3));
    assert_eq!(ratio("1"), Ok(1.0));
    assert_eq!(
        ratio("50"),
        Err("a ratio is between 0 and 1, not `50`; for 50 % write `0.5`".into())
    );
    assert_eq!(
        ratio("5"),
        Err("a ratio is between 0 and 1, not `5`; for 5 % write `0.05`".into())
    );
    assert_eq!(ratio("1.5"), Err("a ratio is between 0 and 1, not `1.5`".into()));
}

#[test]
fn durations_have_units() {
    let second = Some(Duration::from_secs(1));
    let duration = |yaml, unit| read(yaml, move |node, report| node.duration(unit, report));
    assert_eq!(duration("250ms", None), Ok(Duration::from_millis(250)));
    assert_eq!(duration("2 s", None), Ok(Duration::from_secs(2)));
    assert_eq!(duration("10", second), Ok(Duration::from_secs(10)));
    assert_eq!(duration("5m", second), Ok(Duration::from_secs(300)));
    assert_eq!(
        duration("10", None),
        Err("`10` needs a unit, as `10s` or `10ms`".into())
    );
    assert!(duration("0s", None).is_err());
    assert!(duration("0", second).is_err());
    assert!(duration("99999999999999999999s", None).is_err());
    assert!(duration("5 parsecs", None).is_err());
    assert!(duration("0.5", second).unwrap_err().contains("250ms"));
}

#[test]
fn sizes_have_binary_and_decimal_units() {
    let size = |yaml| read(yaml, |node, report| node.size(1 << 24, report));
    assert_eq!(size("64KiB"), Ok(65_536));
    assert_eq!(size("4MiB"), Ok(4 << 20));
    assert_eq!(size("1 KB"), Ok(1_000));
    assert_eq!(size("512"), Ok(512));
    assert!(size("0").is_err());
    assert!(size("17MiB").is_err());
    assert!(size("64kb").is_err());
}

#[test]
fn what_the_reader_stops_at_has_a_place() {
    for (text, error) in [
        ("a: 1\na: 2\n", "rules/a.yaml:2:1: `a` is there twice"),
        ("a: [1,\nb: 2\n", "rules/a.yaml:1:4: unclosed bracket '['"),
        (
            "a: 1\n---\nb: 1\n",
            "rules/a.yaml:3:1: a second YAML document (`---`); write it to a file of its own",
        ),
        ("a: *nope\n", "rules/a.yaml:1:4: alias references unknown anchor"),
        ("{\"a\": 1, \"b\": \"x", "rules/a.yaml:1:15: unclosed quote"),
    ] {
        assert_eq!(parse(&source(text)).unwrap_err().to_string(), error, "{text:?}");
    }
    let bytes = Source {
        path: "rules/a.yaml".into(),
        bytes: b"a: \xff\n".to_vec(),
    };
    assert_eq!(
        parse(&bytes).unwrap_err().to_string(),
        "rules/a.yaml: not UTF-8 after byte 3"
    );
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(",");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert!(parse(&source(&bomb)).is_err());
}
