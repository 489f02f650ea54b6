//! Sluice: a flow-control sidecar.
//!
//! A request is accepted ([`server`]), walks one stack ([`proxy`]) in which its resource and parameters are read
//! ([`router`], [`params`]), every rule is evaluated and then taken in one step ([`admission`]), and is forwarded to
//! the upstream or to the bundled wallet. The rules are typed values ([`rules`]) that a watcher swaps whole.

pub mod clock;
pub mod lifecycle;
pub mod tasks;

pub mod params;
pub mod router;
pub mod rules;

pub mod bucket;
pub mod window;

pub mod admission;
pub mod proxy;

pub mod server;

pub mod admin;
pub mod telemetry;

pub mod config;
pub mod run;

pub mod check;
pub mod healthcheck;
pub mod load;
