//! What every job carries until its answer.

use std::sync::{Arc, OnceLock};

use tokio::time::Instant;

use super::Observed;
use super::in_flight::Claims;
use super::lanes::Lease;

/// Who is told of batches.
pub(super) type Observer = Box<dyn Fn(Observed) + Send + Sync>;

/// Falls with its job's answer, and what it holds with it.
pub(super) struct Guard {
    _claims: Claims,
    _lease: Option<Arc<Lease>>,
    _timer: Arc<Timer>,
}

impl Guard {
    pub(super) fn new(claims: Claims, lease: Option<Arc<Lease>>, timer: Arc<Timer>) -> Self {
        Self {
            _claims: claims,
            _lease: lease,
            _timer: timer,
        }
    }
}

/// Falls with the last guard of a batch.
pub(super) struct Timer {
    observer: Arc<OnceLock<Observer>>,
    started: Instant,
}

impl Timer {
    pub(super) fn start(observer: &Arc<OnceLock<Observer>>) -> Self {
        Self {
            observer: Arc::clone(observer),
            started: Instant::now(),
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(observer) = self.observer.get() {
            let took = self.started.elapsed();
            observer(Observed::Committed { took });
        }
    }
}
