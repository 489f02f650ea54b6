//! The `wallet-backend` command.

fn main() {}
