//! What must hold in every interleaving.

use std::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, FailurePersistence, Runner};

use super::database::Database;
use super::disk::{Platter, Syncing};
use crate::account::{Account, AccountId, RequestId};
use crate::combiner::{Combiner, Limits, Queue};
use crate::command::{Answer, Batch, BatchMode, Command, LedgerError, Operation, Outcome, Task, Work};
use crate::money::{Amount, Currency};
use crate::store::embedded::{Embedded, Options};
use crate::store::memory::Memory;
use crate::store::{Cursor, Store};
use crate::sync::thread;

/// Something that threads do, and how many interleavings of it are tried: so many chosen at random, and as many with few
/// but ill-timed changes of thread.
#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) run: fn(),
    pub(crate) times: usize,
}

const fn scenario(name: &'static str, run: fn(), times: usize) -> Scenario {
    Scenario { name, run, times }
}

/// Each has to hold in every interleaving.
pub(crate) const SOUND: [Scenario; 8] = [
    scenario(
        "every_job_that_was_taken_before_the_end_is_answered",
        closing_in_memory,
        2_000,
    ),
    scenario(
        "a_lane_is_in_one_batch_at_a_time_and_gets_its_next_turn",
        side_by_side,
        1_000,
    ),
    scenario(
        "closing_waits_for_every_batch_under_way",
        closing_side_by_side,
        1_000,
    ),
    scenario(
        "an_answer_comes_after_its_sync_and_a_read_after_what_it_saw",
        group_commit,
        200,
    ),
    scenario("closing_a_store_loses_no_answer", closing_on_disk, 200),
    scenario(
        "a_store_goes_on_over_the_ends_of_its_segments",
        small_segments,
        60,
    ),
    scenario(
        "a_checkpoint_is_written_while_the_store_is_in_use",
        checkpoints,
        60,
    ),
    scenario(
        "when_a_sync_fails_everybody_hears_what_is_true",
        failing_sync,
        200,
    ),
];

/// The one that has to be noticed.
pub(crate) const EARLY_SYNC: Scenario = scenario("early sync", answers_before_their_sync, 200);

impl Scenario {
    pub(crate) fn explore(self, times: usize) {
        Runner::new(RandomScheduler::new_from_seed(7, times), config()).run(self.run);
        Runner::new(PctScheduler::new_from_seed(7, 3, times), config()).run(self.run);
    }
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    config
}

fn alice() -> AccountId {
    account("alice")
}

fn account(id: &str) -> AccountId {
    AccountId::new(id).unwrap()
}

fn credit(id: &str) -> Task {
    Task::Run(credit_of(alice(), id))
}

fn credit_of(account: AccountId, id: &str) -> Command {
    Command {
        account,
        request: RequestId::new(id).unwrap(),
        operation: Operation::Credit {
            amount: Amount::new(1).unwrap(),
            memo: None,
        },
    }
}

fn open() -> Task {
    open_as(alice())
}

fn open_as(account: AccountId) -> Task {
    Task::Open(Account::new(account, Currency::new("EUR").unwrap()))
}

fn answer<S: Store>(queue: &Queue<S>, work: impl Into<Work>) -> Result<Answer, LedgerError> {
    shuttle::future::block_on(queue.submit(work))
}

fn is_posted(answer: &Result<Answer, LedgerError>) -> bool {
    matches!(
        answer,
        Ok(Answer::Decided {
            outcome: Outcome::Posted(_),
            ..
        })
    )
}

fn embedded(disk: &Platter) -> Combiner<Embedded> {
    let options = Options {
        segment_bytes: 64 << 10,
        fresh_bytes: 16 << 10,
        checkpoint_bytes: 16 << 10,
        ..Options::on(Arc::new(disk.clone()))
    };
    Combiner::start(Embedded::open(options).unwrap(), Limits::default(), async |_| {}).unwrap()
}

/// Two who pay, one who reads and one who follows the events.
fn group_commit() {
    commit_on(&Platter::default());
}

/// The same on a disk whose sync returns early.
fn answers_before_their_sync() {
    commit_on(&Platter::new(Syncing::Early));
}

