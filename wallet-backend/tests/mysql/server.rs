//! A private MariaDB server: its own data folder and port, gone with its owner.
//!
//! The server is a child of a small shell that reads its standard input, a pipe from this process. The end of the pipe,
//! however this process ends, kills the server and removes its folder; after a line, the folder stays.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use tempfile::TempDir;

use super::{Session, template};

mod facts;

/// `$1` is the data folder; the rest is the server and its arguments.
const KEEPER: &str = r#"
folder=$1; shift
"$@" </dev/null >/dev/null &
server=$!
# What there is to say may find nobody who hears it.
trap '' PIPE
while read -r keep; do folder=; done
kill -s KILL "$server"
wait "$server"
[ -z "$folder" ] || rm -rf "$folder"
"#;

/// Below the range from which ports of outgoing connections are taken: a port is still free after a restart.
const PORTS: std::ops::Range<u16> = 12_000..32_000;

/// Lines of the server's log that a failure shows.
const LOG_LINES: usize = 40;

/// What servers differ in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// A binary log, synced at every commit.
    pub(crate) binlog: bool,
    /// Further arguments: `--innodb-lock-wait-timeout=1`.
    pub(crate) more: Vec<String>,
}

impl Settings {
    pub(crate) fn with(mut self, argument: &str) -> Self {
        self.more.push(argument.to_owned());
        self
    }
}

/// A server; killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    settings: Settings,
    port: u16,
    folder: TempDir,
    running: Option<Running>,
}

/// Its process.
#[derive(Debug)]
struct Running {
    keeper: Child,
    words: ChildStdin,
}

impl Server {
    /// Who owns the databases of the tests: no administrator, so that `read_only` binds them.
    pub(super) const USER: &str = "sluice";

    /// A server with no database, once it answers.
    pub(crate) fn start(settings: Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        template::copy_to(folder.path());
        let user = Self::USER;
        let users = format!(
            "CREATE USER IF NOT EXISTS {user}@127.0.0.1 IDENTIFIED BY '{user}';\n\
             GRANT ALL ON `{user}%`.* TO {user}@127.0.0.1;\n"
        );
        fs::write(folder.path().join("users.sql"), users).unwrap();
        let mut server = Self {
            settings,
            port: 0,
            folder,
            running: None,
        };
        let mut told = String::new();
        // Between here and there somebody else may take a port.
        for _ in 0..5 {
            server.port = free_port();
            match server.run() {
                Ok(()) => return server,
                Err(log) => writeln!(told, "{log}").unwrap(),
            }
        }
        panic!("no server on five ports:\n{told}");
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The address of a database on it, for the user of the tests.
    pub(crate) fn url(&self, database: &str) -> String {
        self.url_by(self.address(), database)
    }

    /// The same through whoever listens at `address`.
    pub(crate) fn url_by(&self, address: SocketAddr, database: &str) -> String {
        let user = Self::USER;
        format!("mysql://{user}:{user}@{address}/{database}")
    }

    /// A session of the user of the tests.
    pub(crate) fn session(&self, database: &str) -> Session {
        Session::new(&self.url(database))
    }

    /// A session of its administrator, in no database.
    pub(crate) fn admin(&self) -> Session {
        Session::new(&format!("mysql://root@{}", self.address()))
    }

    /// SIGKILL: no handler runs, nothing is flushed. Returns once the process is gone; its files stay.
    pub(crate) fn kill(&mut self) {
        self.keep();
        self.end();
    }

    /// After [`Self::kill`]: a process on the same files and port, once it answers.
    pub(crate) fn restart(&mut self) {
        assert!(self.running.is_none(), "the server is running");
        if let Err(log) = self.run() {
            panic!("no restart:\n{log}");
        }
    }

    /// That its files are to stay when it ends.
    fn keep(&mut self) {
        let running = self.running.as_mut().expect("the server is running");
        writeln!(running.words, "keep").unwrap();
    }

    /// Ends the pipe and waits for what follows.
    fn end(&mut self) {
        if let Some(Running { mut keeper, words }) = self.running.take() {
            drop(words);
            keeper.wait().unwrap();
        }
    }

    /// Starts the process. `Err` with its last lines where it ended instead.
    fn run(&mut self) -> Result<(), String> {
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "sh"])
            .arg(self.folder.path())
            .arg("mariadbd")
            .args(self.arguments())
            // What a terminal sends to this process' group is not for the keeper, which ends after it.
            .process_group(0)
            .stdin(Stdio::piped())
            // Whoever reads to the end what this process prints knows that its servers are gone, too.
            .stdout(Stdio::inherit())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let words = keeper.stdin.take().unwrap();
        let stderr = keeper.stderr.take().unwrap();
        self.running = Some(Running { keeper, words });
        follow(stderr).inspect_err(|_| {
            self.keep();
            self.end();
        })
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = template::layout();
        let folder = self.folder.path().display();
        arguments.extend([
            format!("--datadir={folder}"),
            format!("--port={}", self.port),
            format!("--init-file={folder}/users.sql"),
        ]);
        arguments.extend(
            [
                // In the data folder: the path of a socket has at most 107 bytes.
                "--socket=socket",
                "--bind-address=127.0.0.1",
                "--innodb-flush-log-at-trx-commit=1",
                "--innodb-buffer-pool-size=64M",
                "--innodb-temp-data-file-path=ibtmp1:1M:autoextend",
                "--innodb-buffer-pool-load-at-startup=OFF",
                "--key-buffer-size=64K",
                "--aria-pagecache-buffer-size=8M",
                "--max-connections=300",
            ]
            .map(str::to_owned),
        );
        if self.settings.binlog {
            let binlog = [
                "--log-bin=binlog",
                "--binlog-format=ROW",
                "--sync-binlog=1",
                "--server-id=1",
            ];
            arguments.extend(binlog.map(str::to_owned));
        }
        arguments.extend(self.settings.more.iter().cloned());
        arguments
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads the log until the server says that it answers, and goes on reading it in a thread: a full pipe would stop
/// the server. `Err` with the last lines once it ended before.
fn follow(stderr: ChildStderr) -> Result<(), String> {
    let (ready, is_ready) = mpsc::channel();
    let last = Arc::new(Mutex::new(VecDeque::new()));
    let lines = Arc::clone(&last);
    std::thread::Builder::new()
        .name("mariadb log".to_owned())
        .spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if line.contains("ready for connections") {
                    // Nobody listens once the start is over.
                    let _ = ready.send(());
                }
                let mut lines = lines.lock().unwrap();
                lines.push_back(line);
                if lines.len() > LOG_LINES {
                    lines.pop_front();
                }
            }
        })
        .unwrap();
    is_ready.recv().map_err(|_| {
        let lines = last.lock().unwrap();
        lines.iter().map(|line| format!("{line}\n")).collect()
    })
}

/// Another one each time, in another order in every process.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let ports = PORTS.len();
    let first = std::process::id() as usize * 97;
    for _ in 0..ports {
        let next = usize::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + u16::try_from((first + next) % ports).unwrap();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free in {PORTS:?}");
}
