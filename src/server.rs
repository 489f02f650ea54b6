//! Accepting connections and draining them.
