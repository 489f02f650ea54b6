//! The callers' own batches among the lanes.

use std::pin::pin;

use wallet_backend::combiner::Limits;
use wallet_backend::command::{Answer, Batch, BatchMode, LedgerError, RequestView};

use super::{POISON, limits, poll, posted, scene};
use crate::support::{credit, debit, id, request, together};

/// Credits of `hot` under these ids.
fn batch(names: &[&str]) -> Batch {
    let credits: Vec<_> = names.iter().map(|name| credit("hot", name, 1)).collect();
    together(BatchMode::Each, &credits)
}

#[tokio::test]
async fn a_batch_goes_whole_and_one_that_finds_no_room_is_first_in_the_next() {
    let scene = scene(limits(100, 1_000, 4));
    scene.leave(debit("hot", "h1", 1));
    scene.leave(batch(&["b1", "b2", "b3", "b4"]));
    scene.leave(debit("cold", "c1", 1));
    scene.run(4);
    assert_eq!(scene.batches.recv().unwrap(), ["h1"]);
    assert_eq!(scene.batches.recv().unwrap(), ["b1", "b2", "b3", "b4"]);
    assert_eq!(scene.batches.recv().unwrap(), ["c1"]);
}

#[tokio::test]
async fn batches_and_lanes_take_turns() {
    let scene = scene(limits(100, 1_000, 6));
    for number in 0..4 {
        scene.leave(debit("hot", &format!("h{number}"), 1));
    }
    scene.leave(batch(&["b1", "b2"]));
    scene.leave(debit("cold", "c1", 1));
    scene.leave(batch(&["b3"]));
    scene.run(3);
    // Four turns share six places: one each, and what is left goes on in turn; a batch is not taken apart.
    assert_eq!(
        scene.batches.recv().unwrap(),
        ["h0", "b1", "b2", "c1", "b3", "h1"]
    );
    assert_eq!(scene.batches.recv().unwrap(), ["h2", "h3"]);
}

#[tokio::test]
async fn a_batch_of_more_than_the_store_takes_at_once_goes_alone() {
    let scene = scene(limits(100, 1_000, 2));
    scene.leave(batch(&["b1", "b2", "b3"]));
    scene.leave(debit("cold", "c1", 1));
    scene.run(3);
    assert_eq!(scene.batches.recv().unwrap(), ["b1", "b2", "b3"]);
    assert_eq!(scene.batches.recv().unwrap(), ["c1"]);
}

#[tokio::test]
async fn batches_have_places_of_their_own() {
    let scene = scene(limits(100, 3, 10));
    // Larger than all the places there are, and none waits.
    scene.leave(batch(&["b1", "b2", "b3", "b4"]));
    assert_eq!(scene.queue.queued(), 3);
    let refused = scene.queue.submit(batch(&["b5"])).await;
    assert_eq!(refused, Err(LedgerError::StoreFull));
    assert_eq!(
        scene.queue.request(&id("hot"), &request("b5")).await,
        Ok(RequestView::NotFound)
    );
    scene.leave(debit("cold", "c1", 1));
    scene.run(2);
    assert_eq!(scene.batches.recv().unwrap(), ["b1", "b2", "b3", "b4", "c1"]);
    assert_eq!(scene.queue.queued(), 0);
}

#[tokio::test]
async fn the_ids_of_a_batch_are_in_progress_until_it_is_answered() {
    let scene = scene(Limits::default());
    let mut answer = pin!(scene.queue.submit(batch(&["b1", "b2"])));
    assert!(poll(answer.as_mut()).is_pending());
    let look_up = async |name: &str| scene.queue.request(&id("hot"), &request(name)).await.unwrap();
    for name in ["b1", "b2"] {
        assert_eq!(look_up(name).await, RequestView::InProgress);
    }
    assert_eq!(look_up("b3").await, RequestView::NotFound);
    scene.run(2);
    let Ok(Answer::Batched(batched)) = answer.await else {
        panic!("no batch");
    };
    assert!(batched.applied && batched.results.len() == 2);
    assert!(matches!(look_up("b2").await, RequestView::Decided(_)));
}

#[tokio::test]
async fn a_batch_behind_a_panic_is_unavailable_and_one_in_it_unknown() {
    let scene = scene(Limits::default());
    let mut poisoned = pin!(scene.queue.submit(batch(&["b1", POISON])));
    assert!(poll(poisoned.as_mut()).is_pending());
    scene.run(1);
    assert_eq!(scene.batches.recv().unwrap(), ["b1", POISON]);
    let mut behind = pin!(scene.queue.submit(batch(&["b2"])));
    assert!(poll(behind.as_mut()).is_pending());
    scene.run(1);
    assert!(matches!(poisoned.await, Err(LedgerError::OutcomeUnknown { .. })));
    assert!(matches!(behind.await, Err(LedgerError::Unavailable { .. })));
}

#[tokio::test]
async fn closing_finishes_the_batches_too() {
    let scene = scene(Limits::default());
    let mut queued = pin!(scene.queue.submit(batch(&["b1"])));
    assert!(poll(queued.as_mut()).is_pending());
    let mut closed = pin!(scene.combiner.close());
    assert!(poll(closed.as_mut()).is_pending());
    let late = scene.queue.submit(batch(&["b2"])).await;
    assert!(matches!(late, Err(LedgerError::Unavailable { .. })), "{late:?}");
    scene.run(2);
    closed.await;
    assert!(matches!(queued.await, Ok(Answer::Batched(_))));
    assert!(!posted(&scene.queue.submit(debit("hot", "later", 1)).await));
}
