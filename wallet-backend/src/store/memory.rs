//! The model: everything in memory, nothing durable. For tests and as the reference that other stores are compared with.
