//! One handler a route. Each reads top to bottom: check the request, ask the wallet, write the answer.

use std::sync::Arc;

use axum::extract::State;
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, patch, post};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;

use super::accept::Form;
use super::auth::{Needs, Scope};
use super::error::{Code, Problem};
use super::events::{self, Streams};
use super::extract::{
    AccountPath, BatchBody, DEFAULT_PAGE, EventsQuery, HoldPath, IdempotencyKey, JsonBody, NoQuery,
    OptionalJsonBody, PageQuery, RequestPath,
};
use super::metrics::{self, Metrics, OperationResult, OperationType};
use super::moment::MomentQuery;
use super::reconciliation::ReportJson;
use super::view::{AccountJson, AccountsJson, HoldJson, PageJson, PastJson, ReceiptJson, RequestJson};
use super::webhooks::{Webhooks, dead_letters};
use super::{batch, cursor, statement, wire};
use crate::Wallet;
use crate::command::{Command, LedgerError, Outcome, RequestView};
use crate::store::Cursor;

/// Most answers are receipts, and these are not longer.
const RECEIPT_BYTES: usize = 512;
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// What the handlers share.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) wallet: Wallet,
    pub(super) metrics: Metrics,
    pub(super) openapi: Bytes,
    pub(super) streams: Streams,
    pub(super) webhooks: Option<Webhooks>,
}

type Shared = State<Arc<Service>>;
type Answered = Result<Response, Problem>;

/// One method of one path.
pub(super) struct Route {
    pub(super) path: &'static str,
    /// As `openapi.json` has it.
    pub(super) method: &'static str,
    /// What the caller must be allowed to do. 401 and 403 are answered before the handler sees anything.
    pub(super) needs: Needs,
    pub(super) handler: MethodRouter<Arc<Service>>,
}

/// Whoever may call at all.
const NOTHING: Needs = &[];
const READ: Needs = &[&[Scope::Read]];
const CREDIT: Needs = &[&[Scope::Credit]];
const DEBIT: Needs = &[&[Scope::Debit]];
/// An id may be claimed by whoever could have decided it.
const CREDIT_OR_DEBIT: Needs = &[&[Scope::Credit], &[Scope::Debit]];
const CREDIT_AND_DEBIT: Needs = &[&[Scope::Credit, Scope::Debit]];
const ADMIN: Needs = &[&[Scope::Admin]];

/// Every route. The description in `openapi.json` is checked against this list, and completed with what each needs:
/// what takes money out of an account, sets it aside or settles that is a debit; what may do both needs both scopes.
pub(super) fn routes() -> Vec<Route> {
    vec![
        on_get("/v1/accounts", READ, accounts),
        on_post("/v1/accounts", ADMIN, open),
        on_get("/v1/accounts/{account_id}", READ, account),
        on_patch("/v1/accounts/{account_id}", ADMIN, amend),
        on_post("/v1/accounts/{account_id}/credits", CREDIT, credit),
        on_post("/v1/accounts/{account_id}/debits", DEBIT, debit),
        on_post("/v1/accounts/{account_id}/holds", DEBIT, hold),
        on_get("/v1/accounts/{account_id}/holds/{hold_id}", READ, look_up_hold),
        on_post(
            "/v1/accounts/{account_id}/holds/{hold_id}/capture",
            DEBIT,
            capture,
        ),
        on_post(
            "/v1/accounts/{account_id}/holds/{hold_id}/release",
            DEBIT,
            release,
        ),
        on_get("/v1/accounts/{account_id}/entries", READ, entries),
        on_post("/v1/transfers", DEBIT, transfer),
        on_post("/v1/reversals", CREDIT_AND_DEBIT, reversal),
        on_post("/v1/batches", CREDIT_AND_DEBIT, run_batch),
        on_get("/v1/requests/{account_id}/{request_id}", READ, request),
        on_post(
            "/v1/requests/{account_id}/{request_id}/abandon",
            CREDIT_OR_DEBIT,
            abandon,
        ),
        on_get("/v1/events", READ, stream_events),
        on_get("/v1/webhooks/dead-letters", ADMIN, list_dead_letters),
        on_post("/v1/webhooks/dead-letters/redeliver", ADMIN, redeliver),
        on_get("/v1/reconciliation", READ, reconciliation),
        on_get("/healthz", NOTHING, healthz),
        on_get("/readyz", NOTHING, readyz),
        on_get("/metrics", READ, scrape),
        on_get("/openapi.json", NOTHING, openapi),
    ]
}

