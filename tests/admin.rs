//! The admin and status listeners.

use crate::support::proxy::http;
use crate::support::{Client, Options, Proxy, Reply, Upstream, settles};

const RULES: &str = "
resources:
  - name: pay
    match: { method: POST, path: '/pay/{id}' }
    params: [ { name: id, from: path } ]
paramFlow:
  - { id: hot, resource: pay, param: id, count: 5, durationInSec: 2 }
";

async fn status_of(url: String, token: Option<&str>) -> u16 {
    let mut request = http().get(url);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn the_effective_rules_name_file_and_line() {
    let proxy = Proxy::start(&Options {
        upstream: "http://127.0.0.1:1".to_owned(),
        rules: RULES,
        flags: &[],
    });
    let rules = proxy.admin("/api/rules").await;
    let rule = &rules["resources"][0]["rules"][0];
    assert_eq!(
        (&rule["id"], &rule["type"], &rule["count"]),
        (&"hot".into(), &"param_flow".into(), &5.into())
    );
    assert_eq!(rule["line"], 7);
    assert!(rule["file"].as_str().unwrap().ends_with("test.yaml"));
    assert_eq!(rules["resources"][0]["match"][0], "POST /pay/{id}");
}

#[tokio::test]
async fn readiness_does_not_depend_on_the_upstream() {
    let proxy = Proxy::start(&Options {
        upstream: "http://127.0.0.1:1".to_owned(),
        rules: RULES,
        flags: &[],
    });
    assert_eq!(status_of(proxy.admin_url("/readyz"), None).await, 200);
    assert_eq!(status_of(proxy.admin_url("/healthz"), None).await, 200);
}

#[tokio::test]
async fn with_tokens_only_the_probes_are_open() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "one\ntwo\n").unwrap();
    let proxy = Proxy::start(&Options {
        upstream: "http://127.0.0.1:1".to_owned(),
        rules: RULES,
        flags: &["--admin-token-file", tokens.to_str().unwrap()],
    });
    for path in ["/healthz", "/readyz"] {
        assert_eq!(status_of(proxy.admin_url(path), None).await, 200, "{path}");
    }
    for path in ["/metrics", "/api/rules", "/api/resources"] {
        assert_eq!(status_of(proxy.admin_url(path), None).await, 401, "{path}");
        assert_eq!(
            status_of(proxy.admin_url(path), Some("wrong")).await,
            401,
            "{path}"
        );
        assert_eq!(status_of(proxy.admin_url(path), Some("two")).await, 200, "{path}");
    }
}

#[tokio::test]
async fn the_status_listener_serves_probes_and_metrics_only() {
    let proxy = Proxy::start(&Options {
        upstream: "http://127.0.0.1:1".to_owned(),
        rules: RULES,
        flags: &["--status", "127.0.0.1:0"],
    });
    let printed = || {
        proxy
            .output()
            .iter()
            .find_map(|line| line.strip_prefix("status on ").map(str::to_owned))
    };
    settles("the status address", || async { printed().is_some() }).await;
    let status = printed().unwrap();
    for (path, code) in [
        ("/healthz", 200),
        ("/readyz", 200),
        ("/metrics", 200),
        ("/api/rules", 404),
        ("/api/resources", 404),
    ] {
        assert_eq!(status_of(format!("{status}{path}"), None).await, code, "{path}");
    }
}

#[tokio::test]
async fn strange_methods_paths_and_statuses_add_no_series() {
    let upstream = Upstream::start(|seen| {
        let status: u16 = seen.line().rsplit('/').next().unwrap().parse().unwrap();
        Reply::status(status, "")
    })
    .await;
    let proxy = Proxy::start(&Options {
        upstream: upstream.url(),
        rules: RULES,
        flags: &["--access-log", "off"],
    });
    let ask = |number: u16| {
        let method = if number.is_multiple_of(2) {
            "GET".to_owned()
        } else {
            format!("FOO{number}")
        };
        format!(
            "{method} /any{number}/{} HTTP/1.1\nHost: h{number}\n\n",
            200 + number % 400
        )
    };
    let series = |metrics: &str| metrics.lines().filter(|line| !line.starts_with('#')).count();
    for number in 0..400 {
        Client::once(proxy.address(), &ask(number)).await;
    }
    let warm = series(&proxy.metrics().await);
    for number in 400..800 {
        Client::once(proxy.address(), &ask(number)).await;
    }
    assert_eq!(series(&proxy.metrics().await), warm);
}
