//! Short names for the ledger's types, and a store with a runtime around it.

use tokio::runtime::Runtime;
use wallet_backend::account::{
    Account, AccountId, CreditMode, DebitMode, Entry, Link, RequestId, Slot, SlotCount,
};
use wallet_backend::command::{
    AccountView, Answer, Command, LedgerError, Leg, Operation, Outcome, Posting, Receipt, ReceiptKind,
    Refusal, RequestView, Task,
};
use wallet_backend::money::{Amount, Currency};
use wallet_backend::store::{Cursor, EntryPage, Job, Store};

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
            amount: amount(minor),
            memo: None,
        },
    )
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

pub(crate) fn tidy(account: &str) -> Task {
    Task::Tidy { account: id(account) }
}

/// A store, asked one thing at a time.
pub(crate) struct Bench<S> {
    pub(crate) store: S,
    runtime: Runtime,
}

impl<S: Store> Bench<S> {
    pub(crate) fn new(store: S) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        Self { store, runtime }
    }

    pub(crate) fn ask(&self, task: Task) -> Result<Answer, LedgerError> {
        self.ask_all(vec![task]).remove(0)
    }

    /// One batch.
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

    pub(crate) fn account(&self, name: &str) -> AccountView {
        self.view(name).unwrap()
    }

    pub(crate) fn view(&self, name: &str) -> Option<AccountView> {
        self.runtime.block_on(self.store.account(&id(name))).unwrap()
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
            balance_after: entry.balance_after,
            other: match &entry.link {
                Some(Link::Transfer(other)) => Some(other.to_string()),
                Some(Link::Slot(_)) | None => None,
            },
        }
    }
}

/// A receipt as the history checker takes it.
pub(crate) fn acknowledged(receipt: &Receipt, replayed: bool, span: history::Span) -> history::Receipt {
    let kind = match receipt.kind {
        ReceiptKind::Credit => "credit",
        ReceiptKind::Debit => "debit",
        ReceiptKind::Transfer => "transfer",
    };
    let leg = |leg: &Leg| history::Leg {
        account: leg.account.to_string(),
        slot: leg.slot.get(),
        version: leg.version,
        delta: leg.delta,
        balance_after: leg.balance_after,
    };
    history::Receipt {
        account: receipt.account.to_string(),
        request: receipt.request.to_string(),
        kind: kind.to_owned(),
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
