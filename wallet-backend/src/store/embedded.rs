//! The embedded engine: the log is the ledger.
