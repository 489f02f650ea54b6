//! Lanes, batches and waits, over a store that runs a batch only when it is told to.
//!
//! Where a wait has to run out, the test's own clock is paused, and the gate stays shut: a paused clock jumps ahead
//! whenever the test is idle, whatever the combiner's thread is about to answer.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Waker};

use tokio::sync::Semaphore;
use wallet_backend::account::{AccountId, RequestId};
use wallet_backend::combiner::{Combiner, Limits, Observed, Queue};
use wallet_backend::command::{
    AccountView, Answer, HoldView, LedgerError, Outcome, PastView, RequestView, Task, Work,
};
use wallet_backend::store::memory::Memory;
use wallet_backend::store::{
    Cursor, Cut, EntryPage, EventCursor, EventPage, GeneralLedger, Job, Moment, Store,
};

use crate::support::{abandon, credit, debit, id, ordinary, request, tidy};

mod batches;
mod one_batch_at_a_time;

/// A model that says which batch it has got and runs it once it has a permit.
#[derive(Debug)]
struct Gated {
    model: Memory,
    batches: Sender<Vec<String>>,
    gate: Arc<Semaphore>,
}

/// The request on which the store panics.
const POISON: &str = "poison";

impl Store for Gated {
    async fn run(&self, jobs: Vec<Job>) {
        let name = |task: &Task| task.request().map_or("-".to_owned(), ToString::to_string);
        let tasks = jobs.iter().flat_map(|job| job.work.tasks());
        let names: Vec<String> = tasks.map(name).collect();
        self.batches.send(names.clone()).unwrap();
        self.gate.acquire().await.unwrap().forget();
        assert!(
            !names.iter().any(|name| name == POISON),
            "the poison was in this batch"
        );
        self.model.run(jobs).await;
    }

    as_the_model!(model);

    async fn close(&self) {
        self.model.close().await;
    }
}

struct Scene {
    combiner: Combiner<Gated>,
    queue: Queue<Gated>,
    batches: Receiver<Vec<String>>,
    gate: Arc<Semaphore>,
}

/// Accounts "hot" and "cold" with 100 each, the gate shut, and a first job, "first", in the store's hands: all that
/// is submitted from here on queues behind it.
fn scene(limits: Limits) -> Scene {
    let model = Memory::default();
    for name in ["hot", "cold"] {
        model.decide(&Task::Open(ordinary(name))).unwrap();
        model.decide(&credit(name, "start", 100)).unwrap();
    }
    let (sender, batches) = channel();
    let gate = Arc::new(Semaphore::new(0));
    let store = Gated {
        model,
        batches: sender,
        gate: Arc::clone(&gate),
    };
    let combiner = Combiner::start(store, limits, async |_| {}).unwrap();
    let queue = combiner.queue();
    let scene = Scene {
        combiner,
        queue,
        batches,
        gate,
    };
    let first = scene.queue.clone();
    assert!(poll(pin!(first.submit(credit("cold", "first", 1)))).is_pending());
    assert_eq!(scene.batches.recv().unwrap(), ["first"]);
    scene
}

/// One poll: enough to queue.
fn poll<F: Future + ?Sized>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

impl Scene {
    /// Queues what its caller goes away from at once.
    fn leave(&self, work: impl Into<Work>) {
        assert!(poll(pin!(self.queue.submit(work))).is_pending());
    }

    fn run(&self, batches: usize) {
        self.gate.add_permits(batches);
    }
}

fn limits(lane: usize, store: usize, batch: usize) -> Limits {
    Limits {
        lane,
        store,
        batch,
        batches: store,
        ..Limits::default()
    }
}

fn posted(answer: &Result<Answer, LedgerError>) -> bool {
    matches!(
        answer,
        Ok(Answer::Decided {
            outcome: Outcome::Posted(_),
            replayed: false
        })
    )
}

#[tokio::test]
async fn a_batch_is_whatever_queued_meanwhile_in_the_order_of_each_lane() {
    let scene = scene(Limits::default());
    for task in [
        debit("hot", "h1", 1),
        debit("cold", "c1", 1),
        debit("hot", "h2", 1),
        debit("cold", "c2", 1),
    ] {
        scene.leave(task);
    }
    scene.run(2);
    assert_eq!(scene.batches.recv().unwrap(), ["h1", "h2", "c1", "c2"]);
}

