//! The commands that prove a ledger in a database. Processes may go on using it.

use std::process::ExitCode;

use anyhow::Context as _;
use wallet_backend::store::Store as _;
use wallet_backend::store::mysql::{Address, Mysql, Options};

use super::proven;
use crate::say;

/// Proves every account's entries against its rows. Exit 0: clean, 1: found something.
///
/// # Errors
/// It could not run, or not to the end.
pub(super) fn verify(address: &Address) -> anyhow::Result<ExitCode> {
    let whose = || format!("cannot verify the ledger in {address}");
    let store = open(address).with_context(whose)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let violations = runtime.block_on(async {
        let violations = store.verify().await;
        store.close().await;
        violations
    });
    let violations = violations.with_context(whose)?;
    for violation in &violations {
        say(&format!("FOUND {violation}"));
    }
    if violations.is_empty() {
        say("clean: every account's entries add up to its rows");
    }
    Ok(ExitCode::from(u8::from(!violations.is_empty())))
}

/// The same, and the books of every currency. Exit 0: no difference, 1: differences.
///
/// # Errors
/// As [`verify`].
pub(super) fn reconcile(address: &Address) -> anyhow::Result<ExitCode> {
    let whose = || format!("cannot reconcile the ledger in {address}");
    proven(open(address).with_context(whose)?).with_context(whose)
}

/// One that is there: opening for use would make one.
fn open(address: &Address) -> anyhow::Result<Mysql> {
    let options = Options {
        set_up: false,
        ..Options::at(address.clone())
    };
    Ok(Mysql::open(options)?)
}
