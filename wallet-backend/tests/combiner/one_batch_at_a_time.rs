//! A store whose batches run side by side, and which has at most one of each lane. Here the test has them: it says when
//! the next may come, and answers when it likes.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tokio::sync::Semaphore;
use wallet_backend::account::{AccountId, RequestId};
use wallet_backend::combiner::{Combiner, Limits, Queue};
use wallet_backend::command::{
    AccountView, Answer, BatchMode, HoldView, LedgerError, PastView, RequestView, Task, Work,
};
use wallet_backend::store::memory::Memory;
use wallet_backend::store::{
    Cursor, Cut, EntryPage, EventCursor, EventPage, GeneralLedger, HandOver, Job, Moment, Store,
};

use super::{POISON, limits, poll, posted};
use crate::support::{credit, debit, id, ordinary, together};

#[derive(Debug)]
struct Desk {
    model: Memory,
    batches: Sender<Vec<Job>>,
    gate: Arc<Semaphore>,
}

impl Store for Desk {
    async fn run(&self, jobs: Vec<Job>) {
        assert!(
            !names(&jobs).iter().any(|name| name == POISON),
            "the poison was in this batch"
        );
        // Of a test that has ended nobody waits.
        drop(self.batches.send(jobs));
        self.gate.acquire().await.unwrap().forget();
    }

    fn handing_over(&self) -> HandOver {
        HandOver::OneBatchAtATime
    }

    as_the_model!(model);

    async fn close(&self) {
        self.model.close().await;
    }
}

fn names(jobs: &[Job]) -> Vec<String> {
    let tasks = jobs.iter().flat_map(|job| job.work.tasks());
    tasks.map(|task| task.request().unwrap().to_string()).collect()
}

/// Whoever waits for an answer.
type Waiter = Pin<Box<dyn Future<Output = Result<Answer, LedgerError>>>>;

struct Scene {
    combiner: Combiner<Desk>,
    queue: Queue<Desk>,
    batches: Receiver<Vec<Job>>,
    gate: Arc<Semaphore>,
}

/// Accounts "hot" and "cold" with 100 each.
fn model() -> Memory {
    let model = Memory::default();
    for name in ["hot", "cold"] {
        model.decide(&Task::Open(ordinary(name))).unwrap();
        model.decide(&credit(name, "start", 100)).unwrap();
    }
    model
}

/// Nothing is under way.
fn scene(limits: Limits) -> Scene {
    let (sender, batches) = channel();
    let gate = Arc::new(Semaphore::new(0));
    let desk = Desk {
        model: model(),
        batches: sender,
        gate: Arc::clone(&gate),
    };
    let combiner = Combiner::start(desk, limits, async |_| {}).unwrap();
    let queue = combiner.queue();
    Scene {
        combiner,
        queue,
        batches,
        gate,
    }
}

impl Scene {
    fn submit(&self, work: impl Into<Work>) -> Waiter {
        let (queue, work) = (self.queue.clone(), work.into());
        let mut waiter: Waiter = Box::pin(async move { queue.submit(work).await });
        assert!(poll(waiter.as_mut()).is_pending());
        waiter
    }

    fn debits<const N: usize>(&self, account: &str, names: [&str; N]) -> [Waiter; N] {
        names.map(|name| self.submit(debit(account, name, 1)))
    }

    /// The next batch that is handed over, which has to have these; none comes after it before [`Scene::go_on`].
    fn taken(&self, expected: &[&str]) -> Vec<Job> {
        let jobs = self.batches.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(names(&jobs), expected);
        jobs
    }

    fn go_on(&self) {
        self.gate.add_permits(1);
    }

    fn handed(&self, expected: &[&str]) -> Vec<Job> {
        let jobs = self.taken(expected);
        self.go_on();
        jobs
    }
}

/// As the model decides.
fn answer(model: &Memory, jobs: impl IntoIterator<Item = Job>) {
    for job in jobs {
        let answer = match &job.work {
            Work::Task(task) => model.decide(task),
            Work::Batch(batch) => model.decide_batch(batch).map(Answer::Batched),
        };
        job.answer(answer);
    }
}