fn on_get<T: 'static>(path: &'static str, needs: Needs, handler: impl Handler<T, Arc<Service>>) -> Route {
    Route {
        path,
        method: "get",
        needs,
        handler: get(handler),
    }
}

fn on_post<T: 'static>(path: &'static str, needs: Needs, handler: impl Handler<T, Arc<Service>>) -> Route {
    Route {
        path,
        method: "post",
        needs,
        handler: post(handler),
    }
}

fn on_patch<T: 'static>(path: &'static str, needs: Needs, handler: impl Handler<T, Arc<Service>>) -> Route {
    Route {
        path,
        method: "patch",
        needs,
        handler: patch(handler),
    }
}

async fn open(State(service): Shared, _: NoQuery, JsonBody(body): JsonBody) -> Answered {
    let account = wire::open(&body)?;
    let answer = service.wallet.open(account).await;
    let (result, answered) = match answer {
        Ok((view, created)) => {
            let status = if created {
                StatusCode::CREATED
            } else {
                StatusCode::OK
            };
            (done(!created), Ok(json(status, &AccountJson::from(&view))))
        }
        Err(error) => failed(error),
    };
    service.metrics.count(OperationType::Open, result);
    answered
}

async fn accounts(State(service): Shared, query: PageQuery) -> Answered {
    let after = match query.after {
        None => None,
        Some(text) => cursor::decode_account(&text)
            .ok_or_else(|| Problem::invalid("after", "must be the next of an earlier page of this list"))?,
    };
    let limit = query.limit.unwrap_or(DEFAULT_PAGE);
    let views = service.wallet.accounts(after.as_ref(), limit).await?;
    let body = AccountsJson::new(&views, after.as_ref());
    Ok(json(StatusCode::OK, &body))
}

async fn account(State(service): Shared, query: MomentQuery, AccountPath(id): AccountPath) -> Answered {
    let Some(moment) = query.of(&id)? else {
        let view = service.wallet.account(&id).await?;
        return Ok(json(StatusCode::OK, &AccountJson::from(&view)));
    };
    let past = service.wallet.past(&id, &moment).await?;
    Ok(json(StatusCode::OK, &PastJson::from(&past)))
}

async fn amend(
    State(service): Shared,
    _: NoQuery,
    AccountPath(account): AccountPath,
    IdempotencyKey(key): IdempotencyKey,
    JsonBody(body): JsonBody,
) -> Answered {
    let command = wire::amend(account, key, &body)?;
    run(&service, command).await
}

async fn credit(
    State(service): Shared,
    _: NoQuery,
    AccountPath(account): AccountPath,
    IdempotencyKey(key): IdempotencyKey,
    JsonBody(body): JsonBody,
) -> Answered {
    let command = wire::credit(account, key, &body)?;
    run(&service, command).await
}

async fn debit(
    State(service): Shared,
    _: NoQuery,
    AccountPath(account): AccountPath,
    IdempotencyKey(key): IdempotencyKey,
    JsonBody(body): JsonBody,
) -> Answered {
    let command = wire::debit(account, key, &body)?;
    run(&service, command).await
}

async fn hold(
    State(service): Shared,
    _: NoQuery,
    AccountPath(account): AccountPath,
    IdempotencyKey(key): IdempotencyKey,
    JsonBody(body): JsonBody,
) -> Answered {
    let command = wire::hold(account, key, &body)?;
    run(&service, command).await
}

