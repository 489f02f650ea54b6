//! The real `wallet-backend` binary, built once for a run of the tests, and started on an address of its own.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

/// A running `wallet-backend serve`; killed when dropped.
pub(crate) struct Wallet {
    child: Child,
    /// As `--upstream` takes it.
    pub(crate) address: String,
}

impl Wallet {
    /// Starts it over the ledger in `data` and waits until it listens.
    pub(crate) fn start(listen: &str, data: &Path) -> Self {
        let mut child = command(&["serve", "--listen", listen, "--store", &store(data)])
            .stdout(Stdio::piped())
            .env("WALLET_LOG", "error")
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on ");
        let address = address.expect("wallet-backend says where it listens").to_owned();
        Self { child, address }
    }
}

impl Drop for Wallet {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// `wallet-backend verify` of the ledger in `data`.
pub(crate) fn verify(data: &Path) -> Output {
    command(&["verify", "--store", &store(data)]).output().unwrap()
}

fn store(data: &Path) -> String {
    format!("embedded:{}", data.display())
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WALLET_")) {
        command.env_remove(name);
    }
    command.args(arguments);
    command
}

/// It belongs to another package, so cargo does not build it for these tests: that is done here, in the same profile.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let folder = Path::new(env!("CARGO_BIN_EXE_sluice")).parent().unwrap();
        let profile = match folder.file_name().unwrap().to_str().unwrap() {
            "debug" => "dev",
            other => other,
        };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            .args([
                "build",
                "--locked",
                "--package",
                "wallet-backend",
                "--bin",
                "wallet-backend",
            ])
            .args(["--profile", profile, "--target-dir"])
            .arg(folder.parent().unwrap())
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.unwrap().success(), "wallet-backend does not build");
        folder.join("wallet-backend")
    })
}
