//! Many at once, on every store: a hold at its deadline has one end, and what two ids reverse is reversed once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::task::JoinSet;
use wallet_backend::Wallet;
use wallet_backend::account::{HoldState, HoldTerm, RequestId};
use wallet_backend::clock::Clock;
use wallet_backend::combiner::Limits;
use wallet_backend::command::{
    Batch, BatchMode, Command, Decided, LedgerError, Operation, Outcome, Refusal, Remainder,
};
use wallet_backend::store::any::AnyStore;
use wallet_backend::store::embedded::{Embedded, Options};
use wallet_backend::store::memory::Memory;
use wallet_backend::store::{Cursor, Preference};

use crate::faults::{FaultDisk, small};
use crate::history::{Entry, History, Span};
use crate::support::{Numbers, SECOND, acknowledged, amount, id, request, seen, slotted};

const ROUNDS: u64 = 120;

/// A wallet on each store, with the time that it goes by.
fn wallets() -> Vec<(Wallet, Arc<AtomicI64>)> {
    let time = || Arc::new(AtomicI64::new(SECOND));
    let (first, second) = (time(), time());
    let memory = Memory::new(Clock::Set(Arc::clone(&first)), Preference::default());
    let embedded = Embedded::open(Options {
        clock: Clock::Set(Arc::clone(&second)),
        ..small(&FaultDisk::default())
    });
    let over = |store| Wallet::over(store, Limits::default()).unwrap();
    vec![
        (over(AnyStore::Memory(memory)), first),
        (over(AnyStore::Embedded(embedded.unwrap())), second),
    ]
}

fn done(decided: &Result<Decided, LedgerError>) -> bool {
    decided.as_ref().unwrap().is_success()
}

/// One hold of 100, which is all there is, a microsecond before its deadline.
struct Race {
    wallet: Wallet,
    time: Arc<AtomicI64>,
    round: u64,
    hold: RequestId,
    /// What was done, by kind.
    did: BTreeMap<&'static str, i64>,
    /// How the hold had ended, for those who came late.
    told: Vec<HoldState>,
    /// What everybody was told in every race so far.
    history: History,
}

impl Race {
    async fn new(wallet: &Wallet, time: &Arc<AtomicI64>, round: u64, history: History) -> Self {
        let hold = request(&format!("hold-{round}"));
        let credited = request(&format!("credit-{round}"));
        let credit = wallet.credit(&id("a"), &credited, amount(100), None).await;
        let placed = wallet.hold(&id("a"), &hold, amount(100), HoldTerm::new(1)).await;
        assert!(done(&credit) && done(&placed), "{placed:?}");
        time.fetch_add(SECOND - 1, Ordering::Relaxed);
        Self {
            wallet: wallet.clone(),
            time: Arc::clone(time),
            round,
            hold,
            did: BTreeMap::new(),
            told: Vec::new(),
            history,
        }
    }

