//! Where the process is between start and exit. It only moves forward.

use std::sync::Arc;

use tokio::sync::watch;

/// A stage of the process's life, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// The one phase of the process. Clones share it.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    phase: Arc<watch::Sender<Phase>>,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self {
            phase: Arc::new(watch::Sender::new(Phase::Serving)),
        }
    }
}

impl Lifecycle {
    /// The phase now.
    #[must_use]
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Moves on to `next`; does nothing if that phase is reached or past.
    pub fn advance(&self, next: Phase) {
        self.phase.send_if_modified(|phase| {
            let later = next > *phase;
            if later {
                *phase = next;
            }
            later
        });
    }

    /// Waits until `phase` is reached.
    pub async fn reached(&self, phase: Phase) {
        let mut changes = self.phase.subscribe();
        // The sender lives in `self`, so the wait ends with the phase and never with an error.
        drop(changes.wait_for(|now| *now >= phase).await);
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
