//! Reading files off the caller's runtime, a few at a time.
//!
//! Reading history is work for a processor, and deciding, writing and answering need processors too. If as many threads
//! read as there are clients who ask, every step of a payment waits for its turn among all of them: 200 statements at
//! once held a credit up for half a minute. So readers take turns, in the order in which they came; who looks one thing
//! up does not wait for those who read page after page.

use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::command::LedgerError;
use crate::store::embedded::state::unavailable;

/// Fewer would let one slow read of a disk hold everybody up.
const LEAST: usize = 2;

/// How many may read at once.
#[derive(Debug)]
pub(super) struct Readers {
    pages: Arc<Semaphore>,
    look_ups: Arc<Semaphore>,
}

impl Readers {
    /// As many of each kind as there are processors.
    pub(super) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(LEAST, NonZeroUsize::get);
        Self::of(processors.max(LEAST))
    }

    fn of(places: usize) -> Self {
        Self {
            pages: Arc::new(Semaphore::new(places)),
            look_ups: Arc::new(Semaphore::new(places)),
        }
    }

    /// Reads a page of many records: of a statement, of events.
    ///
    /// # Errors
    /// What the work answers; `Unavailable` where it was broken off.
    pub(super) async fn page<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, LedgerError> {
        in_turn(&self.pages, work).await
    }

    /// Reads the few records that tell one thing.
    ///
    /// # Errors
    /// As [`Readers::page`].
    pub(super) async fn look_up<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, LedgerError> {
        in_turn(&self.look_ups, work).await
    }
}

/// Off a runtime there are no more readers than the caller has threads, and nobody to wake who waits.
async fn in_turn<T: Send + 'static>(
    places: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<T, LedgerError> + Send + 'static,
) -> Result<T, LedgerError> {
    if Handle::try_current().is_err() {
        return work();
    }
    let place = Arc::clone(places).acquire_owned().await;
    let place = place.map_err(|_| unavailable("the store takes no more readers"))?;
    blocking(move || {
        // With the work, not with who waits for it: a caller who leaves does not end it.
        let _place = place;
        work()
    })
    .await
}

/// Runs what reads or ends files off the caller's runtime, if it is on one.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LedgerError> + Send + 'static,
) -> Result<T, LedgerError> {
    match Handle::try_current() {
        Ok(runtime) => match runtime.spawn_blocking(work).await {
            Ok(result) => result,
            Err(_) => Err(unavailable("a read was broken off")),
        },
        Err(_) => work(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Mutex, PoisonError, mpsc};

    use super::*;

    const PLACES: usize = 2;
    const ASKING: usize = 16;

    /// Of `ASKING` readers who stay until they are let go, how many were there at once.
    async fn most_at_once(read: impl AsyncFn(Box<dyn FnOnce() -> Result<(), LedgerError> + Send>)) -> usize {
        let (begun, begins) = mpsc::channel();
        let (go, going) = mpsc::channel::<()>();
        let going = Arc::new(Mutex::new(going));
        let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let reads = (0..ASKING).map(|_| {
            let (begun, going) = (begun.clone(), Arc::clone(&going));
            let (inside, most) = (Arc::clone(&inside), Arc::clone(&most));
            read(Box::new(move || {
                let there = inside.fetch_add(1, Ordering::SeqCst).saturating_add(1);
                most.fetch_max(there, Ordering::SeqCst);
                begun.send(()).unwrap();
                let told = going.lock().unwrap_or_else(PoisonError::into_inner).recv();
                inside.fetch_sub(1, Ordering::SeqCst);
                told.map_err(|_| unavailable("the test is over"))
            }))
        });
        let letting_go = tokio::task::spawn_blocking(move || {
            for reader in 1..=ASKING {
                begins.recv().unwrap();
                // One leaves only when as many are there as may be: who should wait has every chance to be there too.
                if reader >= PLACES {
                    std::thread::yield_now();
                    go.send(()).unwrap();
                }
            }
            for _ in 1..PLACES {
                go.send(()).unwrap();
            }
        });
        futures_util::future::join_all(reads).await;
        letting_go.await.unwrap();
        most.load(Ordering::SeqCst)
    }

    #[tokio::test]
    async fn however_many_ask_for_pages_only_so_many_read_at_once_and_all_are_served() {
        let readers = Readers::of(PLACES);
        let most = most_at_once(async |work| readers.page(work).await.unwrap()).await;
        assert_eq!(most, PLACES);
    }

    #[tokio::test]
    async fn a_look_up_does_not_wait_for_those_who_read_page_after_page() {
        let readers = Readers::of(1);
        let (go, going) = mpsc::channel::<()>();
        let page = readers.page(move || going.recv().map_err(|_| unavailable("the test is over")));
        let look_up = async {
            readers.look_up(|| Ok(())).await.unwrap();
            go.send(()).unwrap();
        };
        let (page, ()) = tokio::join!(page, look_up);
        page.unwrap();
    }

    #[tokio::test]
    async fn a_caller_who_leaves_keeps_its_place_taken_until_its_read_has_ended() {
        let readers = Readers::of(1);
        let (begun, begins) = tokio::sync::oneshot::channel();
        let (go, going) = mpsc::channel::<()>();
        let read = readers.page(move || {
            begun.send(()).unwrap();
            going.recv().map_err(|_| unavailable("the test is over"))
        });
        tokio::select! {
            biased;
            read = read => panic!("{read:?}"),
            begun = begins => begun.unwrap(),
        }
        assert_eq!(readers.pages.available_permits(), 0);
        go.send(()).unwrap();
        readers.page(|| Ok(())).await.unwrap();
    }
}
