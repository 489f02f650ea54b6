//! What a server can do and how it is set up, judged before a ledger is opened in it.
//!
//! [`judge`] is given what the server says of itself and decides nothing by anything else. Each finding says what is
//! wrong, what comes of it, and the statement or the option that mends it.

use std::collections::BTreeMap;
use std::fmt;

use sqlx::{MySqlConnection, Row as _};

/// What a server says of itself: the variables, with names in lower case, as far as it has them.
pub(super) type Variables = BTreeMap<String, String>;

/// The variables that are asked for, for the session: what it was told is in force there.
const ASKED: [&str; 19] = [
    "auto_increment_increment",
    "binlog_format",
    "innodb_deadlock_detect",
    "innodb_doublewrite",
    "innodb_flush_log_at_trx_commit",
    "innodb_read_only",
    "innodb_snapshot_isolation",
    "log_bin",
    "max_allowed_packet",
    "max_connections",
    "read_only",
    "sql_mode",
    "super_read_only",
    "sync_binlog",
    "time_zone",
    "transaction_isolation",
    "tx_isolation",
    "version",
    "wsrep_on",
];

/// Asked of the ledger's tables: columns that hold ids and compare them otherwise than as bytes.
const COLLATED: &str = "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() \
    AND table_name IN ('account', 'wallet_slot', 'account_entry', 'request', 'reversal', 'hold', 'pending_credit', \
    'outbox', 'event') AND collation_name IS NOT NULL";

/// The largest text that a transaction sends at once, in bytes, with what frames it.
pub(super) const LARGEST_PACKET: u64 = 4 << 20;

/// Those that can keep a ledger.
const SERVERS: &str = "use MySQL 8.0.16 or newer, or MariaDB 10.6 or newer";

/// Whether a ledger may be opened there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It would not work, or not keep what it promises.
    Refused,
    /// It works; something that somebody may count on is not so.
    Warned,
}

/// Something about a server that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// The variable or the ability.
    pub subject: &'static str,
    /// What it is, and what comes of that.
    pub what: String,
    /// What to do: a statement, or an option of the server.
    pub mend: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            subject, what, mend, ..
        } = self;
        write!(f, "{subject} {what}; {mend}")
    }
}

/// A family of servers, each with its own numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    MySql,
    MariaDb,
    /// Speaks the protocol of MySQL 8, and stores otherwise.
    TiDb,
}

/// A server, as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// `MariaDB 10.11.19`.
    pub server: String,
    /// Each setting that was looked at, by its name.
    pub settings: Vec<(&'static str, String)>,
    pub findings: Vec<Finding>,
}

impl Probed {
    /// Tells the log.
    pub(super) fn log(&self) {
        let settings = self.to_string();
        let settings = settings.lines().next().unwrap_or_default();
        tracing::info!(settings, "the database's server");
        for finding in self.warned() {
            tracing::warn!("the database's server: {finding}");
        }
    }

    /// Those that keep a ledger from being opened.
    pub fn refused(&self) -> impl Iterator<Item = &Finding> {
        let findings = self.findings.iter();
        findings.filter(|finding| finding.severity == Severity::Refused)
    }

    /// Those that somebody should know.
    pub fn warned(&self) -> impl Iterator<Item = &Finding> {
        let findings = self.findings.iter();
        findings.filter(|finding| finding.severity == Severity::Warned)
    }
}

/// One line with the settings, then one for each finding.
impl fmt::Display for Probed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.server)?;
        for (name, value) in &self.settings {
            let value = if value.is_empty() { "''" } else { value };
            write!(f, ", {name}={value}")?;
        }
        for finding in &self.findings {
            let severity = match finding.severity {
                Severity::Refused => "REFUSED",
                Severity::Warned => "warning",
            };
            write!(f, "\n{severity}: {finding}")?;
        }
        Ok(())
    }
}

/// Asks a server, over a connection that is set up as all of them are.
///
/// # Errors
/// What the server says.
pub(super) async fn probe(connection: &mut MySqlConnection, connections: u32) -> Result<Probed, sqlx::Error> {
    let rows = sqlx::query("SHOW VARIABLES").fetch_all(&mut *connection).await?;
    let mut variables = Variables::new();
    for row in &rows {
        let (name, value): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let name = name.to_ascii_lowercase();
        if ASKED.contains(&name.as_str()) {
            variables.insert(name, value);
        }
    }
    let collated: i64 = sqlx::query_scalar(COLLATED).fetch_one(connection).await?;
    Ok(judge(&variables, collated, connections))
}