fn commit_on(disk: &Platter) {
    let combiner = embedded(disk);
    answer(&combiner.queue(), open()).unwrap();
    let payers = ["payment-one", "payment-two"].map(|id| {
        let (queue, disk) = (combiner.queue(), disk.clone());
        thread::spawn(move || {
            assert!(is_posted(&answer(&queue, credit(id))));
            assert!(
                disk.has_durably(id.as_bytes()),
                "{id} was answered and is not durable"
            );
            let again = answer(&queue, credit(id));
            assert!(matches!(again, Ok(Answer::Decided { replayed: true, .. })));
        })
    });
    let (queue, seen) = (combiner.queue(), disk.clone());
    let reader = thread::spawn(move || {
        let view = shuttle::future::block_on(queue.account(&alice())).unwrap();
        let ids = ["payment-one", "payment-two"];
        let durable = ids.iter().filter(|id| seen.has_durably(id.as_bytes())).count();
        assert!(
            view.balance() <= i64::try_from(durable).unwrap(),
            "a read showed what is not durable"
        );
    });
    let (queue, seen) = (combiner.queue(), disk.clone());
    let follower = thread::spawn(move || {
        shuttle::future::block_on(queue.event_after(0)).unwrap();
        let mut ids = ["payment-one", "payment-two"].into_iter();
        assert!(
            ids.any(|id| seen.has_durably(id.as_bytes())),
            "an event of what is not durable"
        );
    });
    for thread in payers.into_iter().chain([reader, follower]) {
        thread.join().unwrap();
    }
    shuttle::future::block_on(combiner.close());
}

/// Waits for more events than there will be, and so for the end.
fn follow(queue: Queue<Embedded>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let ended = shuttle::future::block_on(queue.event_after(1_000));
        assert!(matches!(ended, Err(LedgerError::Unavailable { .. })), "{ended:?}");
    })
}

/// Two who pay while the queue is closed, and a third whose handle outlives it.
fn closing_in_memory() {
    let combiner = Combiner::start(Memory::default(), Limits::default(), async |_| {}).unwrap();
    answer(&combiner.queue(), open()).unwrap();
    let payers = ["one", "two"].map(|id| {
        let queue = combiner.queue();
        thread::spawn(move || answer(&queue, credit(id)))
    });
    let queue = combiner.queue();
    shuttle::future::block_on(combiner.close());
    let taken = payers.map(|payer| payer.join().unwrap());
    for answer in &taken {
        assert!(
            is_posted(answer) || matches!(answer, Err(LedgerError::Unavailable { .. })),
            "{answer:?}"
        );
    }
    assert!(matches!(
        answer(&queue, credit("late")),
        Err(LedgerError::Unavailable { .. })
    ));
    assert_eq!(queue.queued(), 0);
}

/// Two who pay into one account, and one into another, more than a batch takes.
fn side_by_side() {
    let database = Database::default();
    let limits = Limits {
        batch: 2,
        ..Limits::default()
    };
    let combiner = Combiner::start(database.clone(), limits, async |_| {}).unwrap();
    let bob = account("bob");
    for id in [alice(), bob.clone()] {
        answer(&combiner.queue(), open_as(id)).unwrap();
    }
    let payers = [
        (alice(), ["a0", "a1"]),
        (alice(), ["a2", "a3"]),
        (bob, ["b0", "b1"]),
    ]
    .map(|(id, names)| {
        let queue = combiner.queue();
        thread::spawn(move || {
            let [first, second] =
                names.map(|name| queue.enqueue(Task::Run(credit_of(id.clone(), name))).unwrap());
            assert!(is_posted(&shuttle::future::block_on(second.answer())));
            assert!(is_posted(&shuttle::future::block_on(first.answer())));
        })
    });
    for payer in payers {
        payer.join().unwrap();
    }
    let page = shuttle::future::block_on(combiner.queue().entries(&alice(), &Cursor::default(), 10));
    let decided: Vec<String> = page
        .unwrap()
        .entries
        .into_iter()
        .map(|entry| entry.request.unwrap().to_string())
        .collect();
    let place = |id: &str| decided.iter().position(|decided| decided == id).unwrap();
    assert!(
        decided.len() == 4 && place("a0") < place("a1") && place("a2") < place("a3"),
        "{decided:?}"
    );
    shuttle::future::block_on(combiner.close());
    database.check();
}