async fn look_up_hold(State(service): Shared, _: NoQuery, HoldPath(account, hold): HoldPath) -> Answered {
    let hold = service.wallet.look_up_hold(&account, &hold).await?;
    Ok(json(StatusCode::OK, &HoldJson::from(&hold)))
}

async fn capture(
    State(service): Shared,
    _: NoQuery,
    HoldPath(account, hold): HoldPath,
    IdempotencyKey(key): IdempotencyKey,
    JsonBody(body): JsonBody,
) -> Answered {
    let command = wire::capture((account, hold), key, &body)?;
    run(&service, command).await
}

async fn release(
    State(service): Shared,
    _: NoQuery,
    HoldPath(account, hold): HoldPath,
    IdempotencyKey(key): IdempotencyKey,
    JsonBody(body): JsonBody,
) -> Answered {
    let command = wire::release((account, hold), key, &body)?;
    run(&service, command).await
}

async fn transfer(
    State(service): Shared,
    _: NoQuery,
    IdempotencyKey(key): IdempotencyKey,
    JsonBody(body): JsonBody,
) -> Answered {
    let command = wire::transfer(key, &body)?;
    run(&service, command).await
}

async fn reversal(
    State(service): Shared,
    _: NoQuery,
    IdempotencyKey(key): IdempotencyKey,
    JsonBody(body): JsonBody,
) -> Answered {
    let command = wire::reversal(key, &body)?;
    run(&service, command).await
}

async fn run(service: &Service, command: Command) -> Answered {
    let operation = OperationType::from(&command.operation);
    let answer = service.wallet.run(command).await;
    service.metrics.count(operation, OperationResult::from(&answer));
    match answer {
        Ok(decided) => Ok(outcome(&decided.outcome, decided.replayed)),
        Err(error) => failed(error).1,
    }
}

async fn run_batch(
    State(service): Shared,
    _: NoQuery,
    IdempotencyKey(key): IdempotencyKey,
    BatchBody(body): BatchBody,
) -> Answered {
    if key.is_some() {
        let rule = "is each operation's own: a batch takes no Idempotency-Key header";
        return Err(Problem::invalid("request_id", rule));
    }
    let sent = wire::batch(&body)?;
    // Not needed any more, and long.
    drop(body);
    match batch::run(&service.wallet, &service.metrics, sent).await {
        Ok(body) => Ok(json(StatusCode::OK, &body)),
        Err(error) => failed(error).1,
    }
}

