//! The root of the test `interleavings`: the library's modules over another `sync`. It is here, so that they find each
//! other by the same paths as from `lib.rs`. What it is about is said in `tests/interleavings/run.rs`.
#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::arithmetic_side_effects,
    reason = "the library's source as a module of a test uses a part of it; a test stops where it meets the unexpected"
)]

// What the library takes from dashmap comes from here.
extern crate shuttle_dashmap as dashmap;

mod account;
mod clock;
mod combiner;
mod command;
mod journal;
mod ledger;
mod money;
mod mutants;
mod store;
#[path = "../tests/interleavings/sync.rs"]
mod sync;

#[macro_use]
#[path = "../tests/as_the_model.rs"]
mod as_the_model;
#[path = "../tests/interleavings/run.rs"]
mod run;

fn main() {
    run::main();
}
