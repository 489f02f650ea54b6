//! Where the database is, and what every connection is told before its first statement.

use std::str::FromStr;
use std::time::Duration;
use std::{fmt, io};

use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::pool::PoolConnection;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, MySql, MySqlConnection, MySqlPool,
};
use tokio::time::timeout;

/// How long a caller waits for a free connection, or for a new one. Below what callers wait for an answer.
const ACQUIRE_WITHIN: Duration = Duration::from_secs(5);

/// How long it may take to find out why there was no connection.
const EXPLAINED_WITHIN: Duration = Duration::from_secs(1);

/// What every connection is told. READ COMMITTED: a locking read sees what is committed, and locks no gaps.
const SESSION: &str = "SET SESSION \
    sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', \
    time_zone = '+00:00', innodb_lock_wait_timeout = 3, autocommit = 1; \
    SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

/// A database: `mysql://USER:PASSWORD@HOST:PORT/DATABASE`, also with sqlx's parameters (`?socket=PATH`, `?ssl-mode=`).
#[derive(Clone)]
pub struct Address(Box<MySqlConnectOptions>);

/// Why a text is no address of a database.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error("must be mysql://USER:PASSWORD@HOST:PORT/DATABASE")]
    Malformed(#[source] sqlx::Error),
    #[error("names no database: mysql://USER:PASSWORD@HOST:PORT/DATABASE")]
    NoDatabase,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(url: &str) -> Result<Self, AddressError> {
        let options: MySqlConnectOptions = url.parse().map_err(AddressError::Malformed)?;
        match options.get_database() {
            Some(database) if !database.is_empty() => Ok(Self(Box::new(options))),
            _ => Err(AddressError::NoDatabase),
        }
    }
}

/// Without user and password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = self.0.get_database().unwrap_or_default();
        match self.0.get_socket() {
            Some(socket) => write!(f, "mysql://{}/{database}", socket.display()),
            None => write!(
                f,
                "mysql://{}:{}/{database}",
                self.0.get_host(),
                self.0.get_port()
            ),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Address {
    pub(super) fn options(&self) -> MySqlConnectOptions {
        let options = MySqlConnectOptions::clone(&self.0);
        options
            .charset("utf8mb4")
            // The session is told all of it at once, below.
            .no_engine_substitution(false)
            .pipes_as_concat(false)
            .timezone(None)
            .set_names(false)
            // A text is long, and says who moved how much.
            .disable_statement_logging()
    }
}

/// At most `most` connections, made as they are needed.
pub(super) fn pool(address: &Address, most: u32) -> MySqlPool {
    MySqlPoolOptions::new()
        .max_connections(most)
        .acquire_timeout(ACQUIRE_WITHIN)
        .test_before_acquire(false)
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute(AssertSqlSafe(SESSION)).await.map(drop) })
        })
        .connect_lazy_with(address.options())
}

/// A connection outside of a pool: what fails is what the server, or the way to it, says.
pub(super) async fn connect(options: &MySqlConnectOptions) -> Result<MySqlConnection, sqlx::Error> {
    let connected = timeout(ACQUIRE_WITHIN, MySqlConnection::connect_with(options)).await;
    let mut connection = connected.unwrap_or_else(|_| {
        let silent = "it was not answered in time";
        Err(io::Error::new(io::ErrorKind::TimedOut, silent).into())
    })?;
    connection.execute(AssertSqlSafe(SESSION)).await?;
    Ok(connection)
}

/// A connection of a pool. That all of them are busy is only said where that is so: a pool that cannot connect only
/// says that it took too long.
pub(super) async fn acquire(pool: &MySqlPool) -> Result<PoolConnection<MySql>, sqlx::Error> {
    match pool.acquire().await {
        Err(sqlx::Error::PoolTimedOut) => {
            let connection = timeout(EXPLAINED_WITHIN, connect(&pool.connect_options())).await;
            match connection {
                Ok(Err(cause)) => Err(cause),
                Ok(Ok(connection)) => {
                    drop(connection.close().await);
                    Err(sqlx::Error::PoolTimedOut)
                }
                Err(_) => Err(sqlx::Error::PoolTimedOut),
            }
        }
        acquired => acquired,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let address: Address = "mysql://till:secret@db.example:3307/wallet".parse().unwrap();
        assert_eq!(address.to_string(), "mysql://db.example:3307/wallet");
        assert!(!format!("{address:?}").contains("secret"));
    }

    #[test]
    fn an_address_names_its_database() {
        for bad in [
            "mysql://till@db.example",
            "mysql://till@db.example/",
            "db.example",
            "",
        ] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
    }
}
