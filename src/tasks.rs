//! The one place where tasks start: each has a name, is counted while it runs, and can be waited for.
//!
//! A [`Tasks`] is a group. Draining waits for the group of connections and detached exchanges; upstream connection
//! drivers live in another, which nobody waits for. Counting is a guard, so a task that panics leaves the group too.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// A group of running tasks. Clones are handles to the same group.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    group: Arc<Group>,
}

#[derive(Default)]
struct Group {
    running: AtomicUsize,
    emptied: Notify,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}

/// Counts one task for as long as it lives.
struct Member {
    group: Arc<Group>,
    name: &'static str,
}

impl Tasks {
    /// An empty group.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts `task` on the current runtime. It is cancelled only when that runtime stops.
    ///
    /// # Panics
    /// Outside a tokio runtime; callers that may be there use [`Tasks::try_spawn`].
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.spawn_on(&Handle::current(), name, task)
    }

    /// Starts `task` if there is a runtime to run it; otherwise drops it. For `Drop` implementations, which may run
    /// while a runtime shuts down.
    pub fn try_spawn(
        &self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Option<AbortHandle> {
        Handle::try_current()
            .ok()
            .map(|runtime| self.spawn_on(&runtime, name, task))
    }

    fn spawn_on(
        &self,
        runtime: &Handle,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> AbortHandle {
        let member = Member::join(&self.group, name);
        // The join handle is dropped on purpose: the group's count is what is waited for.
        runtime
            .spawn(async move {
                let _member = member;
                task.await;
            })
            .abort_handle()
    }

    /// How many tasks of the group are running.
    #[must_use]
    pub fn running(&self) -> usize {
        // Only ever compared with zero or shown; `emptied` orders the wake-up.
        self.group.running.load(Ordering::Acquire)
    }

    /// Waits until no task of the group is running. Nothing is lost by dropping the wait.
    pub async fn idle(&self) {
        loop {
            let emptied = self.group.emptied.notified();
            tokio::pin!(emptied);
            // Registered before looking, so that a task which ends in between still wakes it.
            emptied.as_mut().enable();
            if self.running() == 0 {
                return;
            }
            emptied.await;
        }
    }
}

impl Member {
    fn join(group: &Arc<Group>, name: &'static str) -> Self {
        group.running.fetch_add(1, Ordering::AcqRel);
        Self {
            group: Arc::clone(group),
            name,
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(task = self.name, "a task panicked; what it held was given back");
        }
        if self.group.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.group.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn idle_waits_for_the_last_task() {
        let tasks = Tasks::new();
        let (end, ended) = oneshot::channel::<()>();
        tasks.spawn("waiter", async move {
            let _ = ended.await;
        });
        assert_eq!(tasks.running(), 1);
        end.send(()).unwrap();
        tasks.idle().await;
        assert_eq!(tasks.running(), 0);
    }

    #[tokio::test]
    async fn a_panicking_task_leaves_the_group() {
        let tasks = Tasks::new();
        tasks.spawn("panics", async { panic!("on purpose") });
        tasks.idle().await;
        assert_eq!(tasks.running(), 0);
    }
}
