//! Lanes and batches.
