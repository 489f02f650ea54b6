//! The public API.

/// A wallet over a store.
#[derive(Debug)]
pub struct Wallet {}
