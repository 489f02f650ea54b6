//! The writing side: batches under way, as many as there are connections for them.

use std::sync::Arc;

use sqlx::MySqlPool;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::attempt::Writing;
use super::transaction::Shapes;
use crate::clock::Clock;
use crate::store::{Job, Preference};

/// What writes.
#[derive(Debug)]
pub(super) struct Writers {
    pool: MySqlPool,
    /// One for each connection.
    permits: Arc<Semaphore>,
    most: u32,
    shapes: Shapes,
    clock: Clock,
    preference: Preference,
}

impl Writers {
    /// Over `most` connections.
    pub(super) fn new(pool: MySqlPool, most: u32, clock: Clock, preference: Preference) -> Self {
        let permits = usize::try_from(most).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            pool,
            permits: Arc::new(Semaphore::new(permits)),
            most,
            shapes: Shapes::default(),
            clock,
            preference,
        }
    }

    /// Begins a batch, and resolves once a connection is free for the next one: until then that can grow. `runtime` is
    /// the store's own. `after` is called when the batch is answered.
    pub(super) async fn run(
        self: &Arc<Self>,
        runtime: &Handle,
        jobs: Vec<Job>,
        after: impl FnOnce() + Send + 'static,
    ) {
        let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else {
            // Closed: who waits hears that from the jobs, which fall.
            return;
        };
        let ours = Arc::clone(self);
        drop(runtime.spawn(async move {
            let writing = Writing {
                pool: &ours.pool,
                shapes: &ours.shapes,
                now: ours.clock.set(),
                prefer: ours.preference.next(),
            };
            writing.settle(jobs).await;
            after();
            drop(permit);
        }));
        // An error: closed, and no batch comes any more.
        drop(self.permits.acquire().await);
    }

    /// Resolves when no batch is under way, and lets none begin after that.
    pub(super) async fn close(&self) {
        // An error: closed before.
        if let Ok(all) = self.permits.acquire_many(self.most).await {
            all.forget();
        }
        self.permits.close();
        self.pool.close().await;
    }
}
