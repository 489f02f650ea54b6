//! The tables, and bringing them up to date.

use std::borrow::Cow;

use sqlx::migrate::{AppliedMigration, Migrate as _, MigrateError, Migration, MigrationType, Migrator};
use sqlx::{MySqlConnection, SqlSafeStr as _};

use crate::store::new_id;

/// Every migration, oldest first: what it is called, and its statements. One that was released is never changed.
const MIGRATIONS: [(&str, &str); 1] = [("ledger", include_str!("migrations/0001_ledger.sql"))];

const TABLE: &str = "_sqlx_migrations";

/// What may be done to a schema that is not up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migrations {
    /// Bring it up to date, from whatever it is.
    Run,
    /// Set up an empty database; refuse an older schema.
    OnlyIfEmpty,
    /// Bring an older schema up to date; refuse an empty database.
    UnlessEmpty,
    /// Refuse both.
    None,
}

/// What was done to a schema. 0: an empty database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    pub from: i64,
    pub to: i64,
}

/// Why a database's tables can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error(
        "the database has schema {found}, and this build knows {known} at most: use a build that is as new as the one \
         that made it"
    )]
    Newer { found: i64, known: i64 },
    #[error("the database has schema {found}, and this build needs {known}: run `wallet-backend migrate`")]
    Older { found: i64, known: i64 },
    #[error("the database has no ledger")]
    Empty,
    #[error("cannot bring the database's tables up to date")]
    Migrate(#[from] MigrateError),
    #[error("cannot read the database's tables")]
    Read(#[from] sqlx::Error),
}

fn migrator() -> Migrator {
    let migration = |(version, (name, sql)): (i64, &(&'static str, &'static str))| {
        Migration::new(
            version,
            Cow::Borrowed(*name),
            MigrationType::Simple,
            sql.into_sql_str(),
            false,
        )
    };
    Migrator::with_migrations((1..).zip(&MIGRATIONS).map(migration).collect())
}

/// The newest schema that this build knows.
fn known() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Checks the schema and brings it up to date as far as that is allowed.
pub(super) async fn prepare(
    connection: &mut MySqlConnection,
    migrations: Migrations,
) -> Result<Migrated, SchemaError> {
    let known = known();
    let found = found(connection).await?;
    match (found, migrations) {
        (found, _) if found > known => return Err(SchemaError::Newer { found, known }),
        (0, Migrations::UnlessEmpty | Migrations::None) => return Err(SchemaError::Empty),
        (found, Migrations::OnlyIfEmpty | Migrations::None) if found > 0 && found < known => {
            return Err(SchemaError::Older { found, known });
        }
        _ => {}
    }
    // Also where it is up to date: it compares what was run with what this build would have run.
    migrator().run_direct(None, connection, false).await?;
    name(connection).await?;
    Ok(Migrated {
        from: found,
        to: known,
    })
}

/// The newest migration that was run; 0 in an empty database.
async fn found(connection: &mut MySqlConnection) -> Result<i64, SchemaError> {
    let exists: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?",
    )
    .bind(TABLE)
    .fetch_one(&mut *connection)
    .await?;
    if exists == 0 {
        return Ok(0);
    }
    let applied: Vec<AppliedMigration> = connection.list_applied_migrations(TABLE).await?;
    Ok(applied
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or(0))
}

/// Gives a ledger that has none the number that tells it from every other.
async fn name(connection: &mut MySqlConnection) -> Result<(), SchemaError> {
    sqlx::query("INSERT IGNORE INTO ledger (one, ledger_id) VALUES (1, ?)")
        .bind(new_id())
        .execute(connection)
        .await?;
    Ok(())
}

/// The number that tells this ledger from every other.
pub(super) async fn ledger_id(connection: &mut MySqlConnection) -> Result<u64, SchemaError> {
    let id = sqlx::query_scalar("SELECT ledger_id FROM ledger WHERE one = 1")
        .fetch_one(connection)
        .await?;
    Ok(id)
}
