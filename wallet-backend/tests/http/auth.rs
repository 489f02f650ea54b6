//! Tokens and API keys: asked for before anything else of a request is looked at.

use std::fs;
use std::io::{BufRead as _, BufReader};

use rustix::process::Signal;

use http::Request;
use wallet_backend::http::HttpOptions;
use wallet_backend::http::auth::{Access, Callers, Keys, Secret, Tokens};

use super::support::Api;
use crate::process::{Served, binary};

fn options(access: Access) -> HttpOptions {
    HttpOptions {
        access,
        ..HttpOptions::default()
    }
}

fn guarded() -> Api {
    let tokens = Tokens::parse("# two, for rotation\nold\nnew\n").unwrap();
    let access = Access::from(tokens);
    Api::with(options(access))
}

#[tokio::test]
async fn without_a_token_everything_but_health_is_a_401_before_validation() {
    let api = guarded();
    for (method, path) in [
        ("POST", "/v1/accounts"),
        ("POST", "/v1/accounts/al%20ice/credits"),
        ("GET", "/v1/accounts/alice?at=1"),
        ("GET", "/metrics"),
        ("GET", "/openapi.json"),
        ("GET", "/nowhere"),
        ("DELETE", "/v1/accounts"),
    ] {
        let request = Request::builder().method(method).uri(path);
        let reply = api.send(request, "not json").await;
        assert_eq!(reply.status, 401, "{method} {path}");
        assert_eq!(reply.problem(), ("unauthorized".to_owned(), None));
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    }
    assert_eq!(api.get("/healthz").await.status, 200);
    assert_eq!(api.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn each_token_of_the_file_is_let_in() {
    let api = guarded();
    for (header, status) in [
        ("Bearer old", 404),
        ("Bearer new", 404),
        ("Bearer neww", 401),
        ("Bearer ne", 401),
        ("Basic new", 401),
    ] {
        let request = Request::get("/v1/accounts/alice").header("authorization", header);
        assert_eq!(api.send(request, "").await.status, status, "{header}");
    }
}

/// A wallet that knows one key with these scopes, and its secret.
fn keyed(scopes: &str) -> (Api, String) {
    let secret = Secret::new().unwrap();
    let key = secret.key("the-key", scopes.parse().unwrap()).unwrap();
    let callers = Callers {
        tokens: Tokens::parse("token").unwrap(),
        keys: Keys::parse(&key.to_string()).unwrap(),
    };
    let access = Access::only(callers);
    (Api::with(options(access)), secret.reveal().to_owned())
}

fn request(method: &str, path: &str, token: &str) -> http::request::Builder {
    let authorization = format!("Bearer {token}");
    Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", authorization)
}

/// Each route of money or of accounts, and the scopes of which one is enough beside `admin`.
const ROUTES: [(&str, &str, &[&str]); 18] = [
    ("GET", "/v1/accounts", &["read"]),
    ("POST", "/v1/accounts", &[]),
    ("GET", "/v1/accounts/alice", &["read"]),
    ("POST", "/v1/accounts/alice/credits", &["credit"]),
    ("POST", "/v1/accounts/alice/debits", &["debit"]),
    ("PATCH", "/v1/accounts/alice", &[]),
    ("POST", "/v1/accounts/alice/holds", &["debit"]),
    ("GET", "/v1/accounts/alice/holds/h", &["read"]),
    ("POST", "/v1/accounts/alice/holds/h/capture", &["debit"]),
    ("POST", "/v1/accounts/alice/holds/h/release", &["debit"]),
    ("POST", "/v1/reversals", &[]),
    ("POST", "/v1/batches", &[]),
    ("GET", "/v1/accounts/alice/entries", &["read"]),
    ("HEAD", "/v1/accounts/alice/entries", &["read"]),
    ("POST", "/v1/transfers", &["debit"]),
    ("GET", "/v1/requests/alice/r", &["read"]),
    ("POST", "/v1/requests/alice/r/abandon", &["credit", "debit"]),
    ("GET", "/metrics", &["read"]),
];

#[tokio::test]
async fn a_key_opens_the_routes_of_its_scopes_and_no_other() {
    for scope in ["read", "credit", "debit", "admin"] {
        let (api, secret) = keyed(scope);
        for (method, path, enough) in ROUTES {
            let reply = api.send(request(method, path, &secret), "").await;
            let allowed = scope == "admin" || enough.contains(&scope);
            assert_eq!(
                reply.status != 403,
                allowed,
                "{scope}: {method} {path}: {reply:?}"
            );
            assert_ne!(reply.status, 401, "{scope}: {method} {path}");
        }
        for path in ["/openapi.json", "/healthz"] {
            assert_eq!(api.send(request("GET", path, &secret), "").await.status, 200);
        }
        assert_eq!(api.send(request("GET", "/v1", &secret), "").await.status, 404);
    }
}

#[tokio::test]
async fn what_may_both_take_and_bring_needs_both_scopes() {
    let (api, secret) = keyed("credit,debit");
    for path in ["/v1/reversals", "/v1/batches"] {
        let reply = api.send(request("POST", path, &secret), "").await;
        assert_eq!(reply.status, 415, "{path}");
    }
}

#[tokio::test]
async fn what_a_key_may_not_do_is_a_403_before_validation_that_names_the_scope() {
    let (api, secret) = keyed("read,credit");
    let body = "not json";
    let reply = api
        .send(request("POST", "/v1/accounts/al%20ice/debits", &secret), body)
        .await;
    assert_eq!(reply.status, 403);
    assert_eq!(reply.problem(), ("forbidden".to_owned(), None));
    assert!(
        reply.json()["detail"]
            .as_str()
            .unwrap()
            .ends_with("the scope debit")
    );
    let allowed = request("POST", "/v1/accounts/al%20ice/credits", &secret);
    assert_eq!(api.send(allowed, body).await.status, 400);
}

#[tokio::test]
async fn a_token_may_do_everything_beside_keys_and_a_stranger_nothing() {
    let (api, secret) = keyed("read");
    let other = Secret::new().unwrap();
    let hash = {
        let key = other.key("other", "admin".parse().unwrap()).unwrap().to_string();
        key.rsplit(' ').next().unwrap().to_owned()
    };
    for (token, status) in [
        ("token", 415),
        (secret.as_str(), 403),
        (other.reveal(), 401),
        (hash.as_str(), 401),
        ("the-key", 401),
    ] {
        let reply = api.send(request("POST", "/v1/accounts", token), "").await;
        assert_eq!(reply.status, status, "{token}");
    }
}

#[tokio::test]
async fn keys_that_are_put_in_place_count_from_the_next_request_on() {
    let (first, second) = (Secret::new().unwrap(), Secret::new().unwrap());
    let callers = |secret: &Secret| {
        let key = secret.key("k", "read".parse().unwrap()).unwrap();
        let keys = Keys::parse(&key.to_string()).unwrap();
        let tokens = Tokens::default();
        Callers { tokens, keys }
    };
    let access = Access::only(callers(&first));
    let api = Api::with(options(access.clone()));
    let status = async |secret: &Secret| {
        let asked = request("GET", "/v1/accounts", secret.reveal());
        api.send(asked, "").await.status.as_u16()
    };
    assert_eq!((status(&first).await, status(&second).await), (200, 401));
    assert!(access.replace(callers(&second)));
    assert_eq!((status(&first).await, status(&second).await), (401, 200));
}

/// What `wallet-backend key new` prints: the secret, and the line for the file.
fn made(name: &str, scopes: &str) -> (String, String) {
    let output = binary(&["key", "new", name, "--scopes", scopes])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let (secret, line) = printed.trim_end().split_once('\n').unwrap();
    let secret = secret.strip_prefix("secret ").unwrap();
    (
        secret.to_owned(),
        line.strip_prefix("line   ").unwrap().to_owned(),
    )
}

#[tokio::test]
async fn a_made_key_is_good_once_its_line_is_in_the_file_and_a_hangup_has_the_file_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("keys");
    let path = file.to_str().unwrap();
    let ((old, old_line), (new, new_line)) = (made("till", "read,credit"), made("shop", "read"));
    fs::write(&file, &old_line).unwrap();
    let mut served = Served::start("127.0.0.1:0", "memory:", &["--keys-file", path]);
    let mut log = BufReader::new(served.child.stderr.take().unwrap()).lines();
    let mut reread = |served: &Served, said: &str| {
        served.signal(Signal::HUP);
        assert!(log.any(|line| line.unwrap().contains(said)));
    };
    let (client, base) = served.client();
    let status = async |secret: &str| {
        let asked = client.get(format!("{base}/v1/accounts")).bearer_auth(secret);
        asked.send().await.unwrap().status().as_u16()
    };
    assert_eq!((status(&old).await, status(&new).await), (200, 401));

    fs::write(&file, format!("{new_line}\ntill is gone")).unwrap();
    reread(&served, "line 2");
    assert_eq!((status(&old).await, status(&new).await), (200, 401));

    fs::write(&file, &new_line).unwrap();
    reread(&served, "read again");
    assert_eq!((status(&old).await, status(&new).await), (401, 200));
    assert_eq!(served.stop(), Some(0));
}

#[test]
fn no_key_is_made_for_a_name_or_scopes_that_are_none() {
    for (name, scopes) in [("two words", "read"), ("till", "read,write"), ("till", "")] {
        let output = binary(&["key", "new", name, "--scopes", scopes])
            .output()
            .unwrap();
        assert_ne!(output.status.code(), Some(0), "{name} {scopes}");
        assert!(output.stdout.is_empty());
    }
}
