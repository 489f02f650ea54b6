//! Short names for the ledger's types, and a store with a runtime around it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::runtime::Runtime;
use wallet_backend::account::{
    Account, AccountId, CreditMode, DebitMode, Entry, Hold, HoldTerm, Link, RequestId, Slot, SlotCount,
    Status, Timestamp,
};
use wallet_backend::clock::Clock;
use wallet_backend::command::{
    AccountView, Amendment, Answer, Batch, BatchMode, Batched, Command, DebitAmount, HoldView, LedgerError,
    Leg, Operation, Outcome, PastView, Posting, Receipt, Refusal, Remainder, RequestView, Task,
};
use wallet_backend::money::{Amount, Currency};
use wallet_backend::store::{Cursor, EntryPage, Event, EventCursor, Job, Moment, Store};

use crate::history;

pub(crate) fn id(text: &str) -> AccountId {
    AccountId::new(text).unwrap()
}

pub(crate) fn request(text: &str) -> RequestId {
    RequestId::new(text).unwrap()
}

pub(crate) fn amount(minor: i64) -> Amount {
    Amount::new(minor).unwrap()
}

pub(crate) fn ordinary(name: &str) -> Account {
    Account::new(id(name), Currency::new("EUR").unwrap())
}

pub(crate) fn slotted(name: &str, slots: u8) -> Account {
    Account {
        slots: SlotCount::new(slots).unwrap(),
        ..ordinary(name)
    }
}

pub(crate) fn journal(name: &str) -> Account {
    Account {
        credit: CreditMode::Journal,
        ..ordinary(name)
    }
}

pub(crate) fn hashed(name: &str, slots: u8) -> Account {
    Account {
        debit: DebitMode::Hashed,
        ..slotted(name, slots)
    }
}

pub(crate) fn credit(account: &str, name: &str, minor: i64) -> Task {
    run(
        account,
        name,
        Operation::Credit {
            amount: amount(minor),
            memo: None,
        },
    )
}

pub(crate) fn debit(account: &str, name: &str, minor: i64) -> Task {
    run(
        account,
        name,
        Operation::Debit {
            amount: amount(minor).into(),
            memo: None,
        },
    )
}

/// A debit of all there is.
pub(crate) fn drain(account: &str, name: &str) -> Task {
    let (amount, memo) = (DebitAmount::Max, None);
    run(account, name, Operation::Debit { amount, memo })
}

/// A hold of which `seconds` are the life; 0 is for ever.
pub(crate) fn hold(account: &str, name: &str, minor: i64, seconds: u32) -> Task {
    let (amount, expires_in) = (amount(minor), HoldTerm::new(seconds));
    run(account, name, Operation::Hold { amount, expires_in })
}

/// A final capture; of 0 cents, of all that is left.
pub(crate) fn capture(account: &str, name: &str, of: &str, minor: i64) -> Task {
    capture_some(account, name, of, minor, Remainder::Release)
}

/// A capture that leaves the rest held.
pub(crate) fn capture_part(account: &str, name: &str, of: &str, minor: i64) -> Task {
    capture_some(account, name, of, minor, Remainder::Keep)
}

fn capture_some(account: &str, name: &str, of: &str, minor: i64, remainder: Remainder) -> Task {
    let (hold, amount) = (request(of), Amount::new(minor).ok());
    let operation = Operation::Capture {
        hold,
        amount,
        remainder,
    };
    run(account, name, operation)
}

pub(crate) fn release(account: &str, name: &str, of: &str) -> Task {
    let hold = request(of);
    run(account, name, Operation::Release { hold })
}

pub(crate) fn reversal(account: &str, name: &str, of: &str) -> Task {
    let reverses = request(of);
    run(account, name, Operation::Reversal { reverses })
}

pub(crate) fn amend(account: &str, name: &str, amendment: Amendment) -> Task {
    run(account, name, Operation::Amend(amendment))
}

pub(crate) fn status(account: &str, name: &str, status: Status) -> Task {
    let status = Some(status);
    let amendment = Amendment {
        status,
        ..Amendment::default()
    };
    amend(account, name, amendment)
}

pub(crate) fn reslot(account: &str, name: &str, slots: u8) -> Task {
    let slots = SlotCount::new(slots);
    let amendment = Amendment {
        slots,
        ..Amendment::default()
    };
    amend(account, name, amendment)
}

pub(crate) fn transfer(from: &str, name: &str, to: &str, minor: i64) -> Task {
    run(
        from,
        name,
        Operation::Transfer {
            to: id(to),
            amount: amount(minor),
            memo: None,
        },
    )
}

pub(crate) fn run(account: &str, name: &str, operation: Operation) -> Task {
    Task::Run(Command {
        account: id(account),
        request: request(name),
        operation,
    })
}

pub(crate) fn abandon(account: &str, name: &str) -> Task {
    Task::Abandon {
        account: id(account),
        request: request(name),
    }
}

