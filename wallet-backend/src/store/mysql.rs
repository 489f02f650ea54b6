//! The ledger's tables in MySQL 8+, MariaDB 10.6+, or what speaks their protocol.

use tokio::runtime::Builder;

mod connect;
mod schema;

pub use connect::{Address, AddressError};
pub use schema::{Migrated, Migrations, SchemaError};

/// Why a database can't be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot connect to {address}")]
    Connect {
        address: String,
        #[source]
        source: sqlx::Error,
    },
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error("cannot start a thread")]
    Thread(#[from] std::io::Error),
}

/// Brings a database's tables up to date. Blocks; must not be called from a task.
///
/// # Errors
/// [`OpenError`]: no connection, a schema that is newer than this build, or what the server says.
pub fn migrate(address: &Address) -> Result<Migrated, OpenError> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let pool = connect::pool(address, 1);
        let connected = pool.acquire().await;
        let mut connection = connected.map_err(|source| OpenError::Connect {
            address: address.to_string(),
            source,
        })?;
        Ok(schema::prepare(&mut connection, Migrations::Run).await?)
    })
}
