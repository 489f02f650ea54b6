//! The one tower layer: asks [`Admission`] and, if admitted, calls the inner service with the permit.
//!
//! The decision is made in `call`, in one synchronous step; `poll_ready` only delegates, since readiness of the inner
//! service says nothing about a key. `call` uses the inner service that `poll_ready` made ready at once, before any
//! await, so there is no clone that could miss its readiness and no `mem::replace` is needed. The permit travels
//! inward, to whoever wraps the body of the answer, because it must live until the last byte.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::{Either, MapErr, Ready, TryFutureExt, ready};
use tower::{Layer, Service};

use super::{Admission, Blocked, Call, Permit};
use crate::clock::Clock;

/// A request whose resource has been looked up.
#[derive(Debug)]
pub struct Identified<R> {
    /// `None` if no resource matches: it passes without a permit.
    pub call: Option<Call>,
    pub request: R,
}

/// A request that may go on.
#[derive(Debug)]
pub struct Admitted<R> {
    /// To be kept until the last byte of the answer. `None` if no resource matched.
    pub permit: Option<Permit>,
    pub request: R,
}

/// Why there is no answer from the inner service.
#[derive(Debug)]
pub enum AdmissionError<E> {
    /// Refused by a rule; the inner service was not called.
    Blocked(Blocked),
    /// The inner service failed.
    Inner(E),
}

/// Puts admission in front of a service.
#[derive(Clone, Debug)]
pub struct AdmissionLayer {
    admission: Arc<Admission>,
    clock: Clock,
}

impl AdmissionLayer {
    /// A layer over the process's one state and clock.
    #[must_use]
    pub const fn new(admission: Arc<Admission>, clock: Clock) -> Self {
        Self { admission, clock }
    }
}

impl<S> Layer<S> for AdmissionLayer {
    type Service = AdmissionService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        AdmissionService {
            admission: Arc::clone(&self.admission),
            clock: self.clock,
            inner,
        }
    }
}

/// See [`AdmissionLayer`].
#[derive(Clone, Debug)]
pub struct AdmissionService<S> {
    admission: Arc<Admission>,
    clock: Clock,
    inner: S,
}

impl<S, R> Service<Identified<R>> for AdmissionService<S>
where
    S: Service<Admitted<R>>,
{
    type Response = S::Response;
    type Error = AdmissionError<S::Error>;
    type Future = Either<
        Ready<Result<S::Response, Self::Error>>,
        MapErr<S::Future, fn(S::Error) -> AdmissionError<S::Error>>,
    >;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(AdmissionError::Inner)
    }

    fn call(&mut self, identified: Identified<R>) -> Self::Future {
        let Identified { call, request } = identified;
        let permit = match call
            .map(|call| self.admission.admit(&call, self.clock.now()))
            .transpose()
        {
            Ok(permit) => permit,
            Err(blocked) => return Either::Left(ready(Err(AdmissionError::Blocked(blocked)))),
        };
        Either::Right(
            self.inner
                .call(Admitted { permit, request })
                .map_err(AdmissionError::Inner),
        )
    }
}

#[cfg(test)]
mod tests;
