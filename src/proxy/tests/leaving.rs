//! Clients that leave before their answer.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_read_whose_client_leaves_is_cancelled_and_its_permit_falls_at_once() {
    let bench = Bench::new(ONE_AT_A_TIME, slow(Duration::from_millis(500)));
    let client = bench.start(read());
    settle().await;
    assert_eq!(bench.in_flight("read"), 1);
    client.abort();
    settle().await;
    assert_eq!(bench.in_flight("read"), 0);
    assert_eq!(bench.worker.proxy().exchanges.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_client_leaves_is_finished_and_holds_its_permit_until_then() {
    let (done, finished) = tokio::sync::watch::channel(false);
    let wallet = Router::new().fallback(move || {
        let done = done.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(500)).await;
            done.send_replace(true);
            "done"
        }
    });
    let bench = Bench::new(ONE_AT_A_TIME, wallet);
    let client = bench.start(debit());
    settle().await;
    client.abort();
    settle().await;
    assert_eq!(bench.in_flight("debit"), 1, "the upstream still works on it");
    assert_eq!(
        bench.call(debit()).await.status(),
        StatusCode::SERVICE_UNAVAILABLE
    );
    bench.worker.proxy().exchanges.idle().await;
    assert!(*finished.borrow(), "the upstream finished the debit");
    assert_eq!(bench.in_flight("debit"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_never_ends_loses_its_permit_at_abandon_after() {
    let bench = Bench::new(ONE_AT_A_TIME, slow(Duration::from_hours(1)));
    let client = bench.start(debit());
    settle().await;
    client.abort();
    tokio::time::sleep(Duration::from_millis(4_900)).await;
    assert_eq!(bench.in_flight("debit"), 1);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(bench.in_flight("debit"), 0);
    assert_eq!(bench.abandoned(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_in_the_middle_of_the_answer_frees_a_read_and_not_a_write() {
    let wallet = || {
        Router::new().fallback(|| async {
            let later = async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                Ok::<_, std::io::Error>("rest")
            };
            axum::body::Body::from_stream(futures_util::stream::once(later))
        })
    };
    for (request, resource, left) in [(read(), "read", 0), (debit(), "debit", 1)] {
        let bench = Bench::new(ONE_AT_A_TIME, wallet());
        let response = bench.call(request).await;
        assert_eq!(bench.in_flight(resource), 1);
        drop(response);
        settle().await;
        assert_eq!(bench.in_flight(resource), left, "{resource}");
        bench.worker.proxy().exchanges.idle().await;
        assert_eq!(bench.in_flight(resource), 0, "{resource}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_permit_lives_until_the_last_byte() {
    let wallet = Router::new().fallback(|| async {
        let chunks = futures_util::stream::unfold(0, |number| async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            (number < 3).then(|| (Ok::<_, std::io::Error>("chunk"), number + 1))
        });
        axum::body::Body::from_stream(chunks)
    });
    let bench = Bench::new(ONE_AT_A_TIME, wallet);
    let mut body = bench.call(read()).await.into_body();
    while let Some(frame) = body.frame().await {
        assert!(frame.unwrap().is_data());
        assert_eq!(bench.in_flight("read"), 1);
    }
    assert_eq!(bench.in_flight("read"), 0);
}

/// A runtime that stops drops its tasks; work that starts itself anew when dropped would recurse without end.
#[test]
fn a_runtime_that_stops_drops_writes_without_clients() {
    let wallet = Router::new().fallback(|| async {
        let never = futures_util::stream::pending::<Result<&str, std::io::Error>>();
        axum::body::Body::from_stream(never)
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let tasks = runtime.block_on(async {
        let bench = Bench::new(ONE_AT_A_TIME, wallet);
        drop(bench.call(debit()).await);
        bench.worker.proxy().exchanges.clone()
    });
    assert_eq!(tasks.running(), 1);
    drop(runtime);
    assert_eq!(tasks.running(), 0);
}
