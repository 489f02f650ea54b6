//! What the fuzz targets do with the bytes that they are given: one module a target, each a plain function.
//!
//! A panic anywhere, also on a thread of the store, is a crash that libFuzzer reports. Beyond that each target states
//! what must hold of every input. See `fuzz/run`.

pub mod index;
pub mod lines;
pub mod log;
pub mod manifest;
pub mod wire;

mod disk;
mod input;
mod judge;
mod kept;