/// Whether the server does what the lock order needs, asked of a table of the ledger.
///
/// # Errors
/// What the server says, but that it does not understand.
pub(super) async fn locks(connection: &mut MySqlConnection) -> Result<Option<Finding>, sqlx::Error> {
    for (subject, text) in [
        (
            "SKIP LOCKED",
            "SELECT one FROM ledger WHERE one = 0 FOR UPDATE SKIP LOCKED",
        ),
        ("NOWAIT", "SELECT one FROM ledger WHERE one = 0 FOR UPDATE NOWAIT"),
    ] {
        match sqlx::raw_sql(text).execute(&mut *connection).await {
            Ok(_) => {}
            Err(sqlx::Error::Database(error)) => {
                return Ok(Some(Finding {
                    severity: Severity::Refused,
                    subject,
                    what: format!("is not understood: {error}"),
                    mend: SERVERS.to_owned(),
                }));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// What is to be said of a server. `collated`: columns for ids that do not compare bytes. `connections`: how many this
/// process may open.
#[must_use]
pub(super) fn judge(variables: &Variables, collated: i64, connections: u32) -> Probed {
    let judge = Judge {
        variables,
        connections,
        findings: Vec::new(),
    };
    judge.judge(collated)
}

struct Judge<'a> {
    variables: &'a Variables,
    connections: u32,
    findings: Vec<Finding>,
}

impl Judge<'_> {
    fn judge(mut self, collated: i64) -> Probed {
        let (family, version) = family(self.of("version").unwrap_or_default());
        self.version(family, version);
        self.durability();
        self.writing();
        self.sessions();
        self.cluster();
        if collated > 0 {
            let what = format!("of {collated} columns compares letters: ids would be taken for one another");
            self.refuse(
                "collation",
                what,
                "use a database whose tables `wallet-backend migrate` has made",
            );
        }
        let name = match family {
            Family::MySql => "MySQL",
            Family::MariaDb => "MariaDB",
            Family::TiDb => "TiDB",
        };
        let (major, minor, patch) = version;
        let shown = |name: &&'static str| Some((*name, self.of(name)?.to_owned()));
        Probed {
            server: format!("{name} {major}.{minor}.{patch}"),
            settings: ASKED
                .iter()
                .filter(|name| **name != "version")
                .filter_map(shown)
                .collect(),
            findings: self.findings,
        }
    }

    fn of(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.of(name)?.parse().ok()
    }

    fn is_on(&self, name: &str) -> bool {
        matches!(self.of(name), Some("ON" | "1" | "YES" | "on"))
    }

    fn find(&mut self, severity: Severity, subject: &'static str, what: impl Into<String>, mend: &str) {
        self.findings.push(Finding {
            severity,
            subject,
            what: what.into(),
            mend: mend.to_owned(),
        });
    }

    fn refuse(&mut self, subject: &'static str, what: impl Into<String>, mend: &str) {
        self.find(Severity::Refused, subject, what, mend);
    }

    fn warn(&mut self, subject: &'static str, what: impl Into<String>, mend: &str) {
        self.find(Severity::Warned, subject, what, mend);
    }

    /// SKIP LOCKED and NOWAIT, without which the lock order cannot be kept.
    fn version(&mut self, family: Family, version: (u32, u32, u32)) {
        let least = match family {
            Family::MySql => (8, 0, 16),
            Family::MariaDb => (10, 6, 0),
            Family::TiDb => {
                return self.refuse("SKIP LOCKED", "is read and not done by this server", SERVERS);
            }
        };
        if version < least {
            let (major, minor, patch) = version;
            let what = format!("{major}.{minor}.{patch} has no SKIP LOCKED, NOWAIT or CHECK");
            self.refuse("version", what, SERVERS);
        }
    }

    /// What an acknowledged operation survives.
    fn durability(&mut self) {
        if let Some(flush) = self
            .of("innodb_flush_log_at_trx_commit")
            .filter(|flush| *flush != "1")
        {
            let what =
                format!("is {flush}: a crash of the machine loses up to a second of acknowledged operations");
            self.warn(
                "innodb_flush_log_at_trx_commit",
                what,
                "SET GLOBAL innodb_flush_log_at_trx_commit = 1, and in the server's configuration",
            );
        }
        if self.is_on("log_bin")
            && let Some(sync) = self.of("sync_binlog").filter(|sync| *sync != "1")
        {
            let what =
                format!("is {sync}: after a crash of the machine the replicas may have other operations");
            self.warn(
                "sync_binlog",
                what,
                "SET GLOBAL sync_binlog = 1, and in the server's configuration",
            );
        }
        if self
            .of("innodb_doublewrite")
            .is_some_and(|value| matches!(value, "OFF" | "0"))
        {
            self.warn(
                "innodb_doublewrite",
                "is off: a crash may leave a page half written, unless the file system writes pages whole",
                "start the server with innodb_doublewrite=ON",
            );
        }
    }

    /// Whether and how it takes what is written.
    fn writing(&mut self) {
        for name in ["read_only", "super_read_only", "innodb_read_only"] {
            if self
                .of(name)
                .is_some_and(|value| !matches!(value, "OFF" | "0" | "NO_LOCK"))
            {
                self.refuse(
                    name,
                    "is on: nothing can be written, this is a replica or was made one",
                    "name the server that is written to, or SET GLOBAL read_only = OFF there",
                );
                break;
            }
        }
        if self.is_on("log_bin")
            && let Some(format) = self.of("binlog_format").filter(|format| *format != "ROW")
        {
            // MIXED writes rows where a statement would not be safe, which these are by their isolation.
            let severity = if format == "STATEMENT" {
                Severity::Refused
            } else {
                Severity::Warned
            };
            let what = format!("is {format}: READ COMMITTED wants rows in the binary log");
            self.find(
                severity,
                "binlog_format",
                what,
                "SET GLOBAL binlog_format = 'ROW', and in the server's configuration",
            );
        }
        if let Some(packet) = self
            .number("max_allowed_packet")
            .filter(|packet| *packet < LARGEST_PACKET)
        {
            let what = format!("is {packet} bytes: a batch may be larger");
            self.refuse(
                "max_allowed_packet",
                what,
                "SET GLOBAL max_allowed_packet = 16777216, and in the server's configuration",
            );
        }
        let wanted = u64::from(self.connections);
        if let Some(most) = self.number("max_connections").filter(|most| *most < wanted) {
            let what = format!("is {most}, and this process may open {wanted}");
            self.warn(
                "max_connections",
                what,
                "SET GLOBAL max_connections = 500, and in the server's configuration",
            );
        }
        if self
            .of("innodb_deadlock_detect")
            .is_some_and(|value| value == "OFF")
        {
            self.warn(
                "innodb_deadlock_detect",
                "is off: what others do to the tables by hand may stop operations for seconds",
                "SET GLOBAL innodb_deadlock_detect = ON",
            );
        }
    }

    /// What every session was told, and whether it holds: a proxy in between may have swallowed it.
    fn sessions(&mut self) {
        let isolation = self
            .of("transaction_isolation")
            .or_else(|| self.of("tx_isolation"));
        if let Some(isolation) = isolation.filter(|isolation| *isolation != "READ-COMMITTED") {
            let what = format!("is {isolation} although this session was told READ COMMITTED");
            self.refuse(
                "isolation",
                what,
                "let nothing between here and the server change sessions",
            );
        }
        let mode = self.of("sql_mode").unwrap_or_default();
        if !mode.split(',').any(|mode| mode == "STRICT_ALL_TABLES") {
            let what = format!("is {mode:?} although this session was told STRICT_ALL_TABLES");
            self.refuse(
                "sql_mode",
                what,
                "let nothing between here and the server change sessions",
            );
        }
        if let Some(zone) = self.of("time_zone").filter(|zone| *zone != "+00:00") {
            let what = format!("is {zone:?} although this session was told '+00:00'");
            self.warn(
                "time_zone",
                what,
                "let nothing between here and the server change sessions",
            );
        }
        // Operations are run again for it; whoever looks for the cause of retries should find it.
        if self.is_on("innodb_snapshot_isolation") && self.of("wsrep_on") == Some("ON") {
            self.warn(
                "innodb_snapshot_isolation",
                "is on in a cluster: operations that meet are run again more often",
                "SET GLOBAL innodb_snapshot_isolation = OFF",
            );
        }
    }

    /// Where several servers take writes.
    fn cluster(&mut self) {
        if let Some(step) = self.of("auto_increment_increment").filter(|step| *step != "1") {
            let what =
                format!("is {step}: servers that are written to side by side give numbers out of order");
            self.warn(
                "auto_increment_increment",
                what,
                "let every wallet write to the same server of the group",
            );
        }
        if self.of("wsrep_on") == Some("ON") {
            self.warn(
                "wsrep_on",
                "is on: a Galera node acknowledges before the others have applied, and SKIP LOCKED sees its own locks \
                 only",
                "let every wallet write to the same node, and read there",
            );
        }
    }
}

/// By the text of `version`: `10.11.19-MariaDB-0+deb12u1`, `8.4.2`, `8.0.11-TiDB-v8.1.0`.
fn family(version: &str) -> (Family, (u32, u32, u32)) {
    let family = if version.contains("MariaDB") {
        Family::MariaDb
    } else if version.contains("TiDB") {
        Family::TiDb
    } else {
        Family::MySql
    };
    // Where MariaDB pretends to be an older MySQL, so as not to be refused by replicas.
    let version = version.strip_prefix("5.5.5-").unwrap_or(version);
    let mut numbers = version
        .split(|character: char| !character.is_ascii_digit())
        .map(str::parse);
    let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
    (family, (next(), next(), next()))
}

#[cfg(test)]
mod tests;
