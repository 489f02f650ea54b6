//! The real binary, started on free ports and killed with the test.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};

use serde_json::Value;
use tempfile::TempDir;

use super::PATIENCE;

/// A running sidecar.
pub(crate) struct Proxy {
    child: Child,
    folder: TempDir,
    address: String,
    admin: String,
    log: Arc<Mutex<Vec<String>>>,
    errors: Arc<Mutex<String>>,
}

/// How to start it. `upstream` and `rules` are nearly always given.
#[derive(Default)]
pub(crate) struct Options<'a> {
    /// `http://…` or `unix:…`; empty = all in one.
    pub(crate) upstream: String,
    /// The text of the only rule file.
    pub(crate) rules: &'a str,
    /// Further flags.
    pub(crate) flags: &'a [&'a str],
}

impl Proxy {
    /// Starts the binary and waits until it has printed its addresses.
    pub(crate) fn start(options: &Options<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rules = folder.path().join("rules");
        std::fs::create_dir(&rules).unwrap();
        std::fs::write(rules.join("test.yaml"), options.rules).unwrap();
        Self::start_in(folder, options)
    }

    /// Starts the binary over what `folder` holds: `rules/` and, from an earlier run, `data/`.
    pub(crate) fn start_in(folder: TempDir, options: &Options<'_>) -> Self {
        let mut command = command();
        command.args([
            "run",
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
            "--rules",
        ]);
        command
            .arg(folder.path().join("rules"))
            .arg("--data")
            .arg(folder.path().join("data"));
        if !options.upstream.is_empty() {
            command.args(["--upstream", &options.upstream]);
        }
        let mut child = command
            .args(options.flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let errors = Arc::new(Mutex::new(String::new()));
        let log = Arc::new(Mutex::new(Vec::new()));
        let (tell, told) = mpsc::channel();
        let mut stderr = child.stderr.take().unwrap();
        let seen = Arc::clone(&errors);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(read @ 1..) = stderr.read(&mut chunk) {
                seen.lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&chunk[..read]));
            }
        });
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let lines = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                lines.lock().unwrap().push(line.clone());
                drop(tell.send(line));
            }
        });
        let address_of = |prefix: &str| loop {
            match told.recv_timeout(PATIENCE) {
                Ok(line) => {
                    if let Some(url) = line.strip_prefix(prefix) {
                        return url.strip_prefix("http://").unwrap().to_owned();
                    }
                }
                Err(_) => panic!("sluice did not start: {}", errors.lock().unwrap()),
            }
        };
        let address = address_of("listening on ");
        let admin = address_of("admin on ");
        Self {
            child,
            folder,
            address,
            admin,
            log,
            errors,
        }
    }

    /// `127.0.0.1:port` of the proxy.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The URL of a path behind the proxy.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The URL of an admin route.
    pub(crate) fn admin_url(&self, path: &str) -> String {
        format!("http://{}{path}", self.admin)
    }

    /// `127.0.0.1:port` of the admin listener.
    pub(crate) fn admin_address(&self) -> &str {
        &self.admin
    }

    /// A file among the rules.
    pub(crate) fn rule_file(&self, name: &str) -> PathBuf {
        self.folder.path().join("rules").join(name)
    }

    /// What an admin route says.
    pub(crate) async fn admin(&self, path: &str) -> Value {
        http()
            .get(self.admin_url(path))
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
            .parse()
            .unwrap()
    }

    /// One resource of `/api/resources`.
    pub(crate) async fn resource(&self, name: &str) -> Value {
        let all = self.admin("/api/resources").await;
        all.as_array()
            .unwrap()
            .iter()
            .find(|each| each["name"] == name)
            .unwrap()
            .clone()
    }

    /// The text of `/metrics`.
    pub(crate) async fn metrics(&self) -> String {
        http()
            .get(self.admin_url("/metrics"))
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
    }

    /// Lines of standard output so far: the addresses, then the access log.
    pub(crate) fn output(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// The process log so far.
    pub(crate) fn errors(&self) -> String {
        self.errors.lock().unwrap().clone()
    }

    /// Sends a signal by its name, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Waits until the process has ended.
    pub(crate) async fn exit(mut self) -> ExitStatus {
        super::soon("the exit of sluice", async {
            loop {
                if let Some(status) = self.child.try_wait().unwrap() {
                    return status;
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await
    }
}

impl Proxy {
    /// Stops the process in order, and hands back how it ended and its folder.
    pub(crate) async fn stop(mut self) -> (ExitStatus, TempDir) {
        self.signal("TERM");
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        (self.exit().await, folder)
    }

    /// Kills the process as a power cut would, and hands back its folder.
    pub(crate) fn kill(mut self) -> TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            eprintln!("sluice said:\n{}", self.errors());
        }
    }
}

/// The binary under test, with nothing of the environment's settings.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SLUICE_")) {
        command.env_remove(name);
    }
    command
}

/// A client that takes no proxy from the environment.
pub(crate) fn http() -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .timeout(PATIENCE)
        .build()
        .unwrap()
}
