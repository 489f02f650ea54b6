//! The client of the service: every call against the real routes, and what it makes of answers that get lost.

mod batches;
mod calls;
mod events;
mod faults;
mod proxy;
mod service;
