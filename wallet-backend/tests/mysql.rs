//! Against real servers: MariaDB processes of the tests' own, or the server that `SLUICE_MYSQL_URL` names.
//!
//! [`database`] gives a test a database of its own on a server that all tests share: the named one, or else a private
//! one. [`Server`] is a private server of one test, which it may kill. [`Proxy`] stands between a client and a server
//! and loses what it is told to lose. Nothing here outlives the test process, however that ends.

mod claims;
mod database;
mod faults;
#[cfg(feature = "http")]
mod offline;
#[cfg(feature = "http")]
mod probing;
mod proxy;
mod readers;
#[cfg(feature = "http")]
mod schema;
mod server;
mod session;
mod template;

pub(crate) use database::{Database, database};
pub(crate) use proxy::{Fault, Proxy};
pub(crate) use server::{Server, Settings};
pub(crate) use session::Session;
