//! One process after another on one directory.

use std::fmt::{self, Display};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::house::{House, wait};
use crate::crash::ends_well;
use crate::history::Order;
use crate::process::{Served, binary};
use crate::support::Numbers;

pub(super) struct Directory {
    store: String,
    socket: String,
    served: Option<Served>,
    faults: Faults,
}

/// How often what was done to the process.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    kills: u64,
    opening: u64,
    stopped: u64,
    paused: u64,
}

impl Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kills,
            opening,
            stopped,
            paused,
        } = self;
        write!(
            f,
            "{kills} kills ({opening} while opening, {stopped} while it stood still, {paused} after a pause)"
        )
    }
}

impl Directory {
    pub(super) fn open(dir: &Path) -> Self {
        let store = format!("embedded:{}", dir.join("data").display());
        let socket = dir.join("wallet.sock").display().to_string();
        Self {
            served: Some(Served::run(serve(&store, &socket))),
            store,
            socket,
            faults: Faults::default(),
        }
    }
}

impl House for Directory {
    const ORDER: Order = Order::OfCommit;

    fn socket(&self) -> &str {
        &self.socket
    }

    fn trouble(&mut self, numbers: &mut Numbers) {
        wait(numbers, 500, 4_000);
        let served = self.served.take().unwrap();
        match numbers.below(6) {
            0 => {
                self.faults.stopped += 1;
                served.signal(Signal::STOP);
                wait(numbers, 0, 300);
            }
            1 => {
                // Longer than anybody waits: what they gave up on is done all the same.
                self.faults.paused += 1;
                served.signal(Signal::STOP);
                wait(numbers, 500, 2_000);
                served.signal(Signal::CONT);
                wait(numbers, 0, 500);
            }
            _ => {}
        }
        served.kill();
        self.faults.kills += 1;
        while numbers.below(3) == 0 {
            let mut child = serve(&self.store, &self.socket).spawn().unwrap();
            wait(numbers, 0, 150);
            child.kill().unwrap();
            child.wait().unwrap();
            self.faults.kills += 1;
            self.faults.opening += 1;
        }
        self.served = Some(Served::run(serve(&self.store, &self.socket)));
    }

    fn close(&mut self) {
        assert_eq!(self.served.take().unwrap().stop(), Some(0));
        ends_well(&["verify", "--store", &self.store]);
    }

    fn faults(&self) -> impl Display {
        self.faults
    }
}

/// Segments and checkpoints so small that some come and go in every life. Its log goes where the test's does.
fn serve(store: &str, socket: &str) -> Command {
    let mut command = binary(&[
        "serve",
        "--listen",
        &format!("unix:{socket}"),
        "--store",
        store,
        "--segment-bytes",
        "1048576",
        "--checkpoint-bytes",
        "262144",
    ]);
    command.stderr(Stdio::inherit()).env("WALLET_LOG", "error");
    command
}
