//! Three processes at once on one database, behind one socket. They and the database's server are killed.

use std::fmt::{self, Display};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use super::house::{House, wait};
use crate::crash::ends_well;
use crate::history::Order;
use crate::mysql::{Server, Settings};
use crate::process::{Served, binary};
use crate::support::Numbers;

const PROCESSES: usize = 3;

pub(super) struct Database {
    server: Server,
    url: String,
    socket: String,
    /// Each with its own socket.
    processes: Vec<(String, Option<Served>)>,
    faults: Faults,
    _switch: JoinSet<()>,
}

/// How often what was killed.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    wallets: u64,
    /// Of those, after they had stood still with whatever they had locked.
    paused: u64,
    servers: u64,
}

impl Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            wallets,
            paused,
            servers,
        } = self;
        write!(
            f,
            "{PROCESSES} wallets, {wallets} kills of one ({paused} after a pause), {servers} kills of the server"
        )
    }
}

impl Database {
    pub(super) async fn open(dir: &Path) -> Self {
        let server = Server::start(Settings::default());
        server.session("").run("CREATE DATABASE sluice_bank");
        let url = server.url("sluice_bank");
        let path = |name: &str| dir.join(name).display().to_string();
        let sockets: Vec<String> = (0..PROCESSES)
            .map(|number| path(&format!("{number}.sock")))
            .collect();
        let socket = path("wallet.sock");
        let mut switch = JoinSet::new();
        switch.spawn(connect(UnixListener::bind(&socket).unwrap(), sockets.clone()));
        let start = |socket: String| {
            let served = Served::run(serve(&url, &socket));
            (socket, Some(served))
        };
        Self {
            processes: sockets.into_iter().map(start).collect(),
            server,
            url,
            socket,
            faults: Faults::default(),
            _switch: switch,
        }
    }

    fn kill_a_process(&mut self, numbers: &mut Numbers) {
        let count = u64::try_from(PROCESSES).unwrap();
        let number = usize::try_from(numbers.below(count)).unwrap();
        let served = self.processes[number].1.take().unwrap();
        if numbers.below(4) == 0 {
            self.faults.paused += 1;
            served.signal(Signal::STOP);
            wait(numbers, 100, 2_000);
            served.signal(Signal::CONT);
            wait(numbers, 0, 300);
        }
        served.kill();
        self.faults.wallets += 1;
        wait(numbers, 0, 500);
        let socket = &self.processes[number].0;
        self.processes[number].1 = Some(Served::run(serve(&self.url, socket)));
    }

    fn kill_the_server(&mut self, numbers: &mut Numbers) {
        self.server.kill();
        self.faults.servers += 1;
        wait(numbers, 0, 500);
        self.server.restart();
    }
}

impl House for Database {
    const ORDER: Order = Order::OfEachSlot;

    fn socket(&self) -> &str {
        &self.socket
    }

    fn trouble(&mut self, numbers: &mut Numbers) {
        wait(numbers, 500, 4_000);
        match numbers.below(4) {
            0 => self.kill_the_server(numbers),
            _ => self.kill_a_process(numbers),
        }
    }

    fn close(&mut self) {
        for (_, served) in &mut self.processes {
            assert_eq!(served.take().unwrap().stop(), Some(0));
        }
        ends_well(&["verify", "--store", &self.url]);
    }

    fn faults(&self) -> impl Display {
        self.faults
    }
}

/// Takes each connection to one of these sockets, in turns; to the next one where nobody is there.
async fn connect(listener: UnixListener, sockets: Vec<String>) {
    let mut connections = JoinSet::new();
    let mut turn = 0;
    loop {
        let (mut client, _) = listener.accept().await.unwrap();
        turn += 1;
        let sockets: Vec<String> = (0..sockets.len())
            .map(|offset| sockets[(turn + offset) % sockets.len()].clone())
            .collect();
        connections.spawn(async move {
            for socket in sockets {
                if let Ok(mut wallet) = UnixStream::connect(socket).await {
                    // However it breaks, both hear of it.
                    drop(copy_bidirectional(&mut client, &mut wallet).await);
                    return;
                }
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Its log goes where the test's does.
fn serve(store: &str, socket: &str) -> Command {
    let mut command = binary(&["serve", "--listen", &format!("unix:{socket}"), "--store", store]);
    command.stderr(Stdio::inherit()).env("WALLET_LOG", "error");
    command
}
