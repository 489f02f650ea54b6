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

use self::claims::TaskId;
use self::events::Numbers;
use self::read::Reading;
use self::run::Writers;
use crate::clock::Clock;
use crate::command::LedgerError;
use crate::store::{Preference, new_id};

/// The database's clock at the beginning of a statement, in microseconds since 1970.
macro_rules! database_now {
    () => {
        "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
    };
}

/// The time of a statement, in microseconds since 1970. Takes a parameter, `Reading::now`.
macro_rules! now {
    () => {
        concat!("COALESCE(?, ", database_now!(), ")")
    };
}

mod as_store;
mod attempt;
mod claims;
mod columns;
mod connect;
mod events;
mod probe;
mod read;
mod requests;
mod run;
mod schema;
mod text;
mod transaction;

pub use connect::{Address, AddressError};
pub use probe::{Finding, Probed, Severity};
pub use schema::{Migrated, Migrations, SchemaError};

/// How a ledger in a database is opened.
#[derive(Debug)]
pub struct Options {
    pub address: Address,
    /// Bring an older schema up to date.
    pub migrate: bool,
    /// Set up an empty database.
    pub set_up: bool,
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
            set_up: true,
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
    #[error("the server of {address} is not one to keep a ledger: {findings}")]
    Refused { address: Address, findings: String },
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error("cannot read the ledger")]
    Read(#[source] LedgerError),
    #[error("cannot start the store's thread")]
    Thread(#[source] io::Error),
}

/// What has to be done before a ledger is open, on its own thread.
struct Opening {
    address: Address,
    migrations: Migrations,
    writers: u32,
    readers: u32,
    clock: Clock,
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
            address,
            migrations,
            writers,
            readers,
            clock,
        } = self;
        let connections = writers.saturating_add(readers);
        let (probed, _, id) = prepare(&address, migrations, connections).await?;
        probed.log();
        let pool = connect::pool(&address, writers);
        let reading = Reading::new(connect::pool(&address, readers), clock);
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
    /// Who this process is, among those that have the ledger open.
    task: TaskId,
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
            set_up,
            clock,
            preference,
            writers,
            readers,
        } = options;
        let most = writers.max(1);
        let opening = Opening {
            address,
            migrations: match (set_up, migrate) {
                (true, true) => Migrations::Run,
                (true, false) => Migrations::OnlyIfEmpty,
                (false, true) => Migrations::UnlessEmpty,
                (false, false) => Migrations::None,
            },
            writers: most,
            readers: readers.max(1),
            clock: clock.clone(),
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
                let_go(runtime);
                return Err(error);
            }
        };
        drop(runtime.spawn(Arc::clone(&numbers).run(Arc::clone(&reading))));
        Ok(Self {
            runtime: Some(runtime),
            writers: Arc::new(Writers::new(pool, most, clock, preference)),
            reading,
            numbers,
            task: new_id().to_be_bytes(),
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

/// Brings a database's tables up to date, and says what it found. Blocks; must not be called from a task.
///
/// # Errors
/// [`OpenError`]: no connection, a server or a schema that is refused, or what the server says.
pub fn migrate(address: &Address) -> Result<(Probed, Migrated), OpenError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(OpenError::Thread)?;
    let (probed, migrated, _) = runtime.block_on(prepare(address, Migrations::Run, 1))?;
    Ok((probed, migrated))
}

/// Looks at the server, then at the tables, and says which ledger it is. `connections`: how many there will be.
async fn prepare(
    address: &Address,
    migrations: Migrations,
    connections: u32,
) -> Result<(Probed, Migrated, u64), OpenError> {
    let failed = |source| OpenError::Connect {
        address: address.clone(),
        source,
    };
    let refused = |findings: Vec<String>| OpenError::Refused {
        address: address.clone(),
        findings: findings.join("; "),
    };
    let mut connection = connect::connect(&address.options()).await.map_err(failed)?;
    let probed = probe::probe(&mut connection, connections).await.map_err(failed)?;
    let findings: Vec<String> = probed.refused().map(ToString::to_string).collect();
    if !findings.is_empty() {
        return Err(refused(findings));
    }
    let migrated = schema::prepare(&mut connection, migrations).await?;
    if let Some(finding) = probe::locks(&mut connection).await.map_err(failed)? {
        return Err(refused(vec![finding.to_string()]));
    }
    let id = schema::ledger_id(&mut connection).await?;
    Ok((probed, migrated, id))
}

fn unavailable(reason: &str) -> LedgerError {
    let reason = reason.to_owned();
    LedgerError::Unavailable { reason }
}

/// A runtime may not be dropped where one is running; nothing that still runs there is waited for.
fn let_go(runtime: Runtime) {
    // Connections that fall with its tasks look for a runtime.
    let handle = runtime.handle().clone();
    let _context = handle.enter();
    runtime.shutdown_background();
}

impl Drop for Mysql {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            let_go(runtime);
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
