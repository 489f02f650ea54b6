//! The pure core: rows and a task in, changes and an answer out. No IO, no clock, no locks.
//!
//! A store locks the rows that a [`Task`](crate::command::Task) needs, calls [`decide::decide`], writes the
//! [`Changes`](crate::command::Changes) with the rest of its batch and applies them with [`rows::AccountRows::apply`].
//! Replaying stored changes decides nothing again.

pub mod atomic;
pub mod decide;
mod draft;
pub mod facts;
pub mod flow;
pub mod invariants;
pub mod rows;
pub mod slots;
