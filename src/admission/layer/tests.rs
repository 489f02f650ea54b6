use std::convert::Infallible;
use std::future::Ready;

use tower::{ServiceBuilder, ServiceExt, service_fn};

use super::*;
use crate::admission::BlockKind;
use crate::admission::fixtures::{Bed, call, isolation, one, resource};
use crate::rules::ResourceRules;

fn bed() -> Bed {
    Bed::new(ResourceRules {
        isolation: vec![isolation("i", 1)],
        ..resource("r")
    })
}

/// Answers with the request and its permit.
fn pass_on(admitted: Admitted<u32>) -> Ready<Result<Admitted<u32>, Infallible>> {
    std::future::ready(Ok(admitted))
}

fn identified(bed: &Bed, request: u32) -> Identified<u32> {
    Identified {
        call: Some(call(&bed.rules, one("alice"))),
        request,
    }
}

#[tokio::test(start_paused = true)]
async fn an_admitted_request_goes_on_with_its_permit() {
    let bed = bed();
    let layer = AdmissionLayer::new(Arc::clone(&bed.admission), Clock::start());
    let service = ServiceBuilder::new().layer(layer).service_fn(pass_on);
    let admitted = service.oneshot(identified(&bed, 42)).await.unwrap();
    assert_eq!((admitted.request, admitted.permit.is_some()), (42, true));
    assert_eq!(bed.in_flight(), 1);
    drop(admitted);
    assert_eq!(bed.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_never_reaches_the_inner_service() {
    let bed = bed();
    let _held = bed.admit("bob", crate::clock::Tick::ZERO).unwrap();
    let layer = AdmissionLayer::new(Arc::clone(&bed.admission), Clock::start());
    let inner = service_fn(|_: Admitted<u32>| async { panic!("it was refused") as Result<(), Infallible> });
    match ServiceBuilder::new()
        .layer(layer)
        .service(inner)
        .oneshot(identified(&bed, 1))
        .await
    {
        Err(AdmissionError::Blocked(blocked)) => assert_eq!(blocked.kind, BlockKind::Isolation),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_resource_passes_without_a_permit() {
    let layer = AdmissionLayer::new(Admission::new(), Clock::start());
    let service = ServiceBuilder::new().layer(layer).service_fn(pass_on);
    let admitted = service
        .oneshot(Identified {
            call: None,
            request: 1,
        })
        .await
        .unwrap();
    assert!(admitted.permit.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_permit_falls_when_the_inner_call_is_cancelled() {
    let bed = bed();
    let layer = AdmissionLayer::new(Arc::clone(&bed.admission), Clock::start());
    let inner = service_fn(|admitted: Admitted<u32>| async move {
        let _permit = admitted.permit;
        std::future::pending::<Result<(), Infallible>>().await
    });
    let mut service = ServiceBuilder::new().layer(layer).service(inner);
    let pending = service.ready().await.unwrap().call(identified(&bed, 1));
    assert_eq!(bed.in_flight(), 1);
    drop(pending);
    assert_eq!(bed.in_flight(), 0);
}
