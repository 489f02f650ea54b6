//! Databases of the tests' own, on the server that they share.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Proxy, Server, Session, Settings};

/// Started by the first test that asks; ended with the process.
static SHARED: LazyLock<Shared> = LazyLock::new(|| match std::env::var("SLUICE_MYSQL_URL") {
    Ok(url) if !url.is_empty() => Shared::named(&url),
    _ => Shared::private(),
});

/// A server, as the parts of its address: `mysql://user:password@host:port/database?options`.
struct Shared {
    /// With what separates it from the host.
    user: String,
    address: SocketAddr,
    /// With the question mark.
    options: String,
    _server: Option<Server>,
}

impl Shared {
    fn private() -> Self {
        let server = Server::start(Settings::default());
        Self {
            user: format!("{0}:{0}@", Server::USER),
            address: server.address(),
            options: String::new(),
            _server: Some(server),
        }
    }

    /// What the URL names, whatever database is in it.
    fn named(url: &str) -> Self {
        let rest = url
            .strip_prefix("mysql://")
            .expect("SLUICE_MYSQL_URL is mysql://…");
        let (rest, options) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        let (user, place) = rest.split_at(rest.rfind('@').map_or(0, |at| at + 1));
        let host = place.split('/').next().unwrap();
        let host = if host.contains(':') {
            host.to_owned()
        } else {
            format!("{host}:3306")
        };
        let address = host.to_socket_addrs().unwrap().next();
        Self {
            user: user.to_owned(),
            address: address.expect("SLUICE_MYSQL_URL names a host"),
            options: options.to_owned(),
            _server: None,
        }
    }

    /// Through whoever listens at `address`.
    fn url(&self, address: SocketAddr, database: &str) -> String {
        let Self { user, options, .. } = self;
        format!("mysql://{user}{address}/{database}{options}")
    }

    fn session(&self) -> Result<Session, sqlx::Error> {
        Session::open(&self.url(self.address, ""))
    }
}

/// An empty database; dropped with this.
#[derive(Debug)]
pub(crate) struct Database {
    name: String,
    url: String,
}

/// A new one.
pub(crate) fn database() -> Database {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("sluice_test_{}_{number}", std::process::id());
    let mut session = SHARED.session().unwrap();
    session.run(&format!("CREATE DATABASE {name}"));
    let url = SHARED.url(SHARED.address, &name);
    Database { name, url }
}

impl Database {
    /// `mysql://user:password@host:port/name`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A session in it.
    pub(crate) fn session(&self) -> Session {
        Session::new(&self.url)
    }

    /// A proxy to its server, and the address of the database through that.
    pub(crate) fn proxy(&self) -> (Proxy, String) {
        let proxy = Proxy::start(SHARED.address);
        let url = SHARED.url(proxy.address(), &self.name);
        (proxy, url)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // After a failed test the server may be gone, which is not what that test is to say.
        if let Ok(mut session) = SHARED.session() {
            drop(session.try_run(&format!("DROP DATABASE {}", self.name)));
        }
    }
}
