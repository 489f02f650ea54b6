//! What the ledger must do, whichever store keeps it: one binary, a module per behaviour.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test that meets the unexpected should stop there and say where"
)]

#[macro_use]
mod as_the_model;
mod backup;
#[cfg(feature = "http")]
mod bank;
mod batches;
#[cfg(feature = "http")]
mod bench;
#[cfg(feature = "http")]
mod client;
mod combiner;
mod conformance;
#[cfg(feature = "http")]
mod copies;
#[cfg(feature = "http")]
mod crash;
#[cfg(feature = "http")]
mod explain;
#[cfg(feature = "http")]
mod export;
mod faults;
mod history;
mod history_mutants;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod import;
#[cfg(debug_assertions)]
mod mutants;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "http")]
mod process;
mod properties;
mod protocol;
mod races;
#[cfg(feature = "http")]
mod reconcile;
mod roots;
#[cfg(all(feature = "http", feature = "sqlite"))]
mod sqlite;
mod support;
mod wallet;
#[cfg(feature = "http")]
mod webhooks;
