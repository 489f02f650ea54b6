//! The ledger in MySQL 8+, MariaDB 10.6+, or what speaks their protocol: one process or several on one database.
//!
//! All of its input and output happens on a thread of its own, so that no connection belongs to a caller's runtime.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, mpsc};

use sqlx::MySqlPool;
use tokio::runtime::{Builder, Runtime};

use self::events::Numbers;
use self::read::Reading;
use self::run::Writers;
use crate::clock::Clock;
use crate::command::LedgerError;
use crate::store::Preference;

mod as_store;
mod attempt;
mod columns;
mod connect;
mod events;
mod read;
mod requests;
mod run;
mod schema;
mod text;
mod transaction;

pub use connect::{Address, AddressError};
pub use schema::{Migrated, Migrations, SchemaError};

/// How a ledger in a database is opened.
#[derive(Debug)]
pub struct Options {
    pub address: Address,
    /// Bring an older schema up to date. An empty database is always set up.
    pub migrate: bool,
    /// `Clock::System` is the database's own clock, so that processes with different ones agree.
    pub clock: Clock,
    pub preference: Preference,
    /// Connections that write: batches under way at once. At least 1.
    pub writers: u32,
    /// Connections that read. At least 1.
    pub readers: u32,
}

impl Options {
    /// The defaults, for a database.
    #[must_use]
    pub fn at(address: Address) -> Self {
        Self {
            address,
            migrate: false,
            clock: Clock::default(),
            preference: Preference::Fixed(u64::from(std::process::id())),
            writers: 4,
            readers: 4,
        }
    }
}

/// Why a ledger in a database was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot connect to {address}")]
    Connect {
        address: Address,
        #[source]
        source: sqlx::Error,
    },
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error("cannot read the ledger")]
    Read(#[source] LedgerError),
    #[error("cannot start the store's thread")]
    Thread(#[source] io::Error),
}

/// What has to be done before a ledger is open, on its own thread.
struct Opening {
    pool: MySqlPool,
    reading: Reading,
    address: Address,
    migrations: Migrations,
}

struct Opened {
    pool: MySqlPool,
    reading: Arc<Reading>,
    numbers: Arc<Numbers>,
    id: u64,
}

impl Opening {
    async fn run(self) -> Result<Opened, OpenError> {
        let Self {
            pool,
            reading,
            address,
            migrations,
        } = self;
        let connected = pool.acquire().await;
        let mut connection = connected.map_err(|source| OpenError::Connect { address, source })?;
        schema::prepare(&mut connection, migrations).await?;
        let id = schema::ledger_id(&mut connection).await?;
        drop(connection);
        let numbers = Arc::new(Numbers::new());
        let all = numbers.all(&reading).await;
        all.map_err(|error| OpenError::Read(error.into()))?;
        Ok(Opened {
            pool,
            reading: Arc::new(reading),
            numbers,
            id,
        })
    }
}

/// A ledger in a database.
pub struct Mysql {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    writers: Arc<Writers>,
    reading: Arc<Reading>,
    numbers: Arc<Numbers>,
    id: u64,
}

impl Mysql {
    /// Opens a ledger, and sets up an empty database. Blocks while it connects; it is for the beginning of a program.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("wallet-mysql")
            .enable_all()
            .build()
            .map_err(OpenError::Thread)?;
        let Options {
            address,
            migrate,
            clock,
            preference,
            writers,
            readers,
        } = options;
        let most = writers.max(1);
        let opening = Opening {
            pool: connect::pool(&address, most),
            reading: Reading::new(connect::pool(&address, readers.max(1)), clock.clone()),
            address,
            migrations: if migrate {
                Migrations::Run
            } else {
                Migrations::OnlyIfEmpty
            },
        };
        let (sender, opened) = mpsc::channel();
        drop(runtime.spawn(async move { sender.send(opening.run().await) }));
        let ended = || OpenError::Thread(io::Error::other("it ended"));
        let Opened {
            pool,
            reading,
            numbers,
            id,
        } = match opened.recv().map_err(|_| ended()).flatten() {
            Ok(opened) => opened,
            Err(error) => {
                runtime.shutdown_background();
                return Err(error);
            }
        };
        drop(runtime.spawn(Arc::clone(&numbers).run(Arc::clone(&reading))));
        Ok(Self {
            runtime: Some(runtime),
            writers: Arc::new(Writers::new(pool, most, clock, preference)),
            reading,
            numbers,
            id,
        })
    }

    fn reading(&self) -> Arc<Reading> {
        Arc::clone(&self.reading)
    }

    fn numbers(&self) -> Arc<Numbers> {
        Arc::clone(&self.numbers)
    }

    /// Ends what waits for events, and closes the connections that read.
    async fn close_reading(&self) {
        self.numbers.end();
        let reading = self.reading();
        let closing = async move {
            reading.close().await;
            Ok(())
        };
        // Closed already, there is nothing left to close.
        drop(self.on_own_thread(closing).await);
    }

    /// Runs work on the store's own thread. Cancelled, it goes on there.
    fn on_own_thread<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, LedgerError>> + Send + 'static,
    ) -> Pin<Box<dyn Future<Output = Result<T, LedgerError>> + Send>> {
        // In boxes, so that the callers' futures are not as deep as what it waits for.
        let work: Pin<Box<dyn Future<Output = Result<T, LedgerError>> + Send>> = Box::pin(work);
        let running = self.runtime.as_ref().map(|runtime| runtime.spawn(work));
        Box::pin(async move {
            let Some(running) = running else {
                return Err(unavailable("the wallet is closed"));
            };
            running
                .await
                .unwrap_or_else(|_| Err(unavailable("the store's thread ended")))
        })
    }
}

/// Brings a database's tables up to date. Blocks; must not be called from a task.
///
/// # Errors
/// [`OpenError`]: no connection, a schema that is newer than this build, or what the server says.
pub fn migrate(address: &Address) -> Result<Migrated, OpenError> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(OpenError::Thread)?;
    runtime.block_on(async {
        let pool = connect::pool(address, 1);
        let connected = pool.acquire().await;
        let mut connection = connected.map_err(|source| OpenError::Connect {
            address: address.clone(),
            source,
        })?;
        Ok(schema::prepare(&mut connection, Migrations::Run).await?)
    })
}

fn unavailable(reason: &str) -> LedgerError {
    let reason = reason.to_owned();
    LedgerError::Unavailable { reason }
}

/// A runtime may not be dropped where one is running; nothing that still runs there is waited for.
impl Drop for Mysql {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Mysql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mysql")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
