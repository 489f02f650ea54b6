//! `docs/claims.md` says which test shows what. Here: every such test is there, and no claim is left without a verdict.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    fs::read_to_string(root().join("docs/claims.md")).unwrap()
}

/// Every Rust source of the workspace.
fn sources() -> Vec<String> {
    let mut folders: Vec<PathBuf> = ["src", "tests", "wallet-backend/src", "wallet-backend/tests"]
        .map(|folder| root().join(folder))
        .into();
    let mut texts = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                texts.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    texts
}

/// The functions that are tests: those with the attribute, and the cases that conformance lists by name.
fn tests(sources: &[String]) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for text in sources {
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            let name = line.split("fn ").nth(1).and_then(|rest| rest.split('(').next());
            match name {
                _ if line.starts_with("#[test]") || line.starts_with("#[tokio::test") => is_test = true,
                Some(name) if is_test => {
                    found.insert(name);
                    is_test = false;
                }
                _ => {}
            }
        }
    }
    let lists = sources
        .iter()
        .filter(|text| text.contains("macro_rules! conformance {"));
    let cases = lists.flat_map(|text| text.lines()).map(str::trim);
    found.extend(cases.filter(|line| {
        !line.is_empty()
            && line
                .chars()
                .all(|c| c.is_ascii_lowercase() || "_0123456789".contains(c))
    }));
    found
}

/// The variants of the model's rules.
fn rules(sources: &[String]) -> BTreeSet<&str> {
    let lists = sources
        .iter()
        .filter(|text| text.contains("pub(super) enum Rule {"));
    let lines = lists
        .flat_map(|text| text.lines())
        .filter_map(|line| line.trim().strip_suffix(','));
    lines
        .filter(|word| word.chars().all(char::is_alphanumeric))
        .collect()
}

/// What stands between backticks and could be a name of ours.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|word| {
        let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let sentence = word.matches('_').count() >= 2;
        let camel =
            word.chars().next().is_some_and(char::is_uppercase) && word.chars().any(char::is_lowercase);
        plain && (sentence || camel)
    })
}

/// Number, claim, verdict and proof of each row.
fn rows(page: &str) -> Vec<[&str; 4]> {
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| P-") || line.starts_with("| T-"));
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        cells
            .try_into()
            .unwrap_or_else(|cells: Vec<&str>| panic!("{} cells in {line}", cells.len()))
    })
    .collect()
}

#[test]
fn every_test_that_the_claims_page_names_is_there() {
    let (page, sources) = (page(), sources());
    let (tests, rules) = (tests(&sources), rules(&sources));
    let missing: Vec<&str> = names(&page)
        .filter(|name| !tests.contains(name) && !rules.contains(name))
        .collect();
    assert!(missing.is_empty(), "no test or rule is called {missing:?}");
    assert!(
        tests.contains("every_test_that_the_claims_page_names_is_there") && rules.contains("GatesAreSorted")
    );
}

#[test]
fn every_claim_has_a_verdict_and_a_test_or_says_what_it_needs() {
    const VERDICTS: [&str; 3] = ["**true**", "**half true**", "**wrong**"];
    const NEEDS: [&str; 3] = ["the MySQL store", "Redis", "the outbox"];
    let page = page();
    for [number, claim, verdict, proof] in rows(&page) {
        assert!(!claim.is_empty(), "{number} claims nothing");
        assert!(
            VERDICTS.iter().any(|word| verdict.starts_with(word)),
            "{number} is neither true nor wrong: {verdict}"
        );
        let needs = proof.split("not shown here yet: needs ").nth(1);
        assert!(
            needs.is_some() || names(proof).next().is_some(),
            "{number} is not shown: {proof}"
        );
        assert!(
            needs.is_none_or(|needs| NEEDS.contains(&needs)),
            "{number} needs something unknown: {proof}"
        );
    }
}

#[test]
fn no_claim_is_passed_over() {
    let numbers = [1..=16, 20..=29, 30..=51, 60..=69];
    let expected = numbers
        .into_iter()
        .flatten()
        .map(|number| format!("P-{number:02}"))
        .chain(["P-29b".to_owned()]);
    let expected: BTreeSet<String> = expected.collect();
    let page = page();
    let numbers: Vec<String> = rows(&page)
        .iter()
        .map(|[number, ..]| (*number).to_owned())
        .collect();
    let found: BTreeSet<String> = numbers
        .iter()
        .filter(|number| number.starts_with("P-"))
        .cloned()
        .collect();
    assert_eq!(found, expected);
    assert_eq!(
        numbers.iter().collect::<BTreeSet<_>>().len(),
        numbers.len(),
        "a number comes twice"
    );
}
