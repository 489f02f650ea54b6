//! Everything that needs the real `sluice` binary, or a real socket. One file per behaviour.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and starts its own tasks"
)]

mod support;

mod admin;
mod all_in_one;
mod client_gone;
mod commands;
mod drain;
mod forwarding;
mod overload;
mod refusals;