/// Two who pay, and one who sends a batch, while the queue is closed.
fn closing_side_by_side() {
    let database = Database::default();
    let combiner = Combiner::start(database.clone(), Limits::default(), async |_| {}).unwrap();
    answer(&combiner.queue(), open()).unwrap();
    let batch = Batch::new(vec![credit_of(alice(), "batched")], BatchMode::Each).unwrap();
    let works: [Work; 3] = [credit("one").into(), credit("two").into(), batch.into()];
    let callers = works.map(|work| {
        let queue = combiner.queue();
        thread::spawn(move || answer(&queue, work))
    });
    shuttle::future::block_on(combiner.close());
    for caller in callers {
        let answer = caller.join().unwrap();
        let refused = matches!(answer, Err(LedgerError::Unavailable { .. }));
        let applied = matches!(&answer, Ok(Answer::Batched(batched)) if batched.applied);
        assert!(is_posted(&answer) || applied || refused, "{answer:?}");
    }
    database.check();
}

/// Closing on disk; what was answered is there when the directory is opened again, and what was refused is not.
fn closing_on_disk() {
    let disk = Platter::default();
    let combiner = embedded(&disk);
    answer(&combiner.queue(), open()).unwrap();
    let ids = ["payment-one", "payment-two"];
    let payers = ids.map(|id| {
        let queue = combiner.queue();
        thread::spawn(move || answer(&queue, credit(id)))
    });
    let follower = follow(combiner.queue());
    shuttle::future::block_on(combiner.close());
    follower.join().unwrap();
    let answers = payers.map(|payer| payer.join().unwrap());
    for (id, answer) in ids.iter().zip(&answers) {
        let posted = is_posted(answer);
        assert!(
            posted || matches!(answer, Err(LedgerError::Unavailable { .. })),
            "{answer:?}"
        );
        assert_eq!(disk.has_durably(id.as_bytes()), posted, "{id}: {answer:?}");
    }
}

/// More batches than a segment has pages, from two sides.
fn small_segments() {
    let disk = Platter::default();
    let combiner = embedded(&disk);
    answer(&combiner.queue(), open()).unwrap();
    let payers = [0, 1].map(|side| {
        let (queue, disk) = (combiner.queue(), disk.clone());
        thread::spawn(move || {
            for number in 0..6 {
                let id = format!("payment-{side}-{number}");
                assert!(is_posted(&answer(&queue, credit(&id))));
                assert!(disk.has_durably(id.as_bytes()));
            }
        })
    });
    for payer in payers {
        payer.join().unwrap();
    }
    shuttle::future::block_on(combiner.close());
}

/// Enough for a checkpoint, which is awaited, and then more.
fn checkpoints() {
    let disk = Platter::default();
    let combiner = embedded(&disk);
    let queue = combiner.queue();
    answer(&queue, open()).unwrap();
    for number in 0..4 {
        assert!(is_posted(&answer(&queue, credit(&format!("payment-{number}")))));
    }
    disk.await_checkpoint();
    assert!(is_posted(&answer(&queue, credit("another"))));
    shuttle::future::block_on(combiner.close());
}

/// Somewhere a sync fails: until then all is as ever, from then on nothing is claimed that nobody can know.
fn failing_sync() {
    let disk = Platter::new(Syncing::FailsFrom(4));
    let combiner = embedded(&disk);
    let payers = [0, 1].map(|side| {
        let (queue, disk) = (combiner.queue(), disk.clone());
        thread::spawn(move || {
            drop(answer(&queue, open()));
            for number in 0..3 {
                let id = format!("payment-{side}-{number}");
                match answer(&queue, credit(&id)) {
                    Err(LedgerError::OutcomeUnknown { .. }) => {}
                    Err(LedgerError::Unavailable { .. }) => assert!(!disk.has_durably(id.as_bytes())),
                    answer => {
                        assert!(is_posted(&answer), "{answer:?}");
                        assert!(disk.has_durably(id.as_bytes()));
                    }
                }
            }
        })
    });
    let follower = follow(combiner.queue());
    for thread in payers.into_iter().chain([follower]) {
        thread.join().unwrap();
    }
    shuttle::future::block_on(combiner.close());
}
