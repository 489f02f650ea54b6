//! The real binary as a process of its own, ended by this one at the latest.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use reqwest::Client;
use rustix::process::{Pid, Signal, kill_process};
use wallet_backend::client::Options;

/// A running `wallet-backend serve`; killed when dropped.
pub(crate) struct Served {
    pub(crate) child: Child,
    stdout: BufReader<ChildStdout>,
    /// What follows `listening on `.
    pub(crate) address: String,
}

/// The binary with these arguments, deaf to this process' environment.
pub(crate) fn binary(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wallet-backend"));
    command
        .args(arguments)
        .env_remove("WALLET_LISTEN")
        .env_remove("WALLET_STORE")
        .env_remove("WALLET_TOKEN_FILE")
        .env_remove("WALLET_WEBHOOK")
        .env_remove("WALLET_WEBHOOK_SECRET_FILE")
        .env_remove("WALLET_KEYS_FILE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

impl Served {
    /// Starts it, and waits until it says that it listens.
    pub(crate) fn start(listen: &str, store: &str, more: &[&str]) -> Self {
        let arguments = ["serve", "--listen", listen, "--store", store];
        Self::run(binary(&[&arguments, more].concat()))
    }

    pub(crate) fn run(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let Some(address) = line.trim_end().strip_prefix("listening on ") else {
            let mut stderr = String::new();
            if let Some(mut pipe) = child.stderr.take() {
                pipe.read_to_string(&mut stderr).unwrap();
            }
            panic!("{line:?} {stderr}");
        };
        let address = address.to_owned();
        Self {
            child,
            stdout,
            address,
        }
    }

    /// A client of this server, and the address to put before each path.
    pub(crate) fn client(&self) -> (Client, String) {
        let client = Client::builder().no_proxy();
        match self.address.strip_prefix("unix:") {
            Some(path) => (
                client.unix_socket(path).build().unwrap(),
                "http://wallet".to_owned(),
            ),
            None => (client.build().unwrap(), self.address.clone()),
        }
    }

    /// The published client of this server.
    pub(crate) fn wallet(&self) -> wallet_backend::client::Client {
        wallet_backend::client::Client::new(&self.address, Options::default()).unwrap()
    }

    /// SIGKILL: no handler runs, nothing is flushed.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and waits until the log says that it has arrived.
    pub(crate) fn terminate(&mut self) {
        self.signal(Signal::TERM);
        let stderr = BufReader::new(self.child.stderr.take().unwrap());
        let arrived = |line: io::Result<String>| line.unwrap().contains("stopping");
        assert!(stderr.lines().any(arrived));
    }

    /// Waits for the end: the exit code, and what more was printed.
    pub(crate) fn exit(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }

    /// SIGTERM, and the exit code.
    pub(crate) fn stop(self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.exit().0
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Gone already after `terminate`; then both fail, which is as well.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
