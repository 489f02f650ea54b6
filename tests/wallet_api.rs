//! The examples of `docs/wallet-api.md`: each is run, in order, against the real wallet, and answers what is printed.
//!
//! curl reads a configuration of ours, which makes it say on standard error what it asked and was told. So the lines run
//! as they stand, and what is counted as an example of a route is what was really sent.

use serde_json::Value;
use tempfile::TempDir;

use crate::page::{self, Example};
use crate::support::proxy::http;
use crate::wallet::Wallet;

const PAGE: &str = include_str!("../docs/wallet-api.md");
const CURLRC: &str = r#"noproxy = "*"
write-out = "%{stderr}%{http_code} %{method} %{url} %{content_type}"
"#;

/// What became of an example.
struct Asked {
    example: Example,
    status: u16,
    /// In lower case, as an OpenAPI document has it.
    method: String,
    /// With the query.
    path: String,
    /// Without parameters.
    media: String,
    body: String,
}

/// A wallet over an empty ledger that has been asked everything on the page.
struct Walked {
    wallet: Wallet,
    asked: Vec<Asked>,
    _ledger: TempDir,
}

async fn walk() -> Walked {
    let ledger = tempfile::tempdir().unwrap();
    let wallet = Wallet::start("127.0.0.1:0", ledger.path());
    let curl = tempfile::tempdir().unwrap();
    std::fs::write(curl.path().join(".curlrc"), CURLRC).unwrap();
    let mut replaced = vec![("http://127.0.0.1:8081".to_owned(), wallet.address.clone())];
    let mut asked = Vec::new();
    for example in page::examples(PAGE) {
        let home = Some(curl.path().as_os_str());
        let output = page::run(example.command, &replaced, home).await;
        let body = String::from_utf8(output.stdout).unwrap().replace('\r', "");
        replaced.extend(event_ids(example.answer).zip(event_ids(&body)));
        let said = String::from_utf8(output.stderr).unwrap();
        let [status, method, url, media] = said.splitn(4, ' ').collect::<Vec<_>>()[..] else {
            panic!("line {}: curl said {said:?}", example.line);
        };
        let path = url.strip_prefix(&wallet.address);
        asked.push(Asked {
            status: status.parse().unwrap(),
            method: method.to_ascii_lowercase(),
            path: path.expect("an example asks the wallet").to_owned(),
            media: media.split(';').next().unwrap().to_owned(),
            body,
            example,
        });
    }
    Walked {
        wallet,
        asked,
        _ledger: ledger,
    }
}

/// The ids of the events in a text: each ledger has others, and an example may go on from one that was printed.
fn event_ids(text: &str) -> impl Iterator<Item = String> {
    let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
    ids.map(str::to_owned)
}

/// A text with a placeholder for every time: RFC 3339 with microseconds, or a `date` header. And for the id of every
/// event.
fn timeless(text: &str) -> String {
    const TIME: &str = "0000-00-00T00:00:00.000000Z";
    let same_shape = |time: &[u8]| {
        time.iter().zip(TIME.bytes()).all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            other => *byte == other,
        })
    };
    let mut bytes = text.as_bytes().to_vec();
    for at in 0..bytes.len().saturating_sub(TIME.len() - 1) {
        let window = &mut bytes[at..at + TIME.len()];
        if same_shape(window) {
            window.copy_from_slice(TIME.as_bytes());
        }
    }
    let text = String::from_utf8(bytes).unwrap();
    let line = |line: &str| match line.strip_prefix("date: ") {
        Some(_) => "date: now".to_owned(),
        None if line.starts_with("id: ") => "id: opaque".to_owned(),
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Whether an answer is the printed one, but for times; JSON however it is laid out.
fn as_printed(example: &Example, body: &str) -> bool {
    let (printed, told) = (timeless(example.answer), timeless(body.trim_end()));
    if example.language != "json" {
        return printed == told;
    }
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
    let printed = parsed(&printed).unwrap_or_else(|| panic!("line {}: no JSON is printed", example.line));
    parsed(&told) == Some(printed)
}

#[tokio::test]
#[ignore = "needs curl: tests/run"]
async fn every_example_is_answered_as_the_page_prints_it() {
    let mut wrong = Vec::new();
    for asked in walk().await.asked {
        let (example, status) = (&asked.example, asked.status);
        if status != example.status || !as_printed(example, &asked.body) {
            let (line, command, body) = (example.line, example.command, &asked.body);
            wrong.push(format!("line {line}: {command}\nwas answered {status}:\n{body}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Whether a path without its query is one of a template such as `/v1/accounts/{account_id}`.
fn is_of(path: &str, template: &str) -> bool {
    let (path, template): (Vec<&str>, Vec<&str>) = (path.split('/').collect(), template.split('/').collect());
    let same = |(part, pattern): (&&str, &&str)| part == pattern || pattern.starts_with('{');
    path.len() == template.len() && path.iter().zip(&template).all(same)
}

/// What is documented of an operation, and shown by none of its examples that succeed.
fn not_shown(document: &Value, operation: &Value, examples: &[&Asked]) -> Vec<String> {
    let succeeded = |status: &str| status.starts_with('2');
    let good: Vec<_> = examples
        .iter()
        .filter(|asked| succeeded(&asked.status.to_string()))
        .collect();
    if good.is_empty() {
        return vec!["a success".to_owned()];
    }
    let mut missing = Vec::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let parameter = match parameter["$ref"].as_str() {
            Some(target) => document.pointer(&target[1..]).unwrap(),
            None => parameter,
        };
        let given = format!("{}=", parameter["name"].as_str().unwrap());
        let shown = |asked: &&&Asked| {
            let query = asked.path.split_once('?').map_or("", |(_, query)| query);
            query.split('&').any(|pair| pair.starts_with(&given))
        };
        if parameter["in"] == "query" && !good.iter().any(shown) {
            missing.push(format!("?{given}"));
        }
    }
    let responses = operation["responses"].as_object().unwrap();
    let good_ones = responses.iter().filter(|(status, _)| succeeded(status));
    for (_, response) in good_ones {
        for media in response["content"]
            .as_object()
            .into_iter()
            .flat_map(|map| map.keys())
        {
            if !good.iter().any(|asked| asked.media == *media) {
                missing.push(media.clone());
            }
        }
    }
    missing
}

#[tokio::test]
#[ignore = "needs curl: tests/run"]
async fn every_route_with_each_of_its_query_parameters_and_forms_has_an_example() {
    let walked = walk().await;
    let url = format!("{}/openapi.json", walked.wallet.address);
    let document = http().get(url).send().await.unwrap().text().await.unwrap();
    let document: Value = document.parse().unwrap();
    let mut missing = Vec::new();
    for (template, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let of_this = |asked: &&Asked| {
                let path = asked.path.split('?').next().unwrap();
                asked.method == *method && is_of(path, template)
            };
            let examples: Vec<_> = walked.asked.iter().filter(of_this).collect();
            for what in not_shown(&document, operation, &examples) {
                missing.push(format!("{method} {template}: {what}"));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "docs/wallet-api.md does not show\n{}",
        missing.join("\n")
    );
}
