//! The load: what is asked while the service lives, and what is made sure of when it is back.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::iter;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use wallet_backend::client::RequestState;

use super::asked::{Asked, Wish};
use super::client::{Client, Reply};
use super::told::{Atomic, Told};
use super::wire::{Batched, batched};
use crate::process::Served;
use crate::support::{Numbers, id, request as request_id};

/// Who sends at once.
const SENDERS: u64 = 12;

/// Beside everything that was asked since the last kill, so many older requests are asked for again.
const OLDER: usize = 50;

/// How often a request that the service put off is sent again before that counts as hanging.
const PATIENCE: usize = 1_000;

/// The accounts that everything goes on between: every way that the embedded store splits and collects money.
const ACCOUNTS: [&str; 5] = ["plain", "spread", "journal", "hashed", "poor"];

fn shape(account: &str) -> Value {
    match account {
        "spread" => json!({"slots": 8}),
        "journal" => json!({"slots": 4, "credit": "journal"}),
        "hashed" => json!({"slots": 4, "debit": "hashed"}),
        "poor" => json!({"slots": 2}),
        _ => json!({}),
    }
}

/// Opens the accounts, and puts money on all but one.
pub(super) async fn prepare(told: &Told, client: &Client) {
    let wish = |account: &str, wish, amount| Asked {
        account: account.to_owned(),
        request: format!("first-{account}"),
        wish,
        amount,
    };
    for account in ACCOUNTS {
        let open = Wish::Open { more: shape(account) };
        decide(told, client, told.ask(wish(account, open, 0))).await;
        if account != "poor" {
            decide(told, client, told.ask(wish(account, Wish::Credit, 100_000))).await;
        }
    }
}

/// When a process is killed: this long after that many answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) answers: u64,
    pub(super) then: Duration,
}

/// Lets everybody send until the moment has come, and kills.
pub(super) async fn until_killed(
    told: &Arc<Told>,
    client: &Client,
    served: Served,
    moment: Moment,
    name: &str,
    seed: &mut Numbers,
) {
    let mut load = Load::start(told, client, name, seed);
    load.answers(moment.answers).await;
    // On the thread of the test, which sends nothing.
    std::thread::sleep(moment.then);
    load.kill(served).await;
}

/// Everybody who sends to one process.
pub(super) struct Load {
    name: String,
    senders: JoinSet<()>,
    answered: watch::Receiver<u64>,
}

impl Load {
    pub(super) fn start(told: &Arc<Told>, client: &Client, name: &str, seed: &mut Numbers) -> Self {
        let (answers, answered) = watch::channel(0);
        let answers = Arc::new(answers);
        let mut senders = JoinSet::new();
        for number in 0..SENDERS {
            let sender = Sender {
                told: Arc::clone(told),
                client: client.clone(),
                answers: Arc::clone(&answers),
                numbers: Numbers(seed.below(u64::MAX)),
                name: format!("{name}-{number}"),
                sent: 0,
            };
            senders.spawn(sender.run());
        }
        let name = name.to_owned();
        Self {
            name,
            senders,
            answered,
        }
    }

    /// Waits for so many answers since the beginning.
    pub(super) async fn answers(&mut self, count: u64) {
        tokio::select! {
            enough = self.answered.wait_for(|answers| *answers >= count) => drop(enough.unwrap()),
            Some(ended) = self.senders.join_next() => {
                ended.unwrap();
                panic!("{}: the service went away by itself", self.name);
            }
        }
    }

    /// The answers so far.
    pub(super) fn answered(&self) -> u64 {
        *self.answered.borrow()
    }

    pub(super) async fn kill(mut self, served: Served) {
        served.kill();
        while let Some(ended) = self.senders.join_next().await {
            ended.unwrap();
        }
    }
}

/// Asks a copy of the ledger for each of these requests again: it has decided them, and as their clients were told.
pub(super) async fn find_again(told: &Told, client: &Client, numbers: &[usize]) {
    iter(numbers)
        .for_each_concurrent(8, async |number| {
            let reply = decide(told, client, *number).await;
            let asked = told.asked(*number);
            let opens = matches!(asked.wish, Wish::Open { .. });
            assert!(
                reply.replayed || opens && reply.status != 201,
                "{asked:?} was acknowledged, and the copy does not know it: {reply:?}"
            );
        })
        .await;
}