#[tokio::test]
async fn a_hot_account_delays_a_cold_one_by_a_batch_at_most() {
    let scene = scene(limits(100, 1_000, 10));
    for number in 0..50 {
        scene.leave(debit("hot", &format!("h{number}"), 1));
    }
    scene.leave(debit("cold", "c0", 1));
    scene.run(2);
    let next = scene.batches.recv().unwrap();
    assert_eq!(next, ["h0", "h1", "h2", "h3", "h4", "c0", "h5", "h6", "h7", "h8"]);
}

#[tokio::test]
async fn a_full_lane_is_that_accounts_affair() {
    let scene = scene(limits(3, 1_000, 10));
    for number in 0..3 {
        scene.leave(debit("hot", &format!("h{number}"), 1));
    }
    let refused = scene.queue.submit(debit("hot", "h3", 1)).await;
    assert_eq!(refused, Err(LedgerError::LaneFull { account: id("hot") }));
    scene.leave(debit("cold", "c0", 1));
    assert_eq!(
        scene.queue.request(&id("hot"), &request("h3")).await,
        Ok(RequestView::NotFound)
    );
}

/// Credits that wait as pending rows filled their lane, and what would have settled them was turned away.
#[tokio::test]
async fn a_full_lane_still_has_room_for_tidying() {
    let scene = scene(limits(3, 1_000, 10));
    for number in 0..3 {
        scene.leave(credit("hot", &format!("h{number}"), 1));
    }
    scene.leave(tidy("hot"));
    assert_eq!(scene.queue.queued(), 4);
}

#[tokio::test]
async fn a_full_store_takes_nobodys_job() {
    let scene = scene(limits(10, 2, 10));
    scene.leave(debit("hot", "h0", 1));
    scene.leave(debit("hot", "h1", 1));
    let refused = scene.queue.submit(debit("cold", "c0", 1)).await;
    assert_eq!(refused, Err(LedgerError::StoreFull));
}

#[tokio::test]
async fn callers_who_go_away_leave_no_place_taken_and_are_served_all_the_same() {
    let scene = scene(limits(3, 3, 10));
    for round in 0..20 {
        for number in 0..3 {
            scene.leave(credit("hot", &format!("r{round}n{number}"), 1));
        }
        scene.run(1);
        assert_eq!(scene.batches.recv().unwrap().len(), 3);
        assert_eq!(scene.queue.queued(), 0);
    }
    scene.run(1);
    let last = scene.queue.submit(credit("hot", "last", 1));
    scene.run(1);
    assert!(posted(&last.await));
    assert_eq!(scene.queue.account(&id("hot")).await.unwrap().balance(), 161);
}

