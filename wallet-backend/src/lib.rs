//! A slot-split ledger for hot accounts.
//!
//! A command (credit, debit, transfer) is queued on its account's lane ([`combiner`]), decided by a pure core over
//! the rows it needs ([`ledger`]), written with its whole batch in one durable step ([`store`]) and only then
//! answered. [`Wallet`] is the API; `http` puts it on a socket.
//!
//! ```text
//! Wallet -> combiner (joins the batch of its lane) -> store: rows -> ledger::decide, pure -> one atomic write -> answer
//! ```
#![warn(clippy::arithmetic_side_effects, clippy::float_arithmetic)]

pub mod account;
pub mod clock;
pub mod command;
pub mod money;

pub mod ledger;

pub mod store;

pub mod combiner;
pub mod wallet;

pub mod jobs;

#[cfg(feature = "http")]
pub mod http;

pub use wallet::Wallet;