async fn all_posted(waiters: impl IntoIterator<Item = Waiter>) {
    for waiter in waiters {
        let answer = waiter.await;
        assert!(posted(&answer), "{answer:?}");
    }
}

#[tokio::test]
async fn jobs_of_a_hot_lane_gather_while_a_batch_of_it_is_under_way_and_a_cold_ones_go() {
    let (scene, model) = (scene(Limits::default()), model());
    let first = scene.debits("hot", ["h0"]);
    let hot = scene.handed(&["h0"]);
    let gathered = scene.debits("hot", ["h1", "h2", "h3"]);
    let beside = scene.debits("cold", ["c0"]);
    let cold = scene.handed(&["c0"]);
    answer(&model, hot);
    answer(&model, scene.handed(&["h1", "h2", "h3"]));
    answer(&model, cold);
    all_posted(first.into_iter().chain(gathered).chain(beside)).await;
}

#[tokio::test]
async fn a_lanes_order_is_kept_from_batch_to_batch() {
    let (scene, model) = (scene(limits(100, 1_000, 2)), model());
    let first = scene.debits("hot", ["h0"]);
    let hot = scene.handed(&["h0"]);
    let others = scene.debits("hot", ["h1", "h2", "h3", "h4", "h5"]);
    answer(&model, hot);
    for batch in [&["h1", "h2"][..], &["h3", "h4"], &["h5"]] {
        answer(&model, scene.handed(batch));
    }
    all_posted(first.into_iter().chain(others)).await;
}

#[tokio::test]
async fn callers_that_are_answered_and_come_again_share_a_batch() {
    let limits = Limits {
        moment: Duration::from_secs(600),
        ..Limits::default()
    };
    let (scene, model) = (scene(limits), model());
    let first = scene.debits("hot", ["h0"]);
    let lone = scene.handed(&["h0"]);
    let three = scene.debits("hot", ["h1", "h2", "h3"]);
    answer(&model, lone);
    answer(&model, scene.handed(&["h1", "h2", "h3"]));
    let again = scene.debits("hot", ["h4", "h5", "h6"]);
    answer(&model, scene.handed(&["h4", "h5", "h6"]));
    all_posted(first.into_iter().chain(three).chain(again)).await;
}

#[tokio::test]
async fn callers_that_do_not_come_again_are_waited_for_no_longer_than_a_moment() {
    let (scene, model) = (scene(Limits::default()), model());
    let first = scene.debits("hot", ["h0"]);
    let lone = scene.handed(&["h0"]);
    let two = scene.debits("hot", ["h1", "h2"]);
    answer(&model, lone);
    answer(&model, scene.handed(&["h1", "h2"]));
    let one = scene.debits("hot", ["h3"]);
    answer(&model, scene.handed(&["h3"]));
    all_posted(first.into_iter().chain(two).chain(one)).await;
}

#[tokio::test]
async fn a_lane_takes_the_room_that_the_others_leave_in_a_batch() {
    let (scene, model) = (scene(limits(100, 1_000, 6)), model());
    let first = scene.submit(together(BatchMode::Each, &[credit("hot", "first", 1)]));
    let batch = scene.taken(&["first"]);
    let hot = scene.debits("hot", ["h0", "h1", "h2", "h3", "h4", "h5"]);
    let cold = scene.debits("cold", ["c0"]);
    scene.go_on();
    let both = scene.handed(&["h0", "h1", "h2", "c0", "h3", "h4"]);
    answer(&model, batch);
    answer(&model, both);
    answer(&model, scene.handed(&["h5"]));
    assert!(matches!(first.await, Ok(Answer::Batched(_))));
    all_posted(hot.into_iter().chain(cold)).await;
}