    /// Sends something that may end the hold, or spend what that gives back.
    fn send(&self, racers: &mut JoinSet<(&'static str, Decided)>, n: usize, kind: u64) {
        let (wallet, hold) = (self.wallet.clone(), self.hold.clone());
        let (account, name) = (id("a"), request(&format!("end-{}-{n}", self.round)));
        racers.spawn(async move {
            let (kind, decided) = match kind {
                0 => {
                    let capture = wallet.capture(&account, &name, &hold, None, Remainder::Release);
                    ("capture", capture.await)
                }
                1 => ("release", wallet.release(&account, &name, &hold).await),
                2 => ("debit", wallet.debit(&account, &name, amount(100), None).await),
                _ => {
                    wallet.tidy_once().await.unwrap();
                    ("credit", wallet.credit(&account, &name, amount(100), None).await)
                }
            };
            (kind, decided.unwrap())
        });
    }

    fn hear(&mut self, kind: &'static str, decided: &Decided) {
        *self.did.entry(kind).or_default() += i64::from(decided.is_success());
        keep(&mut self.history, decided);
        if let Outcome::Refused(Refusal::HoldNotOpen { state, .. }) = decided.outcome {
            self.told.push(state);
        }
    }

    /// Now and then one of them is first for sure, so that each end is met on any machine.
    async fn first(&mut self) {
        match self.round % 10 {
            0 => drop(self.time.fetch_add(1, Ordering::Relaxed)),
            first @ (1 | 2) => {
                let mut racers = JoinSet::new();
                self.send(&mut racers, 100, first - 1);
                self.join(racers).await;
            }
            _ => {}
        }
    }

    /// The deadline comes after some of them, whichever those are.
    async fn all(&mut self, numbers: &mut Numbers) {
        let mut racers = JoinSet::new();
        let late = usize::try_from(numbers.below(12)).unwrap();
        for n in 0..12 {
            if n == late {
                self.time.fetch_add(1, Ordering::Relaxed);
            }
            self.send(&mut racers, n, numbers.below(4));
        }
        self.join(racers).await;
    }

    async fn join(&mut self, mut racers: JoinSet<(&'static str, Decided)>) {
        while let Some(ended) = racers.join_next().await {
            let (kind, decided) = ended.unwrap();
            self.hear(kind, &decided);
        }
    }

    /// How it ended: the same for everybody, and the money says so too. Gives the history back.
    async fn judge(self) -> (HoldState, History) {
        let Self { wallet, round, .. } = &self;
        let ended = wallet.look_up_hold(&id("a"), &self.hold).await.unwrap();
        let did = |kind| self.did.get(kind).copied().unwrap_or_default();
        let expected = match ended.state {
            HoldState::Open => panic!("a hold is open after its deadline"),
            HoldState::Captured => (1, 0),
            HoldState::Released => (0, 1),
            HoldState::Expired => (0, 0),
        };
        assert_eq!(
            (did("capture"), did("release")),
            expected,
            "round {round}: {ended:?}"
        );
        let told = &self.told;
        assert!(
            told.iter().all(|state| *state == ended.state),
            "round {round}: {told:?}"
        );
        let left = 100 * (1 + did("credit") - did("debit")) - ended.captured;
        let balance = wallet.account(&id("a")).await.unwrap().balance();
        assert_eq!(balance, left, "round {round}");
        if left > 0 {
            let name = request(&format!("rest-{round}"));
            let rest = wallet.debit(&id("a"), &name, amount(left), None).await;
            assert!(done(&rest), "what came back can be spent: {rest:?}");
        }
        (ended.state, self.history)
    }
}

/// Files a success. The calls ran beside each other: no order between them is claimed.
fn keep(history: &mut History, decided: &Decided) {
    if let Outcome::Posted(receipt) = &decided.outcome {
        let told = acknowledged(receipt, decided.replayed, Span::default());
        history.receipts.push(told);
    }
}

/// The history checker on what everybody was told, and the statement.
async fn check(wallet: &Wallet, mut history: History) {
    let mut statement = wallet.statement(&id("a"), Cursor::default()).await.unwrap();
    while let Some(entries) = statement.next().await.unwrap() {
        history.entries.extend(entries.iter().map(Entry::from));
    }
    let view = wallet.account(&id("a")).await.unwrap();
    history.reads.push(seen(&view, Span::default()));
    assert!(!history.receipts.is_empty());
    assert_eq!(history.faults(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_its_deadline_a_hold_has_one_end_and_everybody_hears_of_that_one() {
    for (wallet, time) in wallets() {
        wallet.open(slotted("a", 4)).await.unwrap();
        let mut numbers = Numbers(7);
        let mut ends: BTreeMap<&str, u64> = BTreeMap::new();
        let mut history = History::default();
        for round in 0..ROUNDS {
            let mut race = Race::new(&wallet, &time, round, history).await;
            race.first().await;
            race.all(&mut numbers).await;
            let end;
            (end, history) = race.judge().await;
            *ends.entry(end.as_str()).or_default() += 1;
        }
        assert_eq!(ends.len(), 3, "each end is met: {ends:?}");
        check(&wallet, history).await;
        println!("{ROUNDS} holds at their deadline, each with one end: {ends:?}");
        wallet.close().await;
    }
}

/// A reversal, alone or as an atomic batch.
async fn reverse(wallet: Wallet, name: String, of: String, batch: bool) -> Decided {
    let (account, request, reverses) = (id("a"), request(&name), request(&of));
    if !batch {
        return wallet.reverse(&account, &request, &reverses).await.unwrap();
    }
    let command = Command {
        account,
        request,
        operation: Operation::Reversal { reverses },
    };
    let batch = Batch::new(vec![command], BatchMode::Atomic).unwrap();
    wallet.batch(batch).await.unwrap().results.remove(0).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_several_ids_reverse_at_once_is_reversed_once() {
    for (wallet, _) in wallets() {
        wallet.open(slotted("a", 4)).await.unwrap();
        wallet
            .credit(&id("a"), &request("c"), amount(1_000), None)
            .await
            .unwrap();
        let mut history = History::default();
        for round in 0..ROUNDS {
            let of = format!("debit-{round}");
            let debited = wallet.debit(&id("a"), &request(&of), amount(10), None).await;
            assert!(done(&debited), "{debited:?}");
            let mut racers = JoinSet::new();
            for n in 0..4 {
                let name = format!("reversal-{round}-{n}");
                racers.spawn(reverse(wallet.clone(), name, of.clone(), n % 2 == 1));
            }
            let decided = racers.join_all().await;
            decided.iter().for_each(|decided| keep(&mut history, decided));
            let posted: Vec<_> = decided
                .iter()
                .filter_map(|decided| match &decided.outcome {
                    Outcome::Posted(receipt) => Some(receipt.request.clone()),
                    _ => None,
                })
                .collect();
            assert_eq!(posted.len(), 1, "round {round}: {decided:?}");
            for decided in decided.iter().filter(|decided| !decided.is_success()) {
                let refusal = Refusal::AlreadyReversed {
                    reverses: request(&of),
                    by: posted[0].clone(),
                };
                assert_eq!(decided.outcome, Outcome::Refused(refusal), "round {round}");
            }
            assert_eq!(wallet.account(&id("a")).await.unwrap().balance(), 1_000);
        }
        check(&wallet, history).await;
        wallet.close().await;
    }
}