#[tokio::test]
async fn an_id_that_is_being_decided_is_in_progress_in_the_look_up() {
    let scene = scene(Limits::default());
    let look_up = |name| {
        let queue = scene.queue.clone();
        async move { queue.request(&id("cold"), &request(name)).await.unwrap() }
    };
    scene.leave(debit("cold", "queued", 1));
    assert_eq!(look_up("first").await, RequestView::InProgress);
    assert_eq!(look_up("queued").await, RequestView::InProgress);
    assert_eq!(look_up("never").await, RequestView::NotFound);
    scene.run(3);
    assert!(posted(&scene.queue.submit(debit("cold", "after", 1)).await));
    assert!(matches!(look_up("queued").await, RequestView::Decided(_)));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_of_an_undecided_id_is_in_progress_after_two_seconds() {
    let scene = scene(Limits::default());
    let begun = tokio::time::Instant::now();
    let repeat = scene.queue.submit(credit("cold", "first", 1)).await;
    let expected = LedgerError::InProgress {
        account: id("cold"),
        request: request("first"),
    };
    assert_eq!(repeat, Err(expected));
    assert_eq!(begun.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_is_unknown_after_ten_seconds() {
    let scene = scene(Limits::default());
    let begun = tokio::time::Instant::now();
    let answer = scene.queue.submit(credit("hot", "slow", 1)).await;
    assert!(
        matches!(answer, Err(LedgerError::OutcomeUnknown { .. })),
        "{answer:?}"
    );
    assert_eq!(begun.elapsed().as_secs(), 10);
    // The id tells what became of it.
    tokio::time::resume();
    scene.run(3);
    let abandoned = scene.queue.submit(abandon("hot", "slow")).await;
    assert!(matches!(
        abandoned,
        Ok(Answer::Decided {
            outcome: Outcome::Posted(_),
            replayed: true
        })
    ));
}

#[tokio::test]
async fn an_abandon_behind_its_request_says_what_that_became() {
    let scene = scene(Limits::default());
    scene.leave(debit("cold", "d", 1));
    let mut abandoned = pin!(scene.queue.submit(abandon("cold", "d")));
    assert!(poll(abandoned.as_mut()).is_pending());
    scene.run(2);
    assert!(matches!(
        abandoned.await,
        Ok(Answer::Decided {
            outcome: Outcome::Posted(_),
            replayed: true
        })
    ));
}

#[tokio::test]
async fn a_panic_in_the_store_leaves_nobody_waiting() {
    let scene = scene(Limits::default());
    let mut poison = pin!(scene.queue.submit(debit("hot", POISON, 1)));
    let mut beside = pin!(scene.queue.submit(debit("cold", "beside", 1)));
    assert!(poll(poison.as_mut()).is_pending() && poll(beside.as_mut()).is_pending());
    scene.run(1);
    assert_eq!(scene.batches.recv().unwrap(), [POISON, "beside"]);
    let mut behind = pin!(scene.queue.submit(debit("hot", "behind", 1)));
    assert!(poll(behind.as_mut()).is_pending());
    scene.run(1);
    for begun in [poison.await, beside.await] {
        assert!(
            matches!(begun, Err(LedgerError::OutcomeUnknown { .. })),
            "{begun:?}"
        );
    }
    // Never begun, so provably nothing.
    assert!(matches!(behind.await, Err(LedgerError::Unavailable { .. })));
    assert!(matches!(
        scene.queue.submit(debit("hot", "later", 1)).await,
        Err(LedgerError::Unavailable { .. })
    ));
    assert!(matches!(
        scene.queue.account(&id("hot")).await,
        Err(LedgerError::Unavailable { .. })
    ));
    assert!(matches!(
        scene.queue.health(),
        Err(LedgerError::Unavailable { .. })
    ));
    scene.combiner.close().await;
}

#[tokio::test]
async fn closing_finishes_what_is_queued_and_takes_nothing_new() {
    let scene = scene(Limits::default());
    let mut queued = pin!(scene.queue.submit(debit("hot", "queued", 1)));
    assert!(poll(queued.as_mut()).is_pending());
    let mut closed = pin!(scene.combiner.close());
    assert!(poll(closed.as_mut()).is_pending());
    let late = scene.queue.submit(debit("hot", "late", 1)).await;
    assert!(matches!(late, Err(LedgerError::Unavailable { .. })), "{late:?}");
    assert!(scene.queue.health().is_err());
    scene.run(2);
    closed.await;
    assert!(posted(&queued.await));
}

#[tokio::test]
async fn a_dropped_combiner_finishes_what_is_queued() {
    let scene = scene(Limits::default());
    let mut queued = pin!(scene.queue.submit(debit("hot", "queued", 1)));
    assert!(poll(queued.as_mut()).is_pending());
    drop(scene.combiner);
    scene.gate.add_permits(2);
    assert!(posted(&queued.await));
}

#[tokio::test]
async fn batches_and_commits_are_told_of() {
    let scene = scene(Limits::default());
    let (sender, told) = channel();
    assert!(
        scene
            .queue
            .observe(move |observed| sender.send(observed).unwrap())
    );
    assert!(!scene.queue.observe(|_| {}));
    let mut answers = Vec::new();
    for number in 0..3 {
        let mut answer = Box::pin(scene.queue.submit(debit("hot", &format!("h{number}"), 1)));
        assert!(poll(answer.as_mut()).is_pending());
        answers.push(answer);
    }
    scene.run(2);
    for answer in answers {
        assert!(posted(&answer.await));
    }
    // "first" was handed over before there was anyone to tell.
    let told: Vec<Observed> = (0..3).map(|_| told.recv().unwrap()).collect();
    assert!(
        matches!(
            told[..],
            [
                Observed::Committed { .. },
                Observed::Batch { jobs: 3 },
                Observed::Committed { .. }
            ]
        ),
        "{told:?}"
    );
}
