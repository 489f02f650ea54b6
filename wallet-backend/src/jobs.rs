//! Jobs on a timer. Idempotent: each may run at any time, any number of times, and each can be nudged by hand.

pub mod reconcile;
pub mod tidy;
