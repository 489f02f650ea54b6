//! The processes of clients, seen from the bench.

use std::process::Stdio;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::client::{Came, Work};

/// Processes that wait for each other at the start. Dropped, they are killed.
#[derive(Debug)]
pub(super) struct Crew(Vec<Member>);

#[derive(Debug)]
struct Member {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Crew {
    /// A process for each piece of work; all of their clients are connected then.
    ///
    /// # Errors
    /// A process that can't be started, or ended; it has said why on stderr.
    pub(super) async fn start(work: Vec<Work>) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut members = Vec::new();
        for work in work {
            let mut child = Command::new(&program)
                .args(["bench", "hot-clients"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                // An interrupt from the terminal is for the bench.
                .process_group(0)
                .kill_on_drop(true)
                .spawn()
                .context("cannot start a process of clients")?;
            let (stdin, stdout) = child
                .stdin
                .take()
                .zip(child.stdout.take())
                .context("a process without pipes")?;
            let mut member = Member {
                child,
                stdin,
                lines: BufReader::new(stdout).lines(),
            };
            member.tell(&serde_json::to_string(&work)?).await?;
            members.push(member);
        }
        for member in &mut members {
            member.hear().await?;
        }
        Ok(Self(members))
    }

    /// All at once.
    ///
    /// # Errors
    /// A process that has ended.
    pub(super) async fn go(&mut self) -> anyhow::Result<()> {
        for member in &mut self.0 {
            member.tell("go").await?;
        }
        Ok(())
    }

    /// What came of it, together.
    ///
    /// # Errors
    /// A process that failed; it has said why on stderr.
    pub(super) async fn came(mut self) -> anyhow::Result<Came> {
        let mut all = Came::default();
        for member in &mut self.0 {
            let line = member.hear().await?;
            all.add(&serde_json::from_str(&line).context("a process of clients says something else")?);
            member.child.wait().await?;
        }
        Ok(all)
    }
}

impl Member {
    async fn tell(&mut self, line: &str) -> anyhow::Result<()> {
        let line = format!("{line}\n");
        let told = self.stdin.write_all(line.as_bytes()).await;
        told.context("a process of clients has ended")
    }

    async fn hear(&mut self) -> anyhow::Result<String> {
        if let Some(line) = self.lines.next_line().await? {
            return Ok(line);
        }
        bail!("a process of clients failed: {}", self.child.wait().await?)
    }
}
