use super::*;

fn router(routes: &[(Option<Method>, &str)]) -> Router {
    let mut router = Router::default();
    for (route, (method, template)) in routes.iter().enumerate() {
        router
            .insert(
                method.as_ref(),
                &segments(template).unwrap(),
                RouteMatch {
                    resource: route,
                    route,
                },
            )
            .unwrap();
    }
    router
}

fn found(router: &Router, method: &Method, raw: &str) -> Option<usize> {
    router
        .find(method, &normalise(raw).unwrap())
        .map(|found| found.route)
}

#[test]
fn a_literal_segment_beats_a_parameter() {
    let router = router(&[(None, "/v1/accounts/{id}"), (None, "/v1/accounts/all")]);
    assert_eq!(found(&router, &Method::GET, "/v1/accounts/all"), Some(1));
    assert_eq!(found(&router, &Method::GET, "/v1/accounts/alice"), Some(0));
}

#[test]
fn a_dead_end_in_the_literal_branch_is_taken_back() {
    let router = router(&[(None, "/v1/{kind}/x/debits"), (None, "/v1/accounts/{id}/credits")]);
    assert_eq!(found(&router, &Method::GET, "/v1/accounts/x/debits"), Some(0));
}

#[test]
fn a_named_method_beats_a_route_for_every_method() {
    let router = router(&[(None, "/a"), (Some(Method::POST), "/a")]);
    assert_eq!(found(&router, &Method::POST, "/a"), Some(1));
    assert_eq!(found(&router, &Method::PUT, "/a"), Some(0));
}

#[test]
fn a_head_request_meets_the_rules_of_get() {
    let router = router(&[(Some(Method::GET), "/a")]);
    assert_eq!(found(&router, &Method::HEAD, "/a"), Some(0));
    assert_eq!(found(&router, &Method::POST, "/a"), None);
}

#[test]
fn the_same_method_and_shape_twice_is_refused_whatever_the_parameters_are_called() {
    let mut router = router(&[(Some(Method::POST), "/v1/accounts/{id}/debits")]);
    let again = segments("/v1/accounts/{accountId}/debits").unwrap();
    let refused = router.insert(
        Some(&Method::POST),
        &again,
        RouteMatch {
            resource: 9,
            route: 9,
        },
    );
    assert_eq!(
        refused,
        Err(SameRoute(RouteMatch {
            resource: 0,
            route: 0
        }))
    );
}

#[test]
fn the_root_and_longer_paths_are_told_apart() {
    let router = router(&[(None, "/"), (None, "/a/b")]);
    assert_eq!(found(&router, &Method::GET, "/"), Some(0));
    assert_eq!(found(&router, &Method::GET, "/a"), None);
    assert_eq!(found(&router, &Method::GET, "/a/b/c"), None);
    assert_eq!(router.find(&Method::OPTIONS, "*"), None);
}

#[test]
fn every_spelling_of_a_path_is_one_path() {
    for raw in [
        "/v1/accounts/alice/debits",
        "/v1/accounts/%61lice/debits",
        "/v1/accounts/alice/debits/",
        "//v1//accounts/alice///debits//",
        "/v1/accounts/./alice/debits",
        "/v1/accounts/bob/../alice/debits",
        "/v1/accounts/bob/%2e%2E/alice/%64ebits",
        "/../v1/accounts/alice/debits/.",
        "/v1/accounts/alice/debits/x/..",
        "/v1/accounts/alice;v=1/debits",
        "/v1;a/accounts;b/%61lice;c;d=%3B/debits;jsessionid=7",
        "/v1/accounts/alice/debits/;x",
        "/;/v1/accounts/alice/debits",
    ] {
        assert_eq!(normalise(raw).unwrap(), "/v1/accounts/alice/debits", "{raw}");
    }
}

#[test]
fn a_plain_path_is_not_copied() {
    assert!(matches!(
        normalise("/v1/accounts/alice/debits"),
        Ok(std::borrow::Cow::Borrowed(_))
    ));
}

#[test]
fn an_escaped_semicolon_is_part_of_a_value() {
    assert_eq!(normalise("/a%3Bb;c").unwrap(), "/a;b");
}

#[test]
fn decoding_happens_once() {
    assert_eq!(normalise("/a/%2561").unwrap(), "/a/%61");
}

#[test]
fn what_servers_read_differently_is_refused() {
    for (raw, why) in [
        ("/a%2fb", AmbiguousPath::EncodedSeparator),
        ("/a%2Fb", AmbiguousPath::EncodedSeparator),
        ("/a%5cb", AmbiguousPath::EncodedSeparator),
        ("/a%00", AmbiguousPath::EncodedSeparator),
        ("/a\\b", AmbiguousPath::Backslash),
        ("/a%", AmbiguousPath::BadEscape),
        ("/a%4", AmbiguousPath::BadEscape),
        ("/a%zz", AmbiguousPath::BadEscape),
        ("/a%+1", AmbiguousPath::BadEscape),
        ("/a%ff", AmbiguousPath::NotUtf8),
        ("/a%c0%af", AmbiguousPath::NotUtf8),
        ("a/b", AmbiguousPath::NotAbsolute),
        ("", AmbiguousPath::NotAbsolute),
        ("/a//../b", AmbiguousPath::EmptyAndParent),
        ("/a/;/../b", AmbiguousPath::EmptyAndParent),
        ("/a/..;/b", AmbiguousPath::DotWithParameters),
        ("/a/%2E.;x/b", AmbiguousPath::DotWithParameters),
        ("/a/.;x", AmbiguousPath::DotWithParameters),
    ] {
        assert_eq!(normalise(raw), Err(why), "{raw}");
    }
}

#[test]
fn a_template_that_no_request_could_match_is_refused() {
    for (template, why) in [
        ("v1", TemplateError::NoSlash),
        ("/v1//a", TemplateError::EmptySegment),
        ("/v1/", TemplateError::EmptySegment),
        ("/v1/a%20b", TemplateError::NotAPath("a%20b".into())),
        ("/v1/a?b=c", TemplateError::NotAPath("a?b=c".into())),
        ("/v1/a;b", TemplateError::NotAPath("a;b".into())),
        ("/v1/x{id}", TemplateError::Braces("x{id}".into())),
        ("/v1/{}", TemplateError::Braces("{}".into())),
        ("/{a}/{a}", TemplateError::TwiceParam("a".into())),
        ("/v1/**", TemplateError::Wildcard("**".into())),
    ] {
        assert_eq!(segments(template), Err(why), "{template}");
    }
}
