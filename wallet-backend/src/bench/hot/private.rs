//! A MariaDB of the bench's own: on loopback, with a data folder that goes away with it. Nothing in it is worth a clean
//! stop, so it is killed, however the bench ends but for a kill of its own.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::param::clock_ticks_per_second;
use rustix::process::getuid;
use sqlx::ConnectOptions as _;
use sqlx::mysql::MySqlConnectOptions;
use tokio::time::{Instant, sleep};

use crate::bench::folder::Folder;
use crate::config::bench::hot::Switch;

/// The server answers well before that on any machine that is worth a measurement.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// Connections besides those of clients: the bench's, the aggregator's, the product's readers and jobs.
const SPARE_CONNECTIONS: u32 = 100;

/// A server that runs; dropped, it is gone.
#[derive(Debug)]
pub(super) struct Server {
    // Before its folder, which it writes to.
    process: Process,
    port: u16,
    _folder: Folder,
}

#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Ended already where either fails.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Server {
    /// Starts one below `dir`, for so many clients.
    ///
    /// # Errors
    /// No MariaDB; a server that ends, or does not answer in a minute: with the end of its log.
    pub(super) async fn start(dir: &Path, binlog: Switch, clients: u32) -> anyhow::Result<Self> {
        // The server changes its folder: what it is told must hold from there.
        let dir = fs::canonicalize(dir).with_context(|| format!("there is no folder {}", dir.display()))?;
        let folder = Folder::new(&dir, "mariadb")?;
        let log = folder.path().join("log");
        let data = folder.path().join("data");
        let (output, errors) = (
            fs::File::create(&log)?,
            fs::File::create(folder.path().join("errors"))?,
        );
        let made = mariadb("mariadb-install-db", &data)
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .stdout(output)
            .stderr(errors)
            .status()
            .context("cannot run mariadb-install-db: is MariaDB installed?")?;
        if !made.success() {
            bail!("mariadb-install-db failed: {}", tail(&log));
        }
        // Free now; if somebody else takes it meanwhile the server says so and ends.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = mariadb("mariadbd", &data)
            .args(settings(port, binlog, clients))
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .spawn()
            .context("cannot run mariadbd: is MariaDB installed?")?;
        let mut server = Self {
            process: Process(child),
            port,
            _folder: folder,
        };
        server.answers().await.with_context(|| tail(&log))?;
        Ok(server)
    }

    /// Its address, without a database.
    pub(super) fn url(&self) -> String {
        format!("mysql://root@127.0.0.1:{}", self.port)
    }

    /// Processor time of all its threads so far.
    ///
    /// # Errors
    /// A system without `/proc`; it has ended.
    pub(super) fn cpu(&self) -> anyhow::Result<Duration> {
        let path = format!("/proc/{}/stat", self.process.0.id());
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let ticks = ticks(&text).with_context(|| format!("{path} is not as expected"))?;
        Ok(Duration::from_secs_f64(
            ticks as f64 / clock_ticks_per_second() as f64,
        ))
    }

    async fn answers(&mut self) -> anyhow::Result<()> {
        let options: MySqlConnectOptions = self.url().parse()?;
        let late = Instant::now() + STARTS_WITHIN;
        loop {
            if options.connect().await.is_ok() {
                return Ok(());
            }
            if let Some(status) = self.process.0.try_wait()? {
                bail!("mariadbd has ended with {status}");
            }
            if Instant::now() > late {
                bail!("mariadbd does not answer");
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// One of MariaDB's programs, without anybody's settings. In a group of its own: an interrupt from the terminal is for
/// the bench.
fn mariadb(program: &str, data: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .arg("--no-defaults")
        .arg(format!("--datadir={}", data.display()))
        .stdin(Stdio::null())
        .process_group(0);
    if getuid().is_root() {
        command.arg("--user=root");
    }
    command
}

fn settings(port: u16, binlog: Switch, clients: u32) -> Vec<String> {
    let connections = clients.saturating_add(SPARE_CONNECTIONS);
    let mut settings = vec![
        format!("--port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        // Relative: the path of a socket has a bound, that of the folder has none.
        "--socket=mysql.sock".to_owned(),
        "--pid-file=pid".to_owned(),
        "--skip-name-resolve".to_owned(),
        format!("--max-connections={connections}"),
        format!("--back-log={connections}"),
        "--transaction-isolation=READ-COMMITTED".to_owned(),
        "--innodb-flush-log-at-trx-commit=1".to_owned(),
        "--innodb-buffer-pool-size=1G".to_owned(),
        // So that no checkpoint falls into a row.
        "--innodb-log-file-size=1G".to_owned(),
    ];
    if binlog == Switch::On {
        settings.extend(["--log-bin=binlog", "--binlog-format=ROW", "--sync-binlog=1"].map(str::to_owned));
    }
    settings
}

/// utime and stime: the 14th and 15th field, counted behind the name, which may have anything in it.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    user.checked_add(system)
}

/// The end of a log, for people.
fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(5).collect();
    let last: Vec<&str> = lines.into_iter().rev().collect();
    format!("its log ends with: {}", last.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_user_and_system_whatever_the_name() {
        let stat = "17 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 1234 66 0 0 20 0";
        assert_eq!(ticks(stat), Some(1_300));
        assert_eq!(ticks("17 (a) S 1 2"), None);
    }

    #[test]
    fn the_binary_log_is_synced_where_it_is_on_and_commits_always() {
        let off = settings(1, Switch::Off, 64);
        assert!(!off.iter().any(|setting| setting.contains("binlog")));
        let on = settings(1, Switch::On, 64);
        assert!(on.contains(&"--sync-binlog=1".to_owned()));
        for settings in [off, on] {
            assert!(settings.contains(&"--innodb-flush-log-at-trx-commit=1".to_owned()));
            assert!(settings.contains(&"--max-connections=164".to_owned()));
        }
    }
}
