//! The load: what is asked while the service lives, and what is made sure of when it is back.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::iter;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::client::{Client, Reply};
use super::told::{Asked, Told, Wish};
use crate::process::Served;
use crate::support::Numbers;

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
    let (answers, mut answered) = watch::channel(0);
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
    tokio::select! {
        enough = answered.wait_for(|answers| *answers >= moment.answers) => drop(enough.unwrap()),
        Some(ended) = senders.join_next() => {
            ended.unwrap();
            panic!("{name}: the service went away by itself");
        }
    }
    // On the thread of the test, which sends nothing.
    std::thread::sleep(moment.then);
    served.kill();
    while let Some(ended) = senders.join_next().await {
        ended.unwrap();
    }
}

/// Makes sure of the past: resolves what is unknown, asks again for what is known, reads the accounts.
pub(super) async fn look_back(told: &Told, client: &Client, numbers: &mut Numbers) {
    iter(told.unknown())
        .for_each_concurrent(8, async |number| {
            let reply = decide(told, client, number).await;
            told.resolved(&reply);
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
        let reply = client.post(&asked.path(), asked.body()).await;
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
        loop {
            let number = match self.numbers.below(10) {
                0 => self.old(),
                _ => {
                    let asked = self.new_wish();
                    self.told.ask(asked)
                }
            };
            // Now and then twice at once, as a client does that lost patience.
            let times = if self.numbers.below(8) == 0 { 2 } else { 1 };
            let asked = self.told.asked(number);
            let path = asked.path();
            let sends = (0..times).map(|_| self.client.post(&path, asked.body()));
            for reply in join_all(sends).await {
                let Some(reply) = reply else { return };
                if self.told.hear(number, &reply) {
                    self.answers.send_modify(|answers| *answers += 1);
                }
            }
        }
    }

    /// Any request of the past, answered or not.
    fn old(&mut self) -> usize {
        let all = u64::try_from(self.told.len()).unwrap();
        usize::try_from(self.numbers.below(all)).unwrap()
    }

    fn new_wish(&mut self) -> Asked {
        self.sent += 1;
        let (from, to) = (self.account(), self.account());
        let request = format!("{}-{}", self.name, self.sent);
        let (account, wish) = match self.numbers.below(40) {
            0 => (request.clone(), Wish::Open { more: json!({}) }),
            1..16 => (from, Wish::Credit),
            16..30 => (from, Wish::Debit),
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

    fn account(&mut self) -> String {
        let count = u64::try_from(ACCOUNTS.len()).unwrap();
        let index = usize::try_from(self.numbers.below(count)).unwrap();
        ACCOUNTS[index].to_owned()
    }
}
