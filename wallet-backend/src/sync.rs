//! What the wallet's threads meet at: everything by which they exclude, wait for and wake each other.
//!
//! One place to take it from, so that the interleavings test can compile the combiner and the embedded store over a
//! scheduler's primitives instead: there every lock, wait and wake-up is a point where another thread may go on. What
//! is only handed over (`Arc`, `oneshot`) is used directly.

use std::future::Future;
use std::io;

pub(crate) use std::sync::atomic;
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread;
pub(crate) use tokio::sync::{Notify, watch};
pub(crate) use tokio::time::{sleep, timeout};

/// What a thread runs its futures on: a runtime of its own, timers on.
#[derive(Debug)]
pub(crate) struct Runtime(tokio::runtime::Runtime);

impl Runtime {
    pub(crate) fn new() -> io::Result<Self> {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().map(Self)
    }

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.0.block_on(future)
    }
}
