use http::HeaderValue;
use proptest::prelude::*;

use super::*;

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in lines {
        map.append(*name, HeaderValue::from_static(value));
    }
    map
}

fn from_head(
    extractor: Extractor,
    query: Option<&str>,
    lines: &[(&'static str, &'static str)],
) -> ParamValue {
    let headers = headers(lines);
    let parts = RequestParts {
        path: "/v1/accounts/alice/debits",
        query,
        headers: &headers,
    };
    extract(&[extractor], &parts, None).remove(0)
}

fn from_json(pointers: &[&str], body: &str) -> ParamValue {
    from_json_with(pointers, body, &[])
}

fn from_json_with(pointers: &[&str], body: &str, lines: &[(&'static str, &'static str)]) -> ParamValue {
    let pointers = pointers
        .iter()
        .map(|text| JsonPointer::parse(text).unwrap())
        .collect();
    let headers = headers(lines);
    let parts = RequestParts {
        path: "/",
        query: None,
        headers: &headers,
    };
    extract(&[Extractor::Json(pointers)], &parts, Some(body.as_bytes())).remove(0)
}

fn text(value: &str) -> ParamValue {
    ParamValue::One(value.into())
}

fn many(values: &[(&str, u32)]) -> ParamValue {
    ParamValue::Many(
        values
            .iter()
            .map(|(value, weight)| ((*value).into(), *weight))
            .collect(),
    )
}

#[test]
fn a_path_parameter_is_the_segment_at_its_index() {
    assert_eq!(from_head(Extractor::Path(2), None, &[]), text("alice"));
    assert_eq!(from_head(Extractor::Path(4), None, &[]), ParamValue::Missing);
}

#[test]
fn a_query_parameter_is_decoded_as_forms_are() {
    let account = || Extractor::Query("account id".into());
    assert_eq!(
        from_head(account(), Some("a=b&account+id=al%69ce+b"), &[]),
        text("alice b")
    );
    assert_eq!(
        from_head(account(), Some("account%20id=alice"), &[]),
        text("alice")
    );
    assert_eq!(
        from_head(account(), Some("account+id=a%3Bb&q=1;2"), &[]),
        text("a;b")
    );
    assert_eq!(from_head(account(), Some("a=b"), &[]), ParamValue::Missing);
    assert_eq!(from_head(account(), None, &[]), ParamValue::Missing);
}

#[test]
fn what_is_there_twice_or_empty_or_broken_is_missing() {
    let query = || Extractor::Query("id".into());
    let header = || Extractor::Header(HeaderName::from_static("x-account"));
    let cookie = || Extractor::Cookie("account".into());
    for query_text in [
        "id=alice&id=bob",
        "id=alice&%69d=alice",
        "id=",
        "id",
        "id=%zz",
        "id=%ff",
        "id=alice;x=1",
        "id=decoy&x=1;id=alice",
        "id=alice;id=alice",
        "x=1;id=alice",
    ] {
        assert_eq!(
            from_head(query(), Some(query_text), &[]),
            ParamValue::Missing,
            "{query_text}"
        );
    }
    for lines in [
        &[("x-account", "alice"), ("x-account", "bob")][..],
        &[("x-account", "")],
        &[("cookie", "account=alice; account=bob")],
        &[("cookie", "account=alice"), ("cookie", "account=bob")],
    ] {
        assert_eq!(from_head(header(), None, lines), ParamValue::Missing, "{lines:?}");
        assert_eq!(from_head(cookie(), None, lines), ParamValue::Missing, "{lines:?}");
    }
}

#[test]
fn a_header_keeps_its_text_and_a_cookie_has_one_spelling() {
    let header = Extractor::Header(HeaderName::from_static("x-account"));
    assert_eq!(from_head(header, None, &[("x-account", "00123")]), text("00123"));
    let cookie = Extractor::Cookie("account".into());
    assert_eq!(
        from_head(cookie, None, &[("cookie", "session=1; account=a=b")]),
        text("a=b")
    );
    for line in [
        "account=al%69ce",
        "account=\"alice\"",
        "a=1;account = \"alic%65\" ",
    ] {
        let cookie = Extractor::Cookie("account".into());
        assert_eq!(
            from_head(cookie, None, &[("cookie", line)]),
            text("alice"),
            "{line}"
        );
    }
    let cookie = Extractor::Cookie("account".into());
    assert_eq!(from_head(cookie, None, &[("cookie", "account=5%")]), text("5%"));
    let origin = Extractor::Origin(HeaderName::from_static("x-origin"));
    assert_eq!(
        from_head(origin, None, &[("x-origin", "checkout")]),
        text("checkout")
    );
}

#[test]
fn a_long_value_keeps_a_bounded_and_distinct_text() {
    let long = |end: &str| {
        from_head(
            Extractor::Query("q".into()),
            Some(&format!("q={}{end}", "é".repeat(400))),
            &[],
        )
    };
    let ParamValue::One(kept) = long("a") else {
        panic!("one value")
    };
    assert!(kept.len() <= MAX_VALUE_LEN);
    assert_ne!(long("a"), long("b"));
}