/// A first success is 201 and its replay 200; a refusal keeps its status. The body is the outcome's alone.
fn outcome(outcome: &Outcome, replayed: bool) -> Response {
    let mut response = match outcome {
        Outcome::Posted(receipt) => {
            let status = if replayed {
                StatusCode::OK
            } else {
                StatusCode::CREATED
            };
            json(status, &ReceiptJson::from(receipt))
        }
        Outcome::Amended(view) => json(StatusCode::OK, &AccountJson::from(view.as_ref())),
        Outcome::Refused(refusal) => Problem::from(refusal).into_response(),
    };
    if replayed {
        response
            .headers_mut()
            .insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

async fn entries(
    State(service): Shared,
    query: PageQuery,
    AccountPath(id): AccountPath,
    headers: HeaderMap,
) -> Answered {
    let form = Form::accepted(&headers)?;
    let after = match query.after {
        None => Cursor::default(),
        Some(text) => cursor::decode(&id, &text).ok_or_else(|| {
            Problem::invalid("after", "must be the next of an earlier page of this account")
        })?,
    };
    if form != Form::Json {
        return statement::respond(&service.wallet, &id, after, query.limit, form).await;
    }
    let limit = query.limit.unwrap_or(DEFAULT_PAGE);
    let page = service.wallet.entries(&id, &after, limit).await?;
    Ok(json(StatusCode::OK, &PageJson::new(&id, &page)))
}

async fn request(State(service): Shared, _: NoQuery, RequestPath(account, request): RequestPath) -> Answered {
    let view = service.wallet.request(&account, &request).await?;
    let body = RequestJson::new(&account, &request, &view);
    Ok(json(StatusCode::OK, &body))
}

async fn stream_events(State(service): Shared, query: EventsQuery, headers: HeaderMap) -> Answered {
    events::respond(&service.wallet, &service.streams, query, &headers).await
}

async fn list_dead_letters(State(service): Shared, query: PageQuery) -> Answered {
    let ledger = service.wallet.ledger();
    let body = dead_letters::list(ledger, service.webhooks.as_ref(), query)?;
    Ok(json(StatusCode::OK, &body))
}

async fn redeliver(State(service): Shared, _: NoQuery, OptionalJsonBody(body): OptionalJsonBody) -> Answered {
    let ledger = service.wallet.ledger();
    let (status, body) = dead_letters::redeliver(ledger, service.webhooks.as_ref(), &body)?;
    Ok(json(status, &body))
}

async fn abandon(
    State(service): Shared,
    _: NoQuery,
    RequestPath(account, request): RequestPath,
    IdempotencyKey(key): IdempotencyKey,
    OptionalJsonBody(body): OptionalJsonBody,
) -> Answered {
    wire::nothing(&body)?;
    let request = wire::one_request_id(key, Some(request))?;
    let (result, answered) = match service.wallet.abandon(&account, &request).await {
        Ok(decided) => {
            let view = RequestView::Decided(decided.outcome);
            let body = RequestJson::new(&account, &request, &view);
            (done(decided.replayed), Ok(json(StatusCode::OK, &body)))
        }
        Err(error) => failed(error),
    };
    service.metrics.count(OperationType::Abandon, result);
    answered
}

async fn reconciliation(State(service): Shared, _: NoQuery) -> Answered {
    let report = service.wallet.reconciliation();
    Ok(json(StatusCode::OK, &ReportJson::from(&*report)))
}

/// The process answers.
async fn healthz() -> Response {
    json(StatusCode::OK, &serde_json::json!({"status": "ok"}))
}

/// The store takes commands.
async fn readyz(State(service): Shared) -> Answered {
    service.wallet.health()?;
    Ok(json(StatusCode::OK, &serde_json::json!({"ready": true})))
}

async fn scrape(State(service): Shared) -> Response {
    let pending = service.wallet.pending().await.ok();
    let (streams, webhooks) = (service.streams.open(), service.webhooks.as_ref());
    let text = service
        .metrics
        .encode(&service.wallet, pending, streams, webhooks);
    typed(metrics::CONTENT_TYPE, text.into())
}

async fn openapi(State(service): Shared) -> Response {
    typed("application/json", service.openapi.clone())
}

/// A path that is no route.
pub(super) async fn unknown_route() -> Problem {
    Problem::new(
        Code::NotFound,
        "there is no such route; /openapi.json lists those that exist",
    )
}

/// A route without this method. The router adds `Allow`.
pub(super) async fn unknown_method() -> Problem {
    Problem::new(
        Code::MethodNotAllowed,
        "the route exists, but not with this method; the Allow header lists those it has",
    )
}

const fn done(replayed: bool) -> OperationResult {
    if replayed {
        OperationResult::Replayed
    } else {
        OperationResult::Done
    }
}

fn failed(error: LedgerError) -> (OperationResult, Answered) {
    // What an operator has to know. The rest is the caller's affair, and counted.
    if matches!(
        error,
        LedgerError::Unavailable { .. } | LedgerError::OutcomeUnknown { .. }
    ) {
        tracing::warn!(%error, "an operation failed");
    }
    let problem = Problem::from(error);
    (OperationResult::Problem(problem.code()), Err(problem))
}

fn json(status: StatusCode, body: &impl Serialize) -> Response {
    // Plain structs of numbers and strings: nothing in them can fail to be written.
    let mut text = Vec::with_capacity(RECEIPT_BYTES);
    drop(serde_json::to_writer(&mut text, body));
    let mut response = typed("application/json", text.into());
    *response.status_mut() = status;
    response
}

fn typed(content_type: &'static str, body: Bytes) -> Response {
    let mut response = Response::new(body.into());
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