/// Makes sure of the past: that no atomic batch is there in part; resolves what is unknown, asks again for what is
/// known, reads the accounts.
pub(super) async fn look_back(told: &Told, client: &Client, numbers: &mut Numbers) {
    for batch in told.cut_off() {
        let mut decided = 0;
        for number in &batch {
            let Asked { account, request, .. } = told.asked(*number);
            let found = client
                .wallet()
                .request(&id(&account), &request_id(&request))
                .await;
            decided += usize::from(found.unwrap() != RequestState::NotFound);
        }
        assert!(
            decided == 0 || decided == batch.len(),
            "{decided} of {} of an atomic batch",
            batch.len()
        );
        told.end_atomic(&batch, Atomic::CutOff);
    }
    iter(told.unknown())
        .for_each_concurrent(8, async |number| {
            let reply = decide(told, client, number).await;
            told.resolved(number, &reply);
        })
        .await;
    let news = told.news();
    let old = u64::try_from(news.start).unwrap().max(1);
    let older = (0..OLDER).map(|_| usize::try_from(numbers.below(old)).unwrap());
    let older: Vec<usize> = older.collect();
    repeat(told, client, news.chain(older)).await;
    told.read(client).await;
}

/// Every request there ever was is answered as it was.
pub(super) async fn repeat_everything(told: &Told, client: &Client) {
    repeat(told, client, 0..told.len()).await;
}

async fn repeat(told: &Told, client: &Client, numbers: impl Iterator<Item = usize>) {
    iter(numbers)
        .for_each_concurrent(8, async |number| {
            decide(told, client, number).await;
        })
        .await;
}

/// Sends until it is decided. The service lives.
async fn decide(told: &Told, client: &Client, number: usize) -> Reply {
    let asked = told.asked(number);
    for _ in 0..PATIENCE {
        let reply = client.send(&asked).await;
        let reply = reply.unwrap_or_else(|| panic!("{asked:?}: no answer from a service that is up"));
        if told.hear(number, &reply) {
            return reply;
        }
    }
    panic!("{asked:?} was put off {PATIENCE} times");
}

/// One who sends, one request after another.
struct Sender {
    told: Arc<Told>,
    client: Client,
    answers: Arc<watch::Sender<u64>>,
    numbers: Numbers,
    /// Makes its request ids its own.
    name: String,
    sent: u64,
}

impl Sender {
    /// Ends when the connection breaks.
    async fn run(mut self) {
        while self.send_something().await.is_some() {}
    }

    async fn send_something(&mut self) -> Option<()> {
        match self.numbers.below(12) {
            0 => {
                let number = self.old();
                self.send(number).await
            }
            1 => self.send_batch().await,
            2 => self.send_atomic().await,
            _ => {
                let asked = self.new_wish();
                let number = self.told.ask(asked);
                self.send(number).await
            }
        }
    }

    /// Now and then twice at once, as a client does that lost patience.
    fn times(&mut self) -> usize {
        if self.numbers.below(8) == 0 { 2 } else { 1 }
    }

    async fn send(&mut self, number: usize) -> Option<()> {
        let asked = self.told.asked(number);
        let sends = (0..self.times()).map(|_| self.client.send(&asked));
        for reply in join_all(sends).await {
            self.hear(number, &reply?);
        }
        Some(())
    }

    fn hear(&self, number: usize, reply: &Reply) {
        if self.told.hear(number, reply) {
            self.answers.send_modify(|answers| *answers += 1);
        }
    }

    /// New operations of a batch, and its body.
    fn new_batch(&mut self, atomic: bool) -> (Vec<usize>, String) {
        let (mut numbers, mut operations) = (Vec::new(), Vec::new());
        for _ in 0..2 + self.numbers.below(12) {
            let asked = self.new_wish();
            if let Some(operation) = asked.operation() {
                operations.push(operation);
                numbers.push(self.told.ask(asked));
            }
        }
        (
            numbers,
            json!({"atomic": atomic, "operations": operations}).to_string(),
        )
    }

