//! `sluice run`: puts the parts together, serves until told to leave, takes them apart again.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use wallet_backend::Wallet;
use wallet_backend::combiner::Limits;
use wallet_backend::http::auth::Access;
use wallet_backend::http::{Ending, HttpOptions, router};
use wallet_backend::store::any::AnyStore;
use wallet_backend::store::embedded::{Embedded, OpenError, Options};

use crate::admin::Admin;
use crate::admission::Admission;
use crate::clock::Clock;
use crate::config::Config;
use crate::lifecycle::Lifecycle;
use crate::proxy::Proxy;
use crate::proxy::upstream::Destination;
use crate::rules::RuleError;
use crate::rules::watch::{WatchOptions, Watcher};
use crate::server::drain::{DrainOptions, drain};
use crate::server::{Server, ServerOptions};
use crate::tasks::Tasks;
use crate::telemetry::Telemetry;
use crate::telemetry::access::{AccessLog, Writer};

/// What keeps the sidecar from starting. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the rules cannot be used; mend them (`sluice check` lists what is wrong):\n{}", lines(.0))]
    Rules(Vec<RuleError>),
    #[error("cannot listen on {address} ({flag}){}", hint(.source))]
    Listen {
        address: SocketAddr,
        flag: &'static str,
        source: io::Error,
    },
    #[error("the bundled wallet cannot open its books in {} (--data)", data.display())]
    Books {
        data: PathBuf,
        #[source]
        source: OpenError,
    },
    #[error("the bundled wallet cannot start")]
    Wallet(#[source] io::Error),
    #[error("the access log cannot be opened (--access-log)")]
    AccessLog(#[source] io::Error),
    #[error("the runtime cannot start")]
    Runtime(#[source] io::Error),
    #[error("signals cannot be received")]
    Signals(#[source] io::Error),
}

fn lines(errors: &[RuleError]) -> String {
    errors
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

fn hint(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::AddrInUse {
        "; stop what listens there, or choose another port (port 0 takes a free one)"
    } else {
        ""
    }
}

/// Everything that runs.
struct Running {
    proxy: Arc<Proxy>,
    server: Server,
    admin: Admin,
    watcher: Watcher,
    log_writer: Writer,
    /// The bundled wallet, where there is no other upstream.
    wallet: Option<Bundled>,
}

/// The wallet of the all-in-one.
struct Bundled {
    wallet: Wallet,
    /// Ends its event streams, which nothing else would end before the drain is over.
    ending: Ending,
}

/// Runs the sidecar until a signal ends it. `say` gets one line per address, then two lines to try.
///
/// # Errors
/// What keeps it from starting. Once it serves, it ends well.
///
/// # Panics
/// Inside a runtime: it has its own.
pub fn run(config: Config, mut say: impl FnMut(&str)) -> Result<(), StartError> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StartError::Runtime)?;
    let options = DrainOptions {
        accept_grace: config.accept_grace,
        drain_timeout: config.drain_timeout,
    };
    let (signals, running) = {
        // Entered only, not blocked on: opening the books takes its time, and whatever has a runtime of its own can
        // be dropped here when a later part does not start.
        let _inside = runtime.enter();
        (Signals::new().map_err(StartError::Signals)?, start(config)?)
    };
    announce(&running, &mut say);
    runtime.block_on(leave(running, signals, options));
    Ok(())
}

/// Waits for the signal to leave, and leaves in order.
async fn leave(running: Running, mut signals: Signals, options: DrainOptions) {
    signals.leave(|| running.watcher.reload_now()).await;
    tracing::info!("leaving: not ready any more, finishing what is in flight");
    if let Some(bundled) = &running.wallet {
        bundled.ending.end();
    }
    let left = drain(&running.proxy, options, signals.again()).await;
    if left > 0 {
        tracing::warn!(left, "stopped hard: connections and exchanges were dropped");
    }
    stop(running).await;
}

fn start(config: Config) -> Result<Running, StartError> {
    if config.opens_the_wallet() {
        tracing::warn!(
            listen = %config.listen,
            "WHOEVER REACHES THIS ADDRESS CAN MOVE MONEY: give --wallet-token-file, or let only trusted callers reach it"
        );
    }
    let clock = Clock::start();
    let (access, log_writer) =
        AccessLog::open(&config.access_log, config.access_log_sample).map_err(StartError::AccessLog)?;
    let admission = Admission::new();
    let watcher = {
        let admission = Arc::clone(&admission);
        let options = WatchOptions {
            dir: config.rules.clone(),
            data: Some(config.data.clone()),
        };
        let on_swap = Box::new(move |rules: &Arc<_>| admission.install(rules, clock.now()));
        Watcher::start(options, on_swap).map_err(StartError::Rules)?
    };
    let (destination, wallet) = match &config.upstream {
        Some(address) => (Destination::from(address), None),
        None => {
            let (routes, bundled) = open_wallet(&config)?;
            (Destination::InProcess(routes), Some(bundled))
        }
    };
    let proxy = Arc::new(Proxy {
        store: Arc::clone(watcher.store()),
        admission,
        telemetry: Telemetry::new(access, clock),
        lifecycle: Lifecycle::default(),
        destination,
        authorization: config.upstream_authorization.clone(),
        exchanges: Tasks::new(),
    });
    // Before the admin listener, so that nobody hears `ready` while connections are still refused.
    let server = Server::start(&server_options(&config), &proxy).map_err(|source| StartError::Listen {
        address: config.listen,
        flag: "--listen",
        source,
    })?;
    let admin = Admin::start(&proxy, config.admin, config.status, config.admin_tokens.clone()).map_err(
        |(address, source)| {
            let flag = if address == config.admin {
                "--admin"
            } else {
                "--status"
            };
            StartError::Listen {
                address,
                flag,
                source,
            }
        },
    )?;
    Ok(Running {
        proxy,
        server,
        admin,
        watcher,
        log_writer,
        wallet,
    })
}

/// The wallet of the all-in-one, over the books in the data folder. Blocks while it reads their tail.
fn open_wallet(config: &Config) -> Result<(Router, Bundled), StartError> {
    let data = &config.data;
    let books = Embedded::open(Options::at(data)).map_err(|source| StartError::Books {
        data: data.clone(),
        source,
    })?;
    let wallet = Wallet::over(AnyStore::Embedded(books), Limits::default()).map_err(StartError::Wallet)?;
    let ending = Ending::default();
    let options = HttpOptions {
        access: match &config.wallet_tokens {
            Some(tokens) => Access::from(tokens.clone()),
            None => Access::anyone(),
        },
        ending: ending.clone(),
        webhooks: None,
    };
    let routes = router(wallet.clone(), options);
    Ok((routes, Bundled { wallet, ending }))
}

fn server_options(config: &Config) -> ServerOptions {
    ServerOptions {
        listen: config.listen,
        workers: config.workers,
        max_connections: config.max_connections,
        header_timeout: config.header_timeout,
        half_close: config.half_close,
    }
}

fn announce(running: &Running, say: &mut impl FnMut(&str)) {
    let address = running.server.address();
    say(&format!("listening on http://{address}"));
    say(&format!("admin on http://{}", running.admin.address()));
    if let Some(status) = running.admin.status() {
        say(&format!("status on http://{status}"));
    }
    say("try:");
    if running.wallet.is_some() {
        let body = r#"{"account_id":"alice","currency":"EUR"}"#;
        say(&format!(
            "  curl http://{address}/v1/accounts -H 'content-type: application/json' -d '{body}'"
        ));
        say(&format!("  curl http://{address}/v1/accounts/alice"));
    } else {
        say(&format!("  curl -i http://{address}/"));
        say(&format!(
            "  curl http://{}/api/resources",
            running.admin.address()
        ));
    }
}

async fn stop(running: Running) {
    let Running {
        proxy,
        server,
        admin,
        watcher,
        log_writer,
        wallet,
    } = running;
    drop(watcher);
    server.join();
    admin.join();
    if let Some(Bundled { wallet, .. }) = wallet {
        // After the last request: what was answered is on disk already, this only makes the next start quick.
        wallet.close().await;
    }
    // The access log ends with the last holder of the proxy, and its writer with the log.
    drop(proxy);
    log_writer.join();
}

/// The signals that matter.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for SIGTERM or SIGINT; SIGHUP meanwhile calls `reload`.
    async fn leave(&mut self, reload: impl Fn()) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hang_up.recv() => reload(),
            }
        }
    }

    /// Waits for another SIGTERM or SIGINT.
    async fn again(&mut self) {
        self.leave(|| {}).await;
    }
}
