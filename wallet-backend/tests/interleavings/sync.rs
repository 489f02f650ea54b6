//! What `src/sync.rs` gives, over shuttle's scheduler: every lock, wait and wake-up is a point where any other thread
//! may go on. And a way to lose the wake-ups of one line of the source, to see whether anybody notices.
//!
//! tokio's channels are used as they are. They never wait by themselves, so between two of shuttle's points they are
//! one step, and their wakers are shuttle's. A timeout never comes: who waits for ever is a deadlock, which shuttle
//! finds.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::panic::Location;
use std::sync::LockResult;
use std::time::Duration;

pub(crate) use shuttle::sync::atomic;
pub(crate) use shuttle::sync::{Mutex, MutexGuard};
pub(crate) use shuttle::thread;

/// A point where another thread may go on.
pub(crate) fn switch() {
    atomic::AtomicBool::new(false).load(atomic::Ordering::SeqCst);
}

/// The line whose wake-ups are lost: the end of a file's path, and the number.
static LOST: std::sync::Mutex<Option<(&'static str, u32)>> = std::sync::Mutex::new(None);

/// From here on the wake-ups of this line are lost; of `None`, none are.
pub(crate) fn lose(line: Option<(&'static str, u32)>) {
    *LOST.lock().unwrap() = line;
}

#[track_caller]
fn is_lost() -> bool {
    let here = Location::caller();
    let lost = *LOST.lock().unwrap();
    lost.is_some_and(|(file, line)| here.line() == line && here.file().ends_with(file))
}

#[derive(Debug)]
pub(crate) struct Condvar(shuttle::sync::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(shuttle::sync::Condvar::new())
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.0.wait(guard)
    }

    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        most: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, shuttle::sync::WaitTimeoutResult)> {
        self.0.wait_timeout(guard, most)
    }

    #[track_caller]
    pub(crate) fn notify_one(&self) {
        if !is_lost() {
            self.0.notify_one();
        }
    }

    #[track_caller]
    pub(crate) fn notify_all(&self) {
        if !is_lost() {
            self.0.notify_all();
        }
    }
}

#[derive(Debug)]
pub(crate) struct Notify(tokio::sync::Notify);

impl Notify {
    pub(crate) fn new() -> Self {
        Self(tokio::sync::Notify::new())
    }

    #[track_caller]
    pub(crate) fn notify_one(&self) {
        switch();
        if !is_lost() {
            self.0.notify_one();
        }
    }

    pub(crate) async fn notified(&self) {
        switch();
        self.0.notified().await;
    }
}

pub(crate) mod watch {
    pub(crate) use tokio::sync::watch::Receiver;

    use super::{is_lost, switch};

    #[derive(Debug)]
    pub(crate) struct Sender<T>(tokio::sync::watch::Sender<T>);

    pub(crate) fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
        let sender = Sender::new(value);
        let receiver = sender.subscribe();
        (sender, receiver)
    }

    impl<T> Sender<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(tokio::sync::watch::Sender::new(value))
        }

        pub(crate) fn subscribe(&self) -> Receiver<T> {
            switch();
            self.0.subscribe()
        }

        #[track_caller]
        pub(crate) fn send_replace(&self, value: T) {
            switch();
            if !is_lost() {
                self.0.send_replace(value);
            }
        }

        #[track_caller]
        pub(crate) fn send_modify(&self, modify: impl FnOnce(&mut T)) {
            switch();
            if !is_lost() {
                self.0.send_modify(modify);
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Runtime;

impl Runtime {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        shuttle::future::block_on(future)
    }
}

/// Over at once, or later: after whatever others do at this point.
pub(crate) async fn sleep(_: Duration) {
    switch();
}

pub(crate) async fn timeout<F: Future>(_: Duration, future: F) -> Result<F::Output, Infallible> {
    Ok(future.await)
}
