//! The client of the service: every call against the real routes, and what it makes of answers that get lost.

mod calls;
mod faults;
mod proxy;
mod service;
