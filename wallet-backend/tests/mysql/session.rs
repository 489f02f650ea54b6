//! A connection for tests: blocking, so that it can be used from any test and any guard.

use std::sync::LazyLock;

use sqlx::mysql::{MySqlConnection, MySqlRow};
use sqlx::{AssertSqlSafe, Connection as _, Row as _, raw_sql};
use tokio::runtime::Runtime;

/// Where the sessions and proxies of all tests do their IO. Never dropped, which nobody may do inside another runtime.
pub(super) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("mysql tests")
        .enable_all()
        .build()
        .unwrap()
});

/// A session with a server.
#[derive(Debug)]
pub(crate) struct Session {
    connection: MySqlConnection,
}

impl Session {
    pub(crate) fn new(url: &str) -> Self {
        match Self::open(url) {
            Ok(session) => session,
            Err(error) => panic!("{url}: {error}"),
        }
    }

    pub(crate) fn open(url: &str) -> Result<Self, sqlx::Error> {
        let connection = wait(MySqlConnection::connect(url))?;
        Ok(Self { connection })
    }

    /// Statements without parameters, as one text.
    pub(crate) fn run(&mut self, text: &str) {
        if let Err(error) = self.try_run(text) {
            panic!("{text}: {error}");
        }
    }

    pub(crate) fn try_run(&mut self, text: &str) -> Result<(), sqlx::Error> {
        self.rows(text).map(drop)
    }

    /// How many rows it says that the text changed, or found.
    pub(crate) fn affected(&mut self, text: &str) -> u64 {
        let text = raw_sql(AssertSqlSafe(text));
        let done = wait(text.execute(&mut self.connection));
        done.unwrap().rows_affected()
    }

    /// The whole number in the one field of the one row.
    pub(crate) fn number(&mut self, text: &str) -> i64 {
        let field: String = self.text(text);
        field.parse().unwrap()
    }

    /// The whole numbers in the one field of each row.
    pub(crate) fn numbers(&mut self, text: &str) -> Vec<i64> {
        let rows = self.rows(text).unwrap();
        let field = |row: &MySqlRow| row.try_get_unchecked::<String, _>(0).unwrap().parse().unwrap();
        rows.iter().map(field).collect()
    }

    /// The text in the one field of the one row.
    pub(crate) fn text(&mut self, text: &str) -> String {
        let rows = self.rows(text).unwrap();
        let [row] = &rows[..] else {
            panic!("{text}: {} rows", rows.len());
        };
        // As text in any case: a server's own variables are of many types.
        row.try_get_unchecked(0).unwrap()
    }

    /// The rows of all results, one after the other.
    pub(crate) fn rows(&mut self, text: &str) -> Result<Vec<MySqlRow>, sqlx::Error> {
        let text = raw_sql(AssertSqlSafe(text));
        wait(text.fetch_all(&mut self.connection))
    }
}

/// On a thread of its own: this one may be driving a runtime, in which nothing may block on another.
fn wait<T: Send>(future: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| scope.spawn(|| RUNTIME.block_on(future)).join().unwrap())
}