/// Commands as one batch.
pub(crate) fn together(mode: BatchMode, tasks: &[Task]) -> Batch {
    let command = |task: &Task| match task {
        Task::Run(command) => command.clone(),
        other => panic!("no command: {other:?}"),
    };
    Batch::new(tasks.iter().map(command).collect(), mode).unwrap()
}

pub(crate) fn tidy(account: &str) -> Task {
    Task::Tidy { account: id(account) }
}

/// The time on a bench, which a test sets.
#[derive(Clone, Debug)]
pub(crate) struct Time(Arc<AtomicI64>);

impl Default for Time {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(1_000_000)))
    }
}

impl Time {
    pub(crate) fn clock(&self) -> Clock {
        Clock::Set(Arc::clone(&self.0))
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }

    /// At a moment of UTC.
    pub(crate) fn starting(at: &str) -> Self {
        let at: jiff::Timestamp = at.parse().unwrap();
        Self(Arc::new(AtomicI64::new(at.as_microsecond())))
    }

    pub(crate) fn pass(&self, micros: i64) {
        self.0.fetch_add(micros, Ordering::Relaxed);
    }
}

pub(crate) const SECOND: i64 = 1_000_000;

/// A store, asked one thing at a time.
pub(crate) struct Bench<S> {
    pub(crate) store: S,
    runtime: Runtime,
    /// Passes for stores that were made with it.
    pub(crate) time: Time,
}

impl<S: Store> Bench<S> {
    pub(crate) fn new(store: S) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let time = Time::default();
        Self { store, runtime, time }
    }

    pub(crate) fn at(store: S, time: Time) -> Self {
        Self {
            time,
            ..Self::new(store)
        }
    }

    pub(crate) fn ask(&self, task: Task) -> Result<Answer, LedgerError> {
        self.ask_all(vec![task]).remove(0)
    }

    /// What a caller sends together.
    pub(crate) fn batch(&self, mode: BatchMode, tasks: &[Task]) -> Result<Batched, LedgerError> {
        let (job, answer) = Job::new(together(mode, tasks));
        let answer = self.runtime.block_on(async {
            self.store.run(vec![job]).await;
            answer.await.unwrap()
        });
        match answer? {
            Answer::Batched(batched) => Ok(batched),
            other => panic!("no batch: {other:?}"),
        }
    }

    /// The jobs of several callers, of which the store has one go.
    pub(crate) fn ask_all(&self, tasks: Vec<Task>) -> Vec<Result<Answer, LedgerError>> {
        let (jobs, answers): (Vec<_>, Vec<_>) = tasks.into_iter().map(Job::new).unzip();
        self.runtime.block_on(async {
            self.store.run(jobs).await;
            let mut answered = Vec::new();
            for answer in answers {
                answered.push(answer.await.unwrap());
            }
            answered
        })
    }

    pub(crate) fn open(&self, account: Account) {
        let answer = self.ask(Task::Open(account)).unwrap();
        assert!(
            matches!(answer, Answer::Opened { created: true, .. }),
            "{answer:?}"
        );
    }

    pub(crate) fn decide(&self, task: Task) -> (Outcome, bool) {
        let answer = self.ask(task).unwrap();
        let Answer::Decided { outcome, replayed } = answer else {
            panic!("no decision: {answer:?}");
        };
        (outcome, replayed)
    }

    pub(crate) fn post(&self, task: Task) -> Receipt {
        match self.decide(task) {
            (Outcome::Posted(receipt), false) => receipt,
            other => panic!("not posted: {other:?}"),
        }
    }

    pub(crate) fn refuse(&self, task: Task) -> Refusal {
        match self.decide(task) {
            (Outcome::Refused(refusal), false) => refusal,
            other => panic!("not refused: {other:?}"),
        }
    }

    pub(crate) fn amend(&self, task: Task) -> AccountView {
        match self.decide(task) {
            (Outcome::Amended(view), false) => *view,
            other => panic!("not amended: {other:?}"),
        }
    }

    /// A hold that is there.
    pub(crate) fn hold(&self, account: &str, name: &str) -> Hold {
        match self.look_up_hold(account, name) {
            Some(HoldView::Found(hold)) => hold,
            other => panic!("no hold: {other:?}"),
        }
    }

    pub(crate) fn look_up_hold(&self, account: &str, name: &str) -> Option<HoldView> {
        self.runtime
            .block_on(self.store.hold(&id(account), &request(name)))
            .unwrap()
    }

    pub(crate) fn account(&self, name: &str) -> AccountView {
        self.view(name).unwrap()
    }

    pub(crate) fn view(&self, name: &str) -> Option<AccountView> {
        self.runtime.block_on(self.store.account(&id(name))).unwrap()
    }

    /// What an account had.
    pub(crate) fn past(&self, name: &str, moment: &Moment) -> Result<PastView, LedgerError> {
        let past = self.block_on(self.store.past(&id(name), moment))?;
        Ok(past.unwrap())
    }

    pub(crate) fn untidy(&self) -> Vec<AccountId> {
        self.block_on(self.store.untidy(10)).unwrap()
    }

    /// Rows, of all accounts.
    pub(crate) fn pending(&self) -> u64 {
        self.block_on(self.store.pending()).unwrap()
    }

    pub(crate) fn close(&self) {
        self.block_on(self.store.close());
    }

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Runs what polls by hand inside the runtime.
    pub(crate) fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        let _inside = self.runtime.enter();
        work()
    }

    /// Balances by slot.
    pub(crate) fn slots(&self, name: &str) -> Vec<i64> {
        let view = self.account(name);
        view.slots.iter().map(|slot| slot.balance).collect()
    }

    pub(crate) fn page(&self, name: &str, after: &Cursor, limit: usize) -> EntryPage {
        self.runtime
            .block_on(self.store.entries(&id(name), after, limit))
            .unwrap()
            .unwrap()
    }

    /// The events after number `after`, of one account or of all, read in pages of `limit`.
    pub(crate) fn events(&self, after: u64, account: Option<&str>, limit: usize) -> Vec<Event> {
        let (account, mut events) = (account.map(id), Vec::new());
        let mut next = EventCursor::from(after);
        loop {
            let read = self.store.events(next, account.as_ref(), limit);
            let page = self.runtime.block_on(read).unwrap().unwrap();
            assert!(page.events.len() <= limit);
            if page.events.is_empty() {
                return events;
            }
            events.extend(page.events);
            next = page.next;
        }
    }

    /// The whole statement, if it can be read.
    pub(crate) fn try_entries(&self, name: &str) -> Result<Vec<Entry>, LedgerError> {
        let (account, after) = (id(name), Cursor::default());
        let page = self
            .runtime
            .block_on(self.store.entries(&account, &after, 100_000))?;
        Ok(page.unwrap().entries)
    }

    /// The whole statement.
    pub(crate) fn entries(&self, name: &str) -> Vec<Entry> {
        self.page(name, &Cursor::default(), 100_000).entries
    }

    pub(crate) fn look_up(&self, account: &str, name: &str) -> Option<RequestView> {
        self.runtime
            .block_on(self.store.request(&id(account), &request(name)))
            .unwrap()
    }
}

