//! The pure core: rows and a task in, changes and an answer out. No IO, no clock, no locks.

pub mod decide;
pub mod invariants;
pub mod slots;