#[tokio::test]
async fn a_lane_waits_for_its_own_answers_only_and_for_the_last_of_them() {
    let (scene, model) = (scene(Limits::default()), model());
    let first = scene.submit(together(BatchMode::Each, &[credit("hot", "first", 1)]));
    let batch = scene.taken(&["first"]);
    let waiters = scene.debits("hot", ["h0", "h1"]).into_iter();
    let waiters = waiters.chain(scene.debits("cold", ["c0"]));
    scene.go_on();
    let mut both = scene.handed(&["h0", "h1", "c0"]).into_iter();
    let waiters = waiters
        .chain(scene.debits("hot", ["h2"]))
        .chain(scene.debits("cold", ["c1"]));
    answer(&model, both.next());
    answer(&model, both.next_back());
    let cold = scene.handed(&["c1"]);
    answer(&model, both);
    answer(&model, scene.handed(&["h2"]));
    answer(&model, cold);
    answer(&model, batch);
    assert!(matches!(first.await, Ok(Answer::Batched(_))));
    all_posted(waiters).await;
}

#[tokio::test]
async fn a_job_that_is_dropped_unanswered_gives_the_turn_back_too() {
    let (scene, model) = (scene(Limits::default()), model());
    let [lost] = scene.debits("hot", ["h0"]);
    let hot = scene.handed(&["h0"]);
    let behind = scene.debits("hot", ["h1"]);
    drop(hot);
    assert!(matches!(lost.await, Err(LedgerError::OutcomeUnknown { .. })));
    answer(&model, scene.handed(&["h1"]));
    all_posted(behind).await;
}

#[tokio::test]
async fn callers_batches_of_one_account_are_under_way_side_by_side() {
    let (scene, model) = (scene(Limits::default()), model());
    let first = scene.submit(together(BatchMode::Each, &[credit("hot", "b0", 1)]));
    let one = scene.handed(&["b0"]);
    let second = scene.submit(together(BatchMode::Each, &[credit("hot", "b1", 1)]));
    let other = scene.handed(&["b1"]);
    answer(&model, other.into_iter().chain(one));
    for waiter in [first, second] {
        assert!(matches!(waiter.await, Ok(Answer::Batched(_))));
    }
}

#[tokio::test]
async fn a_lane_that_is_under_way_gathers_as_much_as_any_and_no_more() {
    let scene = scene(limits(2, 1_000, 10));
    let _first = scene.debits("hot", ["h0"]);
    let _hot = scene.handed(&["h0"]);
    let _full = scene.debits("hot", ["h1", "h2"]);
    let refused = scene.queue.submit(debit("hot", "h3", 1)).await;
    assert_eq!(refused, Err(LedgerError::LaneFull { account: id("hot") }));
    assert_eq!(scene.queue.queued(), 2);
}

#[tokio::test]
async fn closing_waits_for_what_is_under_way_and_for_what_gathers_behind_it() {
    let (scene, model) = (scene(Limits::default()), model());
    let waiters = scene.debits("hot", ["h0"]).into_iter();
    let hot = scene.handed(&["h0"]);
    let waiters = waiters.chain(scene.debits("cold", ["c0"]));
    let cold = scene.handed(&["c0"]);
    let waiters = waiters.chain(scene.debits("hot", ["h1"]));
    let mut closed = pin!(scene.combiner.close());
    assert!(poll(closed.as_mut()).is_pending());
    answer(&model, hot);
    let gathered = scene.handed(&["h1"]);
    assert!(poll(closed.as_mut()).is_pending());
    answer(&model, gathered.into_iter().chain(cold));
    closed.await;
    all_posted(waiters).await;
}

#[tokio::test]
async fn after_a_panic_what_gathered_was_never_begun_and_what_is_under_way_is_answered() {
    let (scene, model) = (scene(Limits::default()), model());
    let waiters = scene.debits("hot", ["h0"]);
    let hot = scene.handed(&["h0"]);
    let [behind] = scene.debits("hot", ["h1"]);
    let poison = scene.queue.submit(debit("cold", POISON, 1)).await;
    assert!(matches!(poison, Err(LedgerError::OutcomeUnknown { .. })));
    assert!(matches!(behind.await, Err(LedgerError::Unavailable { .. })));
    answer(&model, hot);
    all_posted(waiters).await;
    scene.combiner.close().await;
}
