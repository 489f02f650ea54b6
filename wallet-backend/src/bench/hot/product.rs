//! A client of the product: a task that calls the library. All clients of a process share one wallet over the MySQL
//! store, opened as it ships.

use anyhow::Context as _;
use tokio::task::spawn_blocking;
use wallet_backend::Wallet;
use wallet_backend::account::{AccountId, RequestId};
use wallet_backend::combiner::Limits;
use wallet_backend::command::{Command, Operation, Outcome};
use wallet_backend::money::Amount;
use wallet_backend::store::any::AnyStore;
use wallet_backend::store::mysql::{Mysql, Options, migrate};

use super::ask::{Asks, Turn};
use super::direct::Done;
use crate::config::bench::hot::{Direction, Mode};

/// One client.
#[derive(Debug)]
pub(super) struct Product {
    wallet: Wallet,
    asks: Asks,
}

/// A wallet over a database, as it ships, but that so many callers may wait on one account.
///
/// # Errors
/// No connection; what the wallet says.
pub(super) async fn wallet(url: &str, database: &str, callers: u32) -> anyhow::Result<Wallet> {
    let address = in_database(url, database)?.parse()?;
    let mut limits = Limits::default();
    limits.lane = limits.lane.max(usize::try_from(callers)?);
    spawn_blocking(move || {
        let store = AnyStore::Mysql(Mysql::open(Options::at(address))?);
        Ok(Wallet::over(store, limits)?)
    })
    .await?
}

/// The product's tables, in a database that is empty.
///
/// # Errors
/// What the server says.
pub(super) async fn set_up(url: &str, database: &str) -> anyhow::Result<()> {
    let address = in_database(url, database)?.parse()?;
    spawn_blocking(move || migrate(&address)).await??;
    Ok(())
}

/// The server's URL with a database in it.
pub(super) fn in_database(url: &str, database: &str) -> anyhow::Result<String> {
    let mut url: reqwest::Url = url.parse()?;
    url.set_path(database);
    Ok(url.into())
}

impl Product {
    /// Client `number`, of all processes'.
    pub(super) fn new(wallet: Wallet, mode: Mode, direction: Direction, number: u32) -> Self {
        Self {
            wallet,
            asks: Asks::of(number, mode, direction),
        }
    }

    /// One operation.
    ///
    /// # Errors
    /// Whatever is no answer.
    pub(super) async fn once(&mut self) -> anyhow::Result<Done> {
        let ask = self.asks.named();
        let (amount, memo) = (Amount::new(ask.amount)?, None);
        let command = Command {
            account: AccountId::new(&ask.account)?,
            request: RequestId::new(&ask.id)?,
            operation: match ask.turn {
                Turn::Credit => Operation::Credit { amount, memo },
                Turn::Debit => {
                    let amount = amount.into();
                    Operation::Debit { amount, memo }
                }
            },
        };
        let decided = self.wallet.run(command).await.context("the wallet failed")?;
        Ok(match decided.outcome {
            Outcome::Posted(_) => Done::Posted(ask.turn.sign().saturating_mul(ask.amount)),
            Outcome::Refused(_) | Outcome::Amended(_) => Done::Kept,
        })
    }
}
