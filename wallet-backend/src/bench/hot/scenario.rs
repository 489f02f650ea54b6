//! `--scenario published`: the load test that articles on hot accounts publish, through the sidecar: 2 000 clients debit
//! one account for 100 seconds, without and with a limit for the account. What was accepted, refused and failed is
//! counted by the clients, what landed by the database.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use serde::Serialize;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use self::callers::Answers;
use super::Bench;
use super::ask::DEBIT;
use super::books::{Books, Told};
use crate::bench::folder::Folder;
use crate::config::bench::hot::{HotAccount, Mode};

mod callers;

/// Debits a second that the limit lets through, as published.
const LIMIT: u32 = 100;

/// One run of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Run {
    pub(crate) scenario: &'static str,
    /// Debits a second that the sidecar lets through for one account; null without a limit.
    pub(crate) limit_per_s: Option<u32>,
    pub(crate) clients: u32,
    pub(crate) seconds: f64,
    /// Answered with a receipt.
    pub(crate) accepted: u64,
    /// Answered 429, with the time to wait.
    pub(crate) refused: u64,
    /// Any other answer, or none.
    pub(crate) failed: u64,
    /// Debits in the database when the last client had its answer. One that failed may have landed.
    pub(crate) landed: u64,
    /// Accepted and not landed by then.
    pub(crate) lag: u64,
    pub(crate) accepted_per_s: f64,
    /// Of accepted ones.
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) invariants_ok: bool,
    /// What does not hold, in words.
    #[serde(skip)]
    pub(crate) broken: Vec<String>,
}

/// What stands over runs that are shown to people.
pub(crate) const HEADINGS: &str = "run                                       accepted   refused  failed    \
                                   landed    lag  accepted/s   p50 ms   p99 ms  invariants";

/// What was published about the same load, for people to hold the runs against.
pub(crate) const PUBLISHED: [&str; 2] = [
    "published, conditional UPDATE         420/s, 97 % of the calls answered well",
    "published, Redis before the database  5 000/s accepted, of which 300 to 400/s land: 100 s leave some 460 000 behind",
];

/// Both runs; `each` hears one as soon as it is there.
///
/// # Errors
/// No sidecar at the path; a server that fails; what `each` says.
pub(super) async fn published(
    bench: &Bench<'_>,
    each: &mut dyn FnMut(Run) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let sluice = sluice(bench.args)?;
    for limit in [None, Some(LIMIT)] {
        each(run(bench, &sluice, limit).await?)?;
    }
    Ok(())
}

/// Where the sidecar is: as told, or beside this program.
fn sluice(args: &HotAccount) -> anyhow::Result<PathBuf> {
    let path = match &args.sluice {
        Some(path) => path.clone(),
        None => std::env::current_exe()
            .context("cannot find this program")?
            .with_file_name("sluice"),
    };
    if !path.is_file() {
        bail!(
            "there is no sidecar at {}: build it, or say --sluice PATH",
            path.display()
        );
    }
    Ok(path)
}

async fn run(bench: &Bench<'_>, sluice: &Path, limit: Option<u32>) -> anyhow::Result<Run> {
    let args = bench.args;
    let mut connection = super::connect(&bench.url).await?;
    super::prepare(&bench.url, &mut connection, Mode::Combined).await?;
    let before = Books::read(&mut connection).await?;
    let folder = Folder::new(&args.dir, "sidecar")?;
    let (folder_of_rules, data) = (folder.path().join("rules"), folder.path().join("data"));
    std::fs::create_dir(&folder_of_rules)?;
    std::fs::write(folder_of_rules.join("debits.yaml"), rules(limit))?;

    let store = super::product::in_database(&bench.url, &super::database())?;
    let wallet = std::env::current_exe().context("cannot find this program")?;
    let mut wallet = Command::new(wallet);
    wallet.args(["serve", "--listen", "127.0.0.1:0", "--store", &store]);
    let wallet = Service::start(wallet, "the wallet").await?;
    let mut sidecar = Command::new(sluice);
    sidecar
        .args([
            "run",
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
            "--access-log",
            "off",
        ])
        .args(["--upstream", &wallet.address])
        .arg("--rules")
        .arg(&folder_of_rules)
        .arg("--data")
        .arg(&data);
    let sidecar = Service::start(sidecar, "the sidecar").await?;

    let answers = callers::run(&sidecar.address, args.most_clients(), args.seconds()).await?;
    let after = Books::read(&mut connection).await?;
    drop((sidecar, wallet));
    super::drop_database(&mut connection).await?;
    Ok(answered(&answers, &before, &after, limit, args))
}

