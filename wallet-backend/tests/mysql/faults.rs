//! The store on a server that fails, behind a network that loses what hurts most. Whatever was acknowledged is there, once;
//! whoever was told that the outcome is unknown asks again under the same id and knows.

use tokio::task::spawn_blocking;
use wallet_backend::Wallet;
use wallet_backend::combiner::Limits;
use wallet_backend::store::any::AnyStore;
use wallet_backend::store::mysql::{Mysql, Options};

mod commits;
mod contention;
mod load;
mod outages;

/// In the text that writes what a request has become, and commits it.
const DECIDES: &str = "INSERT INTO request";

/// A wallet in the database at `url`.
async fn wallet(url: &str) -> Wallet {
    wallet_with(url, |options| options).await
}

async fn wallet_with(url: &str, change: impl FnOnce(Options) -> Options) -> Wallet {
    let options = change(Options::at(url.parse().unwrap()));
    // Opening blocks, and this is a task.
    let store = spawn_blocking(|| Mysql::open(options)).await.unwrap().unwrap();
    Wallet::over(AnyStore::Mysql(store), Limits::default()).unwrap()
}
