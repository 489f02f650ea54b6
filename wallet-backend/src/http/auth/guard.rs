//! The layer in front of every handler. It decides before it calls, so that it needs no future of its own.

use std::future::{Ready, ready};
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::future::Either;
use tower::{Layer, Service};

use super::{Access, Needs, Scope};
use crate::http::error::{Code, Problem};

/// Lets through who may call and has what is needed; to others 401 `unauthorized` or 403 `forbidden`.
#[derive(Clone, Debug)]
pub(in crate::http) struct Guard {
    pub(in crate::http) access: Access,
    pub(in crate::http) needs: Needs,
}

/// What is behind a [`Guard`].
#[derive(Clone, Debug)]
pub(in crate::http) struct Guarded<S> {
    guard: Guard,
    inner: S,
}

impl Guard {
    fn refusal(&self, request: &Request) -> Option<Problem> {
        if matches!(request.uri().path(), "/healthz" | "/readyz") {
            return None;
        }
        let Some(held) = self.access.scopes(request.headers()) else {
            let detail = "send a token or an API key as Authorization: Bearer TOKEN";
            return Some(Problem::new(Code::Unauthorized, detail));
        };
        if self.needs.is_empty() || held.satisfy(self.needs) {
            return None;
        }
        let group = |group: &&[Scope]| {
            let scopes = group.iter().map(|scope| scope.as_str());
            scopes.collect::<Vec<_>>().join(" and ")
        };
        let groups = self.needs.iter().map(group).collect::<Vec<_>>().join(" or ");
        let detail = format!("this needs a key with the scope {groups}");
        Some(Problem::new(Code::Forbidden, detail))
    }
}

impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        let guard = self.clone();
        Guarded { guard, inner }
    }
}

impl<S: Service<Request, Response = Response>> Service<Request> for Guarded<S> {
    type Response = Response;
    type Error = S::Error;
    type Future = Either<Ready<Result<Response, S::Error>>, S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match self.guard.refusal(&request) {
            Some(problem) => Either::Left(ready(Ok(problem.into_response()))),
            None => Either::Right(self.inner.call(request)),
        }
    }
}