fn answered(answers: &Answers, before: &Books, after: &Books, limit: Option<u32>, args: &HotAccount) -> Run {
    let entries = after.entries_since(before);
    let landed = u64::try_from(entries).unwrap_or_default();
    // What landed must be whole, and be all that was accepted; what failed may have landed or not.
    let told = Told {
        moved: entries.saturating_mul(DEBIT).saturating_neg(),
        requests: entries,
    };
    let mut broken = after.wrong(before, told);
    if landed < answers.accepted || landed > answers.accepted.saturating_add(answers.failed) {
        broken.push(format!(
            "{landed} debits landed, of {} that were accepted",
            answers.accepted
        ));
    }
    Run {
        scenario: "published",
        limit_per_s: limit,
        clients: args.most_clients(),
        seconds: args.seconds().as_secs_f64(),
        accepted: answers.accepted,
        refused: answers.refused,
        failed: answers.failed,
        landed,
        lag: answers.accepted.saturating_sub(landed),
        accepted_per_s: answers.accepted as f64 / args.seconds().as_secs_f64(),
        p50_ms: answers.at(0.5),
        p99_ms: answers.at(0.99),
        invariants_ok: broken.is_empty(),
        broken,
    }
}

/// The rules of the sidecar: debits of an account, with a limit or without.
fn rules(limit: Option<u32>) -> String {
    let resource = "version: 1\n\
        resources:\n\
        \x20 - name: debits\n\
        \x20   params:\n\
        \x20     - { name: accountId, from: path }\n\
        \x20   match:\n\
        \x20     - { method: POST, path: \"/v1/accounts/{accountId}/debits\" }\n";
    let limited = match limit {
        Some(count) => format!(
            "paramFlow:\n  - {{ id: hot-account, resource: debits, param: accountId, grade: qps, count: {count}, \
             durationInSec: 1, controlBehavior: reject }}\n"
        ),
        None => "allowEmpty: true\n".to_owned(),
    };
    format!("{resource}{limited}")
}

/// A program that serves; killed when dropped.
struct Service {
    _child: Child,
    /// `http://HOST:PORT`
    address: String,
}

impl Service {
    /// Starts it, and waits until it says where it listens.
    async fn start(mut command: Command, what: &str) -> anyhow::Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // An interrupt from the terminal is for the bench.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {what}"))?;
        let stdout = child.stdout.take().context("a process without a pipe")?;
        let mut lines = BufReader::new(stdout).lines();
        while let Some(line) = lines.next_line().await? {
            if let Some(address) = line.strip_prefix("listening on ") {
                return Ok(Self {
                    address: address.to_owned(),
                    _child: child,
                });
            }
        }
        bail!("{what} did not start: {}", child.wait().await?)
    }
}

/// One line, below [`HEADINGS`].
impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = match self.limit_per_s {
            Some(limit) => format!("limit of {limit}/s"),
            None => "no limit".to_owned(),
        };
        let name = format!("{}, {} clients, {limit}", self.scenario, self.clients);
        let Self {
            accepted,
            refused,
            failed,
            landed,
            lag,
            accepted_per_s,
            p50_ms,
            p99_ms,
            ..
        } = self;
        write!(
            f,
            "{name:<40}{accepted:>10}{refused:>10}{failed:>8}{landed:>10}{lag:>7}"
        )?;
        write!(f, "{accepted_per_s:>12.0}{p50_ms:>9.1}{p99_ms:>9.1}")?;
        if self.invariants_ok {
            return f.write_str("  ok");
        }
        write!(f, "  BROKEN: {}", self.broken.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::config::{Action, Cli};

    #[test]
    fn an_accepted_debit_that_did_not_land_is_named() {
        let arguments = ["wallet-backend", "bench", "hot-account", "--private", "mariadb"];
        let parsed = Cli::try_parse_from(arguments).unwrap();
        let Action::Bench(crate::config::bench::Bench::HotAccount(hot)) = parsed.command else {
            panic!("hot-account was asked for");
        };
        let answers = |accepted, failed| Answers::counted(accepted, 0, failed);
        let before = Books::default();
        let landed = Books::of_debits(7, DEBIT);
        for (accepted, failed, sound) in [(7, 0, true), (6, 1, true), (8, 0, false), (5, 1, false)] {
            let run = answered(&answers(accepted, failed), &before, &landed, None, &hot);
            assert_eq!(
                run.invariants_ok, sound,
                "{accepted} accepted, {failed} failed: {run}"
            );
        }
    }
}