#[test]
fn a_json_pointer_finds_its_value_and_numbers_keep_their_text() {
    for (body, value) in [
        (r#"{"from":"alice"}"#, "alice"),
        (r#"{"a":{"from":"no"},"from":"al\u0069ce","z":[1]}"#, "alice"),
        (r#"{"fr\u006fm":"alice"}"#, "alice"),
        (r#"{"from": 1e3 }"#, "1e3"),
        (
            r#"{"from":123456789012345678901234567890.10}"#,
            "123456789012345678901234567890.10",
        ),
        (r#"{"from":true}"#, "true"),
    ] {
        assert_eq!(from_json(&["/from"], body), text(value), "{body}");
    }
}

#[test]
fn a_body_that_two_readers_would_read_differently_has_no_value() {
    for body in [
        "",
        "from=alice",
        r#"{"from":"alice"} x"#,
        r#"{"from":"alice","#,
        r#"{"from":"alice","from":"bob"}"#,
        r#"{"from":"alice","fr\u006fm":"alice"}"#,
        r#"{"from":"\ud800"}"#,
        r#"{"from":00123}"#,
        r#"{"from":""}"#,
        r#"{"from":null}"#,
        r#"{"from":["alice"]}"#,
        r#"["alice"]"#,
        "7",
    ] {
        assert_eq!(from_json(&["/from"], body), ParamValue::Missing, "{body}");
    }
    assert_eq!(
        from_json(&["/a/b"], r#"{"a":{"b":"x"},"a":{}}"#),
        ParamValue::Missing
    );
}

#[test]
fn a_key_twice_that_no_pointer_steps_through_is_the_wallets_affair() {
    assert_eq!(
        from_json(&["/from"], r#"{"memo":1,"from":"alice","memo":2}"#),
        text("alice")
    );
}

#[test]
fn an_encoded_body_has_no_value() {
    let read = |lines| from_json_with(&["/from"], r#"{"from":"alice"}"#, lines);
    assert_eq!(read(&[("content-encoding", "gzip")]), ParamValue::Missing);
    assert_eq!(
        read(&[("content-encoding", "identity"), ("content-encoding", "br")]),
        ParamValue::Missing
    );
    assert_eq!(read(&[("content-encoding", "Identity")]), text("alice"));
}

#[test]
fn every_operation_of_a_batch_weighs_on_its_account() {
    let body = r#"{"operations":[{"op":"debit","account_id":"bob"},{"op":"transfer","from":"alice","to":"x"},
        {"op":"credit","account_id":"bob"},{"op":"?"},7]}"#;
    let pointers = ["/operations/*/account_id", "/operations/*/from"];
    assert_eq!(from_json(&pointers, body), many(&[("bob", 2), ("alice", 1)]));
    assert_eq!(from_json(&pointers, r#"{"operations":[]}"#), ParamValue::Missing);
    assert_eq!(
        from_json(&pointers, r#"{"operations":[{"from":"alice"}]}"#),
        text("alice")
    );
    assert_eq!(
        from_json(&pointers, r#"{"operations":[{"from":"a"},{"from":"a"}]}"#),
        many(&[("a", 2)])
    );
}

#[test]
fn a_pointer_that_goes_on_where_another_ends_is_followed_too() {
    let read = |body| from_json(&["/account", "/account/id", "/account/*"], body);
    assert_eq!(read(r#"{"account":"alice"}"#), text("alice"));
    assert_eq!(read(r#"{"account":{"id":"alice"}}"#), text("alice"));
    assert_eq!(read(r#"{"account":["a","b"]}"#), many(&[("a", 1), ("b", 1)]));
    assert_eq!(
        read(r#"{"account":{"id":"alice","id":"bob"}}"#),
        ParamValue::Missing
    );
}

#[test]
fn a_key_twice_in_one_operation_spoils_the_batch() {
    let body = r#"{"operations":[{"account_id":"a"},{"account_id":"b","account_id":"c"}]}"#;
    assert_eq!(
        from_json(&["/operations/*/account_id"], body),
        ParamValue::Missing
    );
}

#[test]
fn too_many_distinct_values_are_none() {
    let body = |count: usize| {
        format!(
            "[{}]",
            (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(",")
        )
    };
    assert!(
        matches!(from_json(&["/*"], &body(MAX_VALUES)), ParamValue::Many(values) if values.len() == MAX_VALUES)
    );
    assert_eq!(from_json(&["/*"], &body(MAX_VALUES + 1)), ParamValue::Missing);
}

#[test]
fn a_deep_body_is_skipped_without_recursing() {
    let deep = format!(
        "{{\"x\":{}{},\"from\":\"alice\"}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert_eq!(from_json(&["/from"], &deep), text("alice"));
    assert_eq!(from_json(&["/x"], &deep), ParamValue::Missing);
}

#[test]
fn pointers_are_read_as_rfc_6901_says() {
    assert_eq!(from_json(&["/a~1b/~0c"], r#"{"a/b":{"~c":"x"}}"#), text("x"));
    assert_eq!(JsonPointer::parse("from"), Err(PointerError::NoSlash));
    assert_eq!(JsonPointer::parse("/a~2"), Err(PointerError::BadTilde));
    assert_eq!(JsonPointer::parse("/a~"), Err(PointerError::BadTilde));
    assert_eq!(JsonPointer::parse(&"/*".repeat(17)), Err(PointerError::TooDeep));
}

proptest! {
    #[test]
    fn no_body_makes_the_reader_panic(body in ".{0,64}") {
        from_json(&["/from", "/operations/*/account_id"], &body);
    }

    #[test]
    fn a_string_is_found_as_the_wallet_would_read_it(value in ".{1,40}") {
        let body = serde_json::json!({ "from": value }).to_string();
        prop_assert_eq!(from_json(&["/from"], &body), text(&value));
    }
}
