//! A wallet on a socket, and clients of it.

use std::time::Duration;

use tokio::task::JoinSet;
use wallet_backend::Wallet;
use wallet_backend::client::{Client, Options, Patience};
use wallet_backend::http::auth::Access;
use wallet_backend::http::serve::Server;
use wallet_backend::http::{HttpOptions, router};

/// A wallet in memory, served until this falls.
pub(super) struct Service {
    pub(super) wallet: Wallet,
    /// As the server prints it.
    pub(super) address: String,
    _serving: JoinSet<()>,
}

impl Service {
    pub(super) async fn start() -> Self {
        Self::at("127.0.0.1:0", Access::anyone()).await
    }

    pub(super) async fn at(listen: &str, access: Access) -> Self {
        let wallet = Wallet::memory().unwrap();
        let server = Server::bind(&listen.parse().unwrap()).await.unwrap();
        let address = server.address().to_owned();
        let options = HttpOptions {
            access,
            ..HttpOptions::default()
        };
        let routes = router(wallet.clone(), options);
        let mut serving = JoinSet::new();
        serving.spawn(server.run(routes, std::future::pending()));
        Self {
            wallet,
            address,
            _serving: serving,
        }
    }

    pub(super) fn client(&self) -> Client {
        client_of(&self.address)
    }
}

pub(super) fn client_of(address: &str) -> Client {
    Client::new(address, Options::default()).unwrap()
}

/// One that asks once: its first pause would outlast its deadline.
pub(super) fn impatient(address: &str) -> Client {
    let pause = Duration::from_secs(120);
    let patience = Patience {
        first_pause: pause,
        longest_pause: pause,
        ..Patience::default()
    };
    patient(address, patience)
}

pub(super) fn patient(address: &str, patience: Patience) -> Client {
    let options = Options {
        patience,
        ..Options::default()
    };
    Client::new(address, options).unwrap()
}

/// Many attempts in little time.
pub(super) fn quick() -> Patience {
    Patience {
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(4),
        ..Patience::default()
    }
}
