//! Everything that needs the real `sluice` binary, or a real socket. One file per behaviour.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and starts its own tasks"
)]

mod page;
mod shipped;
mod support;
mod wallet;

mod admin;
mod all_in_one;
mod claims;
mod client_gone;
mod commands;
mod drain;
mod forwarding;
mod kill;
mod overload;
mod readme;
mod refusals;
mod reload;
mod shows;
mod sidecar;
mod wallet_api;