/// Seeded numbers (SplitMix64): the same on every machine.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

impl From<&Entry> for history::Entry {
    fn from(entry: &Entry) -> Self {
        Self {
            account: entry.account.to_string(),
            slot: entry.slot.get(),
            version: entry.version,
            kind: entry.kind.as_str().to_owned(),
            request: entry.request.as_ref().map(ToString::to_string),
            delta: entry.delta,
            held_delta: entry.held_delta,
            balance_after: entry.balance_after,
            link: match &entry.link {
                Some(Link::Transfer(other)) => history::Link::Account(other.to_string()),
                Some(Link::Hold(hold)) => history::Link::Hold(hold.to_string()),
                Some(Link::Reversed(request)) => history::Link::Reversed(request.to_string()),
                Some(Link::Slot(_)) | None => history::Link::None,
            },
        }
    }
}

/// A receipt as the history checker takes it.
pub(crate) fn acknowledged(receipt: &Receipt, replayed: bool, span: history::Span) -> history::Receipt {
    let leg = |leg: &Leg| history::Leg {
        account: leg.account.to_string(),
        slot: leg.slot.get(),
        version: leg.version,
        delta: leg.delta,
        held_delta: leg.held_delta,
        balance_after: leg.balance_after,
    };
    history::Receipt {
        account: receipt.account.to_string(),
        request: receipt.request.to_string(),
        kind: receipt.kind.as_str().to_owned(),
        amount: receipt.amount.minor(),
        pending: receipt.posting == Posting::Pending,
        legs: receipt.legs.iter().map(leg).collect(),
        replayed,
        span,
    }
}

/// A read as the history checker takes it.
pub(crate) fn seen(view: &AccountView, span: history::Span) -> history::Read {
    let slot = |slot: &Slot| (slot.index.get(), slot.balance, slot.version);
    history::Read {
        account: view.account.id.to_string(),
        balance: view.balance(),
        held: view.held,
        pending: view.pending,
        slots: view.slots.iter().map(slot).collect(),
        span,
    }
}

/// Files what one caller was told of a task.
pub(crate) fn hear(
    told: &mut history::History,
    task: &Task,
    outcome: &Outcome,
    replayed: bool,
    span: history::Span,
) {
    match outcome {
        Outcome::Posted(receipt) => told.receipts.push(acknowledged(receipt, replayed, span)),
        Outcome::Amended(_) => {}
        Outcome::Refused(_) => told.refusals.push(history::Refusal {
            account: task.account().to_string(),
            request: task.request().unwrap().to_string(),
        }),
    }
}
