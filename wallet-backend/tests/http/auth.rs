//! Tokens: asked for before anything else of a request is looked at.

use http::Request;
use wallet_backend::http::HttpOptions;
use wallet_backend::http::auth::Tokens;

use super::support::Api;

fn guarded() -> Api {
    let tokens = Tokens::parse("# two, for rotation\nold\nnew\n").unwrap();
    Api::with(HttpOptions { tokens })
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
