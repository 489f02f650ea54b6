//! Deciding one task.
