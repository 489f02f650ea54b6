//! A proxy between a client and a server that loses what it is told to lose: of the texts that contain a given word,
//! such as COMMIT, exactly the n-th.
//!
//! It sees where the answer to a text ends, so that what it loses has happened for sure, or for sure has not. It never
//! sleeps: an answer that is held stays away until the test lets it go.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::packet::{Answer, Flags, Packet, Packets};
use super::session::RUNTIME;

mod facts;
mod packet;

/// A fault that has not happened by then never does: the test is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

/// What becomes of a text and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing; the test hears that it was sent.
    Nothing,
    /// The server never hears it, and the connection ends.
    LoseText,
    /// The server has answered all of it, the client hears nothing, and the connection ends.
    LoseAnswer,
    /// The server has answered all of it; the client hears that once the test lets it, or gives up. The connection
    /// goes on.
    HoldAnswer,
}

/// Falls with its connections.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _serving: JoinSet<()>,
}

struct Shared {
    server: SocketAddr,
    plan: Mutex<Plan>,
}

#[derive(Default)]
struct Plan {
    armed: Vec<Armed>,
    /// What the handshake is made to say.
    found_rows: Option<bool>,
    /// The texts so far, in the order in which they came, and how many other commands came.
    texts: Vec<String>,
    commands: usize,
    connections: usize,
}

struct Armed {
    word: &'static str,
    /// Texts with the word that go by before; then it happens to so many.
    before: usize,
    times: usize,
    fault: Fault,
    stage: watch::Sender<Stage>,
}

/// How far a fault has come, of several times the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Armed,
    /// It has happened this often.
    Happened(usize),
    /// What is held may go.
    LetGo,
}

/// A fault that happens, or has.
pub(crate) struct Pending {
    stage: watch::Sender<Stage>,
}

impl Pending {
    /// Resolves once it has happened `times` times: the text is lost, or the server's answer is.
    pub(crate) async fn happened(&self, times: usize) {
        let mut stage = self.stage.subscribe();
        let enough = stage.wait_for(|stage| *stage >= Stage::Happened(times));
        let enough = timeout(PATIENCE, enough).await;
        drop(enough.expect("it never happened").unwrap());
    }

    /// Lets a held answer go, and those that would be held after it.
    pub(crate) fn let_go(&self) {
        self.stage.send_replace(Stage::LetGo);
    }
}

impl Proxy {
    pub(crate) fn start(server: SocketAddr) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let plan = Mutex::default();
        let shared = Arc::new(Shared { server, plan });
        let mut serving = JoinSet::new();
        serving.spawn_on(serve(listener, Arc::clone(&shared)), RUNTIME.handle());
        Self {
            address,
            shared,
            _serving: serving,
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on: `before` texts with `word` go by, then the fault happens to each of the next `times`.
    pub(crate) fn arm(&self, word: &'static str, before: usize, times: usize, fault: Fault) -> Pending {
        let stage = watch::Sender::new(Stage::Armed);
        let armed = Armed {
            word,
            before,
            times,
            fault,
            stage: stage.clone(),
        };
        self.shared.plan.lock().unwrap().armed.push(armed);
        Pending { stage }
    }

    /// Whether UPDATEs of the next connections count the rows that they find, whatever the client asks for.
    pub(crate) fn set_found_rows(&self, found: bool) {
        self.shared.plan.lock().unwrap().found_rows = Some(found);
    }

    /// The texts that clients have sent since this was asked last.
    pub(crate) fn take_texts(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.plan.lock().unwrap().texts)
    }

    /// Round trips so far, texts among them: what was prepared, executed, pinged.
    pub(crate) fn commands(&self) -> usize {
        self.shared.plan.lock().unwrap().commands
    }

    /// Connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.shared.plan.lock().unwrap().connections
    }
}

impl Plan {
    /// A command passes: what is to become of it.
    fn pass(&mut self, packet: &Packet) -> Option<(Fault, watch::Sender<Stage>)> {
        self.commands += 1;
        let text = packet.text()?;
        let mut found = None;
        for armed in self.armed.iter_mut().filter(|armed| text.contains(armed.word)) {
            if armed.before > 0 {
                armed.before -= 1;
            } else if armed.times > 0 && found.is_none() {
                armed.times -= 1;
                found = Some((armed.fault, armed.stage.clone()));
            }
        }
        self.texts.push(text);
        found
    }
}

async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let listener = TcpListener::from_std(listener).unwrap();
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        shared.plan.lock().unwrap().connections += 1;
        // A server that is gone is seen as one: the connection ends.
        if let Ok(server) = TcpStream::connect(shared.server).await {
            connections.spawn(connection(client, server, Arc::clone(&shared)));
        }
        while connections.try_join_next().is_some() {}
    }
}

/// One connection, until either side ends it or a fault does. `None` is the end.
async fn connection(client: TcpStream, server: TcpStream, shared: Arc<Shared>) -> Option<()> {
    client.set_nodelay(true).ok()?;
    server.set_nodelay(true).ok()?;
    let (from_client, mut to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    let (mut client, mut server) = (Packets::new(from_client), Packets::new(from_server));

    let greeting = packet::without_tls(server.next().await?);
    to_client.write_all(&greeting.bytes).await.ok()?;
    let mut response = client.next().await?;
    let flags = Flags::of(&response);
    let found_rows = shared.plan.lock().unwrap().found_rows;
    if let Some(found) = found_rows {
        Flags::found_rows(&mut response, found);
    }
    to_server.write_all(&response.bytes).await.ok()?;

    loop {
        tokio::select! {
            packet = server.next() => to_client.write_all(&packet?.bytes).await.ok()?,
            packet = client.next() => {
                let packet = packet?;
                let fault = shared.plan.lock().unwrap().pass(&packet);
                if let Some((Fault::LoseText, stage)) = &fault {
                    happened(stage);
                    return None;
                }
                to_server.write_all(&packet.bytes).await.ok()?;
                let Some((fault, stage)) = fault else { continue };
                if fault == Fault::Nothing {
                    happened(&stage);
                    continue;
                }
                let answer = answer(&mut server, &flags).await?;
                happened(&stage);
                if fault == Fault::LoseAnswer {
                    return None;
                }
                let mut stage = stage.subscribe();
                tokio::select! {
                    held = stage.wait_for(|stage| *stage == Stage::LetGo) => drop(held.ok()?),
                    // Nothing comes while an answer is waited for, but the end.
                    _ = client.next() => return None,
                }
                to_client.write_all(&answer).await.ok()?;
            }
        }
    }
}

/// All of a text's answer.
async fn answer(server: &mut Packets<impl tokio::io::AsyncRead + Unpin>, flags: &Flags) -> Option<Vec<u8>> {
    let (mut answer, mut bytes) = (Answer::new(flags), Vec::new());
    loop {
        let packet = server.next().await?;
        bytes.extend_from_slice(&packet.bytes);
        if answer.is_over_with(&packet) {
            return Some(bytes);
        }
    }
}

fn happened(stage: &watch::Sender<Stage>) {
    stage.send_modify(|stage| {
        *stage = match stage {
            Stage::Armed => Stage::Happened(1),
            Stage::Happened(times) => Stage::Happened(*times + 1),
            Stage::LetGo => Stage::LetGo,
        };
    });
}
