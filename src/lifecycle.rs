//! Where the process is between start and exit. It only moves forward.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::watch;

/// A stage of the process's life, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// Ready and accepting.
    Serving,
    /// Not ready any more, still accepting: load balancers are learning of it.
    Leaving,
    /// Not accepting; what is in flight is finished, connections close after their answer.
    Closing,
    /// Whatever is still in flight is dropped.
    Stopping,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Serving, Self::Leaving, Self::Closing, Self::Stopping];
}

/// The one phase of the process. Clones share it. Reading it is one atomic load, since every request does.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Index into [`Phase::ALL`].
    phase: AtomicU8,
    /// Told after `phase` has changed: whoever is woken sees it, and so does whoever hears of one that was.
    changed: watch::Sender<()>,
}

impl Default for Lifecycle {
    fn default() -> Self {
        let (phase, changed) = (AtomicU8::new(Phase::Serving as u8), watch::Sender::new(()));
        Self {
            shared: Arc::new(Shared { phase, changed }),
        }
    }
}

impl Lifecycle {
    /// The phase now.
    #[must_use]
    pub fn phase(&self) -> Phase {
        // Acquire, with the release in `advance`: what was done before the phase was announced is seen.
        let index = usize::from(self.shared.phase.load(Ordering::Acquire));
        Phase::ALL.get(index).copied().unwrap_or(Phase::Stopping)
    }

    /// Moves on to `next`; does nothing if that phase is reached or past.
    pub fn advance(&self, next: Phase) {
        if self.shared.phase.fetch_max(next as u8, Ordering::AcqRel) < next as u8 {
            self.shared.changed.send_replace(());
        }
    }

    /// Waits until `phase` is reached.
    pub async fn reached(&self, phase: Phase) {
        // Subscribed before looking, so that a change in between still wakes it.
        let mut changes = self.shared.changed.subscribe();
        while self.phase() < phase {
            // The sender lives in `self`, so there is always another change to come.
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_phase_is_never_left_backwards() {
        let lifecycle = Lifecycle::default();
        lifecycle.advance(Phase::Closing);
        lifecycle.advance(Phase::Leaving);
        assert_eq!(lifecycle.phase(), Phase::Closing);
        lifecycle.reached(Phase::Leaving).await;
    }
}
