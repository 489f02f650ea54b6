//! A slot-split ledger for hot accounts.
//!
//! A command (credit, debit, transfer) is queued on its account's lane ([`combiner`]), decided by a pure core over
//! the rows it needs ([`ledger`]), written with its whole batch in one durable step ([`store`]) and only then
//! answered. [`Wallet`] is the API; `http` puts it on a socket, and `client` is for who speaks to that.
//!
//! ```text
//! Wallet -> combiner (joins the batch of its lane) -> store: rows -> ledger::decide, pure -> one atomic write -> answer
//! ```
//!
//! ```
//! use wallet_backend::Wallet;
//! use wallet_backend::account::{Account, AccountId, RequestId};
//! use wallet_backend::command::Outcome;
//! use wallet_backend::money::{Amount, Currency};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let wallet = Wallet::memory()?;
//! let alice = AccountId::new("alice")?;
//! wallet.open(Account::new(alice.clone(), Currency::new("EUR")?)).await?;
//!
//! wallet.credit(&alice, &RequestId::new("pay-1")?, Amount::new(500)?, None).await?;
//! let paid = wallet.debit(&alice, &RequestId::new("buy-1")?, Amount::new(120)?, Some("tea")).await?;
//! assert!(matches!(paid.outcome, Outcome::Posted(_)));
//!
//! // The same id again is the same outcome, and takes nothing.
//! let again = wallet.debit(&alice, &RequestId::new("buy-1")?, Amount::new(120)?, Some("tea")).await?;
//! assert!(again.replayed);
//! assert_eq!(again.outcome, paid.outcome);
//! assert_eq!(wallet.account(&alice).await?.balance(), 380);
//! wallet.close().await;
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(clippy::arithmetic_side_effects, clippy::float_arithmetic)]

pub mod account;
pub mod clock;
pub mod command;
pub mod money;

mod sync;

#[doc(hidden)]
pub mod mutants;

pub mod ledger;

pub mod journal;

pub mod store;

pub mod combiner;
pub mod wallet;

pub mod jobs;

#[cfg(feature = "http")]
pub mod http;

#[cfg(feature = "client")]
pub mod client;

pub use wallet::Wallet;