    async fn send_batch(&mut self) -> Option<()> {
        let (numbers, body) = self.new_batch(false);
        let sends = (0..self.times()).map(|_| self.client.send_batch(body.clone()));
        for reply in join_all(sends).await {
            let Batched { applied, results } = batched(&reply?);
            assert!(applied && results.len() == numbers.len());
            for (number, reply) in numbers.iter().zip(&results) {
                self.hear(*number, reply);
            }
        }
        Some(())
    }

    /// One that is given up is sent again command by command, so that each of them is decided.
    async fn send_atomic(&mut self) -> Option<()> {
        let (numbers, body) = self.new_batch(true);
        self.told.ask_atomic(&numbers);
        let Batched { applied, results } = batched(&self.client.send_batch(body).await?);
        assert_eq!(results.len(), numbers.len());
        if applied {
            for (number, reply) in numbers.iter().zip(&results) {
                self.hear(*number, reply);
            }
            self.told.end_atomic(&numbers, Atomic::Applied);
            return Some(());
        }
        let culprits = results
            .iter()
            .filter(|reply| !reply.body.contains("batch_aborted"));
        assert_eq!(culprits.count(), 1, "{results:?}");
        self.told.end_atomic(&numbers, Atomic::Aborted);
        for number in numbers {
            self.send(number).await?;
        }
        Some(())
    }

    /// Any request of the past, answered or not, but for what is on its way in an atomic batch.
    fn old(&mut self) -> usize {
        loop {
            let all = u64::try_from(self.told.len()).unwrap();
            let number = usize::try_from(self.numbers.below(all)).unwrap();
            if self.told.is_free(number) {
                return number;
            }
        }
    }

    fn new_wish(&mut self) -> Asked {
        self.sent += 1;
        let (from, to) = (self.account(), self.account());
        let request = format!("{}-{}", self.name, self.sent);
        let (account, wish) = match self.numbers.below(60) {
            0 => (request.clone(), Wish::Open { more: json!({}) }),
            1 => (
                from,
                Wish::Amend {
                    fields: self.amendment(),
                },
            ),
            2 => (from, Wish::Drain),
            3..20 => (from, Wish::Credit),
            20..32 => (from, Wish::Debit),
            32..40 => {
                let seconds = [0, 0, 1, 2, 3600][usize::try_from(self.numbers.below(5)).unwrap()];
                (from, Wish::Hold { seconds })
            }
            40..46 => self.with_a_hold(from),
            46..50 => match self.told.a_move(self.numbers.below(u64::MAX)) {
                Some(Asked { account, request, .. }) => (account, Wish::Reversal { of: request }),
                None => (from, Wish::Credit),
            },
            _ if from == to => (from, Wish::Debit),
            _ => (from, Wish::Transfer { to }),
        };
        let amount = 1 + self.numbers.below(20);
        Asked {
            account,
            request,
            wish,
            amount: i64::try_from(amount).unwrap(),
        }
    }

    /// What may become of a hold; a credit where there is none yet.
    fn with_a_hold(&mut self, otherwise: String) -> (String, Wish) {
        match self.told.a_hold(self.numbers.below(u64::MAX)) {
            Some(Asked {
                account,
                request: hold,
                ..
            }) => match self.numbers.below(4) {
                0 => (account, Wish::Release { hold }),
                last => (
                    account,
                    Wish::Capture {
                        hold,
                        last: last == 1,
                    },
                ),
            },
            None => (otherwise, Wish::Credit),
        }
    }

    /// From one slot to 64 and back, and from one way of crediting to another.
    fn amendment(&mut self) -> Value {
        let choose = usize::try_from(self.numbers.below(3)).unwrap();
        match self.numbers.below(4) {
            0 => {
                let mode = ["slot", "upsert", "journal"][choose];
                json!({"credit": mode})
            }
            1 => json!({"slots": 1}),
            2 => json!({"slots": 64}),
            _ => {
                let slots = [2, 5, 9][choose];
                json!({"slots": slots})
            }
        }
    }

    fn account(&mut self) -> String {
        let count = u64::try_from(ACCOUNTS.len()).unwrap();
        let index = usize::try_from(self.numbers.below(count)).unwrap();
        ACCOUNTS[index].to_owned()
    }
}
